//! The catalogue: experiments, simulated devices and published numbers that are compiled into the program.
//!
//! The build finds new files in `experiments/`, `devices/` and `published/`. An experiment or a device is given by
//! name (`intel-320-random-write`), or by path if the file is the user's own. Text that contains `/` or ends in
//! `.toml` is a path.
//!
//! Each kind of file has its own parser in another module. `device` looks up devices by name and mode.

mod error;
mod published;

pub use error::CatalogueError;
pub use published::{Published, Study, studies, study};

use std::borrow::Cow;
use std::path::Path;

/// A compiled-in file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The file name without its extension: the key of lookups.
    pub name: &'static str,
    /// Path of the file in the project.
    pub path: &'static str,
    /// The contents of the file.
    pub text: &'static str,
}

/// The result of a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Path of the file, for messages.
    pub path: String,
    /// The contents of the file.
    pub text: Cow<'static, str>,
}

/// The generated tables: `EXPERIMENTS`, `DEVICES`, `PUBLISHED`.
mod files {
    use super::Entry;
    include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));
}

/// Every compiled-in experiment, by name.
pub fn experiments() -> &'static [Entry] {
    files::EXPERIMENTS
}

/// The file of every compiled-in device, by name. Their modes are found by [`crate::device::find`].
pub fn devices() -> &'static [Entry] {
    files::DEVICES
}

/// Finds an experiment by name, or reads it from a path.
///
/// # Errors
/// [`CatalogueError`] if the name is unknown or the file cannot be read.
pub fn experiment(name_or_path: &str) -> Result<Found, CatalogueError> {
    find("experiment", experiments(), name_or_path)
}

/// Whether the text is a path rather than a name in the catalogue.
pub fn is_path(name_or_path: &str) -> bool {
    name_or_path.contains('/') || name_or_path.ends_with(".toml")
}

fn find(what: &'static str, entries: &'static [Entry], wanted: &str) -> Result<Found, CatalogueError> {
    if is_path(wanted) {
        return match std::fs::read_to_string(Path::new(wanted)) {
            Ok(text) => Ok(Found { path: wanted.to_owned(), text: Cow::Owned(text) }),
            Err(source) => Err(CatalogueError::Read { what, path: wanted.to_owned(), source }),
        };
    }
    match entries.iter().find(|entry| entry.name == wanted) {
        Some(entry) => Ok(Found { path: entry.path.to_owned(), text: Cow::Borrowed(entry.text) }),
        None => Err(CatalogueError::unknown(what, wanted, entries.iter().map(|entry| entry.name))),
    }
}

#[cfg(test)]
mod tests;
