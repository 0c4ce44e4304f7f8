//! Classifies the server's errors: conflicts to retry, lost connections and refusals.
//!
//! The module `instance` handles servers that end, whose log holds more detail.

use crate::{Failure, OltpError};
use mysql::Error;

/// Error codes of conflicts between transactions: lock wait timeout, deadlock, a changed row, a deadlock of named
/// locks.
const CONFLICTS: [u16; 4] = [1205, 1213, 1020, 3058];

/// The error code for too many connections.
const TAKEN: u16 = 1040;

/// Error codes of closed connections: server shutdown, killed connection, network failure, idle timeout.
const GONE: [u16; 10] = [1053, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 3169, 4031];

/// Converts the error of a transaction.
pub(super) fn failure(error: Error) -> Failure {
    match error {
        Error::MySqlError(error) if CONFLICTS.contains(&error.code) => Failure::Conflict(error.message),
        Error::MySqlError(error) if GONE.contains(&error.code) => Failure::Lost(error.message),
        Error::MySqlError(error) => Failure::Refused(format!("{} (error {})", error.message, error.code)),
        Error::FromValueError(value) => Failure::Refused(format!("an unexpected value: {value:?}")),
        Error::FromRowError(row) => Failure::Refused(format!("an unexpected row: {row:?}")),
        other => Failure::Lost(words(&other)),
    }
}

/// The error for a statement that failed; `what` names the operation.
pub(super) fn sql(what: impl Into<String>) -> impl FnOnce(Error) -> OltpError {
    move |error| OltpError::Sql { what: what.into(), message: words(&error) }
}

/// Returns whether a failed connection attempt is worth repeating: the socket does not exist yet, nothing accepts on
/// it, the server is starting or stopping, or all of its connections are in use.
pub(super) fn is_not_up(error: &Error) -> bool {
    match error {
        Error::MySqlError(error) => error.code == TAKEN || GONE.contains(&error.code),
        other => other.is_connectivity_error(),
    }
}

/// The message of an error, without the driver's decoration.
pub(super) fn words(error: &Error) -> String {
    match error {
        Error::MySqlError(error) => format!("{} (error {})", error.message, error.code),
        Error::IoError(error) => error.to_string(),
        other => {
            let text = other.to_string();
            let inner = text.split_once("{ ").and_then(|(_, rest)| rest.strip_suffix(" }"));
            inner.map_or(text.clone(), str::to_owned)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mysql::MySqlError;

    fn of_server(code: u16) -> Failure {
        failure(Error::MySqlError(MySqlError { state: "HY000".into(), message: "words".into(), code }))
    }

    #[test]
    fn conflicts_are_tried_again_and_lost_connections_are_not() {
        assert_eq!(of_server(1213), Failure::Conflict("words".into()));
        assert_eq!(of_server(1205), Failure::Conflict("words".into()));
        assert_eq!(of_server(1927), Failure::Lost("words".into()));
        assert_eq!(of_server(1114), Failure::Refused("words (error 1114)".into()));
        let broken =
            Error::IoError(std::io::Error::new(std::io::ErrorKind::BrokenPipe, "server disconnected"));
        assert_eq!(failure(broken), Failure::Lost("server disconnected".into()));
    }

    #[test]
    fn a_server_that_refuses_a_login_is_not_asked_again() {
        let of_server =
            |code| Error::MySqlError(MySqlError { state: "HY000".into(), message: "no".into(), code });
        assert!(!is_not_up(&of_server(1045)) && !is_not_up(&of_server(1130)));
        assert!(is_not_up(&of_server(1053)) && is_not_up(&of_server(1040)));
        assert!(is_not_up(&Error::IoError(std::io::ErrorKind::ConnectionRefused.into())));
    }
}
