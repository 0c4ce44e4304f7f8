//! The requests of a workload, one after the other.
//!
//! Each worker has its own generator and its own random stream, so the requests of one worker do not depend
//! on when another is scheduled.

use super::address::Sampler;
use super::{Access, Sync, Workload};
use crate::block::{Op, Request};
use crate::rng::{Rng, Seed, unit};
use crate::units::Bytes;

/// Produces the requests of one worker.
#[derive(Debug, Clone)]
pub struct Generator {
    rng: Rng,
    block: u64,
    read_share: f64,
    /// Whether writes are durable when they are done.
    fua: bool,
    address: Address,
}

#[derive(Debug, Clone)]
enum Address {
    Random(Sampler),
    Sequential { streams: Vec<Stream>, turn: usize, step: u64 },
}

/// One sequential stream: blocks `first..first + blocks`, at `next`.
#[derive(Debug, Clone)]
struct Stream {
    first: u64,
    blocks: u64,
    next: u64,
}

impl Generator {
    /// The generator of worker `worker` of `workers` over `size` bytes of data.
    ///
    /// # Panics
    /// Where `size` holds no whole block; plans are checked for that.
    pub fn new(workload: &Workload, size: Bytes, seed: Seed, worker: u32, workers: u32) -> Self {
        let block = workload.block.get();
        let blocks = size.get() / block;
        assert!(blocks > 0, "the data holds at least one block");
        let address = match workload.access {
            Access::Random => Address::Random(Sampler::new(workload.distribution, blocks)),
            Access::Sequential => {
                let count = u64::from(workload.streams).clamp(1, blocks);
                let part = blocks / count;
                let streams = (0..count)
                    .map(|n| Stream { first: n * part, blocks: part, next: u64::from(worker) % part })
                    .collect();
                Address::Sequential { streams, turn: 0, step: u64::from(workers) }
            }
        };
        let rng = seed.part("requests", u64::from(worker)).stream();
        let fua = workload.sync == Sync::Fua;
        Generator { rng, block, read_share: workload.read_share, fua, address }
    }

    /// The next request.
    #[inline]
    pub fn next_request(&mut self) -> Request {
        let block = match &mut self.address {
            Address::Random(sampler) => sampler.draw(&mut self.rng),
            Address::Sequential { streams, turn, step } => {
                let stream = &mut streams[*turn];
                let block = stream.first + stream.next;
                stream.next = (stream.next + *step) % stream.blocks;
                *turn = if *turn + 1 == streams.len() { 0 } else { *turn + 1 };
                block
            }
        };
        let offset = block * self.block;
        let read = match self.read_share {
            share if share <= 0.0 => false,
            share if share >= 1.0 => true,
            share => unit(&mut self.rng) < share,
        };
        match (read, self.fua) {
            (true, _) => Request::read(offset, self.block),
            (false, fua) => Request { op: Op::Write { fua }, ..Request::write(offset, self.block) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Arrival, Distribution};
    use proptest::prelude::*;

    #[test]
    fn two_workers_read_one_stream_between_them() {
        let workload =
            Workload { access: Access::Sequential, read_share: 1.0, ..Workload::random_write(Bytes::kib(4)) };
        let mut offsets: Vec<u64> = (0..2)
            .flat_map(|worker| {
                let mut generator = Generator::new(&workload, Bytes::kib(32), Seed::new(1), worker, 2);
                (0..4).map(|_| generator.next_request().offset).collect::<Vec<_>>()
            })
            .collect();
        offsets.sort_unstable();
        assert_eq!(offsets, (0..8).map(|n| n * 4096).collect::<Vec<_>>());
    }

    #[test]
    fn a_mix_reads_its_share() {
        let workload = Workload { read_share: 0.83, ..Workload::random_write(Bytes::kib(16)) };
        let mut generator = Generator::new(&workload, Bytes::gib(1), Seed::new(3), 0, 1);
        let reads = (0..100_000).filter(|_| generator.next_request().op == Op::Read).count();
        assert!((reads as f64 / 100_000.0 - 0.83).abs() < 0.005, "{reads}");
    }

    proptest! {
        #[test]
        fn requests_stay_inside_the_data(
            blocks in 1u64..5000, streams in 1u32..9, worker in 0u32..4, access in 0..4, seed in any::<u64>(),
        ) {
            let (access, distribution) = match access {
                0 => (Access::Sequential, Distribution::Uniform),
                1 => (Access::Random, Distribution::Uniform),
                2 => (Access::Random, Distribution::Zipf { exponent: 1.1 }),
                _ => (Access::Random, Distribution::HotCold { hot_data: 0.1, hot_access: 0.9 }),
            };
            let workload = Workload {
                access, distribution, streams, arrival: Arrival::Closed, ..Workload::random_write(Bytes::kib(4))
            };
            let size = Bytes::kib(4) * blocks;
            let mut generator = Generator::new(&workload, size, Seed::new(seed), worker, 4);
            for _ in 0..200 {
                let request = generator.next_request();
                prop_assert!(request.offset + request.length <= size.get());
                prop_assert_eq!(request.offset % 4096, 0);
            }
        }
    }
}
