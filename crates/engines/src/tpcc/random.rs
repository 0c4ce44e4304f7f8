//! Random choices of the specification: uniform, NURand, strings, last names (clauses 2.1.6, 4.3.2).

use lowtide_core::Seed;
use lowtide_core::rng::{Rng, below, unit};
use rand_xoshiro::rand_core::RngCore;

/// Number of last names (clause 4.3.2.3).
pub const LAST_NAMES: u32 = 1_000;

/// `C` of NURand for the last names of the load. It is fixed, so the constant of a run has the distance that clause
/// 2.1.6.1 requires for any seed of the load.
pub const LAST_NAME_C_LOAD: u32 = 157;

/// Distances that clause 2.1.6.1 allows between the last-name constants of load and run.
const DELTAS: std::ops::RangeInclusive<u32> = 65..=119;
/// Distances within [`DELTAS`] that the clause excludes.
const NO_DELTAS: [u32; 2] = [96, 112];

/// `A` of NURand for last names, customers and items.
const LAST_NAME_A: u32 = 255;
const CUSTOMER_A: u32 = 1_023;
const ITEM_A: u32 = 8_191;

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// All pairs of letters: drawing two letters at a time halves the number of multiplications.
static PAIRS: [[u8; 2]; ALPHABET.len() * ALPHABET.len()] = {
    let mut pairs = [[0; 2]; ALPHABET.len() * ALPHABET.len()];
    let mut n = 0;
    while n < pairs.len() {
        pairs[n] = [ALPHABET[n / ALPHABET.len()], ALPHABET[n % ALPHABET.len()]];
        n += 1;
    }
    pairs
};

/// The non-uniform distribution of clause 2.1.6: `(((random(0, A) | random(x, y)) + C) mod (y − x + 1)) + x`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NuRand {
    a: u32,
    c: u32,
}

impl NuRand {
    /// Last names of customers in the load.
    pub const LAST_NAMES_OF_LOAD: NuRand = NuRand { a: LAST_NAME_A, c: LAST_NAME_C_LOAD };

    /// Draws a number from `low` to `high`.
    pub fn draw(self, random: &mut Random, low: u32, high: u32) -> u32 {
        let mixed = random.between(0, self.a) | random.between(low, high);
        (mixed + self.c) % (high - low + 1) + low
    }
}

/// NURand distributions of a run. Their constants are drawn once and are equal for all terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunConstants {
    /// Last names, by number from 0.
    pub last_name: NuRand,
    /// Customers.
    pub customer: NuRand,
    /// Items.
    pub item: NuRand,
}

impl RunConstants {
    /// Distributions of the run with the seed `seed`.
    pub fn of(seed: Seed) -> Self {
        let mut random = Random::new(seed.part("nurand", 0));
        let allowed: Vec<u32> = (0..=LAST_NAME_A)
            .filter(|c| {
                let delta = c.abs_diff(LAST_NAME_C_LOAD);
                DELTAS.contains(&delta) && !NO_DELTAS.contains(&delta)
            })
            .collect();
        let last_name = allowed[random.between(0, allowed.len() as u32 - 1) as usize];
        RunConstants {
            last_name: NuRand { a: LAST_NAME_A, c: last_name },
            customer: NuRand { a: CUSTOMER_A, c: random.between(0, CUSTOMER_A) },
            item: NuRand { a: ITEM_A, c: random.between(0, ITEM_A) },
        }
    }
}

/// A random stream, with a buffer for the most recently drawn string.
#[derive(Debug, Clone)]
pub struct Random {
    rng: Rng,
    text: Vec<u8>,
}

impl Random {
    /// Creates the stream of a seed.
    pub fn new(seed: Seed) -> Self {
        Random { rng: seed.stream(), text: Vec::with_capacity(512) }
    }
    /// Draws a uniform whole number from `low` to `high`.
    #[inline]
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + below(&mut self.rng, u64::from(high - low) + 1) as u32
    }
    /// Returns true with a probability of `percent` in a hundred.
    #[inline]
    pub fn chance(&mut self, percent: u32) -> bool {
        self.between(1, 100) <= percent
    }
    /// Draws a number from 0 (inclusive) to 1 (exclusive).
    pub fn unit(&mut self) -> f64 {
        unit(&mut self.rng)
    }
    /// Shuffles `items`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        lowtide_core::rng::shuffle(&mut self.rng, items);
    }
    /// Draws an a-string of `low` to `high` letters and digits (clause 4.3.2.2).
    #[inline]
    pub fn letters(&mut self, low: u32, high: u32) -> &str {
        self.draw_letters(low, high);
        self.drawn()
    }
    /// Draws an n-string of `length` digits (clause 4.3.2.2).
    pub fn digits(&mut self, length: u32) -> &str {
        self.text.clear();
        for _ in 0..length {
            let digit = below(&mut self.rng, 10) as u8;
            self.text.push(b'0' + digit);
        }
        self.drawn()
    }
    /// Draws a zip code (clause 4.3.2.7).
    pub fn zip(&mut self) -> &str {
        self.digits(4);
        self.text.extend_from_slice(b"11111");
        self.drawn()
    }
    /// Draws an a-string that contains `ORIGINAL` with a probability of 10 % (clause 4.3.3.1).
    pub fn data(&mut self, low: u32, high: u32) -> &str {
        const MARK: &[u8] = b"ORIGINAL";
        self.draw_letters(low, high);
        if self.chance(10) {
            let at = self.between(0, (self.text.len() - MARK.len()) as u32) as usize;
            self.text[at..at + MARK.len()].copy_from_slice(MARK);
        }
        self.drawn()
    }

    fn draw_letters(&mut self, low: u32, high: u32) {
        let length = self.between(low, high) as usize;
        self.text.clear();
        while self.text.len() < length {
            // Each multiplication extracts the most significant digit, in base `PAIRS.len()`, and keeps the
            // fraction.
            let mut left = self.rng.next_u64();
            let mut eight = [0; 8];
            for pair in eight.chunks_exact_mut(2) {
                let digit = u128::from(left) * PAIRS.len() as u128;
                pair.copy_from_slice(&PAIRS[(digit >> 64) as usize]);
                left = digit as u64;
            }
            self.text.extend_from_slice(&eight);
        }
        self.text.truncate(length);
    }
    fn drawn(&self) -> &str {
        std::str::from_utf8(&self.text).expect("letters and digits are ASCII")
    }
}

