//! Power cuts under databases: counts the acknowledged transactions that are lost and the databases that are corrupt.
//!
//! ```text
//!   transactions ─► database ─► files ─► filesystem ─► drive ◄─ the power is cut
//!        └─► Ledger: acknowledged transactions        ─► recovery ─► lookup, consistency conditions ─► Row
//! ```
//!
//! `simulated` runs SQLite in virtual time, entirely within this process. `attached` runs database servers and SQLite
//! on a kernel filesystem on an attached drive. A [`Setting`] combines a database, its durability and its storage;
//! [`Setting::promise`] is its guarantee after a power cut. A [`Row`] is the result of a setting.
//!
//! # Not modelled
//! Log disks.

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

use lowtide_core::{Filesystem, Nanos, Seed};
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

/// The output of `--keep`: files of corrupt databases.
const KEPT: Role = Role::new("the files that are kept", "--keep DIRECTORY");

/// The default number of power cuts in virtual time.
const CUTS: u64 = 1_000;
/// The default number of power cuts in wall time.
const CUTS_IN_WALL_TIME: u64 = 10;

/// Options of a run, other than its settings.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The device: a name in the catalogue or the path of a device file.
    pub device: String,
    /// The scale: the drive's capacity is divided by this factor.
    pub scale: u64,
    /// Power cuts of each row; by default 1000 in virtual time and 10 in wall time.
    pub cuts: Option<u64>,
    /// The seed of every random choice.
    pub seed: Seed,
    /// The directory for files of corrupt databases on attached drives.
    pub keep: Option<PathBuf>,
}

/// Runs each setting's database through power cuts. Returns one row per setting, in order. Calls `each` with every
/// completed row. Settings in virtual time run first and concurrently; settings in wall time follow one by one.
///
/// # Errors
/// [`PowercutError`] if the directory of `--keep` cannot be used, if a setting cannot be run, or if `interrupt` is
/// set.
pub fn run(
    settings: &[Setting],
    asked: &Asked,
    interrupt: &Arc<AtomicBool>,
    each: &(dyn Fn(&Row) + Sync),
) -> Result<Vec<Row>, PowercutError> {
    if let Some(directory) = &asked.keep {
        let mut files = CommandFiles::default();
        files.add_device(&asked.device, &lowtide_files::device::files_of(&asked.device));
        OutputFolder::new(KEPT, directory, &files)?;
    }
    let in_virtual_time = |setting: &Setting| -> Result<Option<Row>, PowercutError> {
        if setting.filesystem.is_some() {
            return Ok(None);
        }
        simulated::run(setting, asked, asked.cuts.unwrap_or(CUTS), interrupt).map(Some)
    };
    let report = |row: Option<Row>| row.inspect(each);
    let rows = settings.par_iter().map(|setting| in_virtual_time(setting).map(report));
    let mut rows = rows.collect::<Result<Vec<_>, _>>()?;
    for (row, setting) in rows.iter_mut().zip(settings).filter(|(row, _)| row.is_none()) {
        let cuts = asked.cuts.unwrap_or(CUTS_IN_WALL_TIME);
        *row = report(Some(attached::run(setting, asked, cuts, interrupt)?));
    }
    Ok(rows.into_iter().flatten().collect())
}

/// The filesystems below databases, by name. `None` is the simulated filesystem in virtual time; the kernel provides
/// the named filesystems.
pub const FILESYSTEMS: [(&str, Option<Filesystem>); 3] =
    [("simulated", None), ("xfs", Some(Filesystem::Xfs)), ("ext4", Some(Filesystem::Ext4))];

/// The name of a filesystem in [`FILESYSTEMS`].
fn filesystem_name(filesystem: Option<Filesystem>) -> &'static str {
    filesystem.map_or("simulated", Filesystem::name)
}

/// SQLite's journal mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Journal {
    /// A write-ahead log of new contents.
    Wal,
    /// A file of old contents, removed at commit (`journal_mode = DELETE`).
    Rollback,
}

impl Journal {
    /// All journal modes, by name.
    pub const NAMES: [(&str, Journal); 2] = [("wal", Journal::Wal), ("rollback", Journal::Rollback)];

    /// The name that SQLite uses.
    fn pragma(self) -> &'static str {
        match self {
            Journal::Wal => "WAL",
            Journal::Rollback => "DELETE",
        }
    }
}

/// A database, its durability, and the storage below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// The database.
    pub engine: Engine,
    /// Durability of commits.
    pub durability: Durability,
    /// SQLite's journal; servers have their own.
    pub journal: Journal,
    /// The filesystem below the database, one of [`FILESYSTEMS`].
    pub filesystem: Option<Filesystem>,
    /// `true` if the filesystem flushes the drive.
    pub barrier: bool,
    /// The drive's write cache.
    pub cache: CacheKind,
}

