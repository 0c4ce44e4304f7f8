//! Errors of catalogue lookups.

use lowtide_core::suggest::nearest;
use miette::Diagnostic;
use std::fmt;

/// A failed lookup: an unknown name, or an unreadable file.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The name is not in the catalogue.
    #[error("unknown {what} `{name}`{}", hint(near.as_deref()))]
    Unknown {
        /// The kind of entry: `experiment`, `device` or `study`.
        what: &'static str,
        /// The name as given.
        name: String,
        /// The most similar name, if one is similar enough.
        near: Option<String>,
        /// All names of this kind.
        valid: Vec<String>,
    },
    /// The file at the path cannot be read.
    #[error("cannot read the {what} `{path}`")]
    Read {
        /// The kind of entry: `experiment` or `device`.
        what: &'static str,
        /// The path as given.
        path: String,
        /// The error of the system.
        source: std::io::Error,
    },
}

fn hint(near: Option<&str>) -> String {
    near.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default()
}

impl CatalogueError {
    pub(crate) fn unknown(what: &'static str, name: &str, valid: impl Iterator<Item = &'static str>) -> Self {
        let valid: Vec<String> = valid.map(str::to_owned).collect();
        let near = nearest(name, valid.iter().map(String::as_str)).map(str::to_owned);
        CatalogueError::Unknown { what, name: name.to_owned(), near, valid }
    }

    /// The accepted names, in one line.
    pub fn accepted(&self) -> String {
        match self {
            CatalogueError::Unknown { what: "study", valid, .. } => format!("studies: {}", valid.join(", ")),
            CatalogueError::Unknown { what, valid, .. } => {
                let names = if valid.is_empty() { "none".to_owned() } else { valid.join(", ") };
                format!("{what}s: {names}; or the path of your own file, such as `./my-{what}.toml`")
            }
            CatalogueError::Read { what, .. } => {
                format!("the path of a TOML file that holds a {what}, or a name")
            }
        }
    }
}

impl Diagnostic for CatalogueError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.accepted()))
    }
}
