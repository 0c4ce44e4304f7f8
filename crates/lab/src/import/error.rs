//! What is wrong with a file that was to be imported, where, and what is accepted.

use super::kind::Source;
use std::path::Path;

/// A file that cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("{place}: {message}")]
#[diagnostic(help("{help}"))]
pub struct ImportError {
    /// The file, and the line and column in it where they are known: `a.log:3`.
    place: String,
    message: String,
    help: String,
}

impl ImportError {
    /// A whole file is at fault.
    pub(super) fn file(path: &Path, message: impl Into<String>, help: impl Into<String>) -> Self {
        ImportError { place: path.display().to_string(), message: message.into(), help: help.into() }
    }

    /// A line, from 1, is at fault.
    pub(super) fn line(
        source: &Source,
        line: usize,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let place = format!("{}:{line}", source.path.display());
        ImportError { place, message: message.into(), help: help.into() }
    }

    /// A line and column, from 1, are at fault.
    pub(super) fn at(
        source: &Source,
        (line, column): (usize, usize),
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let place = format!("{}:{line}:{column}", source.path.display());
        ImportError { place, message: message.into(), help: help.into() }
    }
}
