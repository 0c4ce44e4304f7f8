//! The compiled-in devices: each file and each of its modes. Their display is in `lowtide devices`.

use super::read::{Shelf, modes, of_file};
use super::{Device, DeviceName};
use crate::catalogue::{self, Entry};
use std::sync::LazyLock;

/// A name in the catalogue.
pub(super) struct Known {
    pub(super) name: String,
    pub(super) entry: &'static Entry,
    pub(super) mode: Option<String>,
}

/// Every name, sorted. A file lists only its own modes, so files that it refers to are not read.
static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let of_entry = |entry: &'static Entry| {
        let file: toml::Table = entry.text.parse().unwrap_or_else(|fault| panic!("{}: {fault}", entry.path));
        let base = Known { name: entry.name.to_owned(), entry, mode: None };
        let modes =
            modes(entry.name, &file).map(|(mode, name)| Known { name, entry, mode: Some(mode.to_owned()) });
        std::iter::once(base).chain(modes).collect::<Vec<_>>()
    };
    let mut all: Vec<Known> = catalogue::devices().iter().flat_map(of_entry).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
});

/// The file and mode of a name.
pub(super) fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// Every name in the catalogue.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|known| known.name.as_str())
}

/// The catalogue name of a mode.
pub(super) fn mode_of(entry: &Entry, mode: &str) -> Option<&'static str> {
    let found = KNOWN.iter().find(|known| known.entry == entry && known.mode.as_deref() == Some(mode));
    found.map(|known| known.name.as_str())
}

/// A compiled-in device.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The device file.
    pub entry: &'static Entry,
    /// The mode, if the device is one.
    pub mode: Option<String>,
    /// The device as read from the file.
    pub device: Device,
}

/// Every compiled-in device and mode, sorted by name.
pub fn catalogue() -> &'static [Listed] {
    static ALL: LazyLock<Vec<Listed>> = LazyLock::new(|| {
        let read = |known: &Known| {
            let name = DeviceName::new(&known.name);
            let device = Shelf::default().find(&name.data).and_then(|found| of_file(Shelf::default(), found));
            let device = device.unwrap_or_else(|fault| panic!("{}: {fault}", known.entry.path));
            Listed { entry: known.entry, mode: known.mode.clone(), device }
        };
        KNOWN.iter().map(read).collect()
    });
    &ALL
}
