//! Settings of the InnoDB model ([`InnodbSettings`]), resolved from the common [`Settings`] and the model's
//! own options.
//!
//! Defaults are those of MariaDB 10.11. With the preset `2010` they are those of MySQL 5.1 to 5.5 with the InnoDB
//! plugin.

use crate::model::machine::{Machine, at_least_1, switch, time, unknown, wrong};
use crate::{Durability, Preset, Settings, SettingsError};
use lowtide_core::{Bytes, Nanos};

/// Algorithm that chooses the pages to flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleaner {
    /// The master thread of MySQL 5.1 to 5.5 (adaptive flushing): once a second it flushes pages in proportion to the
    /// growth of the log, at most `io_capacity`. LRU pages are flushed only on demand.
    Master,
    /// The page cleaner of MariaDB and MySQL 5.6 and later: it flushes pages by checkpoint age, up to
    /// `innodb_io_capacity_max`, and LRU pages ahead of demand.
    PageCleaner,
    /// Percona Server 5.5 with `innodb_adaptive_flushing_method = keep_average`: every 100 ms it flushes as many
    /// pages as keep the checkpoint age constant, regardless of `io_capacity`.
    KeepAverage,
}

impl Cleaner {
    const NAMES: [(&str, Cleaner); 3] = [
        ("master", Cleaner::Master),
        ("page-cleaner", Cleaner::PageCleaner),
        ("keep-average", Cleaner::KeepAverage),
    ];
}

/// The InnoDB model with all defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct InnodbSettings {
    /// Memory for pages.
    pub buffer_pool: Bytes,
    /// Minimum time that a page stays in the old part of the LRU list, in milliseconds.
    pub old_ms: u32,
    /// Total size of the redo log files.
    pub log: Bytes,
    /// The state of the log that a commit waits for.
    pub durability: Durability,
    /// `fsync` flushes the drive.
    pub barrier: bool,
    /// A sync commits the filesystem's journal. With `fsync` this is true, because a write changes the file's times.
    /// With `fdatasync`, which MariaDB uses, it is false.
    pub journal: bool,
    /// Pages are written twice, first to the doublewrite buffer.
    pub doublewrite: bool,
    /// Dirty neighbours are written with a page.
    pub neighbours: bool,
    /// Entries of secondary indexes can wait in the change buffer.
    pub change_buffer: bool,
    /// Foreign keys have indexes, as in tpcc-mysql. The specification leaves them to the implementation.
    pub foreign_keys: bool,
    /// Page writes per second that the server assumes the device can do.
    pub io_capacity: u32,
    /// Algorithm that chooses the pages to flush.
    pub cleaner: Cleaner,
    /// Maximum dirty share of the buffer pool, from 0 to 1.
    pub max_dirty: f64,
    /// Maximum page writes in flight.
    pub writes: u32,
    /// The machine.
    pub machine: Machine,
    /// Mean time for which a transaction holds the pool latch, over the mix.
    pub pool_lock: Nanos,
    /// Time to scan a frame at the LRU tail, under the pool latch.
    pub look: Nanos,
    /// The system tablespace (doublewrite buffer and undo log) is on the log's device.
    pub system_with_log: bool,
}

impl InnodbSettings {
    const KEYS: [&'static str; 13] = [
        "barrier",
        "change-buffer",
        "cleaner",
        "contention",
        "cores",
        "cpu",
        "foreign-keys",
        "io-cpu",
        "journal",
        "look",
        "pool-lock",
        "system-with-log",
        "write-threads",
    ];

    /// Resolves settings.
    ///
    /// # Errors
    /// [`SettingsError`] for an unknown option, or a value that an option does not accept.
    pub fn of(settings: &Settings) -> Result<InnodbSettings, SettingsError> {
        let old = settings.preset == Some(Preset::Y2010);
        let page = Bytes::new(super::PAGE);
        let log = settings.log_size.unwrap_or(if old { Bytes::mib(10) } else { Bytes::mib(96) });
        let mut model = InnodbSettings {
            buffer_pool: settings.buffer_pool.unwrap_or(Bytes::mib(128)),
            old_ms: if old { 0 } else { 1000 },
            // A scaled size (`--scale`) need not be a multiple of the page size.
            log: log.align_down(page).max(page),
            durability: settings.durability.unwrap_or(if old {
                Durability::Second
            } else {
                Durability::Full
            }),
            barrier: true,
            journal: old,
            doublewrite: settings.doublewrite.unwrap_or(true),
            neighbours: settings.flush_neighbours.unwrap_or(true),
            change_buffer: old,
            foreign_keys: false,
            io_capacity: settings.io_capacity.unwrap_or(200),
            cleaner: if old { Cleaner::Master } else { Cleaner::PageCleaner },
            max_dirty: if old { 0.75 } else { 0.9 },
            // Four threads with one request each, or the kernel's asynchronous I/O.
            writes: if old { 4 } else { 64 },
            machine: Machine::default(),
            pool_lock: Nanos::ZERO,
            // A scan of a frame touches eight cache lines last used by another processor. Fetching a line from
            // another socket takes 102 to 109 ns (Molka and others, "Memory Performance and Cache Coherency Effects
            // on an Intel Nehalem Multiprocessor System", 2009).
            look: Nanos::ZERO,
            system_with_log: false,
        };
        for (key, value) in &settings.options {
            model.set(key, value)?;
        }
        if model.frames() < 256 {
            let pool = model.buffer_pool;
            return Err(SettingsError(format!("a buffer pool of {pool}: a model needs 4 MiB at least")));
        }
        Ok(model)
    }

