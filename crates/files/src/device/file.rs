//! The tables of a device file, as serde reads them, and the classes of devices in lists.
//!
//! A new kind of device needs a table here and a variant of [`DeviceSpec`]. Lookup of referenced devices is in
//! `read`.

use super::{Device, DeviceFileError};
use lowtide_device::DeviceSpec;
use lowtide_device::array::{ArrayParameters, ArraySpec};
use lowtide_device::cache::{CacheParameters, CacheSpec};
use lowtide_device::disk::DiskSpec;
use lowtide_device::flash::FlashSpec;
use lowtide_device::log::{LogParameters, LogSpec};
use lowtide_device::volume::VolumeSpec;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Value;

/// Maximum number of members of an array.
pub(super) const MOST_MEMBERS: usize = 1024;

/// The tables for kinds of devices. A device file holds exactly one of them.
pub(super) const KINDS: &str = "[flash], [disk], [array], [cache], [log], [volume]";

/// Accepted release years.
const YEARS: std::ops::RangeInclusive<u16> = 1956..=2100;

/// Host interface of a flash drive, which determines its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// SATA.
    Sata,
    /// PCI Express with a vendor driver.
    PciExpress,
    /// NVMe.
    Nvme,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) title: String,
    #[serde(default, deserialize_with = "year")]
    pub(super) year: Option<u16>,
    #[serde(default)]
    pub(super) interface: Option<Interface>,
    #[serde(default, deserialize_with = "price")]
    pub(super) price_usd: Option<f64>,
    #[serde(default)]
    pub(super) fitted_to: Vec<String>,
    /// Read separately. This field only checks that every mode is a table.
    #[serde(default, rename = "mode")]
    _modes: BTreeMap<String, toml::Table>,
    #[serde(default)]
    flash: Option<FlashSpec>,
    #[serde(default)]
    disk: Option<DiskSpec>,
    #[serde(default)]
    array: Option<ArrayTable>,
    #[serde(default)]
    cache: Option<CacheTable>,
    #[serde(default)]
    log: Option<LogTable>,
    #[serde(default)]
    volume: Option<VolumeSpec>,
}

impl File {
    /// Resolves the device tables of the file; a valid file has exactly one. `find` reads a referenced device.
    pub(super) fn specs(
        &mut self,
        mut find: impl FnMut(&Reference) -> Result<DeviceSpec, DeviceFileError>,
    ) -> Result<Vec<DeviceSpec>, DeviceFileError> {
        let mut specs = Vec::new();
        specs.extend(self.flash.take().map(DeviceSpec::Flash));
        specs.extend(self.disk.take().map(DeviceSpec::Disk));
        specs.extend(self.volume.take().map(DeviceSpec::Volume));
        if let Some(array) = self.array.take() {
            specs.push(DeviceSpec::Array(array.spec(&mut find)?));
        }
        if let Some(CacheTable { flash, backing, parameters }) = self.cache.take() {
            let (flash, backing) = (Box::new(find(&flash)?), Box::new(find(&backing)?));
            specs.push(DeviceSpec::Cache(CacheSpec { parameters, flash, backing }));
        }
        if let Some(LogTable { over, parameters }) = self.log.take() {
            let over = Box::new(find(&over)?);
            specs.push(DeviceSpec::Log(LogSpec { parameters, over }));
        }
        Ok(specs)
    }
}

fn price<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let price = f64::deserialize(deserializer)?;
    if (1e-2..=1e9).contains(&price) {
        return Ok(Some(price));
    }
    Err(serde::de::Error::custom(format!("{price} is not a price: write dollars, from 0.01 to 1 billion")))
}

fn year<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    let year = i64::deserialize(deserializer)?;
    match u16::try_from(year) {
        Ok(known) if YEARS.contains(&known) => Ok(Some(known)),
        _ => Err(serde::de::Error::custom(format!(
            "{year} is not the year of a device: write one such as 2011"
        ))),
    }
}

/// A reference to another device.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "the name of a device, or its file as a table")]
pub(super) enum Reference {
    Name(String),
    /// The device file as a table. Campaigns store the user's own files in this form.
    Table(toml::Table),
}

/// The keys that hold references, by table.
const REFERENCES: [(&str, &[&str]); 3] =
    [("array", &["member", "members"]), ("cache", &["flash", "backing"]), ("log", &["over"])];

/// All references in a device file.
pub(super) fn references(file: &mut toml::Table) -> Vec<&mut Value> {
    let mut all = Vec::new();
    for (key, value) in file.iter_mut() {
        let keys = REFERENCES.iter().find(|(table, _)| table == key).map_or(&[][..], |(_, keys)| keys);
        for (_, value) in
            value.as_table_mut().into_iter().flatten().filter(|(key, _)| keys.contains(&key.as_str()))
        {
            match value {
                Value::Array(list) => all.extend(list),
                one => all.push(one),
            }
        }
    }
    all
}

/// The table `[cache]`: two references and the cache parameters.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct CacheTable {
    flash: Reference,
    backing: Reference,
    #[serde(flatten)]
    parameters: CacheParameters,
}

/// The table `[log]`: a reference and the parameters of the log layer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct LogTable {
    over: Reference,
    #[serde(flatten)]
    parameters: LogParameters,
}

/// The table `[array]`: a list of members, or one member with a count.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ArrayTable {
    #[serde(default)]
    members: Vec<Reference>,
    #[serde(default)]
    member: Option<Reference>,
    #[serde(default)]
    count: Option<usize>,
    #[serde(flatten)]
    parameters: ArrayParameters,
}

impl ArrayTable {
    fn spec(
        self,
        find: &mut impl FnMut(&Reference) -> Result<DeviceSpec, DeviceFileError>,
    ) -> Result<ArraySpec, DeviceFileError> {
        let mut members = Vec::new();
        for (name, count) in self.members()? {
            let member = find(name)?;
            members.extend(std::iter::repeat_n(member, count));
        }
        Ok(ArraySpec { parameters: self.parameters, members })
    }

    /// The members in order, each with the number of its consecutive copies.
    fn members(&self) -> Result<Vec<(&Reference, usize)>, DeviceFileError> {
        match (&self.member, self.count, self.members.as_slice()) {
            (Some(member), Some(count), []) if (1..=MOST_MEMBERS).contains(&count) => {
                Ok(vec![(member, count)])
            }
            (None, None, members) if !members.is_empty() => {
                Ok(members.iter().map(|member| (member, 1)).collect())
            }
            _ => Err(DeviceFileError::Members),
        }
    }
}

/// The class under which lists show a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A flash drive behind SATA.
    SataDrive,
    /// A PCI Express flash card with a vendor driver, made of one drive or several.
    Card,
    /// An NVMe drive.
    NvmeDrive,
    /// A flash drive without a stated interface.
    FlashDrive,
    /// A hard disk.
    Disk,
    /// Several devices behind one controller.
    Array,
    /// Data on one device and the log on another.
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

    /// Heading of the class in a list.
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
