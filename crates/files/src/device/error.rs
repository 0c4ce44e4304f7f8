//! Errors of device lookup: an unknown name or mode, or an invalid device file.

use super::file::{KINDS, MOST_MEMBERS};
use crate::catalogue::CatalogueError;
use lowtide_core::suggest::nearest;
use miette::Diagnostic;
use std::fmt;

/// Why a device name cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// No such name, or no such file.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The device has no such mode.
    #[error(transparent)]
    Mode(#[from] UnknownMode),
    /// A composition of more than two devices.
    #[error("`{name}` joins more than two devices")]
    Composition {
        /// The name.
        name: String,
    },
    /// Its file cannot be used.
    #[error("the device {path} cannot be used: {reason}")]
    File {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: DeviceFileError,
    },
}

/// A mode that a device does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMode {
    /// The device.
    pub device: String,
    /// The mode as given.
    pub mode: String,
    /// The modes it has.
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
    /// What is accepted, in one line.
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

/// Why a device file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeviceFileError {
    /// The text is not a valid device file; the TOML error, with line and column.
    #[error("{0}")]
    Text(#[from] toml::de::Error),
    /// There is no table for a kind of device, or more than one.
    #[error("a device file holds one of {KINDS}; this one holds {found}")]
    Kinds {
        /// How many it holds.
        found: usize,
    },
    /// An array does not say what it is made of.
    #[error(
        "[array] needs either `members = [\"name\", …]`, or `member = \"name\"` and `count` from 1 to {MOST_MEMBERS}"
    )]
    Members,
    /// An invalid mode.
    #[error("[mode.{mode}] {fault}")]
    BadMode {
        /// The mode.
        mode: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// The file has no such mode.
    #[error(transparent)]
    Mode(#[from] UnknownMode),
    /// A device it refers to.
    #[error("it refers to `{name}`: {reason}")]
    Reference {
        /// The device's name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}
