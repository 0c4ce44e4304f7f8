//! What every database can do for the benchmark, and what it says when it cannot.
//!
//! Not here: how; each engine has its own module.

use crate::OltpError;
use lowtide_core::Seed;
use lowtide_engines::tpcc::{Scale, Transaction};
use std::sync::atomic::AtomicBool;

/// A database that is up and can be asked.
pub trait Database: Send + Sync {
    /// What it is, with its version: `MariaDB 10.11.6, InnoDB`.
    fn version(&self) -> &str;
    /// A session of its own, with its statements prepared.
    ///
    /// # Errors
    /// [`OltpError`] where the database takes no more, or does not answer.
    fn session(&self) -> Result<Box<dyn Session>, OltpError>;
    /// How many sessions it takes at most; `None` where it has no such limit.
    ///
    /// # Errors
    /// [`OltpError`] where the statement fails.
    fn most_sessions(&self) -> Result<Option<u32>, OltpError> {
        Ok(None)
    }
    /// Makes the tables and fills them for `scale`; `progress` hears of the share that is in, 0 to 1, from any thread.
    ///
    /// # Errors
    /// [`OltpError`] where a statement fails or `interrupt` is set.
    fn load(
        &self,
        scale: &Scale,
        seed: Seed,
        interrupt: &AtomicBool,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<(), OltpError>;
    /// The first column of the only row of a query, as a whole number: for the conditions of consistency.
    ///
    /// # Errors
    /// [`OltpError`] where the statement fails.
    fn number(&self, query: &str) -> Result<i64, OltpError>;
    /// All rows of a query whose columns are whole numbers; null counts as 0.
    ///
    /// # Errors
    /// [`OltpError`] where the statement fails, or there is something else.
    fn numbers(&self, query: &str) -> Result<Vec<Vec<i64>>, OltpError>;
    /// What the engine's own check of all tables and indexes finds damaged, in its words: `PRAGMA integrity_check`; `CHECK TABLE
    /// … EXTENDED`; `bt_index_check` of PostgreSQL's `amcheck`, where that is installed, else nothing.
    ///
    /// # Errors
    /// [`OltpError`] where it cannot be asked.
    fn damage(&self) -> Result<Vec<String>, OltpError>;
    /// Runs a statement without an answer.
    ///
    /// # Errors
    /// [`OltpError`] where the statement fails.
    fn execute(&self, statement: &str) -> Result<(), OltpError>;
    /// What the database counts of itself, by name, since it started: waits in nanoseconds, pages, bytes. A report
    /// shows what was added between two calls.
    ///
    /// # Errors
    /// [`OltpError`] where the statement fails.
    fn counters(&self) -> Result<Vec<Counter>, OltpError>;
}

/// One thing that a database counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// Which view or table it comes from: `innodb_metrics`, `pg_stat_wal`.
    pub from: &'static str,
    /// Its name there.
    pub name: String,
    /// What it counts.
    pub unit: CounterUnit,
    /// How much by now.
    pub value: f64,
}

/// What a [`Counter`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterUnit {
    /// Things that happened.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// A level at this moment, not a sum.
    Level,
}

/// One connection: what a terminal speaks through.
pub trait Session: Send {
    /// Runs a transaction to its end.
    ///
    /// # Errors
    /// [`Failure`] where it did not end; then nothing of it is left behind, on engines with transactions. That rows of the
    /// load are missing may show only after the commit: then it is [`Failure::Refused`], and what it changed stays.
    fn run(&mut self, transaction: &Transaction) -> Result<Outcome, Failure>;
    /// Statements sent so far; a batch that crosses to the server once counts once.
    fn statements(&self) -> u64;
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is committed.
    Committed,
    /// It was rolled back because it had to be: an unused item number (clause 2.4.2.3).
    RolledBack,
    /// A delivery that is committed, with so many districts that had nothing to deliver (clause 2.7.4.2).
    Delivered {
        /// How many of them.
        skipped: u32,
    },
}

/// Why a transaction did not end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It met another: deadlock, lock timeout, serialization failure. It is tried again.
    #[error("{0}")]
    Conflict(String),
    /// The connection is gone.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// The database refused: disk full, a statement that fails.
    #[error("{0}")]
    Refused(String),
}
