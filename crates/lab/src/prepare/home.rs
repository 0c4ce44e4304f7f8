//! Where the databases of a campaign lie: in a directory of this machine, on a block device that is formatted for each
//! cell, or on simulated drives ([`Drives`]).
//!
//! Everything is below one directory that is made for the campaign and removed after it; what campaigns left that were
//! killed is removed before. Leaves out the databases (`data_set`).

use super::Block;
use super::drives::Drives;
use crate::analysis::Medium;
use crate::plan::{Plan, PlanTarget, PlannedCell};
use lowtide_core::{Bytes, Counters, Seed};
use lowtide_host::HostError;
use lowtide_host::block::{Disk, Traffic};
use lowtide_host::error::Operation;
use lowtide_oltp::Places;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How the names of directories begin that campaigns make; the number of the process follows.
const NAME: &str = "lowtide-oltp-";

/// Where databases lie.
pub(crate) enum Home<'a> {
    /// Below a directory of this machine.
    Directory {
        /// The directory, as the user named it.
        path: PathBuf,
        /// The disk beneath it, where it can be seen.
        disk: Option<Box<Disk>>,
    },
    /// On a block device.
    Block(Box<Block>),
    /// On simulated drives.
    Drives(Box<Drives<'a>>),
}

/// A home that is ready for a cell's databases.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    /// The directory for data.
    pub data: PathBuf,
    /// The directory for logs, where that is another.
    pub log: Option<PathBuf>,
    /// Bytes the host may address on the device.
    pub capacity: Bytes,
    /// All NAND, where known.
    pub raw_capacity: Option<Bytes>,
    /// The kind of device.
    pub medium: Medium,
    /// Host bytes written between the last purge and the loaded databases; `None` where nobody knows.
    pub written: Option<Bytes>,
}

impl<'a> Home<'a> {
    /// Where a plan's databases lie.
    ///
    /// # Errors
    /// [`HostError`] where the target is refused.
    pub fn of(plan: &'a Plan) -> Result<Home<'a>, HostError> {
        let home = match &plan.target {
            PlanTarget::Simulated(_) => unreachable!("databases run in wall time"),
            PlanTarget::Attached(devices) => Home::Drives(Box::new(Drives::new(devices, plan)?)),
            PlanTarget::Block(block) => Home::Block(Box::new(Block::take(block)?)),
            PlanTarget::Host(spec) => Home::directory(spec.path())?,
        };
        let base = home.base();
        remove_left_over(base.parent().unwrap_or(&base));
        Ok(home)
    }

    fn directory(path: &Path) -> Result<Home<'a>, HostError> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let whole = path.canonicalize().map_err(HostError::io(Operation::Inspect, path))?;
        let probe = whole.join(own_name());
        std::fs::create_dir_all(&probe).map_err(HostError::io(Operation::Create, &probe))?;
        Ok(Home::Directory { disk: Disk::beneath(&whole).map(Box::new), path: whole })
    }

    /// The directory below which a campaign keeps what is its own: data sets, and in a directory also the cells' data.
    pub fn base(&self) -> PathBuf {
        let beside = match self {
            Home::Directory { path, .. } => path.clone(),
            Home::Block(_) | Home::Drives(_) => std::env::temp_dir(),
        };
        beside.join(own_name())
    }

    /// Gives the cell an empty place with the history it asks for. A simulated drive answers at once.
    ///
    /// # Errors
    /// What people are told: the device does not do it, or `interrupt` is set.
    pub fn prepare(
        &mut self,
        cell: &PlannedCell,
        seed: Seed,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Ready, String> {
        let oltp = cell.settings.load.oltp.as_ref().expect("a cell of databases");
        let log = oltp.log_directory.as_ref().map(|path| path.join(own_name()));
        let capacity = cell.capacity;
        match self {
            // What else the drive beneath a directory has seen, and how much of it is used, nobody knows.
            Home::Directory { path, .. } => {
                let (data, medium) = (path.join(own_name()).join("cell"), Medium::Other);
                Ok(Ready { data, log, capacity, raw_capacity: None, medium, written: None })
            }
            Home::Block(block) => {
                let data = block.format(cell, interrupt).map_err(|error| error.to_string())?;
                let medium = if block.disk().rotational { Medium::Other } else { Medium::Unknown };
                Ok(Ready { data, log, capacity, raw_capacity: None, medium, written: block.written() })
            }
            Home::Drives(drives) => drives.prepare(cell, seed, interrupt),
        }
    }

    /// The databases are where they belong, and will be asked: nothing of them is in the memory of the kernel, and a
    /// simulated drive answers at its pace.
    ///
    /// # Errors
    /// What people are told.
    pub fn begin(&mut self, ready: &mut Ready, copied: Bytes) -> Result<(), String> {
        for directory in [Some(&ready.data), ready.log.as_ref()].into_iter().flatten() {
            settle(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        }
        if let Home::Drives(drives) = self {
            drives.begin()?;
        }
        ready.written = ready.written.map(|written| written + copied);
        Ok(())
    }

    /// The measurement is over: a simulated drive answers at once again.
    ///
    /// # Errors
    /// What people are told.
    pub fn end(&mut self) -> Result<(), String> {
        match self {
            Home::Drives(drives) => drives.end(),
            Home::Directory { .. } | Home::Block(_) => Ok(()),
        }
    }

    /// What the device underneath has done so far, and the counters of its model where it has one.
    pub fn done(&self) -> (Traffic, Option<Counters>) {
        let disk = match self {
            Home::Directory { disk, .. } => disk.as_deref(),
            Home::Block(block) => Some(block.disk()),
            Home::Drives(drives) => return drives.done(),
        };
        (disk.and_then(Disk::traffic).unwrap_or_default(), None)
    }

    /// The filesystem made for the cell, and what the kernel mounted it with.
    pub fn mounted(&self) -> Option<String> {
        match self {
            Home::Block(block) => block.mounted(),
            Home::Directory { .. } | Home::Drives(_) => None,
        }
    }

    /// Undoes what was done for the campaign.
    ///
    /// # Errors
    /// [`HostError`] where something cannot be undone.
    pub fn finish(self) -> Result<(), HostError> {
        let base = self.base();
        match self {
            Home::Directory { .. } => {}
            Home::Block(block) => block.finish()?,
            Home::Drives(drives) => drives.finish()?,
        }
        match std::fs::remove_dir_all(&base) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(HostError::io(Operation::Remove, &base)(error))
            }
            _ => Ok(()),
        }
    }
}

/// The name of a directory that is this process's own.
fn own_name() -> String {
    format!("{NAME}{}", std::process::id())
}

impl Ready {
    /// The places of an instance.
    pub fn places(&self, number: u32, run: &Path) -> Places {
        let own = |path: &Path, what: &str| path.join(format!("{what}-{number}"));
        Places {
            data: own(&self.data, "data"),
            log: self.log.as_deref().map(|log| own(log, "log")),
            run: run.join(format!("cell-{number}")),
        }
    }
}

/// Removes what campaigns of processes that are gone have left in a directory.
pub(crate) fn remove_left_over(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Writes what is in the page cache of the files below a directory to their device, and forgets it.
///
/// # Errors
/// Where a file cannot be opened or written.
fn settle(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            settle(&entry.path())?;
        } else if kind.is_file() {
            let file = std::fs::File::open(entry.path())?;
            file.sync_all()?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
    }
    Ok(())
}
