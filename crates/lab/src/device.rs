//! Device files: reading the description of a simulated device, its name, price and sources.
//!
//! A file holds one table that says what kind of device it is. It may begin with another (`like`) and change some of
//! its keys. Leaves out the models; see crate `lowtide-device`.

use crate::catalogue;
use lowtide_device::DeviceSpec;
use lowtide_device::disk::DiskSpec;
use lowtide_device::flash::FlashSpec;
use serde::Deserialize;
use toml::{Table, Value};

/// How deep one device may refer to another.
const DEEPEST: usize = 8;

/// What a device file says, with every device it refers to.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// The name it is called by.
    pub name: String,
    /// A line for people: maker, model, year.
    pub title: String,
    /// What it cost when it was new, in US dollars.
    pub price_usd: Option<f64>,
    /// The published numbers that were used to choose parameters, as `study:row` (`e02:3`).
    pub fitted_to: Vec<String>,
    /// The model.
    pub spec: DeviceSpec,
    /// The files it was read from.
    pub texts: Vec<String>,
}

/// Why a device file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeviceFileError {
    /// The text is not what a device file holds; what TOML says, with line and column.
    #[error("{0}")]
    Text(#[from] toml::de::Error),
    /// There is no table for a kind of device, or more than one.
    #[error("a device file holds one of [flash], [disk]; this one holds {found}")]
    Kinds {
        /// How many it holds.
        found: usize,
    },
    /// A device it refers to.
    #[error("it refers to `{name}`: {reason}")]
    Reference {
        /// The device's name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    #[serde(default)]
    price_usd: Option<f64>,
    #[serde(default)]
    fitted_to: Vec<String>,
    #[serde(default)]
    flash: Option<FlashSpec>,
    #[serde(default)]
    disk: Option<DiskSpec>,
}

/// Reads a device file and those it refers to.
///
/// # Errors
/// [`DeviceFileError`] says what is wrong, with line and column where the text is.
pub fn parse(text: &str) -> Result<Device, DeviceFileError> {
    read(text, DEEPEST)
}

fn read(text: &str, depth: usize) -> Result<Device, DeviceFileError> {
    let mut texts = vec![text.to_owned()];
    let own: Table = toml::from_str(text)?;
    let file: File = if own.contains_key("like") {
        merged(own, &mut texts, depth)?.try_into()?
    } else {
        // From the text itself, so that an error names its line.
        toml::from_str(text)?
    };
    let mut specs = Vec::new();
    specs.extend(file.flash.map(DeviceSpec::Flash));
    specs.extend(file.disk.map(DeviceSpec::Disk));
    let found = specs.len();
    let Some(spec) = specs.pop().filter(|_| found == 1) else { return Err(DeviceFileError::Kinds { found }) };
    let File { name, title, price_usd, fitted_to, .. } = file;
    Ok(Device { name, title, price_usd, fitted_to, spec, texts })
}

/// The table with what it is like underneath.
fn merged(mut own: Table, texts: &mut Vec<String>, depth: usize) -> Result<Table, DeviceFileError> {
    let Some(Value::String(name)) = own.remove("like") else { return Ok(own) };
    let text = text_of(&name, depth)?;
    let base: Table = toml::from_str(&text)?;
    texts.push(text);
    let mut base = merged(base, texts, depth - 1)?;
    overlay(&mut base, own);
    Ok(base)
}

fn overlay(base: &mut Table, changes: Table) {
    for (key, value) in changes {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => overlay(under, over),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

fn text_of(name: &str, depth: usize) -> Result<String, DeviceFileError> {
    let fail = |reason: String| DeviceFileError::Reference { name: name.to_owned(), reason };
    if depth == 0 {
        return Err(fail("devices refer to each other in a circle".to_owned()));
    }
    Ok(catalogue::device(name).map_err(|error| fail(error.to_string()))?.text.into_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_device_that_comes_with_the_program_is_valid_at_every_scale() {
        for entry in crate::catalogue::devices() {
            let device = super::parse(entry.text).unwrap_or_else(|error| panic!("{}: {error}", entry.path));
            assert_eq!(device.name, entry.name);
            for scale in [1, 8, 16, 64] {
                device
                    .spec
                    .scaled(scale)
                    .validate()
                    .unwrap_or_else(|error| panic!("{} 1/{scale}: {error}", entry.path));
            }
        }
    }
}
