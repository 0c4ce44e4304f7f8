//! The home of a campaign's databases ([`Home`]): a directory of this machine, a block device that is formatted for
//! each cell, or simulated drives.
//!
//! To add a kind of home, write a file with an implementation of [`Home`], and add a line to [`of`]. The files of a
//! campaign are in directories of its own ([`Folder`]), which are removed at its end. Directories of killed campaigns
//! are removed when a campaign begins. The databases are in module `data_set`.

use super::Block;
use super::data_set::Copies;
use super::directory::Directory;
use super::drives::Drives;
use crate::cell_error::CellError;
use crate::plan::{Plan, PlanTarget, PlannedCell};
use lowtide_core::{Bytes, Counters, Seed};
use lowtide_host::HostError;
use lowtide_host::block::Traffic;
use lowtide_host::error::Operation;
use lowtide_oltp::{Folder, Places, folder};
use lowtide_record::analysis::Medium;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The storage of a campaign's databases.
pub(crate) trait Home {
    /// The directory for data sets, if it must be on the same filesystem as the data of cells; `None` on a device.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// The destination of the cells' copies of data sets.
    fn copies(&self) -> Copies;

    /// Notes that a cell is not measured, so that later cells cannot continue its history.
    fn skip(&mut self, _cell: &PlannedCell) {}

    /// Prepares an empty directory with the history that the cell asks for. During preparation a simulated drive
    /// answers without delay.
    ///
    /// # Errors
    /// [`CellError`] if the device fails, or `interrupt` is set.
    fn prepare(
        &mut self,
        cell: &PlannedCell,
        seed: Seed,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Ready, CellError>;

    /// Begins the measurement, after `copied` bytes of databases were written. Empties the page cache, and makes a
    /// simulated drive answer at its own pace.
    ///
    /// # Errors
    /// [`CellError`] if the device does not answer.
    fn begin(&mut self, ready: &mut Ready, copied: Bytes) -> Result<(), CellError> {
        ready.settle(copied)
    }

    /// Counts bytes that were written to the device during the measurement.
    fn count(&mut self, _written: Bytes) {}

    /// Ends the measurement, and returns warnings about late answers. From then on a simulated drive answers without
    /// delay again.
    ///
    /// # Errors
    /// [`CellError`] if the device does not answer.
    fn end(&mut self) -> Result<Vec<String>, CellError> {
        Ok(Vec::new())
    }

    /// The traffic of the device so far, if it is visible, and the counters of a simulated drive.
    fn activity(&self) -> (Option<Traffic>, Option<Counters>);

    /// The filesystem made for the cell, and its mount options as the kernel reports them.
    fn mounted(&self) -> Option<String> {
        None
    }

    /// Undoes all changes made for the campaign.
    ///
    /// # Errors
    /// [`HostError`] if a change cannot be undone.
    fn finish(self: Box<Self>) -> Result<(), HostError>;
}

/// The home of a plan's databases.
///
/// # Errors
/// [`HostError`] if the target is refused.
pub(crate) fn of(plan: &Plan) -> Result<Box<dyn Home + Send + '_>, HostError> {
    Ok(match &plan.target {
        PlanTarget::Simulated(_) => unreachable!("databases run in wall time"),
        PlanTarget::Attached(devices) => Box::new(Drives::new(devices, plan)?),
        PlanTarget::Block(block) => Box::new(Block::take(block)?),
        PlanTarget::Host(spec) => Box::new(Directory::within(spec.path())?),
    })
}

/// A home that is ready for a cell's databases.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    /// The directory for data.
    pub data: PathBuf,
    /// The directory for logs, if it differs from the directory for data.
    pub log: Option<PathBuf>,
    /// Bytes the host may address on the device.
    pub capacity: Bytes,
    /// The NAND capacity, if known.
    pub raw_capacity: Option<Bytes>,
    /// The kind of device.
    pub medium: Medium,
    /// Host bytes written since the last purge; `None` if unknown.
    pub written: Option<Bytes>,
}

impl Ready {
    /// The directories of an instance.
    pub fn places(&self, number: u32, run: &Path) -> Places {
        let own = |path: &Path, what: &str| path.join(format!("{what}-{number}"));
        Places {
            data: own(&self.data, "data"),
            log: self.log.as_deref().map(|log| own(log, "log")),
            run: run.join(format!("cell-{number}")),
        }
    }

    /// Writes back the files of the databases, `copied` bytes, and drops them from the page cache.
    pub fn settle(&mut self, copied: Bytes) -> Result<(), CellError> {
        for directory in [Some(&self.data), self.log.as_ref()].into_iter().flatten() {
            settle(directory).map_err(|source| CellError::Settle { path: directory.clone(), source })?;
        }
        self.written = self.written.map(|written| written + copied);
        Ok(())
    }
}

/// Creates a directory for lowtide in `within`. First removes the directories of killed campaigns there.
///
/// # Errors
/// [`HostError`] if `within` does not exist, or cannot be written to.
pub fn own(within: &Path) -> Result<Folder, HostError> {
    let within = if within.as_os_str().is_empty() { Path::new(".") } else { within };
    let path = within.canonicalize().map_err(HostError::io(Operation::Inspect, within))?;
    folder::remove_left_over(&path);
    Folder::make(&path, "oltp").map_err(HostError::io(Operation::Create, &path.join("lowtide-oltp")))
}

/// Removes a directory of lowtide.
///
/// # Errors
/// [`HostError`] if a file in it cannot be removed.
pub(crate) fn remove(own: Folder) -> Result<(), HostError> {
    let path = own.path().to_owned();
    own.remove().map_err(HostError::io(Operation::Remove, &path))
}

/// Writes back the files below a directory, and drops them from the page cache.
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
