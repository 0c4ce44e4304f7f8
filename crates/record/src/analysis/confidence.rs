//! The rule of lowtide: a window after the honeymoon and the transient, without drift, with a narrow interval.
//!
//! Where the window may begin is `honeymoon` and `truncate`, drift is `drift`, the interval is `batch`; here they
//! meet. Not here: when to ask; `online` does that.

use super::Estimate;
use super::batch::Batches;
use super::drift::{Drift, relaxation, trend};
use super::honeymoon::{Interlock, interlock};
use super::reason::Reason;
use super::series::Series;
use super::truncate::mser5;

/// What an answer must satisfy. Shares are shares of the mean, 0.01 being 1 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confidence {
    /// Widest half width of the 95 % confidence interval. 1.5 %.
    pub relative_half_width: f64,
    /// Farthest that the mean of the window may lie from the level a drift would end at. 2 %.
    pub drift_tolerance: f64,
    /// Standard errors added to that distance before it is compared: the benefit of the doubt goes against the
    /// window where positive, to it where negative. 0.7.
    pub caution: f64,
    /// The slowest relaxation that is looked for, as a time constant in drive writes (host bytes written divided
    /// by the capacity). 3.
    pub longest_relaxation: f64,
    /// Fewest turnovers ([`super::Context::turnover`]) that the host writes in the window, where the device
    /// collects garbage. 0.25.
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
    /// The rule for an answer to within `precision`, as a share: that is the widest half width, and where it is more than
    /// the default's tolerance, a drift may matter as much.
    pub fn of_precision(precision: f64) -> Self {
        let default = Confidence::default();
        let drift_tolerance = default.drift_tolerance.max(precision);
        Confidence { relative_half_width: precision, drift_tolerance, ..default }
    }

    /// The rule for a measurement whose length was fixed beforehand.
    ///
    /// A short measurement cannot rule out a slow drift. Where [`Confidence::default`] then says so, this one asks
    /// only that no drift beyond the tolerance is *seen*: the distance less one standard error must be within it, for
    /// relaxations up to one drive write. [`super::possible_drift_percent`] tells how much is not ruled out. Nobody
    /// asked for a precision, so an interval of up to 10 %, or a drift of as much that is counted into it, is an answer,
    /// too.
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

/// The time constants tried, as shares of the longest.
const RELAXATIONS: [f64; 4] = [1.0, 1.0 / 3.0, 0.1, 1.0 / 30.0];

/// The time constants tried besides, as shares of the window: the rest of a transient.
const TRANSIENTS: [f64; 3] = [1.0, 0.3, 0.1];

/// The estimate over the first window that satisfies `rule`; else why the longest window does not.
///
/// # Errors
/// The reason, where there is no such window.
pub fn judge(series: &Series, rule: &Confidence) -> Result<Estimate, Reason> {
    let from = match interlock(series) {
        Interlock::Open { from } => from,
        Interlock::Closed { written, needed, blind } => {
            return Err(Reason::Honeymoon { written, needed, blind });
        }
    };
    let count = series.points().len();
    let begin = from + mser5(&series.rates(from));
    let mut first = None;
    for eighth in 0..=LATEST_EIGHTH {
        // A drift that is seen may be the rest of a transient: a later window may be rid of it. No other failing
        // is mended by a shorter window, only hidden by chance.
        // And once a drift was seen, the later window gets no benefit of the doubt.
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
    let progress = progress(series, begin, count);
    let drift = no_drift(series, &progress, &batches, rule)?;
    // What is known to be left of a drift is part of the uncertainty about the level, and no part of the noise.
    let (noise, left) = if drift.is_significant(batches.means.len()) {
        let values = drift.without(&series.rates(begin), &progress);
        (Batches::of(&values).unwrap_or_else(|| batches.clone()), drift.bias.abs())
    } else {
        (batches.clone(), 0.0)
    };
    let limit = rule.relative_half_width * mean;
    // Correlated batches make the interval a guess; where the guess is well within the limit, that does no harm.
    if !noise.independent && noise.half_width() > limit / 2.0 {
        return Err(Reason::Wandering { batch_s: noise.length as f64 * seconds(series) });
    }
    let half_width = noise.half_width() + left;
    if half_width > limit && left > noise.half_width() {
        // It is the drift that makes it wide, and a later window may be rid of it.
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

/// How far the level may still lie from the mean of an estimate's window, in percent of the mean: the distance to
/// the end of the worst relaxation of up to `rule.longest_relaxation`, with one standard error added. Infinite where
/// fewer than ten intervals of the window lie in the series.
pub fn possible_drift_percent(series: &Series, estimate: &Estimate, rule: &Confidence) -> f64 {
    let points = series.points();
    let from = points.partition_point(|point| point.start_ns < estimate.from_ns);
    let to = points.partition_point(|point| point.end_ns <= estimate.to_ns).max(from);
    let rates: Vec<f64> = points[from..to].iter().map(|point| point.rate).collect();
    Batches::of(&rates).map_or(f64::INFINITY, |batches| {
        let progress = progress(series, from + batches.skipped, to);
        100.0 * worst_drift(series, &progress, &batches, rule, 1.0).reach(1.0) / batches.mean()
    })
}

/// The progress since the beginning of a window at the middle of each of its intervals: in drive writes where the
/// device collects garbage, else in windows.
fn progress(series: &Series, from: usize, to: usize) -> Vec<f64> {
    if series.context().collects_garbage() {
        let drive = series.context().capacity.get().max(1) as f64;
        let base = series.written_at(from).get() as f64;
        let at = |index: usize| (series.written_at(index).get() as f64 - base) / drive;
        (from..to).map(|i| (at(i) + at(i + 1)) / 2.0).collect()
    } else {
        (0..to - from).map(|i| (i as f64 + 0.5) / (to - from) as f64).collect()
    }
}

/// The relaxation, slow or fast, that would end farthest from the mean of a window.
fn worst_drift(
    series: &Series,
    progress: &[f64],
    batches: &Batches,
    rule: &Confidence,
    caution: f64,
) -> Drift {
    let whole = progress.last().copied().unwrap_or(0.0);
    let slow = RELAXATIONS.map(|share| share * rule.longest_relaxation);
    let slow = if series.context().collects_garbage() { &slow[..] } else { &[] };
    let fast = TRANSIENTS.map(|share| share * whole);
    slow.iter()
        .chain(&fast)
        .map(|tau| relaxation(batches, progress, *tau))
        .max_by(|a, b| a.reach(caution).total_cmp(&b.reach(caution)))
        .expect("at least one time constant")
}

/// Checks that no relaxation would end farther away than allowed; gives the worst.
fn no_drift(
    series: &Series,
    progress: &[f64],
    batches: &Batches,
    rule: &Confidence,
) -> Result<Drift, Reason> {
    let worst = worst_drift(series, progress, batches, rule, rule.caution);
    let mean = batches.mean();
    let share = worst.reach(rule.caution) / mean;
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

/// A drift that was seen, which may end `reach` (a share of the mean) away.
fn drifting(series: &Series, batches: &Batches, reach: f64) -> Reason {
    let (slope, _) = trend(batches);
    let hours = batches.length as f64 * seconds(series) / 3600.0;
    Reason::Drift { percent_per_hour: 100.0 * slope / batches.mean() / hours, reach_percent: 100.0 * reach }
}

/// The length of an interval in seconds.
fn seconds(series: &Series) -> f64 {
    series.interval_ns().unwrap_or(0) as f64 / 1e9
}
