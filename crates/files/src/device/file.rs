//! The tables of a device file, as serde reads them.
//!
//! Leaves out what they refer to (`read`).

use super::DeviceFileError;
use lowtide_device::array::ArrayParameters;
use lowtide_device::cache::CacheParameters;
use lowtide_device::disk::DiskSpec;
use lowtide_device::flash::FlashSpec;
use lowtide_device::log::LogParameters;
use lowtide_device::volume::VolumeSpec;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Value;

/// The most members an array may have.
pub(super) const MOST_MEMBERS: usize = 1024;

/// The years a device can be of.
const YEARS: std::ops::RangeInclusive<u16> = 1956..=2100;

/// The host interface of a flash drive, which decides its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// SATA.
    Sata,
    /// PCI Express, with a driver of its own.
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
    /// Read as tables of their own; here for the errors of a file whose modes are not tables.
    #[serde(default, rename = "mode")]
    _modes: BTreeMap<String, toml::Table>,
    #[serde(default)]
    pub(super) flash: Option<FlashSpec>,
    #[serde(default)]
    pub(super) disk: Option<DiskSpec>,
    #[serde(default)]
    pub(super) array: Option<ArrayTable>,
    #[serde(default)]
    pub(super) cache: Option<CacheTable>,
    #[serde(default)]
    pub(super) log: Option<LogTable>,
    #[serde(default)]
    pub(super) volume: Option<VolumeSpec>,
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

/// A device that another is made of.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "the name of a device, or its file as a table")]
pub(super) enum Reference {
    Name(String),
    /// The table of its device file: what a campaign keeps of a file that was named by its path.
    Table(toml::Table),
}

/// The places of references in a device file: tables with their keys.
const REFERENCES: [(&str, &[&str]); 3] =
    [("array", &["member", "members"]), ("cache", &["flash", "backing"]), ("log", &["over"])];

/// Every reference in the table of a device file.
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

/// The table `[cache]`: two devices by name, and how one caches the other.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct CacheTable {
    pub(super) flash: Reference,
    pub(super) backing: Reference,
    #[serde(flatten)]
    pub(super) parameters: CacheParameters,
}

/// The table `[log]`: a device by name, and how a log lies on it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct LogTable {
    pub(super) over: Reference,
    #[serde(flatten)]
    pub(super) parameters: LogParameters,
}

/// The table `[array]`: members by name, one after the other or so many of one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct ArrayTable {
    #[serde(default)]
    pub(super) members: Vec<Reference>,
    #[serde(default)]
    pub(super) member: Option<Reference>,
    #[serde(default)]
    pub(super) count: Option<usize>,
    #[serde(flatten)]
    pub(super) parameters: ArrayParameters,
}

impl ArrayTable {
    /// The names of the members, and how many of each in a row.
    pub(super) fn members(&self) -> Result<Vec<(&Reference, usize)>, DeviceFileError> {
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
