//! Faults in front of any device, set while it runs: read and write errors, slow requests, the end of its life.
//!
//! ```text
//!   request ─► worn out? ─► write error? ─► device ─► read error? ─► slow? ─► completion
//! ```
//!
//! [`Faults`] says which; [`Fault`] is the device that has them. All are off at first, and cost nothing then. Leaves out
//! what a real device does about errors itself (retries, spare sectors), wrong data, and power cuts: see [`crate::power`].

mod device;

pub use device::{Fault, REFUSAL};

use lowtide_core::{Bytes, Nanos, VirtualTime};
use serde::{Deserialize, Serialize};

const MOST_FACTOR: f64 = 1e6;
const LONGEST: Nanos = Nanos::from_secs(24 * 3600);

/// Which faults a device has.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Faults {
    /// Reads that take their time and fail.
    pub read_errors: Option<Errors>,
    /// Writes that fail after [`REFUSAL`] and change nothing.
    pub write_errors: Option<Errors>,
    /// Requests of any kind that take longer.
    pub slow: Option<Slow>,
    /// From when on nothing more is written.
    pub end_of_life: Option<EndOfLife>,
}

/// Which requests fail.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// Those that touch a byte from here on.
    pub from: Bytes,
    /// To before this one; to the end of the device when absent.
    pub to: Option<Bytes>,
    /// Of those, this share, drawn one by one.
    pub share: f64,
}

impl Default for Errors {
    /// All.
    fn default() -> Self {
        Errors { from: Bytes::ZERO, to: None, share: 1.0 }
    }
}

/// Requests that take longer. The device is not busy meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    /// The time the device takes is multiplied by this,
    pub factor: f64,
    /// and then so much longer.
    pub added: Nanos,
    /// This share of all requests, drawn one by one.
    pub share: f64,
    /// Requests from this instant on are as fast as ever; without it, none is.
    pub until: Option<VirtualTime>,
}

impl Default for Slow {
    /// No slower.
    fn default() -> Self {
        Slow { factor: 1.0, added: Nanos::ZERO, share: 1.0, until: None }
    }
}

/// From when on writes are refused, and reads go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndOfLife {
    /// From now on.
    Now,
    /// Once the blocks have on average been erased so often. Never where there are none.
    Worn {
        /// The rated erase cycles of a block.
        cycles: u32,
    },
}

/// Faults that no device can have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct FaultError {
    /// Which number is at fault, dotted: `slow.factor`.
    pub key: &'static str,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Faults {
    /// Checks the numbers.
    ///
    /// # Errors
    /// [`FaultError`] names the one that makes no sense.
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