/// The guarantee of a setting for acknowledged transactions after a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// No acknowledged transaction is lost.
    All,
    /// The newest transactions may be lost. The database is in an earlier state.
    Older,
    /// The database may be corrupt.
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
    /// Returns whether fsync makes data durable.
    fn is_honest(&self) -> bool {
        match self.cache {
            CacheKind::Protected => true,
            CacheKind::Volatile => self.barrier,
            CacheKind::Lying => false,
        }
    }

    /// The guarantee that the database's documentation gives. `docs/guide/powercut.md` lists the sources.
    pub fn promise(&self) -> Promise {
        if !self.is_honest() {
            return Promise::Nothing;
        }
        match (self.engine, self.durability, self.journal) {
            // A commit removes the journal but does not sync the directory, as `synchronous = EXTRA` would.
            (Engine::Sqlite, Durability::Full, Journal::Rollback) => Promise::Older,
            (_, Durability::Full, _) => Promise::All,
            (_, Durability::Second, _) => Promise::Older,
            // MariaDB still writes the log before the pages.
            (Engine::Mariadb, Durability::None, _) => Promise::Older,
            (_, Durability::None, _) => Promise::Nothing,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setting { engine, durability, filesystem, cache, .. } = self;
        let barrier = if self.barrier { "" } else { ", no barrier" };
        write!(f, "{engine} {durability} on {}{barrier}, {cache}", filesystem_name(*filesystem))
    }
}

/// The result of a setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The setting.
    pub setting: Setting,
    /// The drive, by the name that the user gave.
    pub device: String,
    /// The seed of every random choice.
    pub seed: u64,
    /// Number of power cuts.
    pub cuts: u64,
    /// Acknowledged transactions that changed the database.
    pub acknowledged: u64,
    /// Acknowledged transactions that were not found after a cut. If the database does not answer, all transactions
    /// since the last lookup count as lost.
    pub lost: u64,
    /// Lost transactions that were found again after a later cut.
    pub returned: u64,
    /// Longest time from the acknowledgement of a lost transaction to its cut.
    pub oldest_lost: Option<Nanos>,
    /// Databases that could not be opened or read, were inconsistent, or were in an impossible state.
    pub corrupt: u64,
    /// Description of the first corruption, with the number of its cut.
    pub first_damage: Option<String>,
    /// Time from power-on to the first answer.
    pub recovery: Spans,
}

impl Row {
    /// The row of a setting before its first power cut.
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

    /// Adds the losses that were found after a cut.
    fn add(&mut self, found: &Found) {
        self.lost += found.lost;
        self.returned += found.returned;
        self.oldest_lost = self.oldest_lost.max(found.oldest);
    }

    /// Counts a corrupt database. Keeps the reason for the first.
    fn damaged(&mut self, why: &str) {
        self.corrupt += 1;
        let cuts = self.cuts;
        self.first_damage.get_or_insert_with(|| format!("after cut {cuts}: {why}"));
    }

    /// Returns whether the promise was kept.
    pub fn kept(&self) -> bool {
        match self.setting.promise() {
            Promise::All => self.lost == 0 && self.corrupt == 0,
            Promise::Older => self.corrupt == 0,
            Promise::Nothing => true,
        }
    }
}

/// Returns the first inconsistency of a database, if any.
fn contradiction(database: &dyn Database, scale: &Scale) -> Result<Option<String>, OltpError> {
    match check::all(database, scale)?.into_iter().find(|it| it.broken != 0) {
        Some(it) => Ok(Some(format!("condition {} ({}): {} broken", it.clause, it.name, it.broken))),
        None => Ok(database.damage()?.into_iter().next()),
    }
}

/// Count, mean and maximum of time spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spans {
    count: u64,
    sum_ns: u64,
    longest_ns: u64,
}

impl Spans {
    /// Adds a span.
    pub fn add(&mut self, span: Nanos) {
        self.count += 1;
        self.sum_ns += span.get();
        self.longest_ns = self.longest_ns.max(span.get());
    }
    /// The mean in seconds; `None` without spans.
    pub fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64 / 1e9)
    }
    /// The longest in seconds; `None` without spans.
    pub fn longest_s(&self) -> Option<f64> {
        (self.count > 0).then_some(self.longest_ns as f64 / 1e9)
    }
}

/// Errors of [`run`].
#[derive(Debug, thiserror::Error)]
pub enum PowercutError {
    /// The drive cannot be opened with these options.
    #[error(transparent)]
    Drive(#[from] lowtide_live::OpenError),
    /// The directory of `--keep` cannot be used.
    #[error(transparent)]
    Output(Box<OutputError>),
    /// The database cannot be loaded.
    #[error(transparent)]
    Database(#[from] OltpError),
    /// The drive cannot be attached.
    #[error(transparent)]
    Attached(#[from] AttachedError),
    /// The settings cannot be combined.
    #[error("{0}")]
    Setting(String),
    /// The user interrupted the run.
    #[error("interrupted")]
    Interrupted,
}

impl From<OutputError> for PowercutError {
    fn from(error: OutputError) -> Self {
        PowercutError::Output(Box::new(error))
    }
}
