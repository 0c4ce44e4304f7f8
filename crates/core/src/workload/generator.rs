//! Generates the requests of a workload ([`Generator`]).
//!
//! Each worker has its own generator and random stream. The requests of one worker therefore do not depend on the
//! scheduling of the other workers.

use super::address::Sampler;
use super::shares::Shares;
use super::{Access, Sync, Workload};
use crate::block::{Op, Request};
use crate::rng::{Rng, Seed, unit};
use crate::units::Bytes;

/// The request generator of one worker.
#[derive(Debug, Clone)]
pub struct Generator {
    rng: Rng,
    block: u64,
    read_share: f64,
    /// Writes use forced unit access.
    fua: bool,
    address: Address,
}

#[derive(Debug, Clone)]
enum Address {
    Random(Sampler),
    /// The shares of several sizes, and the length in bytes and the sampler of each size.
    Sizes(Shares, Vec<(u64, Sampler)>),
    Sequential {
        streams: Vec<Stream>,
        turn: usize,
        step: u64,
    },
}

/// A sequential stream over blocks `first..first + blocks`. `next` is the next block, relative to `first`.
#[derive(Debug, Clone)]
struct Stream {
    first: u64,
    blocks: u64,
    next: u64,
}

impl Generator {
    /// Creates the generator of worker `worker` out of `workers`, over `size` of data.
    ///
    /// # Panics
    /// If `size` is smaller than one block. If there are several sizes, also if access is sequential or `block` is
    /// not the largest size. Plans are validated against all three.
    pub fn new(workload: &Workload, size: Bytes, seed: Seed, worker: u32, workers: u32) -> Self {
        let block = workload.block.get();
        let blocks = size.get() / block;
        assert!(blocks > 0, "the data holds at least one block");
        let distribution = &workload.distribution;
        let address = match (workload.access, &workload.blocks) {
            (Access::Random, None) => Address::Random(Sampler::new(distribution, blocks)),
            (Access::Random, Some(sizes)) => {
                assert_eq!(sizes.largest(), workload.block, "the block is the largest size");
                let sampler = |block: u64| (block, Sampler::new(distribution, size.get() / block));
                Address::Sizes(
                    Shares::new(sizes.iter().map(|block| block.share)),
                    sizes.iter().map(|block| sampler(block.size.get())).collect(),
                )
            }
            (Access::Sequential, sizes) => {
                assert!(sizes.is_none(), "sequential requests have one size");
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

    /// Generates the next request.
    #[inline]
    pub fn next_request(&mut self) -> Request {
        let mut length = self.block;
        let block = match &mut self.address {
            Address::Random(sampler) => sampler.draw(&mut self.rng),
            Address::Sizes(shares, sizes) => {
                let (size, sampler) = &sizes[shares.draw(&mut self.rng)];
                length = *size;
                sampler.draw(&mut self.rng)
            }
            Address::Sequential { streams, turn, step } => {
                let stream = &mut streams[*turn];
                let block = stream.first + stream.next;
                stream.next = (stream.next + *step) % stream.blocks;
                *turn = if *turn + 1 == streams.len() { 0 } else { *turn + 1 };
                block
            }
        };
        let offset = block * length;
        let read = match self.read_share {
            share if share <= 0.0 => false,
            share if share >= 1.0 => true,
            share => unit(&mut self.rng) < share,
        };
        match (read, self.fua) {
            (true, _) => Request::read(offset, length),
            (false, fua) => Request { op: Op::Write { fua }, ..Request::write(offset, length) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Arrival, BlockShare, Blocks, Distribution, Zone};
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

    /// The request sizes of the enterprise endurance workload of JESD219: bytes and per cent of the requests.
    const SIZES: [(u64, u32); 12] = [
        (512, 4),
        (1024, 1),
        (1536, 1),
        (2048, 1),
        (2560, 1),
        (3072, 1),
        (3584, 1),
        (4096, 67),
        (8192, 10),
        (16_384, 7),
        (32_768, 3),
        (65_536, 3),
    ];

    /// The zones of the same workload: per cent of the data and per cent of the accesses.
    const ZONES: [(u32, u32); 3] = [(5, 50), (15, 30), (80, 20)];

    fn composite() -> Workload {
        let blocks = SIZES
            .map(|(size, percent)| BlockShare { size: Bytes::new(size), share: f64::from(percent) / 100.0 });
        let zones = ZONES
            .map(|(data, access)| Zone { data: f64::from(data) / 100.0, access: f64::from(access) / 100.0 });
        Workload {
            read_share: 0.4,
            blocks: Blocks::new(blocks.to_vec()),
            distribution: Distribution::Zones(zones.to_vec()),
            ..Workload::random_write(Bytes::kib(64))
        }
    }

    /// Pearson's chi-square statistic of `total` draws, from observed counts and expected percentages.
    fn chi_square(total: u64, counts: impl Iterator<Item = (u64, u32)>) -> f64 {
        counts
            .map(|(seen, percent)| {
                let expected = total as f64 * f64::from(percent) / 100.0;
                (seen as f64 - expected).powi(2) / expected
            })
            .sum()
    }

    #[test]
    fn sizes_and_zones_have_their_shares() {
        const TOTAL: u64 = 400_000;
        // The size is no multiple of any request size. Each zone still holds many of the largest requests.
        let size = Bytes::new(Bytes::gib(4).get() + 12_345 * 512);
        for seed in [20_261_121, 20_261_122] {
            let mut generator = Generator::new(&composite(), size, Seed::new(seed), 0, 1);
            let (mut sizes, mut zones, mut reads) = ([0; 12], [0; 3], 0);
            for _ in 0..TOTAL {
                let request = generator.next_request();
                let place =
                    SIZES.iter().position(|(size, _)| *size == request.length).expect("a size of the list");
                sizes[place] += 1;
                let at = request.offset as f64 / size.get() as f64;
                zones[usize::from(at >= 0.05) + usize::from(at >= 0.2)] += 1;
                reads += u64::from(request.op == Op::Read);
                assert_eq!(request.offset % request.length, 0, "{request:?}, seed {seed}");
                assert!(request.offset + request.length <= size.get(), "{request:?}, seed {seed}");
            }
            // The 99.9 % points of the chi-square distribution with 11, 2 and 1 degrees of freedom.
            let of_sizes = chi_square(TOTAL, sizes.into_iter().zip(SIZES.map(|(_, percent)| percent)));
            assert!(of_sizes < 31.26, "{of_sizes}: {sizes:?}, seed {seed}");
            let of_zones = chi_square(TOTAL, zones.into_iter().zip(ZONES.map(|(_, percent)| percent)));
            assert!(of_zones < 13.82, "{of_zones}: {zones:?}, seed {seed}");
            let of_reads = chi_square(TOTAL, [(reads, 40), (TOTAL - reads, 60)].into_iter());
            assert!(of_reads < 10.83, "{of_reads}: {reads} reads, seed {seed}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_sizes_and_another_one_others() {
        let some = |seed, worker| -> Vec<Request> {
            let mut generator = Generator::new(&composite(), Bytes::mib(64), Seed::new(seed), worker, 2);
            (0..1000).map(|_| generator.next_request()).collect()
        };
        assert_eq!(some(1, 0), some(1, 0));
        assert_ne!(some(1, 0), some(2, 0));
        assert_ne!(some(1, 0), some(1, 1));
    }

    #[test]
    fn one_size_of_several_is_as_one_size_alone() {
        let several = Blocks::new(vec![BlockShare { size: Bytes::kib(4), share: 1.0 }]).expect("valid");
        let workload = Workload { blocks: Some(several), ..Workload::random_write(Bytes::kib(4)) };
        let mut generator = Generator::new(&workload, Bytes::mib(1), Seed::new(5), 0, 1);
        let mut seen = vec![0u32; 256];
        for _ in 0..100_000 {
            let request = generator.next_request();
            assert_eq!(request.length, 4096);
            seen[(request.offset / 4096) as usize] += 1;
        }
        // Each block is drawn 391 times on average, with a standard deviation of 20.
        assert!(seen.iter().all(|count| (270..510).contains(count)), "{seen:?}");
    }

    proptest! {
        #[test]
        fn requests_of_several_sizes_stay_inside_the_data(sectors in 128u64..5000, seed in any::<u64>()) {
            let size = Bytes::new(sectors * 512);
            let mut generator = Generator::new(&composite(), size, Seed::new(seed), 0, 1);
            for _ in 0..200 {
                let request = generator.next_request();
                prop_assert!(request.offset + request.length <= size.get());
                prop_assert_eq!(request.offset % request.length, 0);
            }
        }

        #[test]
        fn requests_stay_inside_the_data(
            blocks in 1u64..5000, streams in 1u32..9, worker in 0u32..4, access in 0..4, seed in any::<u64>(),
        ) {
            let (access, distribution) = match access {
                0 => (Access::Sequential, Distribution::Uniform),
                1 => (Access::Random, Distribution::Uniform),
                2 => (Access::Random, Distribution::Zipf { exponent: 1.1 }),
                _ => (Access::Random, Distribution::hot_cold(Zone { data: 0.1, access: 0.9 })),
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
