//! Distributions of random addresses: uniform, Zipf, or by zones such as hot and cold.
//!
//! A fixed permutation scatters Zipf ranks over the data, so that popular blocks do not share map pages by accident.
//! Zones follow one another from the beginning of the data, as in fio's zoned distribution.
//!
//! # Not supported
//! Pareto and normal distributions.

use super::blocks::gcd;
use super::shares::Shares;
use crate::rng::{Rng, below};
use rand_distr::Distribution as _;
use serde::{Deserialize, Serialize};

/// The distribution of random addresses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Every block is equally likely.
    Uniform,
    /// The block of rank k is drawn in proportion to 1/k^exponent.
    Zipf {
        /// The exponent, above 0.
        exponent: f64,
    },
    /// Consecutive zones of the data, each with its share of the accesses. There is at least one zone, and both kinds
    /// of share sum to 1.
    Zones(Vec<Zone>),
}

/// A zone of the data and its share of the accesses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Zone {
    /// Share of the data, above 0.
    pub data: f64,
    /// Share of the accesses, above 0.
    pub access: f64,
}

impl Distribution {
    /// Two zones: hot data at the beginning and cold data after it. Both shares of `hot` are between 0 and 1.
    pub fn hot_cold(hot: Zone) -> Self {
        Distribution::Zones(vec![hot, Zone { data: 1.0 - hot.data, access: 1.0 - hot.access }])
    }
}

/// Draws block numbers in `0..blocks`.
#[derive(Debug, Clone)]
pub(super) enum Sampler {
    Uniform {
        blocks: u64,
    },
    Zipf {
        blocks: u64,
        zipf: rand_distr::Zipf<f64>,
        stride: u64,
    },
    /// The first block of each zone, followed by the end of the last zone.
    Zones {
        shares: Shares,
        bounds: Vec<u64>,
    },
}

impl Sampler {
    pub(super) fn new(distribution: &Distribution, blocks: u64) -> Self {
        assert!(blocks > 0, "there is at least one block to draw");
        match distribution {
            Distribution::Uniform => Sampler::Uniform { blocks },
            &Distribution::Zipf { exponent } => Sampler::Zipf {
                blocks,
                zipf: rand_distr::Zipf::new(blocks as f64, exponent)
                    .expect("the exponent was validated as positive"),
                stride: coprime_near_golden(blocks),
            },
            Distribution::Zones(zones) => Sampler::zones(zones, blocks),
        }
    }

    /// Gives every zone at least one block. If there are fewer blocks than zones, only the first zones exist, with
    /// one block each.
    fn zones(zones: &[Zone], blocks: u64) -> Self {
        let zones = &zones[..zones.len().min(blocks.try_into().unwrap_or(usize::MAX))];
        let (mut bounds, mut share) = (vec![0], 0.0);
        for (number, zone) in zones.iter().enumerate() {
            share += zone.data;
            let (first, after) = (bounds[number], (zones.len() - 1 - number) as u64);
            let end = ((blocks as f64 * share) as u64).clamp(first + 1, blocks - after);
            bounds.push(if after == 0 { blocks } else { end });
        }
        Sampler::Zones { shares: Shares::new(zones.iter().map(|zone| zone.access)), bounds }
    }

    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Sampler::Uniform { blocks } => below(rng, *blocks),
            Sampler::Zipf { blocks, zipf, stride } => {
                let rank = (zipf.sample(rng) as u64).clamp(1, *blocks) - 1;
                ((u128::from(rank) * u128::from(*stride)) % u128::from(*blocks)) as u64
            }
            Sampler::Zones { shares, bounds } => {
                let zone = shares.draw(rng);
                bounds[zone] + below(rng, bounds[zone + 1] - bounds[zone])
            }
        }
    }
}

/// Returns a stride near `n`/φ that is coprime to `n`. Multiplication by the stride modulo `n` is a permutation that
/// separates neighbours.
fn coprime_near_golden(n: u64) -> u64 {
    let mut stride = ((n as f64 * 0.618_033_988_749_895) as u64).max(1);
    while gcd(stride, n) != 1 {
        stride += 1;
    }
    stride
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    fn counts(distribution: &Distribution, blocks: u64, draws: u64) -> Vec<u64> {
        let sampler = Sampler::new(distribution, blocks);
        let mut rng = Seed::new(11).stream();
        let mut counts = vec![0; blocks as usize];
        for _ in 0..draws {
            counts[sampler.draw(&mut rng) as usize] += 1;
        }
        counts
    }

    #[test]
    fn hot_data_gets_its_share() {
        let hot = Distribution::hot_cold(Zone { data: 0.2, access: 0.8 });
        let counts = counts(&hot, 1000, 100_000);
        let hot: u64 = counts[..200].iter().sum();
        assert!((hot as f64 / 100_000.0 - 0.8).abs() < 0.01, "{hot}");
    }

    #[test]
    fn few_blocks_have_fewer_zones() {
        let zones =
            [(0.05, 0.5), (0.15, 0.3), (0.8, 0.2)].map(|(data, access)| Zone { data, access }).to_vec();
        for blocks in 1..60 {
            let counts = counts(&Distribution::Zones(zones.clone()), blocks, 10_000);
            assert!(counts.iter().all(|count| *count > 0), "each of {blocks} blocks is drawn: {counts:?}");
        }
    }

    #[test]
    fn zipf_follows_its_law_and_reaches_scattered_blocks() {
        let mut counts = counts(&Distribution::Zipf { exponent: 1.0 }, 1000, 200_000);
        let first = counts.iter().position(|c| c == counts.iter().max().unwrap()).unwrap();
        assert_eq!(first, 0, "rank one stays at block zero");
        assert!(counts[1] < counts[0] / 10, "the neighbour of the most popular block is not the second");
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let harmonic: f64 = (1..=1000).map(|k| 1.0 / k as f64).sum();
        let expected = 200_000.0 / harmonic;
        assert!((counts[0] as f64 / expected - 1.0).abs() < 0.03, "{} against {expected}", counts[0]);
    }

    #[test]
    fn the_stride_is_a_permutation() {
        for n in [1, 2, 10, 997, 4096] {
            let stride = coprime_near_golden(n);
            let mut seen = vec![false; n as usize];
            (0..n).for_each(|k| seen[(k * stride % n) as usize] = true);
            assert!(seen.into_iter().all(|seen| seen), "{n}");
        }
    }
}
