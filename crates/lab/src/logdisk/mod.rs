//! Log disks: where they lie, and how they are served to NBD clients and put under filesystems.
//!
//! ```text
//!   file | block device ─► Place: held ─► FileMedium ─► Queue ─► lowtide_logdisk::Disk ─► LogDrive ─► Service ─► clients
//!                                                                                            Figures, for who asks ◄─┘
//! ```
//!
//! Leaves out the format and the log itself (`lowtide_logdisk`), and the protocol (`lowtide_host::nbd`).

mod advice;
mod beside;
mod drive;
mod figures;
mod file;
mod place;
mod queue;
mod service;

pub use advice::{Advice, advice};
pub use drive::{LogDrive, QueuedDisk};
pub use figures::{Figures, Served};
pub use file::FileMedium;
pub use place::{Overwrite, Place, PlaceError, identity};
pub use queue::Queue;
pub use service::{Service, ask};
