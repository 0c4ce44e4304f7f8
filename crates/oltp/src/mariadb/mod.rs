//! MariaDB and MySQL: a server of our own, or one that the user names.
//!
//! ```text
//!   Settings ─► options (what this server has a word for) ─► instance ─► server: a Database
//!                                                                           ├─► schema, load
//!                                                                           ├─► session: the five transactions
//!                                                                           └─► counters
//! ```
//!
//! Which options there are is asked of the server, not guessed from its version. Not here: replication, partitions and
//! TCP for servers of our own.

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
