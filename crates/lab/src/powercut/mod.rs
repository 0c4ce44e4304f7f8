//! Databases through power cuts: what was acknowledged and is not there afterwards, and what contradicts itself.
//!
//! ```text
//!   transactions ─► database ─► files ─► filesystem ─► drive ◄─ the power is cut
//!        └─► Ledger of what was acknowledged          ─► recovery ─► looked for, conditions checked ─► Row
//! ```
//!
//! [`simulated`]: SQLite in virtual time, all of it in this process, thousands of cuts in a minute. A [`Setting`] says which
//! database writes how on what, and what it then promises; a [`Row`] what came of it. Leaves out log disks.

pub mod ledger;
mod show;
pub mod simulated;

pub use show::{csv, json, table};

use lowtide_core::Nanos;
use lowtide_device::power::CacheKind;
use lowtide_oltp::{Durability, Engine, OltpError};
use serde::Serialize;
use std::fmt;

/// What databases lie on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filesystem {
    /// The least that a database needs, in this process and in virtual time: see [`simulated`].
    Simulated,
}

impl Filesystem {
    /// All of them, with the name that people call them by.
    pub const NAMES: [(&str, Filesystem); 1] = [("simulated", Filesystem::Simulated)];
}

/// How SQLite keeps what a transaction may take back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Journal {
    /// In a log of what is new.
    Wal,
    /// In a file of what was there before, which is removed at the end (`journal_mode = DELETE`).
    Rollback,
}

impl Journal {
    /// All of them, with the name that people call them by.
    pub const NAMES: [(&str, Journal); 2] = [("wal", Journal::Wal), ("rollback", Journal::Rollback)];
}

/// Which database writes how on what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// The database.
    pub engine: Engine,
    /// What a commit waits for.
    pub durability: Durability,
    /// SQLite's journal; servers have their own.
    pub journal: Journal,
    /// What it lies on.
    pub filesystem: Filesystem,
    /// Whether the filesystem flushes the drive.
    pub barrier: bool,
    /// What the drive keeps acknowledged writes in.
    pub cache: CacheKind,
}

/// What a setting promises of acknowledged transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// All are there.
    All,
    /// The newest may be lost; what is there is what once was.
    Older,
    /// Nothing, not even that the database can be opened.
    Nothing,
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Promise::All => "all",
            Promise::Older => "older",
            Promise::Nothing => "nothing",
        })
    }
}

impl Setting {
    /// Whether what the filesystem makes durable is durable.
    fn is_honest(&self) -> bool {
        match self.cache {
            CacheKind::Protected => true,
            CacheKind::Volatile => self.barrier,
            CacheKind::Lying => false,
        }
    }

    /// What it promises, as the makers of the database say (`docs/guide/powercut.md` has the sources).
    pub fn promise(&self) -> Promise {
        match (self.durability, self.journal) {
            _ if !self.is_honest() => Promise::Nothing,
            (Durability::Full, Journal::Wal) => Promise::All,
            // The file is removed, and nobody waits until that is durable: `synchronous = EXTRA` would.
            (Durability::Full | Durability::Second, _) => Promise::Older,
            (Durability::None, _) => Promise::Nothing,
        }
    }
}

/// What came of a setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The setting.
    pub setting: Setting,
    /// The drive, by the name that it is called by.
    pub device: String,
    /// The seed of every random choice.
    pub seed: u64,
    /// Power cuts.
    pub cuts: u64,
    /// Transactions that changed something and were acknowledged.
    pub acknowledged: u64,
    /// Those of them that were not found afterwards. Of a database that answers no more, all since it was last looked at.
    pub lost: u64,
    /// How long before its cut the oldest of those was acknowledged.
    pub oldest_lost: Option<Nanos>,
    /// Databases that could not be opened or read, contradicted themselves, or were in a state that they never had been in.
    pub corrupt: u64,
    /// From power to the first answer: on average, and the longest.
    pub recovery: Spans,
}

impl Row {
    /// Whether what was promised was kept.
    pub fn kept(&self) -> bool {
        match self.setting.promise() {
            Promise::All => self.lost == 0 && self.corrupt == 0,
            Promise::Older => self.corrupt == 0,
            Promise::Nothing => true,
        }
    }
}

/// Several spans of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Spans {
    count: u64,
    sum_ns: u64,
    longest_ns: u64,
}

impl Spans {
    /// Takes another.
    pub fn add(&mut self, span: Nanos) {
        self.count += 1;
        self.sum_ns += span.get();
        self.longest_ns = self.longest_ns.max(span.get());
    }
    /// Their mean in seconds; `None` of none.
    pub fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64 / 1e9)
    }
    /// The longest in seconds; `None` of none.
    pub fn longest_s(&self) -> Option<f64> {
        (self.count > 0).then_some(self.longest_ns as f64 / 1e9)
    }
}

/// Why databases cannot be taken through power cuts.
#[derive(Debug, thiserror::Error)]
pub enum PowercutError {
    /// The drive cannot be so.
    #[error(transparent)]
    Drive(#[from] crate::live::OpenError),
    /// The database cannot be loaded.
    #[error(transparent)]
    Database(#[from] OltpError),
    /// No such combination can be.
    #[error("{0}")]
    Setting(String),
    /// Nobody wants to wait any more.
    #[error("interrupted")]
    Interrupted,
}
