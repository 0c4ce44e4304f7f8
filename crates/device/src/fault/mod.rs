//! Faults in front of any device, which can be changed while it runs: read and write errors, slow requests, the end
//! of life.
//!
//! ```text
//!   request ─► worn out? ─► write error? ─► device ─► read error? ─► slow? ─► completion
//! ```
//!
//! [`Faults`] describes the faults; [`Fault`] is a device with faults. Initially there are none, and they cost
//! nothing.
//!
//! # Not modelled
//! A device's own error handling (retries, spare sectors), and wrong data. Power cuts are in [`crate::power`].

mod device;

pub use device::{Fault, REFUSAL};

use lowtide_core::{Bytes, Nanos, VirtualTime};
use serde::{Deserialize, Serialize};

const MOST_FACTOR: f64 = 1e6;
const LONGEST: Nanos = Nanos::from_secs(24 * 3600);

/// The faults of a device.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Faults {
    /// Reads that fail after their usual time.
    pub read_errors: Option<Errors>,
    /// Writes that fail after [`REFUSAL`] without changing anything.
    pub write_errors: Option<Errors>,
    /// Requests of any kind that take longer.
    pub slow: Option<Slow>,
    /// The end of life, after which writes are refused.
    pub end_of_life: Option<EndOfLife>,
}

/// The requests that fail.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// First byte of the range. A request that touches the range may fail.
    pub from: Bytes,
    /// End of the range, exclusive; the end of the device when absent.
    pub to: Option<Bytes>,
    /// The share of requests in the range that fail, drawn for each request.
    pub share: f64,
}

impl Default for Errors {
    /// Every request.
    fn default() -> Self {
        Errors { from: Bytes::ZERO, to: None, share: 1.0 }
    }
}

/// Requests that take longer. The device is not busy meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    /// The factor by which the time of a request is multiplied.
    pub factor: f64,
    /// The time that is then added.
    pub added: Nanos,
    /// The share of requests that are slow, drawn for each request.
    pub share: f64,
    /// The instant from which requests have their usual speed again; never when absent.
    pub until: Option<VirtualTime>,
}

impl Default for Slow {
    /// The usual speed.
    fn default() -> Self {
        Slow { factor: 1.0, added: Nanos::ZERO, share: 1.0, until: None }
    }
}

/// The end of life: writes are refused, reads still succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndOfLife {
    /// Immediately.
    Now,
    /// When the mean number of erasures per block reaches `cycles`. Never on a device without blocks.
    Worn {
        /// The rated erase cycles of a block.
        cycles: u32,
    },
}

/// A fault with an invalid number.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct FaultError {
    /// The key of the number, dotted: `slow.factor`.
    pub key: &'static str,
    /// The mistake and the accepted values.
    pub message: String,
}

impl Faults {
    /// Checks the numbers.
    ///
    /// # Errors
    /// [`FaultError`] for the first number that is out of range.
    pub fn validate(&self) -> Result<(), FaultError> {
        let shares = [
            ("read-errors.share", self.read_errors.map(|errors| errors.share)),
            ("write-errors.share", self.write_errors.map(|errors| errors.share)),
            ("slow.share", self.slow.map(|slow| slow.share)),
        ];
        for (key, share) in shares {
            if let Some(share) = share.filter(|share| !(0.0..=1.0).contains(share)) {
                return Err(FaultError { key, message: format!("{share} is not a share from 0 to 1") });
            }
        }
        for (key, errors) in [("read-errors.to", self.read_errors), ("write-errors.to", self.write_errors)] {
            if let Some(Errors { from, to: Some(to), .. }) =
                errors.filter(|it| it.to.is_some_and(|to| to <= it.from))
            {
                return Err(FaultError { key, message: format!("{to} is not beyond `from`, {from}") });
            }
        }
        if let Some(Slow { factor, added, .. }) = self.slow {
            if !(1.0..=MOST_FACTOR).contains(&factor) {
                let message = format!("{factor} is not from 1 to {MOST_FACTOR}");
                return Err(FaultError { key: "slow.factor", message });
            }
            if added > LONGEST {
                return Err(FaultError {
                    key: "slow.added",
                    message: format!("{added} is longer than {LONGEST}"),
                });
            }
        }
        match self.end_of_life {
            Some(EndOfLife::Worn { cycles: 0 }) => {
                let message = "a block is rated for at least one erase cycle".to_owned();
                Err(FaultError { key: "end-of-life.cycles", message })
            }
            _ => Ok(()),
        }
    }
}
