//! Device files, and the names by which devices are found.
//!
//! A name is resolved here and nowhere else: `NAME` (of the catalogue) or `PATH`, `NAME:MODE` for a mode that its file
//! states, `DATA+LOG` for two devices in one ([`DeviceName`]). A file holds one table that says what kind of device it is.
//! It may begin with another (`like`), and its modes (`[mode.NAME]`) change some of its keys. A device made of others names
//! them, and their files are read too. Not here: the models; see crate `lowtide-device`.

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

/// What a device file says, with every device it refers to.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// The name it is called by.
    pub name: String,
    /// A line for people: maker, model, year.
    pub title: String,
    /// The year it came out.
    pub year: Option<u16>,
    /// What connects it to its host.
    pub interface: Option<Interface>,
    /// Price when new, in US dollars. Modes keep it; a file that is `like` this one does not inherit it.
    pub price_usd: Option<f64>,
    /// The published numbers that were used to choose parameters, as `study:row` (`e02:3`).
    pub fitted_to: Vec<String>,
    /// The model.
    pub spec: DeviceSpec,
    /// The files it was read from, its own first. A mode begins with a file of all its keys.
    pub texts: Vec<String>,
    /// Paths of the device files it refers to that are not in the catalogue.
    pub files: Vec<PathBuf>,
}

/// The device of a name.
///
/// # Errors
/// [`DeviceError`] if there is none, or its file cannot be used.
pub fn find(name: &str) -> Result<Device, DeviceError> {
    read::named(Shelf::default(), &DeviceName::new(name))
}

/// Reads a device file and those it refers to.
///
/// # Errors
/// [`DeviceFileError`] says what is wrong, with line and column where the text is.
pub fn parse(text: &str) -> Result<Device, DeviceFileError> {
    read::of_text(Shelf::default(), text)
}

/// The text of a name's device file. A mode adds a comment that names it; a composition is written out as a file.
///
/// # Errors
/// [`DeviceError`] if there is none.
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
    // An unknown mode is an error here, too.
    read::of_file(shelf, found).map(|_| comment + &text)
}

/// The name by which results call a device: `NAME:MODE` becomes the name of that mode where the catalogue has it. Any other
/// text stays as it is.
pub fn canonical(name: &str) -> String {
    read::canonical(&DeviceName::new(name))
}

/// Whether each device of a name is in the catalogue, in whichever mode, or in a file of its own.
pub fn is_known(name: &str) -> bool {
    DeviceName::new(name).parts().all(|part| is_path(&part.file) || list::known(&part.file).is_some())
}

/// Whether a name of a device is, or contains, the path of a file.
pub fn names_files(name: &str) -> bool {
    is_path(name) || DeviceName::new(name).paths().next().is_some()
}

/// The files outside of the catalogue that the device of a name refers to. Empty where the device file cannot be
/// used; whoever opens it reports that.
pub fn files_of(name: &str) -> Vec<PathBuf> {
    find(name).map_or_else(|_| Vec::new(), |device| device.files)
}

/// The device of a cell at full size, by the files that the campaign kept; `None` on the host, and where no file is
/// readable any more.
pub fn of_cell(campaign: &Campaign, cell: &Cell) -> Option<Device> {
    let target = campaign.target.strip_prefix("device:")?;
    let wanted = cell.level("device").unwrap_or(target);
    // The target names the user's own file by path, not by `name`; its text is the first one kept.
    let own = || campaign.devices.first().filter(|_| cell.level("device").is_none());
    stored(&campaign.devices, wanted)
        .or_else(|| read::of_text(Shelf { stored: &campaign.devices }, own()?).ok())
}

/// The device of a name by the texts that a campaign kept, those of the devices it refers to among them.
pub fn stored(texts: &[String], name: &str) -> Option<Device> {
    let shelf = Shelf { stored: texts };
    // A composition is kept under its whole name, as a mode is.
    let whole = Part { file: name.to_owned(), mode: None };
    let part = || Some(DeviceName::new(name)).filter(|name| name.log.is_none()).map(|name| name.data);
    let found = shelf.stored(&whole).or_else(|| shelf.stored(&part()?))?;
    read::of_file(shelf, found).ok()
}
