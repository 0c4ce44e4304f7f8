//! Why a cell failed.
//!
//! It becomes text where the cell's end is stored and shown. Not here: why a campaign cannot begin (`campaign`).

use lowtide_core::{Bytes, DeviceError};
use lowtide_host::HostError;
use lowtide_live::attached::AttachedError;
use lowtide_oltp::OltpError;
use std::path::PathBuf;

/// Why a cell failed.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// The machine, or the target on it, refuses or fails.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A model refuses a request, or fails at one.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A database fails.
    #[error(transparent)]
    Oltp(#[from] OltpError),
    /// A simulated drive cannot be attached, or is lost.
    #[error(transparent)]
    Attached(#[from] AttachedError),
    /// What a database wrote cannot be moved from memory to its device.
    #[error("{path}: {source}", path = path.display())]
    Settle {
        /// The directory of the database.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A modelled database needs more room than its drive has.
    #[error("the database has grown past the end of the device, which has {0}: each new order adds rows")]
    Outgrown(Bytes),
    /// A cell before it failed, and left no history to go on from.
    #[error("the history it needs is missing: cell {0} failed")]
    BrokenHistory(u32),
    /// Nobody knows any more what was done to the drive.
    #[error(
        "the history it goes on from is not known: cells before it used {0} in an earlier run, failed, or could not \
         give it back, and a new drive would be another one; run all cells anew, without `--resume`, or begin each with \
         a drive as new: `purge = \"secure-erase\"` in [before-each-cell]"
    )]
    UnknownHistory(String),
}
