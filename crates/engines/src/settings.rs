//! Settings of a database: engine, memory, durability, I/O.
//!
//! The fields are factors of an experiment, with common names for all engines. Each engine reports the settings that
//! it does not support.

use lowtide_core::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// A database engine, combined with a storage engine if the database has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// SQLite, embedded in lowtide.
    #[default]
    Sqlite,
    /// MariaDB or MySQL with InnoDB.
    Mariadb,
    /// MariaDB with Aria: crash-safe tables, but no transactions across tables.
    MariadbAria,
    /// MariaDB or MySQL with MyISAM: no transactions.
    MariadbMyisam,
    /// PostgreSQL.
    Postgresql,
    /// A model of InnoDB, in virtual time.
    InnodbModel,
    /// A model of MyISAM over the kernel's page cache, in virtual time.
    MyisamModel,
}

impl Engine {
    /// All engines, with their names in experiments.
    pub const NAMES: [(&str, Engine); 7] = [
        ("sqlite", Engine::Sqlite),
        ("mariadb", Engine::Mariadb),
        ("mariadb-aria", Engine::MariadbAria),
        ("mariadb-myisam", Engine::MariadbMyisam),
        ("postgresql", Engine::Postgresql),
        ("innodb-model", Engine::InnodbModel),
        ("myisam-model", Engine::MyisamModel),
    ];
    /// Name in experiments.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, engine)| *engine == self).expect("every engine has a name").0
    }
    /// Returns true for models, which run in virtual time.
    pub fn is_modelled(self) -> bool {
        matches!(self, Engine::InnodbModel | Engine::MyisamModel)
    }
    /// Returns true if a failed transaction is rolled back completely.
    pub fn has_transactions(self) -> bool {
        !matches!(self, Engine::MariadbAria | Engine::MariadbMyisam | Engine::MyisamModel)
    }
    /// Returns true if the engine runs inside lowtide's process, without a server.
    pub fn is_embedded(self) -> bool {
        matches!(self, Engine::Sqlite)
    }
    /// Returns true if the journal mode is a setting of the engine.
    pub fn has_journal_mode(self) -> bool {
        matches!(self, Engine::Sqlite)
    }
    /// Returns true if only one connection at a time can write to the database.
    pub fn has_one_writer(self) -> bool {
        matches!(self, Engine::Sqlite)
    }
    /// Returns true if the log has the fixed size given in the settings.
    pub fn has_sized_log(self) -> bool {
        !matches!(self, Engine::Sqlite)
    }
    /// URL schemes of the engine's servers. Empty if lowtide cannot connect to a running server.
    pub fn schemes(self) -> &'static [&'static str] {
        match self {
            Engine::Mariadb => &["mariadb://", "mysql://"],
            Engine::Postgresql => &["postgresql://", "postgres://"],
            _ => &[],
        }
    }
    /// Minimum sizes of memory and log.
    pub fn least(self) -> Least {
        match self {
            Engine::Mariadb => Least { buffer_pool: Bytes::mib(5), log: Bytes::mib(4) },
            Engine::Postgresql => Least { buffer_pool: Bytes::kib(128), log: Bytes::mib(32) },
            Engine::MariadbAria => Least { buffer_pool: Bytes::kib(128), log: Bytes::mib(8) },
            Engine::InnodbModel => Least { buffer_pool: Bytes::mib(4), log: Bytes::mib(4) },
            Engine::MyisamModel => Least { buffer_pool: Bytes::mib(1), log: Bytes::ZERO },
            Engine::Sqlite | Engine::MariadbMyisam => Least { buffer_pool: Bytes::ZERO, log: Bytes::ZERO },
        }
    }
}

/// Minimum sizes of MariaDB 10.11 (`innodb_buffer_pool_size`, `innodb_log_file_size`,
/// `aria_pagecache_buffer_size`, `aria_log_file_size`) and PostgreSQL 15 (`shared_buffers`; `max_wal_size`,
/// which is at least two segments).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Least {
    /// Memory for pages.
    pub buffer_pool: Bytes,
    /// Size of the log.
    pub log: Bytes,
}

/// The state of the log that a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// The log is on the device: `innodb_flush_log_at_trx_commit = 1`, `synchronous_commit = on`, SQLite `FULL`.
    #[default]
    Full,
    /// The log is in the kernel's page cache, and on the device within about a second:
    /// `innodb_flush_log_at_trx_commit = 2`, PostgreSQL `synchronous_commit = off`. SQLite has no such level and uses
    /// the nearest, `NORMAL`, which syncs only at checkpoints.
    Second,
    /// A commit does not wait for the log: `innodb_flush_log_at_trx_commit = 0`, PostgreSQL `fsync = off`, SQLite
    /// `OFF`.
    None,
}

/// Historical settings, with today's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Preset {
    /// Settings of the published studies of 2009 to 2011: MySQL 5.4 and 5.5 with InnoDB.
    #[serde(rename = "2010")]
    Y2010,
}

impl Preset {
    /// All presets, with their names in experiments.
    pub const NAMES: [(&str, Preset); 1] = [("2010", Preset::Y2010)];
}

impl Durability {
    /// All durability levels, with their names in experiments.
    pub const NAMES: [(&str, Durability); 3] =
        [("full", Durability::Full), ("second", Durability::Second), ("none", Durability::None)];
    /// Name in experiments.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, durability)| *durability == self).expect("each has a name").0
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Settings of a database. `None` stands for the engine's default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Settings {
    /// The engine.
    pub engine: Engine,
    /// Memory for pages: `innodb_buffer_pool_size`, `key_buffer_size`, `aria_pagecache_buffer_size`,
    /// `shared_buffers`, SQLite's `cache_size`.
    pub buffer_pool: Option<Bytes>,
    /// Historical settings. The other fields take precedence.
    pub preset: Option<Preset>,
    /// The state of the log that a commit waits for.
    pub durability: Option<Durability>,
    /// Method of writing data files: `O_DIRECT`, `fsync`, …; PostgreSQL's `wal_sync_method`.
    pub flush_method: Option<String>,
    /// Protection against torn pages: doublewrite buffer, full-page writes.
    pub doublewrite: Option<bool>,
    /// Write dirty neighbours together with a page: `innodb_flush_neighbors`.
    pub flush_neighbours: Option<bool>,
    /// Page writes per second that the server assumes the device can do: `innodb_io_capacity`.
    pub io_capacity: Option<u32>,
    /// Read-ahead in pages: `innodb_read_ahead_threshold` 0 to 64 (0 disables it),
    /// `effective_io_concurrency`.
    pub read_ahead: Option<u32>,
    /// Bytes of log between checkpoints: `innodb_log_file_size`, `max_wal_size`, SQLite's
    /// `wal_autocheckpoint`.
    pub log_size: Option<Bytes>,
    /// Number of data files or tablespaces: `innodb_data_file_path` of a shared tablespace, PostgreSQL's tablespaces.
    /// `None` means one file per table.
    pub data_files: Option<u32>,
    /// Size of each MariaDB data file except the last, which grows. The default is 128 MiB.
    pub data_file_size: Option<Bytes>,
    /// Options under the server's own names. These options override all other settings.
    pub options: Vec<(String, String)>,
    /// Directory of the server's programs. `None` uses the installed programs.
    pub programs: Option<PathBuf>,
}

/// Settings that an engine does not accept. The message names the accepted values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);
