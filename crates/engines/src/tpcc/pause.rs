//! How long a terminal waits (clause 5.2.5): for keys before a transaction, for thoughts after it.
//!
//! Leaves out the waiting.

use crate::tpcc::Kind;
use crate::tpcc::random::Random;
use std::time::Duration;

/// Seconds of typing, by kind (clause 5.2.5.2).
const KEYING_S: [u64; Kind::ALL.len()] = [18, 3, 2, 2, 2];
/// The mean seconds of thought, by kind (clause 5.2.5.4).
const THINKING_S: [u64; Kind::ALL.len()] = [12, 12, 10, 5, 5];
/// Thoughts are cut off at so many means.
const LONGEST_THOUGHT: f64 = 10.0;

/// From choosing a kind to asking for it.
pub fn keying(kind: Kind) -> Duration {
    Duration::from_secs(KEYING_S[kind as usize])
}

/// From an answer to choosing again: exponential, at most ten times the mean.
pub fn thinking(kind: Kind, random: &mut Random) -> Duration {
    let mean = Duration::from_secs(THINKING_S[kind as usize]);
    // 1 − [0, 1) is above zero, so there is a logarithm.
    let means = (-(1.0 - random.unit()).ln()).min(LONGEST_THOUGHT);
    mean.mul_f64(means)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;

    #[test]
    fn thoughts_have_the_mean_and_the_end_of_the_specification() {
        let (seed, draws) = (23, 100_000);
        for kind in Kind::ALL {
            let mut random = Random::new(Seed::new(seed).part(kind.name(), 0));
            let all: Vec<f64> = (0..draws).map(|_| thinking(kind, &mut random).as_secs_f64()).collect();
            let mean = all.iter().sum::<f64>() / f64::from(draws);
            let expected = THINKING_S[kind as usize] as f64;
            // Cut at ten means, the mean is less by e^-10; the standard deviation of the mean is 0.32 %.
            assert!((mean / expected - 1.0).abs() < 0.016, "seed {seed}: {}: {mean}", kind.name());
            assert!(all.iter().all(|span| *span <= 10.0 * expected), "seed {seed}: {}", kind.name());
        }
    }
}
