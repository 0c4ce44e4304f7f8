//! Log disks: where they lie, and how they are served to NBD clients and put under filesystems.
//!
//! ```text
//!   file ─► Place: locked ─► FileMedium ─► Queue ─► lowtide_logdisk::Disk ─► LogDrive ─► lowtide_host::live::Server
//! ```
//!
//! Leaves out the format and the log itself (`lowtide_logdisk`), and the protocol (`lowtide_host::nbd`).

mod advice;
mod beside;
mod drive;
mod file;
mod place;
mod queue;

pub use advice::{Advice, advice};
pub use drive::{LogDrive, QueuedDisk};
pub use file::FileMedium;
pub use place::{Place, PlaceError, identity};
pub use queue::Queue;
