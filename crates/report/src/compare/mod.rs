//! Compares the cells of two sides, matched by their factors: readings, ratios and confidence intervals.
//!
//! ```text
//!   Side, Side ─► Pair (per point) ─► Finding (per metric): Reading, Reading ─► Ratio ─► Holm ─► Comparison ─► Judged
//! ```
//!
//! A point is a combination of factors with all its repetitions. With two or more repetitions, the repetition is the
//! unit of sampling, so the interval includes variation between runs. With one repetition, the unit is the batch
//! within the run, and variation between runs is unknown. Interleaved campaigns are compared pair by pair if there
//! are at least two pairs. The statistics are in `lowtide_record::analysis`.

mod metric;
mod reading;
mod side;
mod threshold;

pub use metric::Metric;
pub use side::NothingToCompare;
pub use threshold::{Judged, Operator, Outcome, Scope, Threshold, ThresholdError};

pub(crate) use reading::{Missing, Reading};
pub(crate) use side::{Cells, Identity, Side, label};

use crate::answer::Answer;
use lowtide_record::Quantity;
use lowtide_record::analysis::{Ratio, geometric_mean, holm};
use reading::{Interleaved, Point};

/// A difference is significant below this probability, after Holm's correction.
const SIGNIFICANT: f64 = 0.05;

/// The options of a comparison.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// Compare cells without a steady state by their last quarter.
    pub unsettled: bool,
    /// The limits to judge.
    pub thresholds: Vec<Threshold>,
}

/// One metric of a pair of points.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub metric: Metric,
    pub base: Result<Reading, Missing>,
    pub other: Result<Reading, Missing>,
    /// Other divided by base, or the reason for a missing ratio.
    pub ratio: Result<Ratio, Missing>,
    /// The probability of such a difference between equal sides, corrected for all pairs; 1 without a ratio.
    pub probability: f64,
}

impl Finding {
    pub fn significant(&self) -> bool {
        self.probability < SIGNIFICANT
    }
}

/// A point measured on both sides.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub identity: Identity,
    /// Data as a share of the capacity, if both sides agree.
    pub fill: Option<f64>,
    /// The basis of the intervals: `3 + 3 runs`, `3 pairs`, `batches`.
    pub rests_on: String,
    /// One finding per metric, in the order of [`Metric::all`].
    pub findings: Vec<Finding>,
}

impl Pair {
    pub fn of(&self, metric: Metric) -> &Finding {
        self.findings.iter().find(|finding| finding.metric == metric).expect("every metric is compared")
    }
    pub fn label(&self) -> String {
        label(&self.identity)
    }
}

/// Two compared sides.
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    pub base: String,
    pub other: String,
    /// The quantity of the base's levels.
    pub quantity: Quantity,
    pub pairs: Vec<Pair>,
    /// Points of one side only: of the base, of the other.
    pub alone: [Vec<Identity>; 2],
}

impl Comparison {
    /// Compares `other` with `base`. `interleaved`: their repetitions were measured alternately.
    pub fn of(base: &Side<'_>, other: &Side<'_>, unsettled: bool, interleaved: bool) -> Comparison {
        let (base_points, other_points) = (base.points(), other.points());
        let mut pairs: Vec<Pair> = base_points
            .iter()
            .filter_map(|own| {
                let (_, two) = other_points.iter().find(|other| same(own, other))?;
                Some(pair(&own.0, &own.1, two, unsettled, interleaved))
            })
            .collect();
        for metric in Metric::all() {
            let ratios = || pairs.iter().filter(|pair| pair.of(metric).ratio.is_ok());
            let plain: Vec<f64> = ratios().map(|pair| pair.of(metric).probability).collect();
            let mut corrected = holm(&plain).into_iter();
            let findings = pairs.iter_mut().flat_map(|pair| &mut pair.findings);
            for finding in findings.filter(|it| it.metric == metric && it.ratio.is_ok()) {
                finding.probability = corrected.next().expect("one probability per ratio");
            }
        }
        let alone = |own: &[Cells<'_, '_>], others: &[Cells<'_, '_>]| {
            let missing = own.iter().filter(|own| others.iter().all(|other| !same(own, other)));
            missing.map(|(identity, _)| identity.clone()).collect()
        };
        let alone = [alone(&base_points, &other_points), alone(&other_points, &base_points)];
        let quantity = base.quantity();
        Comparison { base: base.name.clone(), other: other.name.clone(), quantity, pairs, alone }
    }

    /// The metric of levels.
    pub fn level(&self) -> Metric {
        Metric::of_level(self.quantity)
    }

    /// The ratios of a metric over the pairs with one.
    pub fn ratios(&self, metric: Metric) -> Vec<Ratio> {
        self.pairs.iter().filter_map(|pair| pair.of(metric).ratio.ok()).collect()
    }

    /// The geometric mean of a metric's ratios.
    pub fn overall(&self, metric: Metric) -> Option<Ratio> {
        let ratios = self.ratios(metric);
        // A single ratio already includes its resolution.
        let rounding = if ratios.len() > 1 { metric.resolution() } else { 0.0 };
        Some(geometric_mean(&ratios)?.widened(rounding))
    }
}

/// Returns whether both sides measured this point in the same unit.
fn same(own: &Cells<'_, '_>, other: &Cells<'_, '_>) -> bool {
    let quantity = |point: &Cells<'_, '_>| point.1.first().map(|answer| answer.quantity);
    own.0 == other.0 && quantity(own) == quantity(other)
}

fn pair(
    identity: &Identity,
    base: &[&Answer<'_>],
    other: &[&Answer<'_>],
    unsettled: bool,
    interleaved: bool,
) -> Pair {
    let (base, other) = (Point::of(base, unsettled), Point::of(other, unsettled));
    let turns = if interleaved { Interleaved::of(&base, &other) } else { None };
    let findings = Metric::all().map(|metric| finding(metric, &base, &other, turns.as_ref())).collect();
    let fill = |point: &Point<'_, '_>| point.answers.first().and_then(|answer| answer.fill());
    let same = |x: &f64| fill(&other).is_some_and(|y| (x - y).abs() < 0.005);
    let rests_on = match (&turns, base.answers.len(), other.answers.len()) {
        (Some(turns), ..) => format!("{} pairs", turns.count()),
        (None, 0, _) | (None, _, 0) => String::new(),
        (None, 1, 1) => "batches".to_owned(),
        (None, 1, others) => format!("batches, {others} runs"),
        (None, bases, 1) => format!("{bases} runs, batches"),
        (None, bases, others) => format!("{bases} + {others} runs"),
    };
    Pair { identity: identity.clone(), fill: fill(&base).filter(same), rests_on, findings }
}

fn finding(
    metric: Metric,
    base: &Point<'_, '_>,
    other: &Point<'_, '_>,
    turns: Option<&Interleaved<'_, '_>>,
) -> Finding {
    let readings = (base.reading(metric), other.reading(metric));
    let ratio = match (&readings, turns) {
        ((Err(why), _) | (_, Err(why)), _) => Err(*why),
        (_, Some(turns)) => turns.ratio(metric),
        ((Ok(one), Ok(two)), None) => match (&one.level, &two.level) {
            (Ok(one), Ok(two)) => Ratio::of(two, one).ok_or(Missing::Unbounded),
            (Err(why), _) | (_, Err(why)) => Err(*why),
        },
    };
    let ratio = ratio.map(|ratio| ratio.widened(metric.resolution()));
    let probability = ratio.as_ref().map_or(1.0, |ratio| ratio.probability(1.0));
    Finding { metric, base: readings.0, other: readings.1, ratio, probability }
}

#[cfg(test)]
mod tests;
