//! Workloads: what a load asks for, as a description ([`Workload`]) and as a stream of requests
//! ([`Generator`], [`Arrivals`]).
//!
//! The same description and seed give the same requests on a simulated and on a real device. Leaves out
//! executing them, and where a file lies on the device: offsets here are offsets into the data under test.

mod address;
mod arrival;
mod blocks;
mod generator;
mod shares;

pub use address::{Distribution, Zone};
pub use arrival::{Arrival, Arrivals};
pub use blocks::{BlockShare, Blocks, sum_to_one};
pub use generator::Generator;

use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// Whether addresses follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Each request begins where the one before it in its stream ended.
    Sequential,
    /// Each request begins at a block drawn from the distribution.
    Random,
}

/// When a write counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// When the device has taken it.
    #[default]
    None,
    /// When it is durable: forced unit access.
    Fua,
    /// When a flush after it is done, which each write has for itself.
    Flush,
}

/// A workload, fully resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Workload {
    /// Sequential or random.
    pub access: Access,
    /// The share of requests that read, 0 to 1.
    pub read_share: f64,
    /// How random addresses are drawn.
    pub distribution: Distribution,
    /// Bytes of each request; of the largest, where there are several sizes.
    pub block: Bytes,
    /// Several sizes, of random access only.
    pub blocks: Option<Blocks>,
    /// Threads that issue requests.
    pub threads: u32,
    /// Requests each thread keeps in flight.
    pub depth: u32,
    /// Sequential streams, each over its own part of the data.
    pub streams: u32,
    /// When requests are issued.
    pub arrival: Arrival,
    /// When a write counts as done.
    pub sync: Sync,
}

impl Workload {
    /// Uniform random writes of `block` bytes by one thread, one at a time.
    pub fn random_write(block: Bytes) -> Self {
        Workload {
            access: Access::Random,
            read_share: 0.0,
            distribution: Distribution::Uniform,
            block,
            blocks: None,
            threads: 1,
            depth: 1,
            streams: 1,
            arrival: Arrival::Closed,
            sync: Sync::None,
        }
    }

    /// What every request is a multiple of, in length and address.
    pub fn granule(&self) -> Bytes {
        self.blocks.as_ref().map_or(self.block, Blocks::granule)
    }

    /// Requests in flight when the loop is closed.
    pub fn outstanding(&self) -> usize {
        self.threads as usize * self.depth as usize
    }

    /// Whether it only reads.
    pub fn reads_only(&self) -> bool {
        self.read_share >= 1.0
    }
}
