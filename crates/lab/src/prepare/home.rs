//! Where the databases of a campaign lie: in a directory of this machine, or on a block device that is formatted for each
//! cell.
//!
//! Everything is below one directory that is made for the campaign and removed after it; what campaigns left that were
//! killed is removed before. Leaves out the databases (`data_set`).

use super::Block;
use crate::analysis::Medium;
use crate::plan::PlannedCell;
use lowtide_core::{Bytes, Counters};
use lowtide_host::HostError;
use lowtide_host::block::{Disk, Traffic};
use lowtide_host::error::Operation;
use lowtide_oltp::Places;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// How the names of directories begin that campaigns make; the number of the process follows.
const NAME: &str = "lowtide-oltp-";

/// Where databases lie.
#[derive(Debug)]
pub(crate) enum Home {
    /// Below a directory of this machine.
    Directory {
        /// The directory, as the user named it.
        path: PathBuf,
        /// The disk beneath it, where it can be seen.
        disk: Option<Disk>,
    },
    /// On a block device.
    Block(Box<Block>),
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
    /// Host bytes written since the last purge; `None` where nobody knows.
    pub written_before: Option<Bytes>,
}

impl Home {
    /// A directory of this machine.
    ///
    /// # Errors
    /// [`HostError`] where there is none, or nothing can be made in it.
    pub fn directory(path: &Path) -> Result<Home, HostError> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let whole = path.canonicalize().map_err(HostError::io(Operation::Inspect, path))?;
        let probe = whole.join(format!("{NAME}{}", std::process::id()));
        std::fs::create_dir_all(&probe).map_err(HostError::io(Operation::Create, &probe))?;
        Ok(Home::Directory { disk: Disk::beneath(&whole), path: whole })
    }

    /// The directory below which a campaign keeps what is its own: data sets, and in a directory also the cells' data.
    pub fn base(&self) -> PathBuf {
        let beside = match self {
            Home::Directory { path, .. } => path.clone(),
            Home::Block(_) => std::env::temp_dir(),
        };
        beside.join(format!("{NAME}{}", std::process::id()))
    }

    /// Gives the cell an empty place with the history it asks for.
    ///
    /// # Errors
    /// [`HostError`] where the device does not do it, or `interrupt` is set.
    pub fn prepare(&mut self, cell: &PlannedCell, interrupt: &AtomicBool) -> Result<Ready, HostError> {
        let oltp = cell.settings.load.oltp.as_ref().expect("a cell of databases");
        let base = self.base();
        let own_log = oltp.log_directory.as_ref().map(|path| path.join(base.file_name().expect("named")));
        match self {
            Home::Directory { .. } => Ok(Ready {
                data: base.join("cell"),
                log: own_log,
                capacity: cell.capacity,
                raw_capacity: None,
                // What else the drive beneath has seen, and how much of it is used, nobody knows.
                medium: Medium::Other,
                written_before: None,
            }),
            Home::Block(block) => {
                let data = block.format(cell, interrupt)?.to_owned();
                let medium = if block.disk().rotational { Medium::Other } else { Medium::Unknown };
                let written_before = block.written();
                let capacity = cell.capacity;
                Ok(Ready { data, log: own_log, capacity, raw_capacity: None, medium, written_before })
            }
        }
    }

    /// What the device underneath has done so far.
    pub fn traffic(&self) -> Traffic {
        let disk = match self {
            Home::Directory { disk, .. } => disk.as_ref(),
            Home::Block(block) => Some(block.disk()),
        };
        disk.and_then(Disk::traffic).unwrap_or_default()
    }

    /// The counters of the model underneath, where there is one.
    pub fn counters(&self) -> Option<Counters> {
        None
    }

    /// The filesystem made for the cell, and what the kernel mounted it with.
    pub fn mounted(&self) -> Option<String> {
        match self {
            Home::Directory { .. } => None,
            Home::Block(block) => block.mounted(),
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
        }
        match std::fs::remove_dir_all(&base) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(HostError::io(Operation::Remove, &base)(error))
            }
            _ => Ok(()),
        }
    }
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
pub(crate) fn settle(directory: &Path) -> std::io::Result<()> {
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
