//! Where the databases of a campaign lie: in a directory of this machine, on a block device that is formatted for each
//! cell, or on simulated drives ([`Drives`]).
//!
//! What is of a campaign lies in directories of its own ([`Folder`]), which go with it; what campaigns left that were
//! killed is removed before. Not here: the databases (`data_set`).

use super::data_set::Copies;
use super::drives::Drives;
use super::{Block, HostTarget};
use crate::cell_error::CellError;
use crate::plan::{Plan, PlanTarget, PlannedCell};
use lowtide_core::{Bytes, Counters, Seed};
use lowtide_host::HostError;
use lowtide_host::block::{Disk, Traffic};
use lowtide_host::error::Operation;
use lowtide_oltp::{Folder, Places, folder};
use lowtide_record::analysis::Medium;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Where databases lie.
pub(crate) enum Home<'a> {
    /// Below a directory of this machine.
    Directory {
        /// A directory of our own in the one that the user named.
        own: Folder,
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
        Ok(match &plan.target {
            PlanTarget::Simulated(_) => unreachable!("databases run in wall time"),
            PlanTarget::Attached(devices) => Home::Drives(Box::new(Drives::new(devices, plan)?)),
            PlanTarget::Block(block) => Home::Block(Box::new(Block::take(block)?)),
            PlanTarget::Host(spec) => {
                let own = own(spec.path())?;
                Home::Directory { disk: Disk::beneath(own.path()).map(Box::new), own }
            }
        })
    }

    /// The directory in which data sets are kept that shall lie where the cells' data do; `None` on a device.
    pub fn beside(&self) -> Option<&Path> {
        match self {
            Home::Directory { own, .. } => Some(own.path()),
            Home::Block(_) | Home::Drives(_) => None,
        }
    }

    /// Where cells' copies of data sets go.
    pub fn copies(&self) -> Copies {
        match self {
            Home::Directory { .. } => Copies::Beside,
            Home::Block(_) => Copies::Elsewhere,
            Home::Drives(_) => Copies::InContents,
        }
    }

    /// A cell is not measured, now or any more: what follows cannot go on from it.
    pub fn left_out(&mut self, cell: &PlannedCell) {
        if let Home::Drives(drives) = self {
            drives.left_out(cell);
        }
    }

    /// Gives the cell an empty place with the history it asks for. A simulated drive answers at once.
    ///
    /// # Errors
    /// [`CellError`] where the device does not do it, or `interrupt` is set.
    pub fn prepare(
        &mut self,
        cell: &PlannedCell,
        seed: Seed,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Ready, CellError> {
        let (capacity, log) = (cell.capacity, None);
        match self {
            // What else the drive beneath a directory has seen, and how much of it is used, nobody knows.
            Home::Directory { own, .. } => {
                let (data, medium) = (own.path().join("cell"), Medium::Other);
                Ok(Ready { data, log, capacity, raw_capacity: None, medium, written: None })
            }
            Home::Block(block) => {
                let data = block.format(cell, interrupt)?;
                let medium = if block.disk().is_some_and(|disk| disk.rotational) {
                    Medium::Other
                } else {
                    Medium::Unknown
                };
                Ok(Ready { data, log, capacity, raw_capacity: None, medium, written: block.written() })
            }
            Home::Drives(drives) => drives.prepare(cell, seed, interrupt),
        }
    }

    /// The databases are where they belong, and will be asked: nothing of them is in the memory of the kernel, and a
    /// simulated drive answers at its pace.
    ///
    /// # Errors
    /// [`CellError`] where the device does not answer.
    pub fn begin(&mut self, ready: &mut Ready, copied: Bytes) -> Result<(), CellError> {
        for directory in [Some(&ready.data), ready.log.as_ref()].into_iter().flatten() {
            settle(directory).map_err(|source| CellError::Settle { path: directory.clone(), source })?;
        }
        match self {
            Home::Directory { .. } => {}
            Home::Block(block) => block.count(copied),
            Home::Drives(drives) => drives.begin()?,
        }
        ready.written = ready.written.map(|written| written + copied);
        Ok(())
    }

    /// So much was written to the device while it was measured.
    pub fn count(&mut self, written: Bytes) {
        if let Home::Block(block) = self {
            block.count(written);
        }
    }

    /// The measurement is over: a simulated drive answers at once again. With it what is to be said of answers that came
    /// too late, if they did.
    ///
    /// # Errors
    /// [`CellError`] where the device does not answer.
    pub fn end(&mut self) -> Result<Vec<String>, CellError> {
        match self {
            Home::Drives(drives) => drives.end(),
            Home::Directory { .. } | Home::Block(_) => Ok(Vec::new()),
        }
    }

    /// What the device underneath has done so far, where that is to be seen, and the counters of its model where it has one.
    pub fn done(&self) -> (Option<Traffic>, Option<Counters>) {
        let disk = match self {
            Home::Directory { disk, .. } => disk.as_deref(),
            Home::Block(block) => block.disk(),
            Home::Drives(drives) => return drives.done(),
        };
        (disk.and_then(Disk::traffic), None)
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
        match self {
            Home::Directory { own, .. } => remove(own),
            Home::Block(block) => block.finish(),
            Home::Drives(drives) => drives.finish(),
        }
    }
}

/// A directory of our own in another, where killed campaigns left nothing.
///
/// # Errors
/// [`HostError`] where the other is not there, or takes nothing.
pub fn own(within: &Path) -> Result<Folder, HostError> {
    let within = if within.as_os_str().is_empty() { Path::new(".") } else { within };
    let whole = within.canonicalize().map_err(HostError::io(Operation::Inspect, within))?;
    folder::remove_left_over(&whole);
    Folder::make(&whole, "oltp").map_err(HostError::io(Operation::Create, &whole.join("lowtide-oltp")))
}

/// Removes a directory of our own.
///
/// # Errors
/// [`HostError`] where something in it cannot be removed.
pub(crate) fn remove(own: Folder) -> Result<(), HostError> {
    let path = own.path().to_owned();
    own.remove().map_err(HostError::io(Operation::Remove, &path))
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
