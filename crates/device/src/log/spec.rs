//! The description of a log layer ([`LogParameters`], the table `[log]` of a device file) with its underlying device
//! ([`LogSpec`]).
//!
//! The name of the underlying device is resolved in `lowtide_files::device`.

use crate::spec::durability::Cache;
use crate::spec::{AnyDevice, DeviceSpec, SpecError, check_times, fail};
use lowtide_core::{Bytes, Nanos, Seed};
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::format::Geometry;
use lowtide_logdisk::format::geometry::GeometryError;
use lowtide_logdisk::virtual_time::live_share;
use lowtide_logdisk::{BLOCK, LogDevice, LogError, Options};
use serde::{Deserialize, Serialize};

/// Checkpoints during one write of the log's capacity. Large logs make more, since at most 1 GiB is written between
/// two.
const CHECKPOINTS: u64 = 24;
/// Lower bound on the slots written between two checkpoints.
const FEWEST_SLOTS: u64 = 1024;

/// A log layer with its underlying device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogSpec {
    /// Parameters of the layer.
    pub parameters: LogParameters,
    /// The underlying device.
    pub over: Box<DeviceSpec>,
}

/// Parameters of a log layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LogParameters {
    /// Size of a segment, the unit of sequential writing and of cleaning: 1 MiB to 64 MiB, a multiple of 1 MiB.
    #[serde(default = "default_segment")]
    pub segment: Bytes,
    /// Share of slots outside the capacity, from 0.02 to 0.9.
    #[serde(default = "default_reserve")]
    pub reserve: f64,
    /// Latency added to every request. It does not occupy the device. Must be above 0.
    #[serde(default = "default_latency")]
    pub latency: Nanos,
}

fn default_segment() -> Bytes {
    Bytes::new(Options::default().segment)
}

fn default_reserve() -> f64 {
    Options::default().reserve
}

fn default_latency() -> Nanos {
    Nanos::from_micros(2)
}

impl LogSpec {
    fn options(&self) -> Options {
        Options { segment: self.parameters.segment.get(), reserve: self.parameters.reserve }
    }

    /// The positions of segments and checkpoints on the device.
    ///
    /// # Errors
    /// [`SpecError`] for the first key that is invalid.
    fn geometry(&self) -> Result<Geometry, SpecError> {
        let Options { segment, reserve } = self.options();
        let bytes = self.over.capacity().get() / BLOCK as u64 * BLOCK as u64;
        Geometry::new(bytes, segment, reserve).or_else(|error| match error {
            GeometryError::Segment(_) => {
                let segment = self.parameters.segment;
                fail("segment", format!("{segment} is none of 1MiB, 2MiB, 3MiB and so on up to 64MiB"))
            }
            GeometryError::Reserve(_) => {
                fail("reserve", format!("{reserve} is not a share from 0.02 to 0.9"))
            }
            GeometryError::Small { least, .. } => {
                let (has, segment) = (self.over.capacity(), self.parameters.segment);
                let least = Bytes::new(least.next_multiple_of(1 << 20));
                fail("over", format!("{has} is too small: with segments of {segment} a log needs {least}"))
            }
            GeometryError::Large { most, .. } => {
                let (has, most) = (self.over.capacity(), Bytes::new(most));
                fail("over", format!("{has} is too large: a log reaches {most}"))
            }
            GeometryError::Shrunk { .. } | GeometryError::Grown { .. } => {
                unreachable!("only a log that is there can grow")
            }
        })
    }

    /// Bytes the host may address; 0 if the description is invalid.
    pub fn capacity(&self) -> Bytes {
        Bytes::new(self.geometry().map_or(0, |geometry| geometry.capacity()))
    }

    /// Host memory for the layer's map, in bytes.
    pub(crate) fn map_memory(&self) -> Bytes {
        Bytes::new(self.geometry().map_or(0, |geometry| u64::from(geometry.pages()) * BLOCK as u64))
    }

    /// Runtime settings. A smaller log makes checkpoints sooner, since segments are not reused before a checkpoint.
    fn running(&self) -> Running {
        let usual = Running::default();
        let share = self.capacity().get() / CHECKPOINTS / BLOCK as u64;
        Running { checkpoint_slots: share.max(FEWEST_SLOTS).min(usual.checkpoint_slots), ..usual }
    }

    /// The combined cache of the layer and its device. An unflushed write is lost if any earlier record of the log is
    /// lost, so the layer counts as a cache of all data between two checkpoints.
    pub(crate) fn cache(&self) -> Cache {
        let size = Bytes::new(self.running().checkpoint_slots * BLOCK as u64);
        Cache::Volatile { size, honours_flush: true }.beside(self.over.cache())
    }

    /// Live share of the usable slots if the share `fill` of the capacity holds data. `None` if the description is
    /// invalid.
    pub fn live_share(&self, fill: f64) -> Option<f64> {
        Some(live_share(&self.geometry().ok()?, fill))
    }

    /// Checks the description.
    ///
    /// # Errors
    /// [`SpecError`] for the first key that is invalid. Keys of the underlying device begin with `over`.
    pub fn validate(&self) -> Result<(), SpecError> {
        let latency = self.parameters.latency;
        check_times([("latency", latency)])?;
        if latency == Nanos::ZERO {
            return fail("latency", "must be above 0, since reads of unwritten blocks take no other time");
        }
        self.over.validate().map_err(|error| error.within("over"))?;
        self.geometry().map(drop)
    }

    /// The same layer over a device `factor` times smaller. Segment size and latency are unchanged.
    pub fn scaled(&self, factor: u64) -> LogSpec {
        LogSpec { parameters: self.parameters.clone(), over: Box::new(self.over.scaled(factor)) }
    }

    /// Builds a new log on a new device.
    ///
    /// # Errors
    /// [`SpecError`] if the description is inconsistent.
    pub fn build(&self, seed: Seed) -> Result<LogDevice<AnyDevice>, SpecError> {
        self.validate()?;
        let over = self.over.build(seed.part("over", 0)).map_err(|error| error.within("over"))?;
        let log = LogDevice::new(over, self.options(), self.running());
        let log = log.or_else(|error: LogError| fail("over", error.to_string()))?;
        Ok(log.with_latency(self.parameters.latency))
    }
}
