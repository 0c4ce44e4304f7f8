//! Compares the results of a campaign with published numbers and claims.
//!
//! ```text
//!   record::Campaign ─► find ─► comparisons, claims ─► report
//!   studies: selected experiments with comparisons, run concurrently ─► summary ─► report
//! ```
//!
//! Architecture invariant: no model reads published values, and the model value of a comparison does not depend on
//! its published value. Crate `lowtide-report` formats comparisons.

mod claims;
mod studies;
mod summary;
#[cfg(test)]
mod tests;

pub use claims::claims;
pub use lowtide_report::find::Latencies;
pub use studies::{Choice, ChooseError, Chosen, Study, ValidateError, choose, excused, run};
pub use summary::{Summary, report};

use lowtide_lab::experiment::{self, Form, Measure, Of, Resolved, Unit, Unreadable};
use lowtide_record::Campaign;
use lowtide_report::find::{Finder, mean};
use lowtide_report::{Bound, Comparison, Quantity};

/// The comparisons that the campaign's experiment defines. `latencies` reads the store of the campaign.
///
/// # Errors
/// [`Unreadable`] if the experiment in the store cannot be parsed.
pub fn comparisons(campaign: &Campaign, latencies: &Latencies<'_>) -> Result<Vec<Comparison>, Unreadable> {
    Ok(Resolved::of(campaign)?.map_or_else(Vec::new, |experiment| compared(&experiment, campaign, latencies)))
}

fn compared(experiment: &Resolved, campaign: &Campaign, latencies: &Latencies<'_>) -> Vec<Comparison> {
    let fitted = fitted_to(&campaign.devices, &campaign.experiment);
    let finder = Finder { experiment, campaign, latencies };
    experiment.published.iter().map(|wanted| compare(&finder, wanted, &fitted)).collect()
}

/// The published numbers to which the devices or the experiment were fitted, from the files kept in the store.
fn fitted_to(devices: &[String], experiment: &str) -> Vec<String> {
    let texts = devices.iter().map(String::as_str).chain([experiment]);
    let tables = texts.filter_map(|text| toml::from_str::<toml::Table>(text).ok());
    let rows = tables.filter_map(|mut table| table.remove("fitted-to")?.try_into::<Vec<String>>().ok());
    rows.flatten().collect()
}

fn compare(finder: &Finder<'_>, wanted: &experiment::Comparison, fitted: &[String]) -> Comparison {
    let finding = &wanted.finding;
    let bound = wanted.bound.map(|bound| match bound {
        experiment::Bound::AtLeast => Bound::AtLeast,
        experiment::Bound::AtMost => Bound::AtMost,
    });
    let over = |values: Vec<f64>| match (finding.measure, finding.form, bound) {
        (Measure::StableBy, ..) => values.into_iter().reduce(f64::max),
        // A bound must hold for every cell, so the cell that is closest to breaking it is compared.
        (_, Form::Value, Some(Bound::AtLeast)) => values.into_iter().reduce(f64::min),
        (_, Form::Value, Some(Bound::AtMost)) => values.into_iter().reduce(f64::max),
        _ => mean(&values),
    };
    let found = finder.number(finding, &over).map(|number| wanted.unit.from_inner(number));
    let row = &wanted.published;
    let model = found.as_ref().ok().copied();
    let error_percent = model.map(|model| (model / row.value - 1.0) * 100.0).filter(|error| match bound {
        Some(Bound::AtLeast) => *error < 0.0,
        Some(Bound::AtMost) => *error > 0.0,
        None => true,
    });
    let cells = finder.cells(&finding.cells);
    Comparison {
        study: row.study.clone(),
        line: row.line,
        metric: row.metric.clone(),
        where_label: finder.label(finding),
        unit: row.unit.clone(),
        published: row.value,
        model,
        missing: found.err(),
        error_percent,
        bound,
        used_to_fit: fitted.contains(&format!("{}:{}", row.study, row.line)),
        source: row.source.clone(),
        note: wanted.note.clone(),
        quantity: quantity(wanted),
        cell: if cells.len() == 1 { Some(cells[0].index) } else { None },
    }
}

/// The figure that shows the comparison.
fn quantity(wanted: &experiment::Comparison) -> Quantity {
    let finding = &wanted.finding;
    match (finding.form, finding.of, finding.measure, wanted.published.unit.as_str()) {
        (Form::Value, Of::Throughput, measure, "MiB/s") => match measure {
            Measure::Settled | Measure::Level | Measure::Mean | Measure::MeanAfter => Quantity::Settled,
            Measure::Start => Quantity::Fresh,
            Measure::Minimum => Quantity::Lowest,
            _ => Quantity::Other,
        },
        (
            Form::Value,
            Of::NewOrders,
            Measure::Settled | Measure::Level | Measure::Mean | Measure::MeanAfter,
            _,
        ) if Some(wanted.unit) == Unit::named("tx/min") => Quantity::Settled,
        (
            Form::Value,
            Of::P95,
            Measure::Settled | Measure::Level | Measure::Mean | Measure::MeanAfter,
            "ms",
        ) => Quantity::LatencyMsP95,
        (
            Form::Value,
            Of::LayerAmplification,
            Measure::Settled | Measure::Level | Measure::Mean | Measure::MeanAfter,
            _,
        ) => Quantity::LayerAmplification,
        _ => Quantity::Other,
    }
}
