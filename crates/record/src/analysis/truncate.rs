//! The end of the transient, found by MSER-5.
//!
//! K. P. White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69(6), 1997;
//! in batches of five as in White, Cobb and Spratt (WSC 2000). Deviation: a minimum at the limit of half the series
//! is accepted, because the drift test of the window detects a remaining transient.

use super::batch::averages;

/// Intervals of one MSER batch.
const BATCH: usize = 5;

/// The number of values to cut from the beginning: a multiple of 5, at most half of the values. It is the `d` that
/// minimises `Σ_{i>d} (x_i − x̄_d)² / (n − d)²` over the means of five values each. Takes time linear in the number
/// of values.
pub fn mser5(values: &[f64]) -> usize {
    let batches = averages(values, BATCH);
    // Welford's algorithm from the end costs one step for each suffix.
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    let (mut best, mut best_at) = (f64::INFINITY, 0);
    for (index, value) in batches.iter().enumerate().rev() {
        count += 1.0;
        let delta = value - mean;
        mean += delta / count;
        squares += delta * (value - mean);
        let mser = squares / (count * count);
        if index <= batches.len() / 2 && mser <= best {
            (best, best_at) = (mser, index);
        }
    }
    best_at * BATCH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dip_is_cut_and_a_level_is_not() {
        let noise = |i: usize| ((i * 7919) % 13) as f64 * 0.05;
        let level: Vec<f64> = (0..100).map(|i| 30.0 + noise(i)).collect();
        assert!(mser5(&level) <= 10, "{}", mser5(&level));
        let dip: Vec<f64> = (0..100).map(|i| if i < 15 { 10.0 } else { 30.0 } + noise(i)).collect();
        assert!((15..=25).contains(&mser5(&dip)), "{}", mser5(&dip));
        assert_eq!(mser5(&[]), 0);
    }

    #[test]
    fn the_cut_agrees_with_the_definition() {
        let values: Vec<f64> =
            (0..60).map(|i| 5.0 + 20.0 * (-f64::from(i) / 6.0).exp() + f64::from(i % 7)).collect();
        let batches: Vec<f64> = values.chunks_exact(5).map(|c| c.iter().sum::<f64>() / 5.0).collect();
        let by_definition = |d: usize| {
            let rest = &batches[d..];
            let mean = rest.iter().sum::<f64>() / rest.len() as f64;
            rest.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
        };
        let best =
            (0..=6).min_by(|a, b| by_definition(*a).total_cmp(&by_definition(*b))).expect("seven candidates");
        assert_eq!(mser5(&values), best * 5);
    }
}
