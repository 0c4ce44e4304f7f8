//! What is asked of a database apart from the load: which one, how large its memory, how it writes.
//!
//! The fields are the factors of an experiment, in one vocabulary for all engines; each engine says what it makes of
//! them, and what it does not know ([`Settings`] that an engine has no word for are listed, never dropped in silence).
//! Leaves out where its directories lie.

use lowtide_core::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// A database, and where it has several ways to store a table, which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// SQLite, within lowtide: nothing to install.
    #[default]
    Sqlite,
    /// MariaDB or MySQL with InnoDB.
    Mariadb,
    /// MariaDB with Aria: no transactions between tables, crash-safe tables.
    MariadbAria,
    /// MariaDB or MySQL with MyISAM: no transactions.
    MariadbMyisam,
    /// PostgreSQL.
    Postgresql,
    /// A model of InnoDB, in virtual time.
    InnodbModel,
    /// A model of MyISAM over the page cache of the kernel, in virtual time.
    MyisamModel,
}

impl Engine {
    /// All of them, with the name that experiments call them by.
    pub const NAMES: [(&str, Engine); 7] = [
        ("sqlite", Engine::Sqlite),
        ("mariadb", Engine::Mariadb),
        ("mariadb-aria", Engine::MariadbAria),
        ("mariadb-myisam", Engine::MariadbMyisam),
        ("postgresql", Engine::Postgresql),
        ("innodb-model", Engine::InnodbModel),
        ("myisam-model", Engine::MyisamModel),
    ];
    /// Its name in experiments.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, engine)| *engine == self).expect("every engine has a name").0
    }
    /// Whether it is a model, in virtual time.
    pub fn is_modelled(self) -> bool {
        matches!(self, Engine::InnodbModel | Engine::MyisamModel)
    }
    /// Whether a transaction that fails leaves nothing behind.
    pub fn has_transactions(self) -> bool {
        !matches!(self, Engine::MariadbAria | Engine::MariadbMyisam | Engine::MyisamModel)
    }
    /// Whether it runs inside the process that asks it, and has no server.
    pub fn is_embedded(self) -> bool {
        matches!(self, Engine::Sqlite)
    }
    /// Whether the journal mode is one of its settings.
    pub fn has_journal_mode(self) -> bool {
        matches!(self, Engine::Sqlite)
    }
    /// Whether one connection writes at a time, for the whole database.
    pub fn has_one_writer(self) -> bool {
        matches!(self, Engine::Sqlite)
    }
    /// Whether its log stays at the size that the settings give.
    pub fn has_sized_log(self) -> bool {
        !matches!(self, Engine::Sqlite)
    }
    /// How addresses of its servers begin; none where lowtide cannot use a server that is already there.
    pub fn schemes(self) -> &'static [&'static str] {
        match self {
            Engine::Mariadb => &["mariadb://", "mysql://"],
            Engine::Postgresql => &["postgresql://", "postgres://"],
            Engine::Sqlite
            | Engine::MariadbAria
            | Engine::MariadbMyisam
            | Engine::InnodbModel
            | Engine::MyisamModel => &[],
        }
    }
    /// The least memory and log that it starts with.
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

/// The smallest sizes that a server takes, of MariaDB 10.11 and PostgreSQL 15: `innodb_buffer_pool_size`,
/// `innodb_log_file_size`; `shared_buffers`, `max_wal_size` of two segments; `aria_pagecache_buffer_size`,
/// `aria_log_file_size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Least {
    /// Memory for pages.
    pub buffer_pool: Bytes,
    /// The log.
    pub log: Bytes,
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// The log is on the device: `innodb_flush_log_at_trx_commit = 1`, `synchronous_commit = on`, SQLite `FULL`.
    #[default]
    Full,
    /// The log is with the kernel, and on the device within about a second: `innodb_flush_log_at_trx_commit = 2`,
    /// PostgreSQL `synchronous_commit = off`. SQLite has no such thing: `NORMAL`, the nearest, syncs at checkpoints only.
    Second,
    /// Nothing: `innodb_flush_log_at_trx_commit = 0`, PostgreSQL `fsync = off`, SQLite `OFF`.
    None,
}

/// Settings of a time, in today's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Preset {
    /// Those of the published studies of 2009 to 2011: MySQL 5.4 and 5.5 with InnoDB.
    #[serde(rename = "2010")]
    Y2010,
}

impl Preset {
    /// All of them, with the name that experiments call them by.
    pub const NAMES: [(&str, Preset); 1] = [("2010", Preset::Y2010)];
}

impl Durability {
    /// All of them, with the name that experiments call them by.
    pub const NAMES: [(&str, Durability); 3] =
        [("full", Durability::Full), ("second", Durability::Second), ("none", Durability::None)];
    /// Its name in experiments.
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

/// What is asked of a database. `None` is the engine's own default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Settings {
    /// Which.
    pub engine: Engine,
    /// Memory for pages: `innodb_buffer_pool_size`, `key_buffer_size`, `aria_pagecache_buffer_size`,
    /// `shared_buffers`, SQLite's `cache_size`.
    pub buffer_pool: Option<Bytes>,
    /// Settings of a time, under those that are given here.
    pub preset: Option<Preset>,
    /// What a commit waits for.
    pub durability: Option<Durability>,
    /// How data files are written: `O_DIRECT`, `fsync`, …; `wal_sync_method` of PostgreSQL.
    pub flush_method: Option<String>,
    /// Whether pages are protected against torn writes: doublewrite, full-page writes.
    pub doublewrite: Option<bool>,
    /// Whether neighbouring dirty pages are written with a page: `innodb_flush_neighbors`.
    pub flush_neighbours: Option<bool>,
    /// Page writes per second the server takes the device for: `innodb_io_capacity`.
    pub io_capacity: Option<u32>,
    /// Pages read ahead: `innodb_read_ahead_threshold` 0 to 64 (0 is none), `effective_io_concurrency`.
    pub read_ahead: Option<u32>,
    /// Bytes of log before a checkpoint: `innodb_log_file_size`, `max_wal_size`, SQLite's `wal_autocheckpoint`.
    pub log_size: Option<Bytes>,
    /// Files, or tablespaces, that the data are spread over: `innodb_data_file_path` of a shared tablespace,
    /// PostgreSQL's tablespaces; `None` is a file per table.
    pub data_files: Option<u32>,
    /// How large each of MariaDB's data files is made, but for the last, which grows; 128 MiB where nothing is said.
    pub data_file_size: Option<Bytes>,
    /// Options of the server, as it calls them, after all others.
    pub options: Vec<(String, String)>,
    /// A directory with the server's programs, in place of the system's.
    pub programs: Option<PathBuf>,
}

/// Settings that an engine cannot have: what is wrong, and what is accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);
