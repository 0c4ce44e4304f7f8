//! Why a client never came to ask for data ([`Ended`]).
//!
//! Not here: what is told to the client itself; that stands in the replies to its options.

use std::fmt;
use std::io;
use std::time::Duration;

/// Why a negotiation came to nothing, as a log line says it after the client's name.
#[derive(Debug)]
#[non_exhaustive]
pub enum Ended {
    /// The client said goodbye.
    Aborted,
    /// The client closed the connection.
    Left,
    /// The client took longer than that.
    TimedOut(Duration),
    /// The server ends.
    Stopping,
    /// All places for clients are taken.
    Full(usize),
    /// The client had said nothing for the longest, of so many that had chosen no export, and another came.
    Silent(usize),
    /// The client broke the protocol in a way that leaves no answer.
    Violation(String),
    /// The client asked, in a way that has no answer, for what it cannot have.
    Refused(String),
    /// TLS could not be agreed on.
    Tls(String),
    /// The connection failed.
    Io(io::Error),
}

impl Ended {
    /// Whether the client left as clients do, which need not be told.
    pub fn is_ordinary(&self) -> bool {
        matches!(self, Ended::Aborted | Ended::Left | Ended::Stopping)
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Aborted => f.write_str("said goodbye before it chose an export"),
            Ended::Left => f.write_str("closed the connection before it chose an export"),
            Ended::TimedOut(after) => {
                write!(f, "chose no export within {} s and was dropped", after.as_secs_f64())
            }
            Ended::Stopping => f.write_str("was dropped: the server ends"),
            Ended::Full(most) => write!(f, "was turned away: there are {most} clients already"),
            Ended::Silent(most) => write!(
                f,
                "was dropped for another: of {most} clients that chose no export it had been silent for the longest"
            ),
            Ended::Violation(what) => write!(f, "broke the protocol and was dropped: {what}"),
            Ended::Refused(what) => write!(f, "was dropped: {what}"),
            Ended::Tls(what) => write!(f, "was dropped: TLS failed: {what}"),
            Ended::Io(error) => write!(f, "was lost: {error}"),
        }
    }
}

impl std::error::Error for Ended {}
