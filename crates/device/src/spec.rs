//! The description of any simulated device ([`DeviceSpec`]), and how a device is made from it.
//!
//! One variant for each kind of device; a composite holds the descriptions of its members. Leaves out names,
//! titles, prices and how device files are read, see `lowtide_files::device`.

use crate::array::{Array, ArraySpec};
use crate::cache::{Cache, CacheSpec};
use crate::disk::{DiskSpec, SimulatedDisk};
use crate::flash::{FlashSpec, SimulatedSsd};
use crate::log::LogSpec;
use crate::volume::{Volume, VolumeSpec};
use lowtide_core::{BlockDevice, Bytes, Seed};
use serde::Serialize;

/// A simulated device of any kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(clippy::large_enum_variant, reason = "few are made, and none in a loop")]
pub enum DeviceSpec {
    /// A flash drive.
    Flash(FlashSpec),
    /// Several devices behind one controller.
    Array(ArraySpec),
    /// A flash cache in front of another device.
    Cache(CacheSpec),
    /// A cloud volume.
    Volume(VolumeSpec),
    /// A hard disk.
    Disk(DiskSpec),
    /// A log-structured layer over another device.
    Log(LogSpec),
}

/// A description that no device can have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct SpecError {
    /// The key at fault, dotted: `nand.page`.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl SpecError {
    /// The same error of a part, whose own key is `part`.
    pub fn within(self, part: &str) -> SpecError {
        SpecError { key: format!("{part}.{}", self.key), ..self }
    }
}

impl DeviceSpec {
    /// What the host may address.
    pub fn capacity(&self) -> Bytes {
        match self {
            DeviceSpec::Flash(flash) => flash.capacity,
            DeviceSpec::Array(array) => array.capacity(),
            DeviceSpec::Cache(cache) => cache.capacity(),
            DeviceSpec::Volume(volume) => volume.capacity,
            DeviceSpec::Disk(disk) => disk.capacity,
            DeviceSpec::Log(log) => log.capacity(),
        }
    }

    /// What the host may address on the first of several devices that follow one another; the whole capacity of
    /// any other device.
    pub fn first_part(&self) -> Bytes {
        match self {
            DeviceSpec::Array(array) => array.first_part(),
            DeviceSpec::Flash(_)
            | DeviceSpec::Cache(_)
            | DeviceSpec::Volume(_)
            | DeviceSpec::Disk(_)
            | DeviceSpec::Log(_) => self.capacity(),
        }
    }

    /// Memory of the host that the driver takes, where it keeps the map there.
    pub fn host_memory(&self) -> Bytes {
        match self {
            DeviceSpec::Flash(flash) => flash.host_memory(),
            DeviceSpec::Array(array) => array.members.iter().map(DeviceSpec::host_memory).sum(),
            DeviceSpec::Cache(cache) => cache.flash.host_memory() + cache.backing.host_memory(),
            DeviceSpec::Log(log) => log.map_memory() + log.over.host_memory(),
            DeviceSpec::Disk(_) | DeviceSpec::Volume(_) => Bytes::ZERO,
        }
    }

    /// Whether seeks cost time: a disk, or something that keeps its data on disks.
    pub fn is_rotational(&self) -> bool {
        match self {
            DeviceSpec::Disk(_) => true,
            DeviceSpec::Array(array) => array.members.iter().any(DeviceSpec::is_rotational),
            DeviceSpec::Cache(cache) => cache.backing.is_rotational(),
            DeviceSpec::Log(log) => log.over.is_rotational(),
            DeviceSpec::Flash(_) | DeviceSpec::Volume(_) => false,
        }
    }

    /// Checks that the parts fit together.
    ///
    /// # Errors
    /// [`SpecError`] names the key that does not fit.
    pub fn validate(&self) -> Result<(), SpecError> {
        match self {
            DeviceSpec::Flash(flash) => flash.validate(),
            DeviceSpec::Array(array) => array.validate(),
            DeviceSpec::Cache(cache) => cache.validate(),
            DeviceSpec::Volume(volume) => volume.validate(),
            DeviceSpec::Disk(disk) => disk.validate(),
            DeviceSpec::Log(log) => log.validate(),
        }
    }

    /// The flash drive, where the device is one.
    pub fn flash(&self) -> Option<&FlashSpec> {
        match self {
            DeviceSpec::Flash(flash) => Some(flash),
            DeviceSpec::Array(_)
            | DeviceSpec::Cache(_)
            | DeviceSpec::Disk(_)
            | DeviceSpec::Volume(_)
            | DeviceSpec::Log(_) => None,
        }
    }

    /// The same device, `factor` times smaller, with the same timings.
    pub fn scaled(&self, factor: u64) -> DeviceSpec {
        match self {
            DeviceSpec::Flash(flash) => DeviceSpec::Flash(flash.scaled(factor)),
            DeviceSpec::Array(array) => DeviceSpec::Array(array.scaled(factor)),
            DeviceSpec::Cache(cache) => DeviceSpec::Cache(cache.scaled(factor)),
            DeviceSpec::Volume(volume) => DeviceSpec::Volume(volume.scaled(factor)),
            DeviceSpec::Disk(disk) => DeviceSpec::Disk(disk.scaled(factor)),
            DeviceSpec::Log(log) => DeviceSpec::Log(log.scaled(factor)),
        }
    }

    /// A device as new.
    ///
    /// # Errors
    /// [`SpecError`] where the description does not fit together.
    pub fn build(&self, seed: Seed) -> Result<AnyDevice, SpecError> {
        Ok(match self {
            DeviceSpec::Flash(flash) => Box::new(SimulatedSsd::new(flash, seed)?),
            DeviceSpec::Array(array) => Box::new(Array::new(array, seed)?),
            DeviceSpec::Cache(cache) => Box::new(Cache::new(cache, seed)?),
            DeviceSpec::Volume(volume) => Box::new(Volume::new(volume, seed)?),
            DeviceSpec::Disk(disk) => Box::new(SimulatedDisk::new(disk, seed)?),
            DeviceSpec::Log(log) => Box::new(log.build(seed)?),
        })
    }
}

/// A device of any kind.
pub type AnyDevice = Box<dyn BlockDevice + Send>;
