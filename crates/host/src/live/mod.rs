//! A server for live drives: real software sends requests, and a model decides when they are answered.
//!
//! ```text
//!   NBD clients ──► Transport ─┐
//!                              ├──► Server: one thread, which owns the drives ──► Drive (model, contents, cache)
//!   other threads ──► Port ────┘
//! ```
//!
//! The models, which implement [`Drive`], are in crate `lowtide-live`.

pub mod contents;
mod drive;
mod port;
mod server;
mod transport;
mod wait;

pub use contents::Contents;
pub use drive::{Drive, Ticket};
pub use port::{OnComplete, Outcome, Port};
pub use server::{Buffers, Handle, Server, Usage};
pub use transport::transport_ns;
pub(crate) use transport::{BLOCK, measure, slow};
pub use wait::{Clock, real_time};
