//! Simulated drives and log disks, served live over NBD or as a block device.
//!
//! A drive has a model for the time, contents for the bytes, a volatile cache, and a power switch.
//!
//! ```text
//!   Offer ─► Known ─► LiveDrive ─► Service (loop, control socket) ─► close ─► state
//! ```
//!
//! Not here: the protocols and the serving loop (`lowtide_host::{nbd, live}`), and the models
//! (`lowtide_device`).

pub mod attached;
pub mod contract;
pub mod control;
mod counts;
mod drive;
mod figures;
pub mod logdisk;
pub mod open;
mod record;
pub mod request_log;
mod service;
mod stat;
mod state;
mod time;

pub use counts::{Requests, Spread};
pub use drive::{Closed, LiveDrive, Parts};
pub use figures::{Figures, Served};
pub use open::{Data, Known, Offer, OpenError};
pub use record::{RECORDING, Recorder};
pub use service::{Orders, Service};
pub use stat::{Clients, Power, Stat, prometheus};
pub use time::Pace;
