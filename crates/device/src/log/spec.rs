//! The description of a log layer, as the table `[log]` of a device file writes it ([`LogParameters`]), with the device it
//! lies on ([`LogSpec`]).
//!
//! Leaves out the name of the device and how it is found, see `lowtide_files::device`.

use crate::spec::durability::Cache;
use crate::spec::{AnyDevice, DeviceSpec, SpecError, check_times, fail};
use lowtide_core::{Bytes, Nanos, Seed};
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::format::Geometry;
use lowtide_logdisk::format::geometry::GeometryError;
use lowtide_logdisk::virtual_time::live_share;
use lowtide_logdisk::{BLOCK, LogDevice, LogError, Options};
use serde::{Deserialize, Serialize};

/// Checkpoints while a log is written once, or more where there would be more than 1 GiB between two …
const CHECKPOINTS: u64 = 24;
/// … and never fewer slots than these.
const FEWEST_SLOTS: u64 = 1024;

/// A log layer with the device that it lies on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogSpec {
    /// How it is laid out.
    pub parameters: LogParameters,
    /// What it lies on.
    pub over: Box<DeviceSpec>,
}

/// Everything about a log layer but its device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LogParameters {
    /// Bytes that are written one after the other and cleaned together; 1 MiB to 64 MiB, in steps of 1 MiB.
    #[serde(default = "default_segment")]
    pub segment: Bytes,
    /// The share of slots that is never offered.
    #[serde(default = "default_reserve")]
    pub reserve: f64,
    /// Added to every request, and occupies nothing.
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

    /// Where everything lies.
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

    /// What the host may address: what the layer offers; nothing where there can be no such layer.
    pub fn capacity(&self) -> Bytes {
        Bytes::new(self.geometry().map_or(0, |geometry| geometry.capacity()))
    }

    /// Memory of the host that the map takes.
    pub(crate) fn map_memory(&self) -> Bytes {
        Bytes::new(self.geometry().map_or(0, |geometry| u64::from(geometry.pages()) * BLOCK as u64))
    }

    /// How it behaves: a smaller one makes checkpoints sooner, since segments wait for them.
    fn running(&self) -> Running {
        let usual = Running::default();
        let share = self.capacity().get() / CHECKPOINTS / BLOCK as u64;
        Running { checkpoint_slots: share.max(FEWEST_SLOTS).min(usual.checkpoint_slots), ..usual }
    }

    /// What the layer and its device keep acknowledged writes in. What was not flushed is lost with anything before it in the
    /// log, so there is no less than between two checkpoints.
    pub(crate) fn cache(&self) -> Cache {
        let size = Bytes::new(self.running().checkpoint_slots * BLOCK as u64);
        Cache::Volatile { size, honours_flush: true }.beside(self.over.cache())
    }

    /// The share of what the layer has room for that is live when the share `fill` of its capacity holds data; `None` where there can be
    /// no such layer.
    pub fn live_share(&self, fill: f64) -> Option<f64> {
        Some(live_share(&self.geometry().ok()?, fill))
    }

    /// Checks the description.
    ///
    /// # Errors
    /// [`SpecError`] names the key that does not fit; of the device, behind `over`.
    pub fn validate(&self) -> Result<(), SpecError> {
        let latency = self.parameters.latency;
        check_times([("latency", latency)])?;
        if latency == Nanos::ZERO {
            return fail("latency", "must be above 0, since reads of unwritten blocks take no other time");
        }
        self.over.validate().map_err(|error| error.within("over"))?;
        self.geometry().map(drop)
    }

    /// The same layer over a device `factor` times smaller; segments and timings stay.
    pub fn scaled(&self, factor: u64) -> LogSpec {
        LogSpec { parameters: self.parameters.clone(), over: Box::new(self.over.scaled(factor)) }
    }

    /// A new log on a device as new.
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
