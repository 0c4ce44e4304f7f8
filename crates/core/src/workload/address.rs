//! How random addresses are drawn: uniform, Zipf, or hot and cold.
//!
//! Zipf ranks are scattered over the data by a fixed permutation, so that popular blocks do not share map
//! pages by accident; hot data lies together at the beginning, as in fio's zoned distribution. Leaves out
//! Pareto and normal distributions.

use crate::rng::{Rng, below, unit};
use rand_distr::Distribution as _;
use serde::{Deserialize, Serialize};

/// How random addresses are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Every block equally often.
    Uniform,
    /// Block of rank k in proportion to 1/k^exponent.
    Zipf {
        /// The exponent, above 0.
        exponent: f64,
    },
    /// A share of the accesses goes to a share of the data.
    HotCold {
        /// The share of the data that is hot, in (0, 1).
        hot_data: f64,
        /// The share of accesses that go there, in (0, 1).
        hot_access: f64,
    },
}

/// Draws block numbers in `0..blocks`.
#[derive(Debug, Clone)]
pub(super) enum Sampler {
    Uniform { blocks: u64 },
    Zipf { blocks: u64, zipf: rand_distr::Zipf<f64>, stride: u64 },
    HotCold { blocks: u64, hot: u64, hot_access: f64 },
}

impl Sampler {
    pub(super) fn new(distribution: Distribution, blocks: u64) -> Self {
        assert!(blocks > 0, "there is at least one block to draw");
        match distribution {
            Distribution::Uniform => Sampler::Uniform { blocks },
            Distribution::Zipf { exponent } => Sampler::Zipf {
                blocks,
                zipf: rand_distr::Zipf::new(blocks as f64, exponent)
                    .expect("the exponent was validated as positive"),
                stride: coprime_near_golden(blocks),
            },
            Distribution::HotCold { hot_data, hot_access } => {
                let hot = ((blocks as f64 * hot_data) as u64).clamp(1, blocks.saturating_sub(1).max(1));
                Sampler::HotCold { blocks, hot, hot_access }
            }
        }
    }

    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Sampler::Uniform { blocks } => below(rng, *blocks),
            Sampler::Zipf { blocks, zipf, stride } => {
                let rank = (zipf.sample(rng) as u64).clamp(1, *blocks) - 1;
                ((u128::from(rank) * u128::from(*stride)) % u128::from(*blocks)) as u64
            }
            Sampler::HotCold { blocks, hot, hot_access } => {
                if unit(rng) < *hot_access || hot == blocks {
                    below(rng, *hot)
                } else {
                    hot + below(rng, blocks - hot)
                }
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

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    fn counts(distribution: Distribution, blocks: u64, draws: u64) -> Vec<u64> {
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
        let counts = counts(Distribution::HotCold { hot_data: 0.2, hot_access: 0.8 }, 1000, 100_000);
        let hot: u64 = counts[..200].iter().sum();
        assert!((hot as f64 / 100_000.0 - 0.8).abs() < 0.01, "{hot}");
    }

    #[test]
    fn zipf_follows_its_law_and_reaches_scattered_blocks() {
        let mut counts = counts(Distribution::Zipf { exponent: 1.0 }, 1000, 200_000);
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
