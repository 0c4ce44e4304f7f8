//! The steady-state rule of the SNIA Solid State Storage Performance Test Specification.
//!
//! SSS PTS 2.0.2, definition "steady state": over a measurement window of 5 rounds, the range (max − min) of the
//! tracked value is at most 20 % of its average, and the range of the least-squares line is at most 10 % of that
//! average. Here a *round* is the mean over the intervals of one minute, or over one interval if an interval is
//! longer than a minute. Deviation: in the specification a round is one pass over a matrix of block sizes and mixes,
//! so rounds of the tracked value are up to an hour apart, and the drive is filled twice before the first round. A
//! single load has no matrix, so its rounds are consecutive. Experiments whose repetitions are rounds (`track` in
//! `[repeat]`) are judged by [`Snia::window`] without that deviation. The specification has no confidence interval;
//! the interval here is Student's over the 5 rounds. The specification's limit of 25 rounds is not applied.

use super::Estimate;
use super::batch::{averages, mean, student_t};
use super::line::{range, slope};
use super::series::Series;

/// The parameters of the rule; the defaults are those of the specification.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Snia {
    /// Rounds in the window. Default: 5.
    pub rounds: usize,
    /// Length of a round in nanoseconds, rounded up to whole intervals. Default: one minute.
    pub round_ns: u64,
    /// Largest max − min, as a share of the average. Default: 0.2.
    pub excursion: f64,
    /// Largest change of the fitted line over the window, as a share of the average. Default: 0.1.
    pub slope: f64,
}

/// Statistics of the rounds of a window, in the unit of the tracked value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// The mean of the rounds.
    pub average: f64,
    /// The largest round minus the smallest.
    pub excursion: f64,
    /// The slope of the least-squares line, per round.
    pub slope: f64,
    /// Rise of that line from the first round to the last.
    pub rise: f64,
    /// `true` if excursion and rise are within their limits.
    pub steady: bool,
}

impl Default for Snia {
    fn default() -> Self {
        Snia { rounds: 5, round_ns: 60_000_000_000, excursion: 0.2, slope: 0.1 }
    }
}

impl Snia {
    /// The estimate over the first window that satisfies the rule.
    pub fn answer(&self, series: &Series) -> Option<Estimate> {
        let per_round = self.intervals(series)?;
        let rounds = averages(&series.rates(0), per_round);
        let first = rounds.windows(self.rounds).position(|window| self.holds(window))?;
        Some(self.estimate(series, &rounds[first..first + self.rounds], first * per_round))
    }

    /// The estimate over the newest window, if a round ends with the newest interval and the window satisfies the
    /// rule.
    pub(super) fn answer_at_end(&self, series: &Series) -> Option<Estimate> {
        let per_round = self.intervals(series)?;
        let count = series.points().len();
        let first = count.checked_sub(self.rounds * per_round).filter(|_| count.is_multiple_of(per_round))?;
        let rounds = averages(&series.rates(first), per_round);
        self.holds(&rounds).then(|| self.estimate(series, &rounds, first))
    }

    /// Intervals of a round.
    fn intervals(&self, series: &Series) -> Option<usize> {
        Some(self.round_ns.div_ceil(series.interval_ns()?).max(1) as usize)
    }

    /// The estimate over the rounds of a window that begins with interval `first`.
    fn estimate(&self, series: &Series, rounds: &[f64], first: usize) -> Estimate {
        let k = self.rounds as f64;
        let mean = mean(rounds);
        let variance = rounds.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (k - 1.0);
        let from_ns = series.points()[first].start_ns;
        let length_ns =
            series.interval_ns().unwrap_or(0) * (self.intervals(series).unwrap_or(1) * self.rounds) as u64;
        Estimate {
            mean,
            half_width: student_t(0.975, k - 1.0) * (variance / k).sqrt(),
            from_ns,
            to_ns: from_ns + length_ns,
            batches: self.rounds as u32,
        }
    }

    /// Returns whether the rounds of one window are steady.
    pub fn holds(&self, rounds: &[f64]) -> bool {
        self.window(rounds).steady
    }

    /// Computes the statistics of the rounds of one window.
    pub fn window(&self, rounds: &[f64]) -> Window {
        let (average, slope, excursion) = (mean(rounds), slope(rounds), range(rounds));
        let rise = slope * (rounds.len() - 1) as f64;
        let within = excursion <= self.excursion * average && rise.abs() <= self.slope * average;
        Window { average, excursion, slope, rise, steady: average > 0.0 && within }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_on_rounds_worked_out_by_hand() {
        let rule = Snia::default();
        // Average 100, max − min 18 ≤ 20; slope (−2·109 − 1·103 + 1·95 + 2·91)/10 = −4.4, times 4 = 17.6 > 10.
        assert!(!rule.holds(&[109.0, 103.0, 102.0, 95.0, 91.0]));
        // Values of the first example in another order: slope (−2·102 − 1·91 + 1·109 + 2·95)/10 = 0.4, times 4 = 1.6
        // ≤ 10.
        assert!(rule.holds(&[102.0, 91.0, 103.0, 109.0, 95.0]));
        // Average 100, max − min 22 > 20, slope (−2·100 − 89 + 111 + 2·100)/10 = 2.2, times 4 = 8.8 ≤ 10.
        assert!(!rule.holds(&[100.0, 89.0, 100.0, 111.0, 100.0]));
        // At both limits: 90 to 110 is 20; (−2·97 − 1·90 + 1·110 + 2·99.5)/10 = 2.5, times 4 = 10; average 100.
        assert!(rule.holds(&[97.0, 90.0, 103.5, 110.0, 99.5]));
        assert!(!rule.holds(&[0.0; 5]));
    }
}
