//! Log disks: the file or block device that holds one, and serving to NBD clients and filesystems.
//!
//! ```text
//!   file | block device ─► Backing: locked ─► FileMedium ─► Queue ─► lowtide_logdisk::Disk ─► LogDrive ─► Service
//!   Service ─► NBD clients | a block device
//!   LogDrive ─► Figures, for `lowtide logdisk stat`
//! ```
//!
//! The format and the log are in `lowtide_logdisk`, the protocol in `lowtide_host::nbd`.

mod advice;
mod backing;
mod drive;
mod file;
mod io_threads;
mod queue;
mod resize;
mod service;

pub use crate::{Figures, Served};
pub use advice::{Advice, advice};
pub use backing::{Backing, BackingError, Overwrite, identity};
pub use drive::{LogDrive, QueuedDisk};
pub use file::FileMedium;
pub use queue::Queue;
pub use resize::{ResizeError, resize};
pub use service::{announce, ask};
