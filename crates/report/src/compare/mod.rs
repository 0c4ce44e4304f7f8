//! Comparing: the cells of two sides, matched by their factors; for each what is measured, the ratio, and how sure it is.
//!
//! ```text
//!   Side, Side ─► Pair (per point) ─► Finding (per metric): Reading, Reading ─► Ratio ─► Holm ─► Comparison ─► Judged
//! ```
//!
//! A point is a combination of factors with all its repetitions. With two repetitions or more they are the unit of
//! sampling, so that what differs from run to run counts; with one it is the batches inside the run, and what differs
//! from run to run is not known. Interleaved campaigns are compared pair by pair where there are two pairs or more.
//! Not here: the statistics (`lowtide_record::analysis`) and how it is shown (`render`, `html`).

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
use reading::{Point, Turns};

/// A difference counts as significant below this probability, corrected after Holm.
const SIGNIFICANT: f64 = 0.05;

/// What is asked of a comparison.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// Compare cells without a steady state, too, by their last quarter.
    pub unsettled: bool,
    /// Limits to judge by.
    pub thresholds: Vec<Threshold>,
}

/// One metric of a pair of points.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub metric: Metric,
    pub base: Result<Reading, Missing>,
    pub other: Result<Reading, Missing>,
    /// Other by base; or why there is no ratio.
    pub ratio: Result<Ratio, Missing>,
    /// The chance of such a difference where there is none, corrected for all the pairs; 1 without a ratio.
    pub probability: f64,
}

impl Finding {
    pub fn significant(&self) -> bool {
        self.probability < SIGNIFICANT
    }
}

/// A point that both sides measured.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub identity: Identity,
    /// Data as a share of the capacity, where both sides agree.
    pub fill: Option<f64>,
    /// What the intervals rest on: `3 + 3 runs`, `3 pairs`, `batches`.
    pub rests_on: String,
    /// One finding per metric, in the order of [`Metric::ALL`].
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

/// Two sides, compared.
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    pub base: String,
    pub other: String,
    /// What the levels of the base are rates of.
    pub quantity: Quantity,
    pub pairs: Vec<Pair>,
    /// Points that only one side has: of the base, of the other.
    pub alone: [Vec<Identity>; 2],
}

impl Comparison {
    /// Compares `other` with `base`. `interleaved`: their repetitions were measured in turns.
    pub fn of(base: &Side<'_>, other: &Side<'_>, unsettled: bool, interleaved: bool) -> Comparison {
        let (base_points, other_points) = (base.points(), other.points());
        let mut pairs: Vec<Pair> = base_points
            .iter()
            .filter_map(|own| {
                let (_, two) = other_points.iter().find(|other| same(own, other))?;
                Some(pair(&own.0, &own.1, two, unsettled, interleaved))
            })
            .collect();
        for index in 0..Metric::ALL.len() {
            let found: Vec<usize> =
                (0..pairs.len()).filter(|pair| pairs[*pair].findings[index].ratio.is_ok()).collect();
            let plain = found.iter().map(|pair| pairs[*pair].findings[index].probability);
            let corrected = holm(&plain.collect::<Vec<f64>>());
            for (pair, probability) in found.into_iter().zip(corrected) {
                pairs[pair].findings[index].probability = probability;
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

    /// The metric that levels are compared by.
    pub fn level(&self) -> Metric {
        Metric::of_level(self.quantity)
    }

    /// The ratios of a metric, of the pairs that have one.
    pub fn ratios(&self, metric: Metric) -> Vec<Ratio> {
        self.pairs.iter().filter_map(|pair| pair.of(metric).ratio.ok()).collect()
    }

    /// The geometric mean of a metric's ratios over all pairs that have one.
    pub fn overall(&self, metric: Metric) -> Option<Ratio> {
        let ratios = self.ratios(metric);
        // A single one is as wide as it has to be already.
        let rounding = if ratios.len() > 1 { metric.resolution() } else { 0.0 };
        Some(geometric_mean(&ratios)?.widened(rounding))
    }
}

/// Whether both sides measured this point, and in the same unit.
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
    let turns = if interleaved { Turns::of(&base, &other) } else { None };
    let findings = Metric::ALL.iter().map(|metric| finding(*metric, &base, &other, turns.as_ref())).collect();
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
    turns: Option<&Turns<'_, '_>>,
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
