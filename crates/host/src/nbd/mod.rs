//! An NBD server: the protocol, and a loop that serves drives to clients.
//!
//! ```text
//!   listen ─► negotiate (a thread for each client, with a deadline) ─► Agreed ─► transmission (the loop of `live`)
//! ```
//!
//! Leaves out what a drive is: see [`crate::live`].

pub mod answer;
pub mod client;
pub mod export;
pub mod request;
pub mod wire;

pub use client::NbdClient;
pub use export::Export;
