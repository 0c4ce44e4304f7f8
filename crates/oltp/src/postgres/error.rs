//! Errors of PostgreSQL, and their meaning for transactions and for other operations.
//!
//! Servers that do not start are handled in `instance`.
//!
//! Source: PostgreSQL documentation, appendix A, "PostgreSQL Error Codes".

use crate::{Failure, OltpError};
use bytes::Bytes;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::ErrorFields;
use std::io;

/// An error of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PgError {
    /// The connection is lost.
    Lost(String),
    /// The server reported an error, with its `SQLSTATE` and message.
    Refused { code: String, message: String },
}

/// Codes after which a transaction is retried: `serialization_failure`, `deadlock_detected`,
/// `lock_not_available`.
const CONFLICTS: [&str; 3] = ["40001", "40P01", "55P03"];

/// Codes with which the server ends a session: `admin_shutdown`, `crash_shutdown`, `idle_session_timeout`.
const ENDS: [&str; 3] = ["57P01", "57P02", "57P05"];

impl PgError {
    /// Converts the fields of an error message: code `C`, text `M` and detail `D`.
    pub(super) fn from_fields(mut fields: ErrorFields<'_>) -> PgError {
        let (mut code, mut message, mut detail) = (String::new(), String::new(), String::new());
        while let Ok(Some(field)) = fields.next() {
            let value = || String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'C' => code = value(),
                b'M' => message = value(),
                b'D' => detail = value(),
                _ => {}
            }
        }
        if !detail.is_empty() {
            message = format!("{message} ({detail})");
        }
        if ENDS.contains(&code.as_str()) {
            PgError::Lost(message)
        } else {
            PgError::Refused { code, message }
        }
    }

    /// Converts the error of a transaction.
    pub(super) fn failure(self) -> Failure {
        match self {
            PgError::Lost(why) => Failure::Lost(why),
            PgError::Refused { code, message } if CONFLICTS.contains(&code.as_str()) => {
                Failure::Conflict(message)
            }
            PgError::Refused { code, message } => Failure::Refused(format!("{message} (SQLSTATE {code})")),
        }
    }

    /// Converts the error of another operation, `what`.
    pub(super) fn sql(self, what: impl Into<String>) -> OltpError {
        let message = match self {
            PgError::Lost(why) => format!("the connection was lost: {why}"),
            PgError::Refused { code, message } => format!("{message} (SQLSTATE {code})"),
        };
        OltpError::Sql { what: what.into(), message }
    }
}

impl From<io::Error> for PgError {
    fn from(error: io::Error) -> Self {
        PgError::Lost(error.to_string())
    }
}

/// The error for an answer that violates the protocol.
pub(super) fn unexpected(what: &str) -> PgError {
    PgError::Lost(format!("the server's answer is not understood: {what}"))
}

/// Decodes an integer column of two, four or eight bytes.
pub(super) fn whole(bytes: &Bytes) -> Result<i64, PgError> {
    match bytes[..] {
        [a, b] => Ok(i16::from_be_bytes([a, b]).into()),
        [a, b, c, d] => Ok(i32::from_be_bytes([a, b, c, d]).into()),
        _ => match <[u8; 8]>::try_from(&bytes[..]) {
            Ok(bytes) => Ok(i64::from_be_bytes(bytes)),
            Err(_) => Err(unexpected("a whole number")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str) -> PgError {
        PgError::Refused { code: code.to_owned(), message: "words".to_owned() }
    }

    #[test]
    fn conflicts_are_tried_again_and_a_full_disk_is_not() {
        assert_eq!(refused("40P01").failure(), Failure::Conflict("words".to_owned()));
        assert_eq!(refused("40001").failure(), Failure::Conflict("words".to_owned()));
        assert_eq!(refused("53100").failure(), Failure::Refused("words (SQLSTATE 53100)".to_owned()));
        assert_eq!(PgError::Lost("gone".to_owned()).failure(), Failure::Lost("gone".to_owned()));
    }

    #[test]
    fn whole_numbers_have_three_sizes() {
        assert_eq!(whole(&Bytes::from_static(&[0xff, 0xfe])), Ok(-2));
        assert_eq!(whole(&Bytes::from_static(&[0, 0, 1, 0])), Ok(256));
        assert_eq!(whole(&Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 7])), Ok(7));
        assert!(whole(&Bytes::from_static(&[1, 2, 3])).is_err());
    }
}
