//! Latency distribution: percentile against latency, the tail spread out by nines.

use super::{Axis, Draw, Figure, Look, Panel, Part, Point, Scale, Series};
use crate::answer::Answer;
use crate::sweep::{identity, short_label, varying};
use lowtide_core::Distribution;
use lowtide_record::FactorLevel;

const MOST_CURVES: usize = 6;

/// The latency distribution of the cells, or of a selection spread over the campaign.
pub(crate) fn distribution(answers: &[Answer<'_>]) -> Option<Figure> {
    let varying = varying(answers.iter().map(|a| a.cell));
    let repeated = answers.iter().any(|a| a.cell.repetition > 1);
    let mut curves: Vec<(String, &Distribution)> = Vec::new();
    for answer in answers {
        let cell = answer.cell;
        let label = short_label(cell, &varying, repeated);
        let (reads, writes) = (cell.read_latency.count() > 0, cell.write_latency.count() > 0);
        let name = |what: &str| if reads && writes { format!("{label}, {what}") } else { label.clone() };
        curves.extend(reads.then(|| (name("reads"), &cell.read_latency)));
        curves.extend(writes.then(|| (name("writes"), &cell.write_latency)));
    }
    let total = curves.len();
    if total > MOST_CURVES {
        let chosen: Vec<usize> = (0..MOST_CURVES).map(|k| k * (total - 1) / (MOST_CURVES - 1)).collect();
        curves = curves.into_iter().enumerate().filter(|(i, _)| chosen.contains(i)).map(|(_, c)| c).collect();
    }
    let series: Vec<Series> = curves
        .into_iter()
        .enumerate()
        .map(|(n, (label, latency))| Series {
            label,
            look: Look::Numbered(n),
            draw: Draw::Line,
            points: points(latency),
        })
        .filter(|series| series.points.len() > 1)
        .collect();
    if series.is_empty() {
        return None;
    }
    let mut caption =
        "How long operations took in the measured window: so many per cent took no longer than this. \
                       Both axes are stretched: each step to the right has ten times fewer operations left."
            .to_owned();
    if total > MOST_CURVES {
        caption
            .push_str(&format!(" {MOST_CURVES} of {total} distributions, evenly spread over the campaign."));
    }
    Some(Figure {
        name: "latency-distribution".to_owned(),
        title: "Latency distribution".to_owned(),
        caption,
        part: Part::Latency,
        panels: vec![Panel {
            x: Axis { label: "share of operations".to_owned(), scale: Scale::Nines, at_least: 0.0 },
            y: Axis { label: "latency".to_owned(), scale: Scale::LogTime, at_least: 0.0 },
            series,
            ..Panel::default()
        }],
    })
}

/// A selection of `answers` in which every case stands with all its values of `factor`, so that curves compare.
pub(crate) fn matched<'a>(answers: &[Answer<'a>], factor: &str) -> Vec<Answer<'a>> {
    let case = |a: &Answer<'a>| -> Vec<FactorLevel> {
        identity(a.cell).into_iter().filter(|it| it.name != factor).collect()
    };
    let mut cases: Vec<(Vec<FactorLevel>, usize)> = Vec::new();
    for answer in answers.iter().filter(|a| a.cell.repetition == 1) {
        let own = case(answer);
        match cases.iter_mut().find(|(known, _)| *known == own) {
            Some((_, count)) => *count += 1,
            None => cases.push((own, 1)),
        }
    }
    let sides = cases.iter().map(|(_, count)| *count).max().unwrap_or(1);
    cases.retain(|(_, count)| *count == sides);
    let kept = (MOST_CURVES / sides).max(1).min(cases.len());
    let chosen: Vec<usize> = (0..kept)
        .map(|k| if kept == 1 { cases.len() / 2 } else { k * (cases.len() - 1) / (kept - 1) })
        .collect();
    let chosen_case = |a: &&Answer<'a>| chosen.iter().any(|k| cases[*k].0 == case(a));
    answers.iter().filter(|a| a.cell.repetition == 1).filter(chosen_case).cloned().collect()
}

/// Points at even steps of nines, as far as the count supports: the last is the longest operation but nine.
pub(crate) fn points(latency: &Distribution) -> Vec<Point> {
    const STEPS_PER_NINE: u32 = 16;
    let most = (latency.count() as f64 / 10.0).log10().clamp(0.0, 6.0);
    let steps = (most * f64::from(STEPS_PER_NINE)).floor() as u32;
    (0..=steps)
        .map(|k| 1.0 - 10f64.powf(-f64::from(k) / f64::from(STEPS_PER_NINE)))
        .map(|share| Point::new(share, latency.percentile(share * 100.0).get() as f64))
        .collect()
}
