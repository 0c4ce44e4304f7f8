//! The catalogue: experiments, simulated devices and published numbers that come with the program.
//!
//! They are compiled in; a new file under `experiments/`, `devices/` or `published/` is found by the build. An
//! experiment or device is named (`intel-320-random-write`) or, where it is the user's own, given as a path:
//! anything with a `/` or ending in `.toml`. Not here: what the files say; each kind has its own parser, and devices are
//! found by `device`, which knows their modes.

mod error;
mod published;

pub use error::CatalogueError;
pub use published::{Published, Study, studies, study};

use std::borrow::Cow;
use std::path::Path;

/// A file that is compiled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The file's name without its ending, by which it is looked up.
    pub name: &'static str,
    /// Its path in the project.
    pub path: &'static str,
    /// What it holds.
    pub text: &'static str,
}

/// A file that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What to call it in errors: its path.
    pub path: String,
    /// What it holds.
    pub text: Cow<'static, str>,
}

/// The generated tables of files: `EXPERIMENTS`, `DEVICES`, `PUBLISHED`.
mod files {
    use super::Entry;
    include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));
}

/// Every experiment that comes with the program, by name.
pub fn experiments() -> &'static [Entry] {
    files::EXPERIMENTS
}

/// The file of every simulated device that comes with the program, by name; [`crate::device::find`] knows their modes, too.
pub fn devices() -> &'static [Entry] {
    files::DEVICES
}

/// The experiment of that name, or in the file at that path.
pub fn experiment(name_or_path: &str) -> Result<Found, CatalogueError> {
    find("experiment", experiments(), name_or_path)
}

/// Whether the text is the path of a file rather than a name of the catalogue.
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
