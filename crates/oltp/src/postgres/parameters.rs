//! Translates [`Settings`] into PostgreSQL's parameters, and lists the settings without a counterpart.
//!
//! Besides the requested settings, a server of our own differs from the defaults as follows. It listens on a unix
//! socket only; it times its reads and writes; it writes only the WAL that crash recovery needs
//! (`wal_level = minimal`, no replicas); it does not restart by itself after a crash; it accepts 500 terminals. The
//! module `schema` handles tablespaces, and the server itself checks further options.
//!
//! Source: PostgreSQL documentation, chapter "Server Configuration".

use super::address::PORT;
use crate::OltpError;
use lowtide_core::suggest::nearest;
use lowtide_engines::{Durability, Settings};
use std::collections::BTreeSet;
use std::path::Path;

/// Methods to sync the WAL on Linux.
const SYNC_METHODS: [&str; 4] = ["fdatasync", "fsync", "open_datasync", "open_sync"];

/// Minimum `max_wal_size`: two segments of 16 MiB.
const LEAST_LOG: u64 = 32 << 20;

/// Rounds of the background writer per second (`bgwriter_delay` = 200 ms).
const ROUNDS: u32 = 5;

/// Parameters that lowtide sets itself: locations, access and logging.
const OURS: [&str; 9] = [
    "data_directory",
    "config_file",
    "hba_file",
    "listen_addresses",
    "unix_socket_directories",
    "port",
    "log_destination",
    "logging_collector",
    "restart_after_crash",
];

/// Parameters under the server's names, in the order of the command line. A later value overrides an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Parameters {
    pub(super) set: Vec<(String, String)>,
    pub(super) ignored: Vec<String>,
}

impl Parameters {
    /// The parameters for `settings`, on a server that knows the parameters `known` and has its sockets in `run`.
    ///
    /// # Errors
    /// [`OltpError::Invalid`] if PostgreSQL does not accept a value.
    pub(super) fn new(
        settings: &Settings,
        known: &BTreeSet<String>,
        run: &Path,
    ) -> Result<Parameters, OltpError> {
        let mut it = Parameters::default();
        it.ours(known, run);
        it.asked(settings)?;
        for (name, value) in &settings.options {
            it.option(name, value)?;
        }
        Ok(it)
    }

    fn put(&mut self, name: &str, value: impl ToString) {
        self.set.push((name.to_owned(), value.to_string()));
    }

    fn ours(&mut self, known: &BTreeSet<String>, run: &Path) {
        self.put("listen_addresses", "");
        // The port is in the name of the socket.
        self.put("port", PORT);
        // The parameter is a list; quotes protect a comma in the name.
        let quoted = run.display().to_string().replace('"', "\"\"");
        self.put("unix_socket_directories", format!("\"{quoted}\""));
        self.put("unix_socket_permissions", "0700");
        self.put("restart_after_crash", "off");
        self.put("wal_level", "minimal");
        self.put("max_wal_senders", 0);
        // 500 terminals and one administration session.
        self.put("max_connections", 501);
        for timing in ["track_io_timing", "track_wal_io_timing"] {
            if known.contains(timing) {
                self.put(timing, "on");
            }
        }
    }

    fn asked(&mut self, settings: &Settings) -> Result<(), OltpError> {
        if let Some(bytes) = settings.buffer_pool {
            self.put("shared_buffers", format!("{}kB", (bytes.get() >> 10).max(128)));
        }
        if let Some(durability) = settings.durability {
            let (commit, fsync) = match durability {
                Durability::Full => ("on", "on"),
                Durability::Second => ("off", "on"),
                Durability::None => ("off", "off"),
            };
            self.put("synchronous_commit", commit);
            self.put("fsync", fsync);
        }
        if settings.preset.is_some() {
            self.ignored.push("preset: the settings of that time are those of MySQL".to_owned());
        }
        if let Some(method) = &settings.flush_method {
            self.put("wal_sync_method", sync_method(method)?);
        }
        if let Some(pages) = settings.doublewrite {
            self.put("full_page_writes", if pages { "on" } else { "off" });
        }
        if settings.flush_neighbours.is_some() {
            self.ignored.push("flush_neighbours: PostgreSQL writes pages one by one".to_owned());
        }
        if let Some(pages) = settings.io_capacity {
            self.put("bgwriter_delay", format!("{}ms", 1000 / ROUNDS));
            self.put("bgwriter_lru_maxpages", pages.div_ceil(ROUNDS));
            self.ignored.push(
                "io_capacity: it limits the background writer; checkpoints of PostgreSQL go by time and log"
                    .to_owned(),
            );
        }
        match settings.read_ahead {
            Some(pages @ 0..=1000) => self.put("effective_io_concurrency", pages),
            Some(pages) => {
                let why =
                    format!("read_ahead = {pages}: `effective_io_concurrency` of PostgreSQL is 0 to 1000");
                return Err(OltpError::Invalid(why));
            }
            None => {}
        }
        match settings.log_size {
            // The minimum equals the maximum, so that WAL files are reused and not created anew.
            Some(bytes) if bytes.get() >= LEAST_LOG => {
                self.put("max_wal_size", format!("{}MB", bytes.get() >> 20));
                self.put("min_wal_size", format!("{}MB", bytes.get() >> 20));
            }
            Some(bytes) => {
                let why = format!("log_size = {bytes}: `max_wal_size` of PostgreSQL is at least 32MiB");
                return Err(OltpError::Invalid(why));
            }
            None => {}
        }
        Ok(())
    }

