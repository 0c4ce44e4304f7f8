//! Keying and think times of terminals (clause 5.2.5).

use crate::tpcc::Kind;
use crate::tpcc::random::Random;
use std::time::Duration;

/// Keying time in seconds, by kind (clause 5.2.5.2).
const KEYING_S: [u64; Kind::ALL.len()] = [18, 3, 2, 2, 2];
/// Mean think time in seconds, by kind (clause 5.2.5.4).
const THINKING_S: [u64; Kind::ALL.len()] = [12, 12, 10, 5, 5];
/// Think times are truncated at this multiple of the mean.
const LONGEST_THOUGHT: f64 = 10.0;

/// Keying time: from the choice of a transaction to its start.
pub fn keying(kind: Kind) -> Duration {
    Duration::from_secs(KEYING_S[kind as usize])
}

/// Think time after a transaction: exponential, at most ten times the mean.
pub fn thinking(kind: Kind, random: &mut Random) -> Duration {
    let mean = Duration::from_secs(THINKING_S[kind as usize]);
    // `1 − unit` is above zero, so the logarithm is finite.
    let means = (-(1.0 - random.unit()).ln()).min(LONGEST_THOUGHT);
    mean.mul_f64(means)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;

    #[test]
    fn think_times_have_the_mean_and_the_maximum_of_the_specification() {
        let (seed, draws) = (23, 100_000);
        for kind in Kind::ALL {
            let mut random = Random::new(Seed::new(seed).part(kind.name(), 0));
            let all: Vec<f64> = (0..draws).map(|_| thinking(kind, &mut random).as_secs_f64()).collect();
            let mean = all.iter().sum::<f64>() / f64::from(draws);
            let expected = THINKING_S[kind as usize] as f64;
            // Truncation at ten means lowers the mean by the share e^−10. The standard deviation of the mean is 0.32
            // %.
            assert!((mean / expected - 1.0).abs() < 0.016, "seed {seed}: {}: {mean}", kind.name());
            assert!(all.iter().all(|span| *span <= 10.0 * expected), "seed {seed}: {}", kind.name());
        }
    }
}
