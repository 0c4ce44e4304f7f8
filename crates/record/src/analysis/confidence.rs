//! lowtide's steady-state rule: a window after the honeymoon and the transient, without drift, and with a narrow
//! confidence interval.
//!
//! This module combines the steps of the rule: `honeymoon` and `truncate` find the start of the window, `drift` fits
//! the drift, and `batch` computes the interval. `online` chooses the times at which a running measurement is judged.

use super::Estimate;
use super::batch::Batches;
use super::drift::{Drift, relaxation, trend};
use super::honeymoon::interlock;
use super::reason::Reason;
use super::series::Series;
use super::truncate::mser5;

/// Limits that a window must satisfy, with their defaults. Shares are shares of the mean: 0.01 is 1 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confidence {
    /// Largest half width of the 95 % confidence interval, as a share. Default: 1.5 %.
    pub relative_half_width: f64,
    /// Largest distance of the window's mean from the final level of a drift, as a share. Default: 2 %.
    pub drift_tolerance: f64,
    /// Number of standard errors added to that distance before the comparison. If the drift is uncertain, a positive
    /// number rejects the window and a negative number accepts it. Default: 0.7.
    pub caution: f64,
    /// Time constant of the slowest relaxation that is tested, in drive writes (host bytes written divided by the
    /// capacity). Default: 3.
    pub longest_relaxation: f64,
    /// Fewest turnovers ([`super::Context::turnover`]) that the host writes in the window. Applies only if the device
    /// collects garbage. Default: 0.25.
    pub least_turnovers: f64,
    /// Fewest intervals in the window. Default: 30.
    pub least_intervals: usize,
}

impl Default for Confidence {
    fn default() -> Self {
        Confidence {
            relative_half_width: 0.015,
            drift_tolerance: 0.02,
            caution: 0.7,
            longest_relaxation: 3.0,
            least_turnovers: 0.25,
            least_intervals: 30,
        }
    }
}

impl Confidence {
    /// The rule for a given precision, as a share of the mean. `precision` is the largest half width; it is also the
    /// drift tolerance if it exceeds the default.
    pub fn of_precision(precision: f64) -> Self {
        let default = Confidence::default();
        let drift_tolerance = default.drift_tolerance.max(precision);
        Confidence { relative_half_width: precision, drift_tolerance, ..default }
    }

    /// The rule for a measurement of fixed length.
    ///
    /// A short measurement cannot rule out a slow drift, so [`Confidence::default`] would reject it. This rule
    /// rejects only an *observed* drift: for relaxations up to one drive write, the distance minus one standard error
    /// must be within the tolerance. Because the user asked for no precision, an interval of up to 10 % is accepted.
    /// The interval includes an observed drift.
    pub fn fixed_duration() -> Self {
        Confidence {
            relative_half_width: 0.1,
            drift_tolerance: 0.1,
            caution: -1.0,
            longest_relaxation: 1.0,
            least_turnovers: 0.1,
            ..Confidence::default()
        }
    }
}

/// Latest start of a window, in eighths of the series after the transient.
const LATEST_EIGHTH: usize = 6;

/// Tested time constants, as shares of the longest.
const RELAXATIONS: [f64; 4] = [1.0, 1.0 / 3.0, 0.1, 1.0 / 30.0];

/// Additional time constants for the end of a transient, as shares of the window.
const TRANSIENTS: [f64; 3] = [1.0, 0.3, 0.1];

/// Estimates the level over the first window that satisfies `rule`.
///
/// # Errors
/// If no window satisfies the rule, the reason why the longest window does not.
pub fn judge(series: &Series, rule: &Confidence) -> Result<Estimate, Reason> {
    let from = interlock(series)?;
    let count = series.points().len();
    let begin = from + mser5(&series.rates(from));
    let mut first = None;
    for eighth in 0..=LATEST_EIGHTH {
        // An observed drift may be the end of a transient that a later window excludes. For any other failure no
        // later window is tried, because it would pass only by chance. After an observed drift, later windows with an
        // uncertain drift are rejected.
        let rule = match first {
            None => *rule,
            Some(Reason::Drift { .. }) => Confidence { caution: rule.caution.max(0.0), ..*rule },
            Some(_) => break,
        };
        match judge_window(series, begin + (count - begin) * eighth / 8, &rule) {
            Ok(estimate) => return Ok(estimate),
            Err(reason) => _ = first.get_or_insert(reason),
        }
    }
    Err(first.expect("at least one window was tried"))
}

