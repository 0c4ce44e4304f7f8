//! The error of an import: file, position, message, and accepted input.

use super::kind::Source;
use std::path::Path;

/// A file that cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("{place}: {message}")]
#[diagnostic(help("{help}"))]
pub struct ImportError {
    /// The file, with line and column if known: `a.log:3`.
    place: String,
    message: String,
    help: String,
}

impl ImportError {
    /// An error in a file as a whole.
    pub(super) fn file(path: &Path, message: impl Into<String>, help: impl Into<String>) -> Self {
        ImportError { place: path.display().to_string(), message: message.into(), help: help.into() }
    }

    /// An error in a line, counted from 1.
    pub(super) fn line(
        source: &Source,
        line: usize,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let place = format!("{}:{line}", source.path.display());
        ImportError { place, message: message.into(), help: help.into() }
    }

    /// An error at a line and column, counted from 1.
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
