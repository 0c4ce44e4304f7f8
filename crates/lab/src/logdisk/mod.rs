//! Log disks: where they lie, and how they are served to NBD clients and put under filesystems.
//!
//! ```text
//!   file ─► Place: locked ─► lowtide_logdisk::Disk ─► LogDrive ─► lowtide_host::live::Server
//! ```
//!
//! Leaves out the format and the log itself (`lowtide_logdisk`), and the protocol (`lowtide_host::nbd`).

mod advice;
mod drive;
mod place;

pub use advice::{Advice, advice};
pub use drive::LogDrive;
pub use place::{Place, PlaceError, identity};