/// Judges the window from interval `from` to the end.
fn judge_window(series: &Series, from: usize, rule: &Confidence) -> Result<Estimate, Reason> {
    let count = series.points().len();
    let short = Reason::Short { intervals: count - from, needed: rule.least_intervals };
    if count - from < rule.least_intervals {
        return Err(short);
    }
    let turnover = series.context().turnover().get() as f64;
    if series.context().collects_garbage() {
        let written = series.written_at(count) - series.written_at(from);
        let needed = lowtide_core::Bytes::new((turnover * rule.least_turnovers) as u64);
        if written < needed {
            return Err(Reason::LittleWritten { written, needed });
        }
    }
    let batches = Batches::of(&series.rates(from)).ok_or(short)?;
    let mean = batches.mean();
    if mean <= 0.0 {
        return Err(Reason::Idle);
    }
    let begin = from + batches.skipped;
    let progress = progress(series, begin);
    let drift = no_drift(series, &progress, &batches, rule)?;
    // A significant drift counts towards the uncertainty of the level, but not towards the noise.
    let (noise, left) = if drift.is_significant(batches.means.len()) {
        let values = drift.without(&series.rates(begin), &progress);
        (Batches::of(&values).unwrap_or_else(|| batches.clone()), drift.bias.abs())
    } else {
        (batches.clone(), 0.0)
    };
    let limit = rule.relative_half_width * mean;
    // With correlated batches the interval is only a guess. It is accepted if it is well within the limit.
    if !noise.independent && noise.half_width() > limit / 2.0 {
        return Err(Reason::Wandering { batch_s: noise.length as f64 * seconds(series) });
    }
    let half_width = noise.half_width() + left;
    if half_width > limit && left > noise.half_width() {
        // The drift widens the interval. A later window may exclude the drift.
        return Err(drifting(series, &batches, left / mean));
    }
    if half_width > limit {
        let percent = 100.0 * half_width / mean;
        return Err(Reason::Wide { percent, limit_percent: 100.0 * rule.relative_half_width });
    }
    let points = series.points();
    Ok(Estimate {
        mean,
        half_width,
        from_ns: points[begin].start_ns,
        to_ns: points[count - 1].end_ns,
        batches: noise.means.len() as u32,
    })
}

/// The progress from the start of a window to the middle of each interval. The unit is drive writes if the device
/// collects garbage, otherwise windows.
fn progress(series: &Series, from: usize) -> Vec<f64> {
    let to = series.points().len();
    if series.context().collects_garbage() {
        let drive = series.context().capacity.get().max(1) as f64;
        let base = series.written_at(from).get() as f64;
        let at = |index: usize| (series.written_at(index).get() as f64 - base) / drive;
        (from..to).map(|i| (at(i) + at(i + 1)) / 2.0).collect()
    } else {
        (0..to - from).map(|i| (i as f64 + 0.5) / (to - from) as f64).collect()
    }
}

/// Fits relaxations with all tested time constants. Returns the relaxation with the farthest final level, or an error
/// if that level is too far from the window's mean.
fn no_drift(
    series: &Series,
    progress: &[f64],
    batches: &Batches,
    rule: &Confidence,
) -> Result<Drift, Reason> {
    let window = progress.last().copied().unwrap_or(0.0);
    let slow = RELAXATIONS.map(|share| share * rule.longest_relaxation);
    let slow = if series.context().collects_garbage() { &slow[..] } else { &[] };
    let fast = TRANSIENTS.map(|share| share * window);
    let worst = slow
        .iter()
        .chain(&fast)
        .map(|tau| relaxation(batches, progress, *tau))
        .max_by(|a, b| a.reach(rule.caution).total_cmp(&b.reach(rule.caution)))
        .expect("at least one time constant");
    let share = worst.reach(rule.caution) / batches.mean();
    if share <= rule.drift_tolerance {
        return Ok(worst);
    }
    if worst.is_significant(batches.means.len()) {
        Err(drifting(series, batches, share))
    } else {
        let reach_percent = 100.0 * share;
        Err(Reason::Undecided { reach_percent, limit_percent: 100.0 * rule.drift_tolerance })
    }
}

/// The reason for an observed drift whose final level may be `reach` (a share of the mean) away.
fn drifting(series: &Series, batches: &Batches, reach: f64) -> Reason {
    let (slope, _) = trend(batches);
    let hours = batches.length as f64 * seconds(series) / 3600.0;
    Reason::Drift { percent_per_hour: 100.0 * slope / batches.mean() / hours, reach_percent: 100.0 * reach }
}

/// The length of an interval in seconds.
fn seconds(series: &Series) -> f64 {
    series.interval_ns().unwrap_or(0) as f64 / 1e9
}
