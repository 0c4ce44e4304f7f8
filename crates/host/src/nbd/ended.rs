//! The end of a negotiation without an export ([`Ended`]).
//!
//! Replies to the client's options are in module `negotiate`.

use std::io;
use std::time::Duration;

/// The reason why a negotiation failed. The text follows the client's name in a log line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Ended {
    /// The client sent ABORT.
    #[error("left before it chose an export")]
    Aborted,
    /// The client closed the connection.
    #[error("closed the connection before it chose an export")]
    Left,
    /// The client exceeded this time.
    #[error("was dropped: it chose no export within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The server is ending.
    #[error("was dropped: the server is ending")]
    Stopping,
    /// The maximum number of clients is connected.
    #[error("was refused: the maximum of {0} clients is connected")]
    Full(usize),
    /// The client was replaced by a new one, because it had been silent longest of the maximum number of negotiating
    /// clients.
    #[error("was dropped for a new client: it had been silent longest of {0} clients without an export")]
    Silent(usize),
    /// The client violated the protocol in a way that has no reply.
    #[error("was dropped: it violated the protocol: {0}")]
    Violation(String),
    /// The client's request was refused, and has no error reply.
    #[error("was dropped: {0}")]
    Refused(String),
    /// The TLS handshake failed.
    #[error("was dropped: TLS failed: {0}")]
    Tls(String),
    /// The connection failed.
    #[error("was lost: {0}")]
    Io(io::Error),
}

impl Ended {
    /// Returns whether the client left in an ordinary way, which needs no log line.
    pub fn is_ordinary(&self) -> bool {
        matches!(self, Ended::Aborted | Ended::Left | Ended::Stopping)
    }
}
