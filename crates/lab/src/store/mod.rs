//! The store: one SQLite file that holds campaigns, written while they run.
//!
//! ```text
//!   Writer (one thread) ◄─ Entry ─ running cells       Store::open ─► campaigns() ─► load() ─► record::Campaign
//! ```
//!
//! Rows are committed a few times a second, so a killed campaign keeps its measurements. A cell is done only
//! once all its rows and its verdict are committed. When the campaign resumes, the rows of unfinished cells are
//! removed. `docs/formats.md` describes the schema. The analysis is in crate `lowtide-record`.

mod add;
mod baseline;
mod check;
mod error;
#[cfg(test)]
mod fixture;
mod join;
mod merge;
mod reader;
mod schema;
mod tables;
#[cfg(test)]
mod tests;
mod writer;

pub use add::Imported;
pub use baseline::{Baseline, is_baseline_name};
pub use error::StoreError;
pub use join::snapshot;
pub use merge::{Merged, merge};
pub use reader::Listed;
pub use writer::{CellEnd, CellStart, Entry, Measured, Sender, Writer};

use crate::plan::Plan;
use crate::plan::identity;
use lowtide_files::application::immutable;
use lowtide_files::output::{self, CommandFiles};
use lowtide_record::{Campaign, Cell};
use rusqlite::{Connection, OpenFlags, params};
use rustix::fs::FlockOperation;
use schema::StoreFormat;
use std::fs::File;
use std::path::{Path, PathBuf};
use tables::Tables;

/// The environment entry that names the block device under test.
const ON_DEVICE: &str = "under-test";

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    format: StoreFormat,
    /// Locks out other writers. Dropped last, because closing any descriptor of a file drops SQLite's locks on the
    /// file.
    _lock: Option<File>,
}

/// Facts about a campaign that are not in its plan.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// Start time (RFC 3339).
    pub started_at: String,
    /// The command line that reproduces the campaign.
    pub command: String,
    /// Facts about the machine and the target.
    pub environment: Vec<(String, String)>,
}

