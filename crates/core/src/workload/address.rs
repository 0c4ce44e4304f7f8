//! How random addresses are drawn: uniform, Zipf, or by zones, such as hot and cold.
//!
//! Zipf ranks are scattered over the data by a fixed permutation, so that popular blocks do not share map
//! pages by accident; zones lie one after the other from the beginning, as in fio's zoned distribution. Leaves out
//! Pareto and normal distributions.

use super::blocks::gcd;
use super::shares::Shares;
use crate::rng::{Rng, below};
use rand_distr::Distribution as _;
use serde::{Deserialize, Serialize};

/// How random addresses are drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Every block equally often.
    Uniform,
    /// Block of rank k in proportion to 1/k^exponent.
    Zipf {
        /// The exponent, above 0.
        exponent: f64,
    },
    /// The data in zones, one after the other, each with its share of the accesses: at least one zone, of which both
    /// shares sum to 1.
    Zones(Vec<Zone>),
}

/// A part of the data, and how much of the accesses it takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Zone {
    /// The share of the data, above 0.
    pub data: f64,
    /// The share of accesses that go there, above 0.
    pub access: f64,
}

impl Distribution {
    /// Two zones: hot data at the beginning, and the rest. Both shares lie between 0 and 1.
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
    /// The first block of each zone, and the end of the last one.
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

    /// Every zone has a block at least; where there are fewer blocks than zones, the first zones have one each.
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

/// A stride near `n`/φ that has no factor in common with `n`: multiplying by it modulo `n` is a permutation
/// that spreads neighbours far apart.
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
