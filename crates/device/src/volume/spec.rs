//! The description of a cloud volume: the table `[volume]` of a device file.
//!
//! Names and prices of volume types are in the device files.

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
    /// Sustained requests per second; also the rate at which credits accrue.
    pub iops: u64,
    /// Rate above `iops` while credits last; none if absent.
    #[serde(default)]
    pub burst: Option<Burst>,
    /// Bytes per second, reads and writes together; no limit if absent.
    #[serde(default)]
    pub throughput: Option<Bytes>,
    /// Largest size that counts as one request. A larger request counts once per `io_size` begun.
    pub io_size: Bytes,
    /// Latency of a request that meets no limit.
    pub latency: Nanos,
    /// Upper bound of a random addition to the latency, which is uniform from 0.
    #[serde(default)]
    pub latency_spread: Nanos,
}

/// A rate above the base rate, paid from credits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Burst {
    /// Requests per second while there are credits.
    pub iops: u64,
    /// Maximum number of credits, and the credits of a new volume. One credit pays for one request.
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

    /// The same volume with capacity and credits divided by `factor`. Rates are unchanged.
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
