//! Published numbers beside what a campaign found: the rows of the report's comparison.
//!
//! Published values reach only this far: no model reads them. Leaves out how they are shown.

use crate::analysis::Verdict;
use crate::experiment::{self, BadInput, Experiment, Level, Measure, Step};
use crate::record::{Campaign, Cell};
use crate::report::{Bound, Comparison, Quantity};

/// A cell is stable from the first interval after which every mean over this many intervals …
const STABLE_INTERVALS: usize = 6;
/// … stays this close to its settled throughput.
const STABLE_WITHIN: f64 = 0.10;

/// The comparisons that the campaign's experiment asks for.
///
/// # Errors
/// [`BadInput`] where the experiment kept in the store no longer parses.
pub fn comparisons(campaign: &Campaign) -> Result<Vec<Comparison>, BadInput> {
    let experiment = Experiment::parse("the experiment in the store", &campaign.experiment, &[])?;
    let fitted = fitted_to(&campaign.devices);
    Ok(experiment.published.iter().map(|wanted| compare(&experiment, campaign, wanted, &fitted)).collect())
}

/// The published numbers that the device files kept in the store were fitted to.
fn fitted_to(texts: &[String]) -> Vec<String> {
    let tables = texts.iter().filter_map(|text| toml::from_str::<toml::Table>(text).ok());
    let rows = tables.filter_map(|mut table| table.remove("fitted-to")?.try_into::<Vec<String>>().ok());
    rows.flatten().collect()
}

fn compare(
    experiment: &Experiment,
    campaign: &Campaign,
    wanted: &experiment::Comparison,
    fitted: &[String],
) -> Comparison {
    let select = |includes: &dyn Fn(&Step, &[Level]) -> bool| -> Vec<&Cell> {
        campaign.cells.iter().filter(|cell| is_meant(experiment, cell, includes)).collect()
    };
    let cells = select(&|step, point| wanted.includes(step, point));
    let scale = campaign.scale as f64;
    let bound = wanted.bound.map(|bound| match bound {
        experiment::Bound::AtLeast => Bound::AtLeast,
        experiment::Bound::AtMost => Bound::AtMost,
    });
    let values =
        || cells.iter().map(|cell| measure(cell, wanted.measure, scale)).collect::<Option<Vec<f64>>>();
    let model = match wanted.measure {
        Measure::DropPercent => {
            let from = select(&|step, point| wanted.starts_from(step, point));
            let from = from
                .iter()
                .map(|cell| settled(cell))
                .collect::<Option<Vec<f64>>>()
                .and_then(|all| mean(&all));
            let to = cells
                .iter()
                .map(|cell| settled(cell))
                .collect::<Option<Vec<f64>>>()
                .and_then(|all| mean(&all));
            from.zip(to).map(|(from, to)| (1.0 - to / from) * 100.0)
        }
        Measure::StableBy => values().and_then(|all| all.into_iter().reduce(f64::max)),
        _ => values().and_then(|all| match bound {
            // A bound holds for each cell, so the one nearest to breaking it stands for all.
            Some(Bound::AtLeast) => all.into_iter().reduce(f64::min),
            Some(Bound::AtMost) => all.into_iter().reduce(f64::max),
            None => mean(&all),
        }),
    };
    let row = wanted.published;
    let error_percent = model.map(|model| (model / row.value - 1.0) * 100.0).filter(|error| match bound {
        Some(Bound::AtLeast) => *error < 0.0,
        Some(Bound::AtMost) => *error > 0.0,
        None => true,
    });
    Comparison {
        study: row.study.clone(),
        metric: row.metric.clone(),
        where_label: label(wanted),
        unit: row.unit.clone(),
        published: row.value,
        model,
        error_percent,
        bound,
        used_to_fit: fitted.contains(&format!("{}:{}", row.study, row.line)),
        source: row.source.clone(),
        note: wanted.note.clone(),
        quantity: match wanted.measure {
            Measure::Settled | Measure::MeanAfter(_) => Quantity::Settled,
            Measure::Start => Quantity::Fresh,
            Measure::Minimum => Quantity::Lowest,
            Measure::Mean | Measure::DropPercent | Measure::StableBy => Quantity::Other,
        },
        cell: if cells.len() == 1 { Some(cells[0].index) } else { None },
    }
}

/// Whether a recorded cell is one that a selection means.
fn is_meant(experiment: &Experiment, cell: &Cell, includes: &dyn Fn(&Step, &[Level]) -> bool) -> bool {
    let step = experiment.steps.iter().find(|step| step.name == cell.step);
    step.is_some_and(|step| {
        let same = |point: &Vec<Level>| {
            point.len() == cell.factors.len()
                && point.iter().zip(&cell.factors).all(|(level, (_, value))| level.to_string() == *value)
        };
        step.points().find(same).is_some_and(|point| includes(step, &point))
    })
}

/// The measure of a cell; times are given back unscaled.
fn measure(cell: &Cell, measure: Measure, scale: f64) -> Option<f64> {
    match measure {
        Measure::Settled => settled(cell),
        Measure::Start => cell.rows.first().map(crate::record::Row::mib_per_s),
        Measure::Minimum => cell.rows.iter().map(crate::record::Row::mib_per_s).reduce(f64::min),
        Measure::Mean => cell.mean_mib_per_s(),
        Measure::MeanAfter(span) => cell.mean_mib_per_s_between((span.get() as f64 / scale) as u64, u64::MAX),
        Measure::StableBy => stable_by(cell).map(|ns| ns as f64 / 1e9 * scale),
        Measure::DropPercent => None,
    }
}

fn settled(cell: &Cell) -> Option<f64> {
    match &cell.verdict {
        Some(Verdict::Steady(estimate)) => Some(estimate.mean_mib_per_s),
        _ => None,
    }
}

/// When the throughput of a cell comes to stay near its settled level (without a steady state, near the mean of its
/// last quarter), in nanoseconds of its own time.
fn stable_by(cell: &Cell) -> Option<u64> {
    let settled = settled(cell).or_else(|| cell.mean_mib_per_s_between(cell.last_quarter_ns(), u64::MAX))?;
    let mut windows = cell.rows.windows(STABLE_INTERVALS);
    let astray = windows.rposition(|window| {
        let mean = window.iter().map(crate::record::Row::mib_per_s).sum::<f64>() / window.len() as f64;
        (mean / settled - 1.0).abs() > STABLE_WITHIN
    });
    Some(astray.map_or(0, |index| cell.rows[index + STABLE_INTERVALS - 1].end_ns))
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn label(wanted: &experiment::Comparison) -> String {
    let conditions = wanted.cells.conditions.iter().map(|(_, accept)| match accept {
        experiment::Accept::OneOf(levels) => {
            levels.iter().map(Level::to_string).collect::<Vec<_>>().join(", ")
        }
        experiment::Accept::Between(from, to) => format!("{from} to {to}"),
    });
    let parts: Vec<String> = wanted.step.iter().cloned().chain(conditions).collect();
    if parts.is_empty() { "every cell".to_owned() } else { parts.join(", ") }
}
