//! Databases through power cuts: what was acknowledged and is not there afterwards, and what contradicts itself.
//!
//! ```text
//!   transactions ─► database ─► files ─► filesystem ─► drive ◄─ the power is cut
//!        └─► Ledger of what was acknowledged          ─► recovery ─► looked for, conditions checked ─► Row
//! ```
//!
//! `simulated`: SQLite in virtual time, all of it in this process. `attached`: servers, and SQLite, on a filesystem of the
//! kernel on an attached drive. A [`Setting`] says which database writes how on what, and what it then promises; a [`Row`] what
//! came of it. Leaves out log disks.

mod attached;
mod evidence;
mod factors;
mod keep;
mod kernel;
mod ledger;
mod show;
mod simulated;

pub use factors::Factors;
pub use ledger::{Found, Ledger};
pub use show::{csv, json, table};

use lowtide_core::{Nanos, Seed};
use lowtide_device::power::CacheKind;
use lowtide_engines::tpcc::Scale;
use lowtide_engines::{Durability, Engine};
use lowtide_files::output::{CommandFiles, OutputError, OutputFolder, Role};
use lowtide_live::attached::AttachedError;
use lowtide_oltp::{Database, OltpError, check};
use rayon::prelude::*;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is kept of databases that are found corrupt.
const KEPT: Role = Role::new("the files that are kept", "--keep DIRECTORY");

/// Power cuts where nobody says how many: in virtual time, and in wall time.
const CUTS: u64 = 1_000;
const CUTS_IN_WALL_TIME: u64 = 10;

/// What is asked for, beside settings.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The device: a name of the catalogue or the path of a file.
    pub device: String,
    /// So many times smaller.
    pub scale: u64,
    /// Power cuts of each row; where nothing is said, 1000 in virtual time and 10 in wall time.
    pub cuts: Option<u64>,
    /// The seed of every random choice.
    pub seed: Seed,
    /// Where the files of databases on attached drives that are found corrupt are kept.
    pub keep: Option<PathBuf>,
}

/// Takes a database of each setting through power cuts; a row for each, in their order. `each` hears of a row when it is done.
///
/// Those in virtual time run side by side, and first.
///
/// # Errors
/// [`PowercutError`] where one cannot be, or `interrupt` is set.
pub fn run(
    settings: &[Setting],
    asked: &Asked,
    interrupt: &Arc<AtomicBool>,
    each: &(dyn Fn(&Row) + Sync),
) -> Result<Vec<Row>, PowercutError> {
    if let Some(directory) = &asked.keep {
        let mut files = CommandFiles::default();
        files.add_named("the device file", &asked.device);
        OutputFolder::new(KEPT, directory, &files)?;
    }
    let in_virtual_time = |setting: &Setting| -> Result<Option<Row>, PowercutError> {
        if setting.filesystem != Filesystem::Simulated {
            return Ok(None);
        }
        simulated::run(setting, asked, asked.cuts.unwrap_or(CUTS), interrupt).map(Some)
    };
    let told = |row: Option<Row>| row.inspect(each);
    let done = settings.par_iter().map(|setting| in_virtual_time(setting).map(told));
    let mut rows = done.collect::<Result<Vec<_>, _>>()?;
    for (row, setting) in rows.iter_mut().zip(settings).filter(|(row, _)| row.is_none()) {
        let cuts = asked.cuts.unwrap_or(CUTS_IN_WALL_TIME);
        *row = told(Some(attached::run(setting, asked, cuts, interrupt)?));
    }
    Ok(rows.into_iter().flatten().collect())
}

/// What databases lie on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filesystem {
    /// The least that a database needs, in this process and in virtual time.
    Simulated,
    /// XFS of the kernel.
    Xfs,
    /// ext4 of the kernel.
    Ext4,
}

impl Filesystem {
    /// All of them, with the name that people call them by.
    pub const NAMES: [(&str, Filesystem); 3] =
        [("simulated", Filesystem::Simulated), ("xfs", Filesystem::Xfs), ("ext4", Filesystem::Ext4)];
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

    /// As SQLite calls it.
    fn pragma(self) -> &'static str {
        match self {
            Journal::Wal => "WAL",
            Journal::Rollback => "DELETE",
        }
    }
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
        if !self.is_honest() {
            return Promise::Nothing;
        }
        match (self.engine, self.durability, self.journal) {
            // The journal is removed, and nobody waits until that is durable: `synchronous = EXTRA` would.
            (Engine::Sqlite, Durability::Full, Journal::Rollback) => Promise::Older,
            (_, Durability::Full, _) => Promise::All,
            (_, Durability::Second, _) => Promise::Older,
            // The log is written before pages all the same.
            (Engine::Mariadb, Durability::None, _) => Promise::Older,
            (_, Durability::None, _) => Promise::Nothing,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setting { engine, durability, filesystem, cache, .. } = self;
        let barrier = if self.barrier { "" } else { ", no barrier" };
        write!(f, "{engine} {durability} on {}{barrier}, {cache}", filesystem.name())
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
    /// Of those, how many were there again after a later cut.
    pub returned: u64,
    /// How long before its cut the oldest of those was acknowledged.
    pub oldest_lost: Option<Nanos>,
    /// Databases that could not be opened or read, contradicted themselves, or were in a state that they never had been in.
    pub corrupt: u64,
    /// What was found of the first of them, and after which cut.
    pub first_damage: Option<String>,
    /// From power to the first answer: on average, and the longest.
    pub recovery: Spans,
}

impl Row {
    /// Before anything has come of it.
    fn of(setting: &Setting, asked: &Asked) -> Row {
        Row {
            setting: *setting,
            device: asked.device.clone(),
            seed: asked.seed.get(),
            cuts: 0,
            acknowledged: 0,
            lost: 0,
            returned: 0,
            oldest_lost: None,
            corrupt: 0,
            first_damage: None,
            recovery: Spans::default(),
        }
    }

    /// A database was found corrupt.
    fn damaged(&mut self, why: &str) {
        self.corrupt += 1;
        let cuts = self.cuts;
        self.first_damage.get_or_insert_with(|| format!("after cut {cuts}: {why}"));
    }

    /// Whether what was promised was kept.
    pub fn kept(&self) -> bool {
        match self.setting.promise() {
            Promise::All => self.lost == 0 && self.corrupt == 0,
            Promise::Older => self.corrupt == 0,
            Promise::Nothing => true,
        }
    }
}

/// What contradicts itself in a database; nothing where nothing does.
fn contradiction(database: &dyn Database, scale: &Scale) -> Result<Option<String>, OltpError> {
    let broken = check::all(database, scale)?.into_iter().find(|it| it.broken != 0);
    let told = |it: check::Condition| format!("condition {} ({}): {} broken", it.clause, it.name, it.broken);
    match broken.map(told) {
        None => Ok(database.damage()?.into_iter().next()),
        told => Ok(told),
    }
}

/// Several spans of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
    Drive(#[from] lowtide_live::OpenError),
    /// Files cannot be kept where it was asked for.
    #[error(transparent)]
    Output(Box<OutputError>),
    /// The database cannot be loaded.
    #[error(transparent)]
    Database(#[from] OltpError),
    /// It cannot be attached.
    #[error(transparent)]
    Attached(#[from] AttachedError),
    /// No such combination can be.
    #[error("{0}")]
    Setting(String),
    /// Nobody wants to wait any more.
    #[error("interrupted")]
    Interrupted,
}

impl From<OutputError> for PowercutError {
    fn from(error: OutputError) -> Self {
        PowercutError::Output(Box::new(error))
    }
}
