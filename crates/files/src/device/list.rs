//! The devices that come with the program: each file, and each of its modes.
//!
//! Leaves out how they are shown (`lowtide devices`).

use super::file::Interface;
use super::read::{Shelf, modes, of_file};
use super::{Device, DeviceName};
use crate::catalogue::{self, Entry};
use lowtide_device::DeviceSpec;
use std::sync::LazyLock;

/// A name of the catalogue.
pub(super) struct Known {
    pub(super) name: String,
    pub(super) entry: &'static Entry,
    pub(super) mode: Option<String>,
}

/// Every name, sorted: a file states its own modes only, so no other file is read.
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

/// The file of a name, and the mode it stands for.
pub(super) fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// Every name of the catalogue.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|known| known.name.as_str())
}

/// The name of a mode of that file.
pub(super) fn mode_of(entry: &Entry, mode: &str) -> Option<&'static str> {
    let found = KNOWN.iter().find(|known| known.entry == entry && known.mode.as_deref() == Some(mode));
    found.map(|known| known.name.as_str())
}

/// A device that comes with the program.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its file.
    pub entry: &'static Entry,
    /// Which mode of the file it is.
    pub mode: Option<String>,
    /// The device.
    pub device: Device,
}

/// Every device that comes with the program, modes among them, by name.
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

/// The class under which lists show a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A flash drive behind SATA.
    SataDrive,
    /// A flash card with a driver of its own, of one drive or several.
    Card,
    /// An NVMe drive.
    NvmeDrive,
    /// A flash drive whose file does not say its interface.
    FlashDrive,
    /// A hard disk.
    Disk,
    /// Several devices behind one controller.
    Array,
    /// Data on one device, the log on another.
    DataAndLog,
    /// Flash in front of a slower device.
    Cache,
    /// A log-structured layer.
    LogLayer,
    /// A cloud volume.
    Volume,
}

impl Class {
    /// The class of a device.
    pub fn of(device: &Device) -> Class {
        match (&device.spec, device.interface) {
            (DeviceSpec::Array(_), _) if device.spec.first_part() != device.spec.capacity() => {
                Class::DataAndLog
            }
            (DeviceSpec::Flash(_) | DeviceSpec::Array(_), Some(Interface::Sata)) => Class::SataDrive,
            (DeviceSpec::Flash(_) | DeviceSpec::Array(_), Some(Interface::PciExpress)) => Class::Card,
            (DeviceSpec::Flash(_) | DeviceSpec::Array(_), Some(Interface::Nvme)) => Class::NvmeDrive,
            (DeviceSpec::Flash(_), None) => Class::FlashDrive,
            (DeviceSpec::Array(_), None) => Class::Array,
            (DeviceSpec::Disk(_), _) => Class::Disk,
            (DeviceSpec::Cache(_), _) => Class::Cache,
            (DeviceSpec::Log(_), _) => Class::LogLayer,
            (DeviceSpec::Volume(_), _) => Class::Volume,
        }
    }

    /// Its heading in a list.
    pub fn title(self) -> &'static str {
        match self {
            Class::SataDrive => "SATA SSDs",
            Class::Card => "PCI Express flash cards",
            Class::NvmeDrive => "NVMe SSDs",
            Class::FlashDrive => "Other flash drives",
            Class::Disk => "Hard disks",
            Class::Array => "Arrays",
            Class::DataAndLog => "Data and log on separate devices",
            Class::Cache => "Flash caches",
            Class::LogLayer => "Log layers",
            Class::Volume => "Cloud volumes",
        }
    }
}
