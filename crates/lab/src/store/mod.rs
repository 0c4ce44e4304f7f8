//! The store: one SQLite file that holds campaigns, written while they run.
//!
//! ```text
//!   Writer (one thread) ◄─ Entry ─ cells that run          Store::open ─► campaigns() ─► load() ─► record::Campaign
//! ```
//!
//! Rows are committed a few times a second, so a killed campaign keeps what it measured. A cell counts as done
//! only once all its rows and its verdict are in, in one transaction; rows of a cell that was cut off are
//! removed when the campaign resumes. The schema is in `docs/formats.md`. Not here: analysis.

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
#[cfg(test)]
mod tests;
mod whole;
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
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use rustix::fs::FlockOperation;
use schema::StoreFormat;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The name under which the environment keeps which block device was under test.
const ON_DEVICE: &str = "under-test";

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    format: StoreFormat,
    /// Keeps other writers out. It goes last: closing any descriptor of a file drops the locks that SQLite has on it.
    _lock: Option<File>,
}

/// Facts of a campaign that its plan does not hold.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// When it began (RFC 3339).
    pub started_at: String,
    /// The command line that reproduces it.
    pub command: String,
    /// Facts about the machine and the target.
    pub environment: Vec<(String, String)>,
}

impl Store {
    /// Opens a store for writing, making it where there is none. One process at a time writes to a store.
    ///
    /// # Errors
    /// [`StoreError`] where the file cannot be made or written, is something else than a store, or is in use.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        output::store(path, &CommandFiles::default())?;
        refuse_all_but_files(path)?;
        let connection = Connection::open(path).map_err(StoreError::on(path))?;
        let lock = lock(path)?;
        let format = schema::prepare(&connection, path)?;
        Ok(Store { connection, path: path.to_owned(), format, _lock: lock })
    }

    /// A store in memory, gone when it is dropped: for a campaign of which only what it finds is kept.
    ///
    /// # Errors
    /// [`StoreError`] where there is no memory for it.
    pub(crate) fn in_memory() -> Result<Store, StoreError> {
        let path = PathBuf::from("a store in memory");
        let connection = Connection::open_in_memory().map_err(StoreError::on(&path))?;
        let format = schema::prepare(&connection, &path)?;
        Ok(Store { connection, path, format, _lock: None })
    }

    /// Opens a store that exists, for writing.
    ///
    /// # Errors
    /// As [`Store::open`]; [`StoreError::Missing`] where there is none.
    pub fn open_to_resume(path: &Path) -> Result<Store, StoreError> {
        Store::open_existing(path)?;
        Store::open(path)
    }

    /// Opens a store that exists, for reading; it may be written to at the same time, and lie where nobody may write.
    ///
    /// # Errors
    /// [`StoreError`] where there is none, or the file is something else.
    pub fn open_existing(path: &Path) -> Result<Store, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing { path: path.to_owned() });
        }
        refuse_all_but_files(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(StoreError::on(path))?;
        let (connection, format) = match schema::check(&connection, path) {
            // Beside a file in WAL mode SQLite makes others, unless it may take the file as one that never changes,
            // which it is where all of it has been written back.
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

    /// Closes a store, and removes its file where it has no campaign: while it is held, so nobody else has begun one.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn close_or_remove_empty(self) -> Result<(), StoreError> {
        let empty = self.campaigns()?.is_empty();
        let Store { connection, path, _lock: lock, .. } = self;
        // SQLite takes away what it made beside the file, but only while that is there.
        drop(connection);
        if empty {
            let _ = std::fs::remove_file(&path);
        }
        drop(lock);
        Ok(())
    }

    /// Begins a campaign; its number.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be written.
    pub fn begin(&mut self, plan: &Plan, about: &About) -> Result<i64, StoreError> {
        let fail = StoreError::on(&self.path);
        let experiment = &plan.experiment;
        let mut texts: Vec<&String> = Vec::new();
        for text in plan.target.devices().flat_map(|planned| &planned.device.texts) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let device = (!texts.is_empty()).then(|| serde_json::to_string(&texts).expect("texts serialise"));
        let transaction = self.connection.transaction().map_err(&fail)?;
        let on = plan.on_device().map(|device| (ON_DEVICE.to_owned(), device));
        let environment: Vec<_> = about.environment.iter().cloned().chain(on).collect();
        let head = add::Head {
            name: &experiment.name,
            title: &experiment.title,
            experiment: &experiment.without_passwords(experiment.text()),
            resolved: Some(&experiment.without_passwords(&experiment.to_json())),
            target: &experiment.target.to_string(),
            device: device.as_deref(),
            seed: plan.seed.get(),
            scale: plan.scale,
            started_at: &about.started_at,
            command: &experiment.without_passwords(&about.command),
            plan: &plan.identity(),
            environment: &environment,
        };
        let campaign = add::campaign(&transaction, &head).map_err(&fail)?;
        for cell in &plan.cells {
            let workload = cell.settings.load.workload();
            let cell = add::Planned {
                index: cell.index,
                step: cell.step.as_deref(),
                factors: &cell.factors(),
                repetition: cell.repetition,
                data: cell.data,
                capacity: cell.capacity,
                threads: workload.threads,
                read_share: workload.read_share,
            };
            add::cell(&transaction, campaign, &cell).map_err(&fail)?;
        }
        transaction.commit().map_err(&fail)?;
        Ok(campaign)
    }

    /// The last campaign of exactly this plan, cleared of cells that were cut off; its number and which cells are
    /// done.
    ///
    /// # Errors
    /// [`StoreError::NothingToResume`] where there is none; others where the store cannot be written.
    pub fn resume(&mut self, plan: &Plan) -> Result<(i64, Vec<bool>), StoreError> {
        let (campaign, numbers) =
            self.resume_as(&plan.identity(), &plan.experiment.name, plan.on_device())?;
        let mut done = vec![false; plan.cells.len()];
        numbers.into_iter().for_each(|cell| done[cell as usize] = true);
        Ok((campaign, done))
    }

    /// The same by what the plan is: its identity, name and block device; the numbers of the cells that are done.
    fn resume_as(
        &mut self,
        plan: &str,
        name: &str,
        on_device: Option<String>,
    ) -> Result<(i64, Vec<u32>), StoreError> {
        let fail = StoreError::on(&self.path);
        let found: Option<i64> = self
            .connection
            .query_row("SELECT max(id) FROM campaign WHERE plan = ?1", [plan], |row| row.get(0))
            .optional()
            .map_err(&fail)?
            .flatten();
        let Some(campaign) = found else {
            return Err(match self.otherwise(plan, name).map_err(&fail)? {
                Some(error) => error,
                None => StoreError::NothingToResume { path: self.path.clone(), name: name.to_owned() },
            });
        };
        let was = whole::identity(&self.connection, campaign).map_err(&fail)?.on_device;
        if was != on_device {
            let (path, name) = (self.path.clone(), name.to_owned());
            let said = |device: Option<String>| device.unwrap_or_else(|| "none".to_owned());
            return Err(StoreError::OtherDevice { path, name, was: said(was), is: said(on_device) });
        }
        // What does not read back is measured again.
        let mut damaged = Vec::new();
        for number in whole::numbers(&self.connection, campaign, Some("done")).map_err(&fail)? {
            damaged.extend(self.damage(campaign, number)?.map(|_| number));
        }
        let transaction = self.connection.transaction().map_err(&fail)?;
        for number in damaged {
            transaction
                .execute(
                    "UPDATE cell SET status = 'pending', counters_before = NULL, wear = NULL, verdict = NULL
                     WHERE campaign = ?1 AND cell = ?2",
                    params![campaign, number],
                )
                .map_err(&fail)?;
        }
        for table in whole::tables() {
            let unfinished = "SELECT cell FROM cell WHERE campaign = ?1 AND status <> 'done'";
            transaction
                .execute(
                    &format!("DELETE FROM {table} WHERE campaign = ?1 AND cell IN ({unfinished})"),
                    [campaign],
                )
                .map_err(&fail)?;
        }
        // What was spared is said again when it is predicted again.
        whole::forget_spared(&transaction, campaign).map_err(&fail)?;
        transaction
            .execute(
                "UPDATE cell SET status = 'pending', failure = NULL WHERE campaign = ?1 AND status <> 'done'",
                [campaign],
            )
            .map_err(&fail)?;
        transaction.commit().map_err(&fail)?;
        let done = whole::numbers(&self.connection, campaign, Some("done")).map_err(&fail)?;
        Ok((campaign, done))
    }

    /// What is wrong where the last campaign of a plan is one of another precision, or of none.
    fn otherwise(&self, plan: &str, name: &str) -> rusqlite::Result<Option<StoreError>> {
        let (whole, is) = identity::apart(plan);
        let mut statement =
            self.connection.prepare("SELECT plan FROM campaign WHERE name = ?1 ORDER BY id DESC")?;
        let plans = statement.query_map([name], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
        let Some((_, was)) = plans.iter().map(|plan| identity::apart(plan)).find(|(it, _)| *it == whole)
        else {
            return Ok(None);
        };
        let (path, name) = (self.path.clone(), name.to_owned());
        Ok(Some(StoreError::OtherPrecision { path, name, was, is }))
    }
}

/// Refuses directories and devices, of which SQLite would say something else.
fn refuse_all_but_files(path: &Path) -> Result<(), StoreError> {
    let found = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => "it is a directory",
        Ok(metadata) if !metadata.is_file() => "it is not a file",
        _ => return Ok(()),
    };
    Err(StoreError::NotAStore { path: path.to_owned(), found: found.to_owned() })
}

/// Locks a store against other writers until the file is closed, also by a kill; `None` on a filesystem without locks.
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

/// Whether there is a write-ahead log beside a store.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    Path::new(&log).exists()
}
