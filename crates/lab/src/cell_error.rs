//! Errors that fail a cell.
//!
//! The store and the display keep these errors as text. Errors that end a campaign are in module `campaign`.

use lowtide_core::{Bytes, DeviceError};
use lowtide_host::HostError;
use lowtide_live::attached::AttachedError;
use lowtide_oltp::OltpError;
use std::path::PathBuf;

/// An error that fails a cell.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// The machine or its target refused or failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A model refused a request, or a request failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A database failed.
    #[error(transparent)]
    Oltp(#[from] OltpError),
    /// A simulated drive could not be attached, or was lost.
    #[error(transparent)]
    Attached(#[from] AttachedError),
    /// The dirty pages of a database could not be written to its device.
    #[error("{path}: {source}", path = path.display())]
    Settle {
        /// The directory of the database.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A modelled database outgrew its drive, which has this capacity.
    #[error("the database has grown past the end of the device, which has {0}: each new order adds rows")]
    Outgrown(Bytes),
    /// The cell with this number failed, so the history of this cell is missing.
    #[error("the history it needs is missing: cell {0} failed")]
    BrokenHistory(u32),
    /// The history of the drive with this name is unknown.
    #[error(
        "the history of {0} is unknown: earlier cells used it in an earlier run, failed, or could not save its state; \
         run all cells again without `--resume`, or let each cell begin with an erased drive: \
         `purge = \"secure-erase\"` in [before-each-cell]"
    )]
    UnknownHistory(String),
}
