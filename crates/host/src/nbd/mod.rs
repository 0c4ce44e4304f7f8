//! An NBD server: the protocol and the negotiation. The server thread of [`crate::live`] handles the transmission.
//!
//! ```text
//!   listen ─► negotiate (a thread for each client, with a deadline) ─► Agreed ─► transmission (`live`)
//! ```
//!
//! The drives are in [`crate::live`], too.

mod activation;
pub mod answer;
pub mod client;
mod conversation;
pub mod ended;
pub mod export;
pub mod listen;
mod meta_context;
pub mod negotiate;
pub mod options;
mod permits;
pub mod request;
mod rsa;
pub mod tls;
pub mod transport;
pub mod unix_socket;
mod waiting_room;
pub mod wire;

pub use client::NbdClient;
pub use ended::Ended;
pub use export::Export;
pub use listen::{Address, Listener};
pub use negotiate::{Agreed, Settings, negotiate};
pub use tls::Tls;
pub use transport::Transport;
