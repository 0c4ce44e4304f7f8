//! The rule of lowtide: a window after the honeymoon and the transient, without drift, with a narrow interval.
//!
//! `honeymoon` and `truncate` find the beginning of the window, `drift` the drift, `batch` the interval; this module
//! combines them. Not here: the times at which a running measurement is judged (`online`).

use super::Estimate;
use super::batch::Batches;
use super::drift::{Drift, relaxation, trend};
use super::honeymoon::interlock;
use super::reason::Reason;
use super::series::Series;
use super::truncate::mser5;

/// Limits that a window must satisfy. Shares are shares of the mean: 0.01 is 1 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confidence {
    /// Widest half width of the 95 % confidence interval. 1.5 %.
    pub relative_half_width: f64,
    /// Largest distance of the mean of the window from the final level of a drift. 2 %.
    pub drift_tolerance: f64,
    /// Standard errors added to that distance before it is compared: a positive number refuses windows in doubt, a
    /// negative number accepts them. 0.7.
    pub caution: f64,
    /// Time constant of the slowest relaxation that is tested, in drive writes (host bytes written divided by the
    /// capacity). 3.
    pub longest_relaxation: f64,
    /// Fewest turnovers ([`super::Context::turnover`]) that the host writes in the window, if the device collects
    /// garbage. 0.25.
    pub least_turnovers: f64,
    /// Fewest intervals in the window. 30.
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
    /// The rule for an answer to within `precision`, as a share: the widest half width, and the drift tolerance if it is
    /// larger than the default.
    pub fn of_precision(precision: f64) -> Self {
        let default = Confidence::default();
        let drift_tolerance = default.drift_tolerance.max(precision);
        Confidence { relative_half_width: precision, drift_tolerance, ..default }
    }

    /// The rule for a measurement of fixed length.
    ///
    /// A short measurement cannot rule out a slow drift. [`Confidence::default`] refuses it; this rule accepts it unless
    /// a drift beyond the tolerance is *seen*: the distance minus one standard error must be within the tolerance, for
    /// relaxations up to one drive write. The user asked for no precision, so an interval of up to 10 %, which includes a
    /// drift that is seen, is accepted.
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

/// A window may begin this many eighths of the way from the end of the transient to the end of the series.
const LATEST_EIGHTH: usize = 6;

/// The time constants that are tested, as shares of the longest.
const RELAXATIONS: [f64; 4] = [1.0, 1.0 / 3.0, 0.1, 1.0 / 30.0];

/// Additional time constants, as shares of the window, for the end of a transient.
const TRANSIENTS: [f64; 3] = [1.0, 0.3, 0.1];

/// Estimates the level over the first window that satisfies `rule`.
///
/// # Errors
/// The reason why the longest window does not satisfy the rule, if no window does.
pub fn judge(series: &Series, rule: &Confidence) -> Result<Estimate, Reason> {
    let from = interlock(series)?;
    let count = series.points().len();
    let begin = from + mser5(&series.rates(from));
    let mut first = None;
    for eighth in 0..=LATEST_EIGHTH {
        // A drift that is seen may be the end of a transient, which a later window does not contain. A shorter window
        // corrects no other failure, it only hides it by chance. After a drift was seen, later windows in doubt are
        // refused.
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
    // A significant drift is part of the uncertainty of the level, but not of the noise.
    let (noise, left) = if drift.is_significant(batches.means.len()) {
        let values = drift.without(&series.rates(begin), &progress);
        (Batches::of(&values).unwrap_or_else(|| batches.clone()), drift.bias.abs())
    } else {
        (batches.clone(), 0.0)
    };
    let limit = rule.relative_half_width * mean;
    // Correlated batches make the interval a guess, which is acceptable if it is well within the limit.
    if !noise.independent && noise.half_width() > limit / 2.0 {
        return Err(Reason::Wandering { batch_s: noise.length as f64 * seconds(series) });
    }
    let half_width = noise.half_width() + left;
    if half_width > limit && left > noise.half_width() {
        // The drift makes the interval wide; a later window may not contain it.
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

/// The progress since the beginning of a window at the middle of each of its intervals: in drive writes if the device
/// collects garbage, else in windows.
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

/// Checks that no relaxation, slow or fast, would end farther from the mean of a window than allowed, and returns the
/// worst.
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

/// The reason for a drift that was seen, which may end `reach` (a share of the mean) away.
fn drifting(series: &Series, batches: &Batches, reach: f64) -> Reason {
    let (slope, _) = trend(batches);
    let hours = batches.length as f64 * seconds(series) / 3600.0;
    Reason::Drift { percent_per_hour: 100.0 * slope / batches.mean() / hours, reach_percent: 100.0 * reach }
}

/// The length of an interval in seconds.
fn seconds(series: &Series) -> f64 {
    series.interval_ns().unwrap_or(0) as f64 / 1e9
}
