//! Workloads: the description of a load ([`Workload`]) and the requests generated from it ([`Generator`],
//! [`Arrivals`]).
//!
//! The same description and seed give the same requests on simulated and real devices. Offsets are relative to the
//! data under test. Execution is in [`crate::virtual_load`] and in the host crate.

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

/// The order of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Each request begins at the end of the previous request of its stream.
    Sequential,
    /// Each request begins at a block drawn from the distribution.
    Random,
}

/// The condition for the completion of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// The device acknowledged the write.
    #[default]
    None,
    /// The write is durable (forced unit access).
    Fua,
    /// A flush issued after the write completed. Each write has a flush of its own.
    Flush,
}

/// A workload with every parameter resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Workload {
    /// The order of addresses.
    pub access: Access,
    /// Share of reads among the requests, 0 to 1.
    pub read_share: f64,
    /// Distribution of random addresses.
    pub distribution: Distribution,
    /// Size of each request; the largest size if there are several.
    pub block: Bytes,
    /// Several request sizes, for random access only.
    pub blocks: Option<Blocks>,
    /// Number of threads that issue requests.
    pub threads: u32,
    /// Requests in flight per thread.
    pub depth: u32,
    /// Number of sequential streams, each over its own part of the data.
    pub streams: u32,
    /// The timing of requests.
    pub arrival: Arrival,
    /// The condition for the completion of a write.
    pub sync: Sync,
}

impl Workload {
    /// Uniform random writes of `block` bytes from one thread with one request in flight.
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

    /// The size of which every length and offset is a multiple.
    pub fn granule(&self) -> Bytes {
        self.blocks.as_ref().map_or(self.block, Blocks::granule)
    }

    /// Requests in flight in a closed loop.
    pub fn outstanding(&self) -> usize {
        self.threads as usize * self.depth as usize
    }

    /// Returns whether all requests are reads.
    pub fn reads_only(&self) -> bool {
        self.read_share >= 1.0
    }
}
