//! Drives served live: requests come from real software, and are answered when a model says so.
//!
//! ```text
//!   NBD clients ──► Transport ─┐
//!                              ├──► Server: one thread, which owns the drives ──► Drive (model, contents, cache)
//!   other threads ──► Port ────┘
//! ```
//!
//! Not here: the models, which reach this crate behind [`Drive`].

pub mod contents;
mod drive;
mod port;
mod server;
mod transport;
mod wait;

pub use contents::Contents;
pub use drive::{Drive, Ticket};
pub use port::{Done, Outcome, Port};
pub use server::{Buffers, Handle, Ring, Server, Usage};
pub use transport::transport_ns;
pub(crate) use transport::{BLOCK, measure, slow};
pub use wait::{Clock, real_time};