impl Store {
    /// Opens a store for writing, and creates it if it does not exist. One process at a time writes to a store.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be created or written, is not a store, or is in use.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        output::store(path, &CommandFiles::default())?;
        refuse_all_but_files(path)?;
        let connection = Connection::open(path).map_err(StoreError::on(path))?;
        let lock = lock(path)?;
        let format = schema::prepare(&connection, path)?;
        Ok(Store { connection, path: path.to_owned(), format, _lock: lock })
    }

    /// Creates a temporary store in memory.
    ///
    /// # Errors
    /// [`StoreError`] if memory is exhausted.
    pub(crate) fn in_memory() -> Result<Store, StoreError> {
        let path = PathBuf::from("a store in memory");
        let connection = Connection::open_in_memory().map_err(StoreError::on(&path))?;
        let format = schema::prepare(&connection, &path)?;
        Ok(Store { connection, path, format, _lock: None })
    }

    /// Opens an existing store for writing.
    ///
    /// # Errors
    /// As [`Store::open`]; [`StoreError::Missing`] if there is no file.
    pub fn open_to_resume(path: &Path) -> Result<Store, StoreError> {
        Store::open_existing(path)?;
        Store::open(path)
    }

    /// Opens an existing store for reading. Another process may write to it at the same time, and its directory may
    /// be read-only.
    ///
    /// # Errors
    /// [`StoreError`] if the file does not exist, or is not a store.
    pub fn open_existing(path: &Path) -> Result<Store, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing { path: path.to_owned() });
        }
        refuse_all_but_files(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(StoreError::on(path))?;
        let (connection, format) = match schema::check(&connection, path) {
            // To read a file in WAL mode, SQLite creates two files next to it, unless the file is declared immutable.
            // That is safe without a write-ahead log, because the file is then complete.
            Err(StoreError::Sqlite { sqlite, .. }) if is_write_protected(&sqlite) && !has_log(path) => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
                let frozen =
                    Connection::open_with_flags(immutable(path), flags).map_err(StoreError::on(path))?;
                let format = schema::check(&frozen, path)?;
                (frozen, format)
            }
            checked => checked.map(|format| (connection, format))?,
        };
        Ok(Store { connection, path: path.to_owned(), format, _lock: None })
    }

    /// Closes a store, and removes its file if it holds no campaign. The lock is held until the file is removed, so
    /// no other process can have begun a campaign.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn close_or_remove_empty(self) -> Result<(), StoreError> {
        let empty = self.campaigns()?.is_empty();
        let Store { connection, path, _lock: lock, .. } = self;
        // SQLite removes its log and shared memory on close, but only while the database file exists.
        drop(connection);
        if empty {
            let _ = std::fs::remove_file(&path);
        }
        drop(lock);
        Ok(())
    }

    fn tables(&self) -> Tables<'_> {
        Tables { connection: &self.connection, format: &self.format, path: &self.path }
    }

    /// Runs `change` in a transaction, which is committed if `change` succeeds.
    fn transaction<T>(
        &mut self,
        change: impl FnOnce(Tables<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let fail = StoreError::on(&self.path);
        let transaction = self.connection.transaction().map_err(&fail)?;
        let tables = Tables { connection: &transaction, format: &self.format, path: &self.path };
        let changed = change(tables)?;
        transaction.commit().map_err(fail)?;
        Ok(changed)
    }

    /// Begins a campaign and returns its number.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written.
    pub fn begin(&mut self, plan: &Plan, about: &About) -> Result<i64, StoreError> {
        let experiment = &plan.experiment;
        let mut devices: Vec<String> = Vec::new();
        for text in plan.target.devices().flat_map(|planned| &planned.device.texts) {
            if !devices.contains(text) {
                devices.push(text.clone());
            }
        }
        let on = plan.on_device().map(|device| (ON_DEVICE.to_owned(), device));
        let head = Campaign {
            name: experiment.name.clone(),
            title: experiment.title.clone(),
            experiment: experiment.without_passwords(experiment.text()),
            resolved: Some(experiment.without_passwords(&experiment.to_json())),
            target: experiment.target.to_string(),
            devices,
            seed: plan.seed.get(),
            scale: plan.scale,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: about.started_at.clone(),
            command: experiment.without_passwords(&about.command),
            environment: about.environment.iter().cloned().chain(on).collect(),
            cells: Vec::new(),
        };
        self.transaction(|tables| {
            let campaign = add::campaign(tables, &head, &plan.identity())?;
            for cell in &plan.cells {
                let workload = cell.settings.load.workload();
                let cell = Cell {
                    index: cell.index,
                    step: cell.step.clone(),
                    factors: cell.factors(),
                    repetition: cell.repetition,
                    data: cell.data,
                    capacity: cell.capacity,
                    threads: workload.threads,
                    read_share: workload.read_share,
                    ..Cell::default()
                };
                add::cell(tables, campaign, &cell)?;
            }
            Ok(campaign)
        })
    }

    /// Resumes the last campaign of exactly this plan, and removes the rows of its unfinished cells. Returns its
    /// number and, for each cell, whether it is done.
    ///
    /// # Errors
    /// [`StoreError::NothingToResume`] if there is no such campaign; others if the store cannot be written.
    pub fn resume(&mut self, plan: &Plan) -> Result<(i64, Vec<bool>), StoreError> {
        let (campaign, numbers) =
            self.resume_as(&plan.identity(), &plan.experiment.name, plan.on_device())?;
        let mut done = vec![false; plan.cells.len()];
        numbers.into_iter().for_each(|cell| done[cell as usize] = true);
        Ok((campaign, done))
    }

    /// Resumes the last campaign with this plan identity, name and block device, as [`Store::resume`]. Returns its
    /// number and the numbers of the done cells.
    fn resume_as(
        &mut self,
        plan: &str,
        name: &str,
        on_device: Option<String>,
    ) -> Result<(i64, Vec<u32>), StoreError> {
        let last = "SELECT id FROM campaign WHERE plan = ?1 ORDER BY id DESC LIMIT 1";
        let Some(campaign) = self.tables().one(last, [plan], |row| Ok(row.get(0)?))? else {
            return Err(self.not_resumable(plan, name)?);
        };
        let was = self.tables().identity(campaign)?.on_device;
        if was != on_device {
            let (path, name) = (self.path.clone(), name.to_owned());
            let named = |device: Option<String>| device.unwrap_or_else(|| "none".to_owned());
            return Err(StoreError::OtherDevice { path, name, was: named(was), is: named(on_device) });
        }
        let mut damaged = Vec::new();
        for number in self.tables().numbers(campaign, Some("done"))? {
            damaged.extend(self.damage(campaign, number)?.map(|_| number));
        }
        self.transaction(|tables| {
            for number in damaged {
                tables.execute(
                    "UPDATE cell SET status = 'pending', counters_before = NULL, wear = NULL, verdict = NULL
                     WHERE campaign = ?1 AND cell = ?2",
                    params![campaign, number],
                )?;
            }
            for table in tables::of_cells() {
                let unfinished = "SELECT cell FROM cell WHERE campaign = ?1 AND status <> 'done'";
                let delete = format!("DELETE FROM {table} WHERE campaign = ?1 AND cell IN ({unfinished})");
                tables.execute(&delete, [campaign])?;
            }
            // The fact is recorded again when levels are predicted again.
            tables.forget_spared(campaign)?;
            tables.execute(
                "UPDATE cell SET status = 'pending', failure = NULL WHERE campaign = ?1 AND status <> 'done'",
                [campaign],
            )
        })?;
        Ok((campaign, self.tables().numbers(campaign, Some("done"))?))
    }

    /// The error for a plan without a campaign: the last campaign has another precision, or no campaign exists.
    fn not_resumable(&self, plan: &str, name: &str) -> Result<StoreError, StoreError> {
        let (without_precision, is) = identity::apart(plan);
        let plans = "SELECT plan FROM campaign WHERE name = ?1 ORDER BY id DESC";
        let plans: Vec<String> = self.tables().query(plans, [name], |row| Ok(row.get(0)?))?;
        let other = plans.iter().map(|plan| identity::apart(plan)).find(|(it, _)| *it == without_precision);
        let (path, name) = (self.path.clone(), name.to_owned());
        Ok(match other {
            Some((_, was)) => StoreError::OtherPrecision { path, name, was, is },
            None => StoreError::NothingToResume { path, name },
        })
    }
}

/// Refuses directories and devices, for which SQLite's own error is unclear.
fn refuse_all_but_files(path: &Path) -> Result<(), StoreError> {
    let found = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => "it is a directory",
        Ok(metadata) if !metadata.is_file() => "it is not a file",
        _ => return Ok(()),
    };
    Err(StoreError::NotAStore { path: path.to_owned(), found: found.to_owned() })
}

/// Locks a store against other writers. The lock ends when the file is closed, even if the process is killed. `None`
/// on a filesystem without locks.
fn lock(path: &Path) -> Result<Option<File>, StoreError> {
    let Ok(file) = File::open(path) else { return Ok(None) };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::InUse { path: path.to_owned() }),
        Err(_) => Ok(None),
    }
}

fn is_write_protected(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, ReadOnly};
    matches!(error.sqlite_error_code(), Some(CannotOpen | ReadOnly))
}

/// Returns whether a store has a write-ahead log.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    Path::new(&log).exists()
}
