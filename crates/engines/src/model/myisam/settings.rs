//! Settings of the MyISAM model: memory for indexes and for pages, limits of dirty pages, processors.
//!
//! Defaults are those of MySQL 5.1 and Linux 2.6.

use super::{BLOCK, PAGE};
use crate::model::machine::{Machine, at_least_1, share, unknown, wrong};
use crate::{Durability, Settings, SettingsError};
use lowtide_core::Bytes;

/// The MyISAM model with all defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct MyisamSettings {
    /// Memory for index blocks (`key_buffer_size`).
    pub key_cache: Bytes,
    /// Memory of the kernel's page cache.
    pub page_cache: Bytes,
    /// Dirty share of the page cache, 0 to 1, at which background write-back begins (`dirty_background_ratio`).
    pub background: f64,
    /// Dirty share of the page cache, 0 to 1, at which writers wait (`dirty_ratio`).
    pub limit: f64,
    /// Maximum write requests in flight.
    pub writes: u32,
    /// The machine.
    pub machine: Machine,
    /// Settings that the model does not support, one line each.
    pub ignored: Vec<String>,
}

/// Maximum requests of one queue in flight with CFQ, the default I/O scheduler since Linux 2.6.18
/// (`cfq_quantum`).
const QUANTUM: u32 = 4;

impl MyisamSettings {
    const KEYS: [&'static str; 8] = [
        "contention",
        "cores",
        "cpu",
        "dirty-background-ratio",
        "dirty-ratio",
        "io-cpu",
        "page-cache",
        "write-queue",
    ];

    /// Resolves settings.
    ///
    /// # Errors
    /// [`SettingsError`] for an unknown option, or a value that an option does not accept.
    pub fn of(settings: &Settings) -> Result<MyisamSettings, SettingsError> {
        let key_cache = settings.buffer_pool.unwrap_or(Bytes::mib(8));
        let mut model = MyisamSettings {
            key_cache,
            // The manual recommends a quarter of memory for the key cache. The kernel and the server take an eighth,
            // so five eighths remain for the page cache.
            page_cache: Bytes::new(key_cache.get() / 2 * 5),
            background: 0.1,
            limit: 0.2,
            writes: QUANTUM,
            machine: Machine::default(),
            ignored: ignored(settings),
        };
        for (key, value) in &settings.options {
            model.set(key, value)?;
        }
        let least = Bytes::mib(2);
        if model.page_cache < least {
            let has = model.page_cache;
            return Err(SettingsError(format!("a page cache of {has}: the model needs {least} at least")));
        }
        if model.background >= model.limit {
            let (background, limit) = (model.background, model.limit);
            return Err(SettingsError(format!(
                "`dirty-background-ratio` of {background} is not below `dirty-ratio` of {limit}"
            )));
        }
        Ok(model)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SettingsError> {
        match key {
            "dirty-background-ratio" => self.background = share(key, value)?,
            "dirty-ratio" => self.limit = share(key, value)?,
            "page-cache" => {
                self.page_cache =
                    value.parse().map_err(|_| wrong(key, value, "an amount of memory, such as 2GiB", &[]))?;
            }
            "write-queue" => self.writes = at_least_1(key, value)?,
            _ if self.machine.set(key, value)? => {}
            _ => return Err(unknown("myisam-model", key, &Self::KEYS)),
        }
        Ok(())
    }

    /// Number of blocks in the key cache. `pages` is the number of pages in the page cache.
    pub(super) fn blocks(&self) -> u32 {
        (self.key_cache.get() / BLOCK).min(u64::from(u32::MAX / 2)) as u32
    }
    pub(super) fn pages(&self) -> u32 {
        (self.page_cache.get() / PAGE).min(u64::from(u32::MAX / 2)) as u32
    }
    /// The numbers of dirty pages at which background write-back begins and at which writers wait.
    pub(super) fn most_dirty(&self) -> (u32, u32) {
        let of = |share: f64| (f64::from(self.pages()) * share) as u32;
        (of(self.background), of(self.limit))
    }

    /// Names and values for a report.
    pub fn told(&self) -> Vec<(String, String)> {
        let told = [
            ("key cache", self.key_cache.to_string()),
            ("page cache", self.page_cache.to_string()),
            ("dirty-background-ratio", self.background.to_string()),
            ("dirty-ratio", self.limit.to_string()),
            ("write-queue", self.writes.to_string()),
            ("cores", self.machine.cores.to_string()),
            ("cpu of a transaction", self.machine.cpu.to_string()),
            ("cpu of a request", self.machine.io_cpu.to_string()),
            ("contention", self.machine.contention.to_string()),
        ];
        told.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Settings that MyISAM does not support.
fn ignored(settings: &Settings) -> Vec<String> {
    let why = "InnoDB has it, this engine has not";
    let waits = settings.durability.is_some_and(|durability| durability != Durability::None);
    [
        (waits, "durability", "MyISAM never waits for the device"),
        (settings.log_size.is_some(), "log_size", "MyISAM has no log"),
        (settings.doublewrite.is_some(), "doublewrite", why),
        (settings.flush_neighbours.is_some(), "flush_neighbours", why),
        (settings.io_capacity.is_some(), "io_capacity", why),
    ]
    .into_iter()
    .filter(|(asked, ..)| *asked)
    .map(|(_, name, why)| format!("{name}: {why}"))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use crate::model::testing::options;

    fn with(given: &[(&str, &str)]) -> Result<MyisamSettings, SettingsError> {
        let log_size = Some(Bytes::mib(64));
        let options = options(given);
        MyisamSettings::of(&Settings {
            engine: Engine::MyisamModel,
            log_size,
            options,
            ..Settings::default()
        })
    }

    #[test]
    fn the_page_cache_follows_the_key_cache_unless_it_is_given() {
        assert_eq!(with(&[]).expect("defaults").page_cache, Bytes::mib(20));
        let model = with(&[("page-cache", "1GiB"), ("dirty-ratio", "0.4")]).expect("all are options");
        assert_eq!((model.page_cache, model.pages()), (Bytes::gib(1), 1 << 18));
        assert_eq!(model.most_dirty(), (26_214, 104_857));
        assert_eq!(model.ignored, ["log_size: MyISAM has no log"]);
    }

    #[test]
    fn unknown_options_and_invalid_values_are_reported() {
        for (key, value, says) in [
            ("pool-lock", "1us", "myisam-model has no option `pool-lock`"),
            ("page-cash", "1GiB", "did you mean `page-cache`?"),
            ("page-cache", "much", "an amount of memory"),
            ("page-cache", "1MiB", "2MiB at least"),
            ("dirty-ratio", "20", "a share from 0 to below 1"),
            ("dirty-ratio", "0.1", "is not below"),
            ("write-queue", "0", "at least 1"),
        ] {
            let error = with(&[(key, value)]).expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
