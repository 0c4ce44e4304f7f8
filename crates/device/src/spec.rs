//! The description of any simulated device ([`DeviceSpec`]), from which a device is built.
//!
//! Each kind of device is a variant. A composite device holds the descriptions of its members. Every match on the
//! kind is in this file, so a new kind is added here. `lowtide_files::device` reads device files, with names, titles
//! and prices.

pub(crate) mod durability;

use crate::array::{Array, ArraySpec};
use crate::cache::{Cache, CacheSpec};
use crate::disk::{DiskSpec, SimulatedDisk};
use crate::flash::spec::Cycles;
use crate::flash::{FlashSpec, SimulatedSsd};
use crate::log::LogSpec;
use crate::volume::{Volume, VolumeSpec};
use durability::CacheKind;
use lowtide_core::{BlockDevice, Bytes, Nanos, Seed};
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

/// A mistake in a description.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct SpecError {
    /// The invalid key, dotted: `nand.page`.
    pub key: String,
    /// The mistake and the accepted values.
    pub message: String,
}

/// The wear of a device's NAND.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wear {
    /// The NAND has rated cycles.
    Rated {
        /// Raw NAND of the device, in bytes.
        raw: Bytes,
        /// Rated erase cycles of a block.
        cycles: Cycles,
    },
    /// The device has no NAND.
    Never,
    /// Unknown, with the reason.
    Unknown(&'static str),
}

impl SpecError {
    /// The error of a member, with the member's key in front.
    pub fn within(self, member: &str) -> SpecError {
        SpecError { key: format!("{member}.{}", self.key), ..self }
    }
}

/// The longest valid time in a description.
const LONGEST: Nanos = Nanos::from_secs(24 * 3600);
/// The lowest valid rate in a description, in bytes per second.
const SLOWEST: Bytes = Bytes::new(1_000_000);

/// The error `message` at `key`.
pub(crate) fn fail<T>(key: impl Into<String>, message: impl Into<String>) -> Result<T, SpecError> {
    Err(SpecError { key: key.into(), message: message.into() })
}

/// Checks that no time is longer than a day.
pub(crate) fn check_times(times: impl IntoIterator<Item = (&'static str, Nanos)>) -> Result<(), SpecError> {
    match times.into_iter().find(|(_, time)| *time > LONGEST) {
        Some((key, time)) => fail(key, format!("{time} is longer than {LONGEST}")),
        None => Ok(()),
    }
}

/// Checks that no rate is below 1 MB per second.
pub(crate) fn check_rate(key: &'static str, rate: Bytes) -> Result<(), SpecError> {
    if rate < SLOWEST {
        return fail(key, format!("must be at least {SLOWEST} per second"));
    }
    Ok(())
}

impl DeviceSpec {
    /// Bytes the host may address.
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

    /// The capacity of the first member of a linear array; the whole capacity of any other device.
    pub fn first_part(&self) -> Bytes {
        match self {
            DeviceSpec::Array(array) => array.first_part(),
            _ => self.capacity(),
        }
    }

    /// Host memory for mapping tables that drivers keep on the host, in bytes.
    pub fn host_memory(&self) -> Bytes {
        match self {
            DeviceSpec::Flash(flash) => flash.host_memory(),
            DeviceSpec::Array(array) => array.members.iter().map(DeviceSpec::host_memory).sum(),
            DeviceSpec::Cache(cache) => cache.flash.host_memory() + cache.backing.host_memory(),
            DeviceSpec::Log(log) => log.map_memory() + log.over.host_memory(),
            DeviceSpec::Disk(_) | DeviceSpec::Volume(_) => Bytes::ZERO,
        }
    }

    /// Returns true for a device on which seeks cost time: a disk, or a device whose data is on disks.
    pub fn is_rotational(&self) -> bool {
        match self {
            DeviceSpec::Disk(_) => true,
            DeviceSpec::Array(array) => array.members.iter().any(DeviceSpec::is_rotational),
            DeviceSpec::Cache(cache) => cache.backing.is_rotational(),
            DeviceSpec::Log(log) => log.over.is_rotational(),
            DeviceSpec::Flash(_) | DeviceSpec::Volume(_) => false,
        }
    }

    /// Checks the description.
    ///
    /// # Errors
    /// [`SpecError`] for the first key that is invalid.
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

    /// The description of the flash drive, if the device is one.
    pub fn flash(&self) -> Option<&FlashSpec> {
        match self {
            DeviceSpec::Flash(flash) => Some(flash),
            _ => None,
        }
    }

    /// The same device, `factor` times smaller. Timings are unchanged.
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

    /// The rated wear, if the description determines it.
    pub fn wear(&self) -> Wear {
        match self {
            DeviceSpec::Flash(flash) => match flash.nand.pe_cycles {
                Some(cycles) => Wear::Rated { raw: flash.nand.raw, cycles },
                None => Wear::Unknown("its file has no rated cycles"),
            },
            DeviceSpec::Array(array) => array.wear(),
            DeviceSpec::Cache(_) => Wear::Unknown("the flash is a cache before something else"),
            DeviceSpec::Volume(_) => Wear::Unknown("the provider of a volume does not tell"),
            DeviceSpec::Disk(_) => Wear::Never,
            DeviceSpec::Log(log) => match log.over.wear() {
                Wear::Never => Wear::Never,
                _ => Wear::Unknown("a log layer writes to the flash"),
            },
        }
    }

    /// The write cache that holds acknowledged writes. A device made of others gets the worst case: the sizes of
    /// volatile caches are added, and one member that ignores flushes makes the whole device ignore them.
    ///
    /// # Not modelled
    /// * The order in which a log layer loses unflushed writes.
    /// * Writes larger than an array's protected cache. Such writes bypass the cache and are in the volatile caches
    ///   of members.
    pub fn cache(&self) -> durability::Cache {
        match self {
            DeviceSpec::Flash(flash) => flash.cache(),
            DeviceSpec::Array(array) => array.cache(),
            DeviceSpec::Cache(cache) => cache.cache(),
            DeviceSpec::Volume(_) => durability::Cache::Protected,
            DeviceSpec::Disk(disk) => disk.cache(),
            DeviceSpec::Log(log) => log.cache(),
        }
    }

    /// The same device with a write cache of another kind, which also changes its timing. A disk without a volatile
    /// write cache counts as protected.
    ///
    /// # Errors
    /// [`SpecError`] if the device cannot have such a cache. A volume, a disk without a write cache, and an array
    /// with a battery-backed cache are always protected. A log layer is never protected.
    pub fn with_cache(&self, kind: CacheKind) -> Result<DeviceSpec, SpecError> {
        let mut spec = self.clone();
        spec.set_cache(kind);
        let found = spec.cache().kind();
        if found == kind {
            return Ok(spec);
        }
        fail("cache", format!("cannot be {kind} here: the device as described is always {found}"))
    }

    /// Sets every cache of the device to `kind`, if that cache supports it.
    pub(crate) fn set_cache(&mut self, kind: CacheKind) {
        match self {
            DeviceSpec::Flash(flash) => flash.set_cache(kind),
            DeviceSpec::Array(array) => array.members.iter_mut().for_each(|member| member.set_cache(kind)),
            DeviceSpec::Cache(cache) => {
                cache.flash.set_cache(kind);
                cache.backing.set_cache(kind);
            }
            DeviceSpec::Volume(_) => {}
            DeviceSpec::Disk(disk) => disk.set_cache(kind),
            DeviceSpec::Log(log) => log.over.set_cache(kind),
        }
    }

    /// Builds a new device.
    ///
    /// # Errors
    /// [`SpecError`] if the description is inconsistent.
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
