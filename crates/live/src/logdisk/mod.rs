//! Log disks: where they lie, and how they are served to NBD clients and put under filesystems.
//!
//! ```text
//!   file | block device ─► Place: held ─► FileMedium ─► Queue ─► lowtide_logdisk::Disk ─► LogDrive ─► Service ─► NBD clients | a block device
//!                                                                                           └─► Figures, for who asks
//! ```
//!
//! Not here: the format and the log itself (`lowtide_logdisk`), and the protocol (`lowtide_host::nbd`).

mod advice;
mod beside;
mod drive;
mod file;
mod place;
mod queue;
mod resize;
mod service;

pub use crate::{Figures, Served};
pub use advice::{Advice, advice};
pub use drive::{LogDrive, QueuedDisk};
pub use file::FileMedium;
pub use place::{Overwrite, Place, PlaceError, identity};
pub use queue::Queue;
pub use resize::{ResizeError, resize};
pub use service::{Service, ask};
