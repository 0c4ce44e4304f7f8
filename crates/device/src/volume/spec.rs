//! The description of a cloud volume, as the table `[volume]` of a device file writes it.
//!
//! Leaves out names and prices of volume types, which device files carry.

use crate::spec::{SpecError, check_rate, check_times, fail};
use lowtide_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

const FASTEST: u64 = 1_000_000_000;
const MOST_CREDITS: u64 = 1 << 50;

/// A cloud volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VolumeSpec {
    /// Bytes the host may address.
    pub capacity: Bytes,
    /// Requests a second that it serves for ever; also the rate at which credits come.
    pub iops: u64,
    /// More than that for a while.
    #[serde(default)]
    pub burst: Option<Burst>,
    /// Bytes a second, reads and writes together; no limit when absent.
    #[serde(default)]
    pub throughput: Option<Bytes>,
    /// Up to so many bytes a request counts as one, up to twice as many as two.
    pub io_size: Bytes,
    /// From request to answer, where no limit is met.
    pub latency: Nanos,
    /// Added at random, uniform from none to all of it.
    #[serde(default)]
    pub latency_spread: Nanos,
}

/// What may be used beyond the base rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Burst {
    /// Requests a second while there are credits.
    pub iops: u64,
    /// The most credits, and those of a new volume; one is one request.
    pub credits: u64,
}

impl VolumeSpec {
    /// Checks the description.
    ///
    /// # Errors
    /// [`SpecError`] for the first key that is invalid.
    pub fn validate(&self) -> Result<(), SpecError> {
        if self.capacity.get() < 512 || self.capacity.get() > u64::MAX / 2 {
            return fail("capacity", format!("{} is not between 512 bytes and 8 EiB", self.capacity));
        }
        if self.iops == 0 || self.iops > FASTEST {
            return fail("iops", format!("{} is not between 1 and {FASTEST}", self.iops));
        }
        if let Some(burst) = self.burst {
            if burst.iops < self.iops || burst.iops > FASTEST {
                let message = format!("{} is not between iops ({}) and {FASTEST}", burst.iops, self.iops);
                return fail("burst.iops", message);
            }
            if burst.credits > MOST_CREDITS {
                return fail("burst.credits", format!("{} is more than {MOST_CREDITS}", burst.credits));
            }
        }
        self.throughput.map_or(Ok(()), |rate| check_rate("throughput", rate))?;
        if self.io_size.get() < 512 {
            return fail("io-size", format!("{} is less than 512 bytes", self.io_size));
        }
        check_times([("latency", self.latency), ("latency-spread", self.latency_spread)])
    }

    /// The same volume with a smaller capacity and as much fewer credits; rates stay.
    pub fn scaled(&self, factor: u64) -> VolumeSpec {
        let mut spec = self.clone();
        let factor = factor.max(1);
        spec.capacity = (self.capacity / factor).align_down(Bytes::new(512));
        if let Some(burst) = &mut spec.burst {
            burst.credits /= factor;
        }
        spec
    }
}
