//! Log disks: the file or block device that holds one, and serving one to NBD clients and filesystems.
//!
//! ```text
//!   file | block device ─► Backing: locked ─► FileMedium ─► Queue ─► lowtide_logdisk::Disk ─► LogDrive ─► Service ─► NBD clients | a block device
//!                                                                                             └─► Figures, for `lowtide logdisk stat`
//! ```
//!
//! Not here: the format and the log itself (`lowtide_logdisk`), and the protocol (`lowtide_host::nbd`).

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