/// Last name by its number, 0 to 999 (clause 4.3.2.3).
pub fn last_name(number: u32) -> String {
    [number / 100, number / 10, number].map(|digits| SYLLABLES[(digits % 10) as usize]).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_those_of_the_specification() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn the_constant_of_a_run_keeps_its_distance_from_that_of_the_load() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..10_000 {
            let run = RunConstants::of(Seed::new(seed));
            let delta = run.last_name.c.abs_diff(LAST_NAME_C_LOAD);
            assert!((65..=119).contains(&delta) && delta != 96 && delta != 112, "seed {seed}: {delta}");
            assert!(run.customer.c <= 1_023 && run.item.c <= 8_191, "seed {seed}");
            seen.insert(run.last_name.c);
        }
        // Below the load's constant: 38 to 92 without two values. Above: 222 to 255 without 253, which has the
        // excluded distance 96.
        assert_eq!(seen.len(), 53 + 33);
    }

    /// Compares with the exact probability of every value, found by enumerating all pairs.
    #[test]
    fn nurand_draws_each_value_with_its_exact_probability() {
        let (low, high, seed, draws) = (0, 999, 11, 2_000_000u32);
        let nurand = RunConstants::of(Seed::new(seed)).last_name;
        let mut chances = vec![0u32; 1_000];
        for first in 0..=nurand.a {
            for second in low..=high {
                chances[((((first | second) + nurand.c) % 1_000) + low) as usize] += 1;
            }
        }
        let mut random = Random::new(Seed::new(seed));
        let mut counts = vec![0u32; 1_000];
        for _ in 0..draws {
            counts[nurand.draw(&mut random, low, high) as usize] += 1;
        }
        let pairs = 256.0 * 1_000.0;
        let mut squares = 0.0;
        let mut degrees = -1.0;
        for (count, chance) in counts.iter().zip(&chances) {
            let expected = f64::from(*chance) / pairs * f64::from(draws);
            if expected == 0.0 {
                assert_eq!(*count, 0, "seed {seed}");
            } else {
                squares += (f64::from(*count) - expected).powi(2) / expected;
                degrees += 1.0;
            }
        }
        // Chi-square has the mean `degrees` and the variance `2 · degrees`. The limit is five standard deviations
        // above the mean.
        let limit = degrees + 5.0 * (2.0f64 * degrees).sqrt();
        assert!(squares < limit, "seed {seed}: {squares} with {degrees} degrees of freedom");
    }

    /// With `C` = 0 and a range that is a power of two, bits are independent. Bits of `A` are set with probability
    /// 3/4, other bits with probability 1/2.
    #[test]
    fn nurand_has_the_mean_of_its_closed_form() {
        let (seed, draws) = (13, 400_000);
        let nurand = NuRand { a: 8_191, c: 0 };
        let mut random = Random::new(Seed::new(seed));
        let sum: f64 = (0..draws).map(|_| f64::from(nurand.draw(&mut random, 0, 65_535))).sum();
        let bit = |n: u32, share: f64| f64::from(1u32 << n) * share;
        let expected: f64 = (0..13).map(|n| bit(n, 0.75)).chain((13..16).map(|n| bit(n, 0.5))).sum();
        let variance: f64 = (0..13).map(|n| bit(n, 1.0).powi(2) * 3.0 / 16.0).sum::<f64>()
            + (13..16).map(|n| bit(n, 1.0).powi(2) / 4.0).sum::<f64>();
        let (mean, deviation) = (sum / f64::from(draws), (variance / f64::from(draws)).sqrt());
        assert!((mean - expected).abs() < 5.0 * deviation, "seed {seed}: {mean}, not {expected}");
    }

    #[test]
    fn strings_have_their_lengths_and_letters() {
        let seed = 5;
        let mut random = Random::new(Seed::new(seed));
        let (mut length, mut counts) = (0, [0u32; 256]);
        for _ in 0..20_000 {
            let text = random.letters(14, 24);
            assert!((14..=24).contains(&text.len()), "seed {seed}: {text}");
            length += text.len();
            for byte in text.bytes() {
                counts[byte as usize] += 1;
            }
        }
        // Lengths have the mean 19 and the variance 10. The count of each of the 62 letters has a standard deviation
        // of 1.3 %.
        assert!((length as f64 / 20_000.0 - 19.0).abs() < 0.12, "seed {seed}: {length}");
        let used: Vec<u32> = counts.into_iter().filter(|count| *count > 0).collect();
        assert_eq!(used.len(), 62);
        let each = length as f64 / 62.0;
        assert!(used.iter().all(|n| (f64::from(*n) / each - 1.0).abs() < 0.065), "seed {seed}: {used:?}");
        let zip = random.zip();
        assert!(zip.len() == 9 && zip.ends_with("11111") && zip.bytes().all(|b| b.is_ascii_digit()), "{zip}");
        let marked = (0..20_000).filter(|_| random.data(26, 50).contains("ORIGINAL")).count();
        // The expected number is 2 000, with a standard deviation of 42.
        assert!(marked.abs_diff(2_000) < 212, "seed {seed}: {marked}");
    }
}
