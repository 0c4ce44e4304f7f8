//! Device files, and lookup of devices by name.
//!
//! This module is the only place that resolves device names ([`DeviceName`]): `NAME` (in the catalogue) or `PATH`,
//! `NAME:MODE` for one of the modes in the device file, and `DATA+LOG` for a composition of two devices.
//!
//! A device file holds one table, which gives the kind of the device. Its key `like` names another device whose keys
//! it inherits. Each of its modes (`[mode.NAME]`) changes some of the keys. An array, cache or log layer names the
//! devices that it is made of, and their files are read too.
//!
//! The models are in crate `lowtide-device`.

mod error;
mod file;
mod list;
mod name;
mod read;
#[cfg(test)]
mod tests;

pub use error::{DeviceError, DeviceFileError, UnknownMode};
pub use file::{Class, Interface};
pub use list::{Listed, catalogue};
pub use name::{DeviceName, Part};

use crate::catalogue::is_path;
use lowtide_device::DeviceSpec;
use lowtide_record::{Campaign, Cell};
use read::Shelf;
use std::path::PathBuf;

/// The contents of a device file, with every device it refers to.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// The device's name.
    pub name: String,
    /// Description for people: maker, model, year.
    pub title: String,
    /// Year of release.
    pub year: Option<u16>,
    /// Host interface of a flash drive.
    pub interface: Option<Interface>,
    /// Price when new, in US dollars. Modes inherit it; a file that is `like` this one does not.
    pub price_usd: Option<f64>,
    /// The published numbers that parameters were fitted to, as `study:row` (`e02:3`).
    pub fitted_to: Vec<String>,
    /// The model.
    pub spec: DeviceSpec,
    /// The texts of all device files that were read, the device's own first. For a mode, the first text has every
    /// key.
    pub texts: Vec<String>,
    /// Paths of the user's own device files that it refers to.
    pub files: Vec<PathBuf>,
}

/// Finds a device by name.
///
/// # Errors
/// [`DeviceError`] if the name is unknown or the device file is invalid.
pub fn find(name: &str) -> Result<Device, DeviceError> {
    read::named(Shelf::default(), &DeviceName::new(name))
}

/// Reads a device file and the files it refers to.
///
/// # Errors
/// [`DeviceFileError`] with the reason; errors in the text have line and column.
pub fn parse(text: &str) -> Result<Device, DeviceFileError> {
    read::of_text(Shelf::default(), text)
}

/// The text of a device file, for display. For a mode, a comment with the mode's name is put in front. A composition
/// is written out as a file.
///
/// # Errors
/// [`DeviceError`] if the name is unknown or the device file is invalid.
pub fn show(name: &str) -> Result<String, DeviceError> {
    let shelf = Shelf::default();
    let name = DeviceName::new(name);
    if name.log.is_some() {
        return read::composition(shelf, &name, read::DEEPEST);
    }
    let found = shelf.find(&name.data)?;
    let Some(mode) = &found.mode else { return Ok(found.text.into_owned()) };
    let comment =
        format!("# {name} is the mode `{mode}` of this file: FILE.toml:{mode} where it is saved.\n");
    let text = found.text.to_string();
    // Reports an unknown mode.
    read::of_file(shelf, found).map(|_| comment + &text)
}

/// The device name used in results: `NAME:MODE` becomes the catalogue's own name for that mode. Any other text is
/// returned unchanged.
pub fn canonical(name: &str) -> String {
    read::canonical(&DeviceName::new(name))
}

/// Whether each device of a name is in the catalogue or given by path. Modes are not checked.
pub fn is_known(name: &str) -> bool {
    DeviceName::new(name).parts().all(|part| is_path(&part.file) || list::known(&part.file).is_some())
}

/// Whether a device name is or contains the path of a file.
pub fn names_files(name: &str) -> bool {
    is_path(name) || DeviceName::new(name).paths().next().is_some()
}

/// The user's own files that a device refers to. Empty if the device file is invalid; opening the device reports that
/// error.
pub fn files_of(name: &str) -> Vec<PathBuf> {
    find(name).map_or_else(|_| Vec::new(), |device| device.files)
}

/// The device of a cell at full size, from the device files stored with the campaign. `None` if the cell ran on the
/// host, or if no stored file is readable.
pub fn of_cell(campaign: &Campaign, cell: &Cell) -> Option<Device> {
    let target = campaign.target.strip_prefix("device:")?;
    let wanted = cell.level("device").unwrap_or(target);
    // For the user's own file the target is a path, not the device's name. Its text is stored first.
    let own = || campaign.devices.first().filter(|_| cell.level("device").is_none());
    stored(&campaign.devices, wanted)
        .or_else(|| read::of_text(Shelf { stored: &campaign.devices }, own()?).ok())
}

/// Finds a device by name in the device-file texts stored with a campaign.
pub fn stored(texts: &[String], name: &str) -> Option<Device> {
    let shelf = Shelf { stored: texts };
    // Compositions and modes are stored under their full names.
    let whole = Part { file: name.to_owned(), mode: None };
    let part = || Some(DeviceName::new(name)).filter(|name| name.log.is_none()).map(|name| name.data);
    let found = shelf.stored(&whole).or_else(|| shelf.stored(&part()?))?;
    read::of_file(shelf, found).ok()
}
