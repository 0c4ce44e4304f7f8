//! MariaDB and MySQL: a server of our own, or a server of the user's.
//!
//! ```text
//!   Settings ─► options (those this server supports) ─► instance ─► server: a Database
//!                                                                     ├─► schema, load
//!                                                                     ├─► session: the five transactions
//!                                                                     └─► counters
//! ```
//!
//! The server is asked for its options; its version does not decide them.
//!
//! # Not handled
//! Replication, partitions, and TCP for servers of our own.

mod counters;
mod errors;
mod instance;
mod load;
mod options;
mod preset;
mod schema;
mod server;
mod session;

pub use instance::start;
pub use server::connect;
