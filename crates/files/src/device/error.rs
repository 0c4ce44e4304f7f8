//! Errors of device lookup: an unknown name or mode, or an invalid device file.

use super::file::{KINDS, MOST_MEMBERS};
use crate::catalogue::CatalogueError;
use lowtide_core::suggest::nearest;
use miette::Diagnostic;
use std::fmt;

/// The reason why a device name cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The name is unknown, or the file cannot be read.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The device has no such mode.
    #[error(transparent)]
    Mode(#[from] UnknownMode),
    /// A composition of more than two devices.
    #[error("`{name}` joins more than two devices")]
    Composition {
        /// The full name.
        name: String,
    },
    /// The device file is invalid.
    #[error("the device {path} cannot be used: {reason}")]
    File {
        /// Path of the device file.
        path: String,
        /// The fault.
        reason: DeviceFileError,
    },
}

/// A mode that a device does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMode {
    /// The device's name.
    pub device: String,
    /// The mode as given.
    pub mode: String,
    /// The modes of the device.
    pub modes: Vec<String>,
}

impl fmt::Display for UnknownMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownMode { device, mode, modes } = self;
        match nearest(mode, modes.iter().map(String::as_str)) {
            _ if modes.is_empty() => write!(f, "the device `{device}` has no modes, and so no mode `{mode}`"),
            Some(near) => write!(f, "the device `{device}` has no mode `{mode}`: did you mean `{near}`?"),
            None => write!(f, "the device `{device}` has no mode `{mode}`"),
        }
    }
}

impl std::error::Error for UnknownMode {}

impl DeviceError {
    /// The accepted names or keys, in one line.
    pub fn accepted(&self) -> String {
        match self {
            DeviceError::Catalogue(error) => error.accepted(),
            DeviceError::Mode(UnknownMode { device, modes, .. }) if modes.is_empty() => format!("`{device}`"),
            DeviceError::Mode(UnknownMode { device, modes, .. }) => {
                format!("`{device}`, or with a mode: {}", modes.join(", "))
            }
            DeviceError::Composition { .. } => {
                "`DATA+LOG`: one device for the data, one for the log; more are an `[array]` in a device file"
                    .to_owned()
            }
            DeviceError::File { .. } => {
                "docs/formats.md lists the keys; `lowtide devices show intel-320-160gb` prints a device file"
                    .to_owned()
            }
        }
    }
}

impl Diagnostic for DeviceError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.accepted()))
    }
}

/// The reason why a device file is invalid.
#[derive(Debug, thiserror::Error)]
pub enum DeviceFileError {
    /// The text cannot be parsed: a TOML error, with line and column.
    #[error("{0}")]
    Text(#[from] toml::de::Error),
    /// The file has no table for a kind of device, or more than one.
    #[error("a device file holds one of {KINDS}; this one holds {found}")]
    Kinds {
        /// Number of such tables.
        found: usize,
    },
    /// An array without valid members.
    #[error(
        "[array] needs either `members = [\"name\", …]`, or `member = \"name\"` and `count` from 1 to {MOST_MEMBERS}"
    )]
    Members,
    /// An invalid mode table.
    #[error("[mode.{mode}] {fault}")]
    BadMode {
        /// The mode's name.
        mode: String,
        /// The fault.
        fault: &'static str,
    },
    /// The file has no such mode.
    #[error(transparent)]
    Mode(#[from] UnknownMode),
    /// A device that the file refers to cannot be used.
    #[error("it refers to `{name}`: {reason}")]
    Reference {
        /// Name of that device.
        name: String,
        /// The fault.
        reason: String,
    },
}
