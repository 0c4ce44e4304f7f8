//! Seeded random streams. Every random choice in lowtide comes from a named stream of one seed.
//!
//! Streams with different names or numbers are independent. The same seed, name and number give the same stream on
//! every machine. The seed is always an argument, so this module never reads entropy from the operating system.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// The generator of every stream: xoshiro256++ by Blackman and Vigna.
pub type Rng = Xoshiro256PlusPlus;

/// The seed of a campaign, a cell or a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seed(u64);

impl Seed {
    /// Creates a seed from a number.
    pub const fn new(n: u64) -> Self {
        Seed(n)
    }
    /// The seed as a number.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// Derives a seed from a name and a number. Seeds with different names or numbers are independent.
    pub fn part(self, name: &str, number: u64) -> Seed {
        // FNV-1a hashes the name. SplitMix64's finaliser then spreads every input bit.
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Seed(mix(mix(self.0 ^ hash).wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))))
    }
    /// The random stream that starts from this seed.
    pub fn stream(self) -> Rng {
        Rng::seed_from_u64(self.0)
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Draws a uniform number in `0..n` with Lemire's multiplication (arXiv:1805.10941), but without the rejection step.
/// The bias is at most `n / 2^64`, too small to affect any campaign.
#[inline]
pub fn below(rng: &mut Rng, n: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

/// Draws a uniform number in `[0, 1)` with 53 random bits.
#[inline]
pub fn unit(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Shuffles `items` (Fisher–Yates).
pub fn shuffle<T>(rng: &mut Rng, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(rng, last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ_by_name_and_number() {
        let seed = Seed::new(7);
        let first = |seed: Seed| seed.stream().next_u64();
        assert_eq!(first(seed.part("load", 3)), first(seed.part("load", 3)));
        assert_ne!(first(seed.part("load", 3)), first(seed.part("load", 4)));
        assert_ne!(first(seed.part("load", 3)), first(seed.part("fill", 3)));
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut rng = Seed::new(1).stream();
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[below(&mut rng, 10) as usize] += 1;
        }
        // Each count is 10 000 on average. The tolerance of 474 is five standard deviations.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 474), "{counts:?}");
    }
}
