//! Conversion of SQLite's errors.

use crate::{Failure, OltpError};
use rusqlite::ErrorCode;

/// Converts an error that occurred during `what`.
pub(super) fn sql(what: impl Into<String>) -> impl FnOnce(rusqlite::Error) -> OltpError {
    move |error| OltpError::Sql { what: what.into(), message: words(&error) }
}

/// SQLite's message without the statement.
fn words(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        _ => error.to_string(),
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Failure::Conflict(words(&error)),
            _ => Failure::Refused(words(&error)),
        }
    }
}
