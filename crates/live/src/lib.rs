//! Simulated drives and log disks that are served live, over NBD or as a block device.
//!
//! A drive consists of a model for its timing, contents for its bytes, a volatile cache, and a power switch.
//!
//! ```text
//!   Offer ─► ResolvedOffer ─► LiveDrive ─► Service (server thread, control socket) ─► close ─► state
//! ```
//!
//! The protocols and the server thread are in `lowtide_host::{nbd, live}`, the models in `lowtide_device`.

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
pub use drive::{LiveDrive, Parts};
pub use figures::{Figures, Served};
pub use open::{Data, Offer, OpenError, ResolvedOffer};
pub use record::{RECORDING, Recorder};
pub use service::{ControlSocket, Service};
pub use stat::{Power, Stat, prometheus};
pub use time::Pace;
