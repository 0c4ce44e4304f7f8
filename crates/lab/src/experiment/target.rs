//! `[target]`: the device, file or directory under test.
//!
//! Devices are looked up by `lowtide_files::device`. `lowtide_host::block` checks disks before they are overwritten.

use super::read::{Entry, Table};
use super::schema;
use lowtide_files::device::{DeviceName, Part, canonical};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use toml::de::DeValue;

/// An example of a device name, for errors.
const EXAMPLE: &str = "\"intel-320-160gb\"";

/// The target under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// A simulated device, by a name for `lowtide_files::device::find`. If the experiment lists several devices, this
    /// is the first one, and `device` is a factor.
    Device(String),
    /// A file, which is created if it does not exist.
    File(PathBuf),
    /// A directory, in which data files are created.
    Directory(PathBuf),
    /// A block device.
    Block(PathBuf),
}

/// The notation in campaigns: `device:intel-320-160gb`, `file:/data/test`, `dir:/data`, `block:/dev/sdx`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Device(name) => write!(f, "device:{name}"),
            Target::File(path) => write!(f, "file:{}", path.display()),
            Target::Directory(path) => write!(f, "dir:{}", path.display()),
            Target::Block(path) => write!(f, "block:{}", path.display()),
        }
    }
}

/// Reads the target, and the names of all devices if there are several.
pub(super) fn read(table: &Table<'_>) -> Option<(Target, Vec<String>)> {
    table.only(&schema::TARGET);
    let mut given = table.in_order();
    given.retain(|entry| schema::TARGET.contains(&entry.name));
    let accepted = "exactly one of: device, file, directory, block";
    let entry = match given.as_slice() {
        [] => {
            table.problems.add(table.span.clone(), "a target without anything to test", "here", accepted);
            return None;
        }
        [entry] => entry,
        [first, second, ..] => {
            let message = format!("two targets: `{}` and `{}`", first.name, second.name);
            table.problems.add(second.key_span.clone(), message, "the second", accepted);
            return None;
        }
    };
    let path = || entry.text("\"/data\"").map(PathBuf::from);
    let target = match entry.name.as_str() {
        "file" => Target::File(path()?),
        "directory" => Target::Directory(path()?),
        "block" => Target::Block(path()?),
        _ => return devices(entry),
    };
    Some((target, Vec::new()))
}

/// Reads one device: a name, or a table with the parts of a name. A mode of the catalogue is resolved to its device
/// name.
pub(super) fn device(entry: &Entry<'_>) -> Option<String> {
    let DeValue::Table(_) = entry.value else { return Some(canonical(&entry.text(EXAMPLE)?)) };
    let table = entry.table()?;
    if !table.only(&schema::DEVICE) {
        return None;
    }
    let log = table.optional("log", part)?;
    let entry = table.require("data", EXAMPLE)?;
    let mut data = part(&entry)?;
    if let Some(mode) = table.get("mode") {
        let wanted = mode.text("\"windows\"")?;
        if let Some(own) = &data.mode {
            let fault = format!("`{}` has the mode `{own}` already", entry.name);
            return mode.refuse(fault, "one mode");
        }
        data.mode = Some(wanted);
    }
    let name = DeviceName { data, log };
    if DeviceName::new(&name.to_string()) != name {
        let accepted = "a path that ends in `.toml`, where a mode or a log follows";
        return entry.refuse(format!("`{}` is a path without an ending", name.data.file), accepted);
    }
    Some(canonical(&name.to_string()))
}

/// Reads the name of one device without a log.
fn part(entry: &Entry<'_>) -> Option<Part> {
    let text = entry.text(EXAMPLE)?;
    let name = DeviceName::new(&text);
    match name.log {
        None => Some(name.data),
        Some(_) => entry.refuse(format!("`{text}` is two devices"), "one device"),
    }
}

fn devices(entry: &Entry<'_>) -> Option<(Target, Vec<String>)> {
    let Some(elements) = entry.elements() else {
        return Some((Target::Device(device(entry)?), Vec::new()));
    };
    let mut names: Vec<String> = Vec::new();
    for element in &elements {
        let name = device(element)?;
        if names.contains(&name) {
            return element.refuse(format!("`{name}` is listed twice"), "each device once");
        }
        names.push(name);
    }
    match names.first().cloned() {
        None => entry.refuse("a list of no devices", "the name of a device, or a list of them"),
        Some(first) => Some((Target::Device(first), if names.len() > 1 { names } else { Vec::new() })),
    }
}