    /// Number of frames of the buffer pool.
    pub fn frames(&self) -> u32 {
        (self.buffer_pool.get() / super::PAGE).min(u64::from(u32::MAX / 2)) as u32
    }

    /// Names and values for a report.
    pub fn told(&self) -> Vec<(String, String)> {
        let on = |on: bool| if on { "on" } else { "off" }.to_owned();
        let cleaner = Cleaner::NAMES.iter().find(|(_, cleaner)| *cleaner == self.cleaner);
        let told = [
            ("buffer pool", self.buffer_pool.to_string()),
            ("durability", self.durability.to_string()),
            ("barrier", on(self.barrier)),
            ("journal", on(self.journal)),
            ("cores", self.machine.cores.to_string()),
            ("cpu of a transaction", self.machine.cpu.to_string()),
            ("cpu of a request", self.machine.io_cpu.to_string()),
            ("pool lock", self.pool_lock.to_string()),
            ("look at a frame", self.look.to_string()),
            ("contention", self.machine.contention.to_string()),
            ("foreign-keys", on(self.foreign_keys)),
            ("log", self.log.to_string()),
            ("doublewrite", on(self.doublewrite)),
            ("neighbours", on(self.neighbours)),
            ("change-buffer", on(self.change_buffer)),
            ("io-capacity", self.io_capacity.to_string()),
            ("cleaner", cleaner.map_or_else(String::new, |(name, _)| (*name).to_owned())),
            ("most changed", format!("{} %", self.max_dirty * 100.0)),
            ("write-threads", self.writes.to_string()),
            ("old for", format!("{} ms", self.old_ms)),
            ("system-with-log", on(self.system_with_log)),
        ];
        told.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SettingsError> {
        match key {
            "barrier" => self.barrier = switch(key, value)?,
            "journal" => self.journal = switch(key, value)?,
            "change-buffer" => self.change_buffer = switch(key, value)?,
            "system-with-log" => self.system_with_log = switch(key, value)?,
            "foreign-keys" => self.foreign_keys = switch(key, value)?,
            "cleaner" => {
                let found = Cleaner::NAMES.iter().find(|(name, _)| *name == value);
                let names = Cleaner::NAMES.map(|(name, _)| name);
                self.cleaner = found.ok_or_else(|| wrong(key, value, &names.join(", "), &names))?.1;
            }
            "write-threads" => self.writes = at_least_1(key, value)?,
            "look" => self.look = time(key, value)?,
            "pool-lock" => self.pool_lock = time(key, value)?,
            _ if self.machine.set(key, value)? => {}
            _ => return Err(unknown("innodb-model", key, &Self::KEYS)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;

    fn with(options: &[(&str, &str)]) -> Result<InnodbSettings, SettingsError> {
        let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        InnodbSettings::of(&Settings { engine: Engine::InnodbModel, options, ..Settings::default() })
    }

    #[test]
    fn options_are_read_and_unknown_ones_are_reported_with_the_nearest_name() {
        let model = with(&[("cores", "24"), ("cpu", "400us"), ("contention", "0.02"), ("barrier", "off")]);
        let model = model.expect("all are options");
        assert_eq!(
            (model.machine.cores, model.machine.cpu, model.barrier),
            (24, Nanos::from_micros(400), false)
        );
        for (key, value, says) in [
            ("core", "4", "no option `core`"),
            ("core", "4", "did you mean `cores`?"),
            ("cores", "many", "a number"),
            ("cores", "0", "at least 1"),
            ("contention", "1.5", "a share from 0 to below 1"),
            ("cleaner", "masters", "did you mean `master`?"),
            ("barrier", "no", "on or off"),
        ] {
            let error = with(&[(key, value)]).expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_scaled_log_is_a_multiple_of_the_page_size() {
        for (asked, got) in [(53_687_091, 53_673_984), (100, 16 << 10), (1 << 20, 1 << 20)] {
            let settings = Settings {
                engine: Engine::InnodbModel,
                log_size: Some(Bytes::new(asked)),
                ..Settings::default()
            };
            assert_eq!(InnodbSettings::of(&settings).expect("it is valid").log, Bytes::new(got), "{asked}");
        }
    }
}
