//! Recognises stores by the application id in the header of their SQLite files.
//!
//! The header has 100 bytes, with the id at offset 68 (<https://sqlite.org/fileformat.html>). A store with
//! one damaged byte in its header is still recognised.

use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Marks a SQLite file as a lowtide store: "lowt" in ASCII.
pub const APPLICATION_ID: i32 = 0x6c6f_7774;

/// Reads the application id of a database.
///
/// # Errors
/// Errors of SQLite.
pub fn application(connection: &Connection) -> rusqlite::Result<i32> {
    connection.query_row("PRAGMA application_id", [], |row| row.get(0))
}

/// Whether a file is a store of any version. Creates no files and takes no lock.
///
/// The file is read through SQLite: closing any other descriptor of it would drop the locks that this process holds
/// on the file.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn is_store(path: &Path) -> io::Result<bool> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let found =
        Connection::open_with_flags(immutable(path), flags).and_then(|connection| application(&connection));
    match found {
        Ok(application) => Ok(is_nearly_ours(&application.to_be_bytes())),
        Err(error) => match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => has_header(path),
            // A damaged database may be a store.
            Some(ErrorCode::DatabaseCorrupt) => Ok(true),
            _ => Err(io::Error::other(error)),
        },
    }
}

/// Whether a file begins with the header of a store, even if SQLite rejects that header.
///
/// Closing the file drops the locks that this process holds on it.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn has_header(path: &Path) -> io::Result<bool> {
    let mut header = Vec::new();
    File::open(path)?.take(100).read_to_end(&mut header)?;
    // Distinguishes the header from text, which has no zero bytes; the header reserves 20 of them.
    Ok(header.len() == 100 && is_nearly_ours(&header[68..72]) && header.contains(&0))
}

/// Whether an application id is [`APPLICATION_ID`], with at most one damaged byte.
fn is_nearly_ours(id: &[u8]) -> bool {
    let ours = APPLICATION_ID.to_be_bytes();
    id.iter().zip(ours).filter(|(found, ours)| *found == ours).count() >= 3
}

/// The URI by which SQLite opens a file read-only without creating `-wal` or `-shm` files.
pub fn immutable(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let mut uri = "file:".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        match plain(byte) {
            true => uri.push(char::from(byte)),
            false => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri + "?immutable=1"
}