    fn option(&mut self, name: &str, value: &str) -> Result<(), OltpError> {
        let lower = name.to_lowercase();
        if OURS.contains(&lower.as_str()) {
            return Err(OltpError::Invalid(format!("the option `{name}` of PostgreSQL is set by lowtide")));
        }
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
        if !plain || value.contains(['\0', '\n']) {
            return Err(OltpError::Invalid(format!("`{name}` is not an option of PostgreSQL")));
        }
        self.put(&lower, value);
        Ok(())
    }
}

fn sync_method(given: &str) -> Result<&'static str, OltpError> {
    let lower = given.to_lowercase();
    let found = SYNC_METHODS.iter().find(|method| **method == lower);
    found.copied().ok_or_else(|| {
        let meant = match nearest(given, SYNC_METHODS) {
            Some(near) => format!("; did you mean `{near}`?"),
            None => String::new(),
        };
        OltpError::Invalid(format!(
            "flush_method = \"{given}\": `wal_sync_method` of PostgreSQL is one of {}{meant}",
            SYNC_METHODS.map(|method| format!("`{method}`")).join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Bytes;

    fn known() -> BTreeSet<String> {
        ["track_io_timing", "shared_buffers", "work_mem", "checkpoint_timeout"].map(str::to_owned).into()
    }

    fn of(settings: &Settings) -> Result<Parameters, String> {
        Parameters::new(settings, &known(), Path::new("/run/x")).map_err(|error| error.to_string())
    }

    fn value(parameters: &Parameters, name: &str) -> Option<String> {
        let set = parameters.set.iter().rev().find(|(set, _)| set == name);
        set.map(|(_, value)| value.clone())
    }

    #[test]
    fn what_is_asked_for_stands_there_in_postgresqls_words() {
        let settings = Settings {
            buffer_pool: Some(Bytes::gib(1)),
            durability: Some(Durability::None),
            preset: Some(lowtide_engines::Preset::Y2010),
            flush_method: Some("open_datasync".to_owned()),
            doublewrite: Some(false),
            flush_neighbours: Some(true),
            io_capacity: Some(2000),
            read_ahead: Some(32),
            log_size: Some(Bytes::gib(2)),
            options: vec![("work_mem".to_owned(), "8MB".to_owned())],
            ..Settings::default()
        };
        let it = of(&settings).unwrap();
        for (name, expected) in [
            ("shared_buffers", "1048576kB"),
            ("fsync", "off"),
            ("synchronous_commit", "off"),
            ("wal_sync_method", "open_datasync"),
            ("full_page_writes", "off"),
            ("bgwriter_lru_maxpages", "400"),
            ("effective_io_concurrency", "32"),
            ("max_wal_size", "2048MB"),
            ("min_wal_size", "2048MB"),
            ("work_mem", "8MB"),
            ("port", "5432"),
            ("track_io_timing", "on"),
        ] {
            assert_eq!(value(&it, name).as_deref(), Some(expected), "{name}");
        }
        assert_eq!(value(&it, "track_wal_io_timing"), None, "this server does not know it");
        assert_eq!(it.ignored.len(), 3);
        assert!(of(&Settings::default()).unwrap().ignored.is_empty());
    }

    #[test]
    fn what_is_not_accepted_is_told_with_what_is() {
        let options = |name: &str| vec![(name.to_owned(), "1".to_owned())];
        for (settings, why) in [
            (Settings { flush_method: Some("fdatasink".into()), ..Settings::default() }, "`fdatasync`?"),
            (Settings { flush_method: Some("O_DIRECT".into()), ..Settings::default() }, "`open_sync`"),
            (Settings { read_ahead: Some(1001), ..Settings::default() }, "0 to 1000"),
            (Settings { log_size: Some(Bytes::mib(31)), ..Settings::default() }, "at least 32MiB"),
            (Settings { options: options("Port"), ..Settings::default() }, "set by lowtide"),
            (Settings { options: options("a b"), ..Settings::default() }, "not an option"),
        ] {
            let told = of(&settings).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }
}
