//! Latency distributions: percentile against latency, with the tail spread out by nines.

use super::{Axis, Draw, Figure, Panel, Point, Scale, Section, Series, spread};
use crate::answer::Answer;
use crate::group::grouped;
use crate::sweep::{Labels, identity};
use lowtide_core::Distribution;
use lowtide_record::FactorLevel;

const MOST_CURVES: usize = 6;

/// The latency distributions of the cells, or of a selection spread over the campaign.
pub(crate) fn distribution(answers: &[Answer<'_>]) -> Option<Figure> {
    let labels = Labels::of_answers(answers);
    let mut curves: Vec<(String, &Distribution)> = Vec::new();
    for answer in answers {
        let cell = answer.cell;
        let label = labels.label(cell);
        let (reads, writes) = (cell.read_latency.count() > 0, cell.write_latency.count() > 0);
        let name = |what: &str| if reads && writes { format!("{label}, {what}") } else { label.clone() };
        curves.extend(reads.then(|| (name("reads"), &cell.read_latency)));
        curves.extend(writes.then(|| (name("writes"), &cell.write_latency)));
    }
    let total = curves.len();
    let chosen = spread(total, MOST_CURVES);
    let drawn = curves.into_iter().enumerate().filter(|(i, _)| chosen.contains(i)).map(|(_, curve)| curve);
    let series: Vec<Series> = drawn
        .enumerate()
        .map(|(n, (label, latency))| Series::new(label, n, Draw::Line, points(latency)))
        .filter(|series| series.points.len() > 1)
        .collect();
    if series.is_empty() {
        return None;
    }
    let mut caption =
        "The share of operations in the measured window that took no longer than a latency. Both axes are \
                       stretched: each step to the right has ten times fewer operations left."
            .to_owned();
    if total > MOST_CURVES {
        caption
            .push_str(&format!(" {MOST_CURVES} of {total} distributions, evenly spread over the campaign."));
    }
    let panel = Panel::new(Axis::new("share of operations", Scale::Nines), Axis::latency(), series);
    let (name, title) = ("latency-distribution", "Latency distribution");
    Some(Figure::new(name, title, Section::Latency, caption, vec![panel]))
}

/// A selection of `answers` with every value of `factor` for each selected case, so that curves can be compared.
pub(crate) fn matched<'a>(answers: &[Answer<'a>], factor: &str) -> Vec<Answer<'a>> {
    let case = |a: &Answer<'a>| -> Vec<FactorLevel> {
        identity(a.cell).into_iter().filter(|it| it.name != factor).collect()
    };
    let first = || answers.iter().filter(|a| a.cell.repetition == 1);
    let mut cases = grouped(first().map(|answer| (case(answer), ())));
    let sides = cases.iter().map(|(_, answers)| answers.len()).max().unwrap_or(1);
    cases.retain(|(_, answers)| answers.len() == sides);
    let kept = (MOST_CURVES / sides).max(1).min(cases.len());
    let chosen = if kept == 1 { vec![cases.len() / 2] } else { spread(cases.len(), kept) };
    let chosen_case = |a: &&Answer<'a>| chosen.iter().any(|k| cases[*k].0 == case(a));
    first().filter(chosen_case).cloned().collect()
}

/// Points at even steps of nines, up to the percentile that at least ten operations exceed.
pub(crate) fn points(latency: &Distribution) -> Vec<Point> {
    const STEPS_PER_NINE: u32 = 16;
    let most = (latency.count() as f64 / 10.0).log10().clamp(0.0, 6.0);
    let steps = (most * f64::from(STEPS_PER_NINE)).floor() as u32;
    (0..=steps)
        .map(|k| 1.0 - 10f64.powf(-f64::from(k) / f64::from(STEPS_PER_NINE)))
        .map(|share| Point::new(share, latency.percentile(share * 100.0).get() as f64))
        .collect()
}
