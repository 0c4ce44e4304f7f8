//! Detection of departures: the ends of steady levels, caused by thermal throttling, a full cache or spent credits.
//!
//! Two windows of equal length move over the series, one before and one after each interval. A level ends at an
//! interval under three conditions. The window before it is flat by the SNIA steady-state rule ([`super::Snia`], with
//! five rounds of a fifth of the window each). The values of the two windows do not overlap, apart from the outer
//! quarters. Most of the change happens within a few intervals. A slow relaxation, noise or a single slow interval is
//! therefore not a departure. The cause of a departure cannot be seen in the series.

use super::Snia;
use super::batch::averages;

/// Fewest intervals of a window.
const LEAST: usize = 10;
/// The series divided by this number is another lower bound of the window's length.
const SHARE: usize = 20;
/// After a departure, the new level is below this share of the old level, or above its inverse.
const CHANGE: f64 = 0.9;
/// Intervals on either side in which at least half of the change happens.
const EDGE: usize = 3;

/// The end of a steady level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Departure {
    /// The first interval of the new level.
    pub index: usize,
    /// The level before, in the unit of the series.
    pub before: f64,
    /// The level after.
    pub after: f64,
}

/// The departures of a series, in order.
pub fn departures(values: &[f64]) -> Vec<Departure> {
    let window = LEAST.max(values.len() / SHARE);
    let mut found: Vec<Departure> = Vec::new();
    let mut begin = 0;
    while let Some(departure) = first(values, begin, window) {
        begin = departure.index + 1;
        found.push(departure);
    }
    found
}

/// The first departure with a preceding window that begins at or after `begin`.
fn first(values: &[f64], begin: usize, window: usize) -> Option<Departure> {
    let last = values.len().checked_sub(window)?;
    let from = begin + window;
    if from > last {
        return None;
    }
    let mut before = Sorted::of(&values[begin..from]);
    let mut after = Sorted::of(&values[from..from + window]);
    let (mut best, mut until): (Option<Departure>, usize) = (None, last);
    let mut index = from;
    loop {
        if let Some(found) = judge(values, index, window, &before.quartiles(), &after.quartiles()) {
            // The windows differ even before the change is exactly between them, so the search continues for the
            // largest change.
            until = if best.is_none() { (index + window).min(last) } else { until };
            best = Some(best.filter(|best| size(best) > size(&found)).unwrap_or(found));
        }
        if index == until {
            return best;
        }
        before.exchange(values[index - window], values[index]);
        if index + window < values.len() {
            after.exchange(values[index], values[index + window]);
        }
        index += 1;
    }
}

/// The size of a change, up or down.
fn size(departure: &Departure) -> f64 {
    (departure.after.max(f64::MIN_POSITIVE) / departure.before).ln().abs()
}

/// The departure at `index`, if any, judged by the quartiles of the windows before (`b`) and after (`a`) it.
fn judge(values: &[f64], index: usize, window: usize, b: &Quartiles, a: &Quartiles) -> Option<Departure> {
    let apart = a.upper < CHANGE * b.lower || CHANGE * a.lower > b.upper;
    if !apart || b.median <= 0.0 {
        return None;
    }
    let (before, after) = (&values[index - window..index], &values[index..index + window]);
    if !Snia::default().holds(&averages(before, window / 5)) {
        return None;
    }
    let edge = |part: &[f64]| Sorted::of(part).quartiles().median;
    let step = edge(&after[..EDGE]) - edge(&before[window - EDGE..]);
    let whole = a.median - b.median;
    (step / whole >= 0.5).then_some(Departure { index, before: b.median, after: a.median })
}

struct Quartiles {
    lower: f64,
    median: f64,
    upper: f64,
}

/// The values of a moving window, kept sorted. Sorting each window from scratch would take minutes for a day of
/// one-second intervals.
struct Sorted(Vec<f64>);

impl Sorted {
    fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Sorted(sorted)
    }

    /// Replaces a value.
    fn exchange(&mut self, old: f64, new: f64) {
        let place = |sorted: &[f64], value: f64| sorted.partition_point(|x| x.total_cmp(&value).is_lt());
        self.0.remove(place(&self.0, old));
        self.0.insert(place(&self.0, new), new);
    }

    fn quartiles(&self) -> Quartiles {
        let at = |share: f64| self.0[((self.0.len() - 1) as f64 * share).round() as usize];
        Quartiles { lower: at(0.25), median: at(0.5), upper: at(0.75) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;
    use lowtide_core::rng::{Rng, unit};

    fn noisy(rng: &mut Rng, level: f64, share: f64) -> f64 {
        level * (1.0 + share * (unit(rng) + unit(rng) - 1.0))
    }

    #[test]
    fn the_end_of_a_level_is_found_at_its_interval() {
        for seed in 0..50 {
            let mut rng = Seed::new(seed).stream();
            let level = |i: usize| match i {
                0..137 => 118.0,
                137..300 => 40.0,
                _ => 80.0,
            };
            let values: Vec<f64> = (0..400).map(|i| noisy(&mut rng, level(i), 0.1)).collect();
            let found = departures(&values);
            let at: Vec<usize> = found.iter().map(|departure| departure.index).collect();
            assert_eq!(at.len(), 2, "seed {seed}: {found:?}");
            assert!(at[0].abs_diff(137) <= 1 && at[1].abs_diff(300) <= 1, "seed {seed}: {at:?}");
            assert!(
                (found[0].before / 118.0 - 1.0).abs() < 0.05 && (found[0].after / 40.0 - 1.0).abs() < 0.05
            );
        }
    }

    #[test]
    fn noise_outliers_ramps_and_relaxations_are_no_departures() {
        for seed in 0..200 {
            let mut rng = Seed::new(seed).stream();
            let level: Vec<f64> = (0..400).map(|_| noisy(&mut rng, 50.0, 0.3)).collect();
            assert_eq!(departures(&level), [], "seed {seed}: noise");
            let outliers: Vec<f64> =
                (0..400).map(|i| if i % 37 == 0 { 2.0 } else { noisy(&mut rng, 50.0, 0.05) }).collect();
            assert_eq!(departures(&outliers), [], "seed {seed}: outliers");
            let relaxing: Vec<f64> =
                (0..400).map(|i| noisy(&mut rng, 30.0 + 60.0 * (-f64::from(i) / 60.0).exp(), 0.02)).collect();
            assert_eq!(departures(&relaxing), [], "seed {seed}: relaxation");
            let ramp: Vec<f64> =
                (0..400).map(|i| noisy(&mut rng, 100.0 - f64::from(i) / 5.0, 0.02)).collect();
            assert_eq!(departures(&ramp), [], "seed {seed}: ramp");
        }
        assert_eq!(departures(&[]), []);
        assert_eq!(departures(&[0.0; 100]), []);
    }

    #[test]
    fn a_stop_is_a_departure() {
        let values: Vec<f64> = (0..60).map(|i| if i < 40 { 10.0 } else { 0.0 }).collect();
        assert_eq!(departures(&values), [Departure { index: 40, before: 10.0, after: 0.0 }]);
    }
}
