//! Figures that only databases have: what their device read and wrote over time, and latency by kind of transaction.
//!
//! Leaves out new orders over time and by factor, which are drawn as levels of any kind are.

use super::latency::points;
use super::time::{MOST_PANELS, Time, labels, spread, window};
use super::{Axis, Draw, Figure, Look, Panel, Part, Scale, Series};
use crate::record::{Campaign, Row};
use crate::report::answer::Answer;
use crate::report::databases::called;
use crate::report::sweep::{short_label, varying};
use lowtide_core::Bytes;
use lowtide_oltp::tpcc::Kind;

/// Cells whose latencies are drawn.
const MOST_CELLS: usize = 6;

/// MiB/s that the device of a database read and wrote, over the same time as new orders. Of many cells, a selection.
pub(super) fn device(campaign: &Campaign, answers: &[Answer<'_>]) -> Option<Figure> {
    let asked: Vec<&Answer<'_>> =
        answers.iter().filter(|a| a.cell.oltp.is_some() && a.cell.rows.len() > 1).collect();
    let shown: Vec<&Answer<'_>> = spread(asked.len(), MOST_PANELS).into_iter().map(|k| asked[k]).collect();
    let time = Time::of(&shown)?;
    let small = shown.len() > 1;
    let read = |row: &Row| Bytes::new(row.read_bytes).as_mib() / row.seconds();
    let written = |row: &Row| Bytes::new(row.write_bytes).as_mib() / row.seconds();
    let lines: Vec<[_; 2]> =
        shown.iter().map(|answer| [time.series(answer, read), time.series(answer, written)]).collect();
    let at_least = lines.iter().flatten().flatten().map(|point| point.y).fold(0.0, f64::max);
    if at_least <= 0.0 {
        return None;
    }
    let panel = |((answer, label), [read, written]): ((&&Answer<'_>, String), [Vec<super::Point>; 2])| {
        let line = |n: usize, label: &str, points| Series {
            label: label.to_owned(),
            look: Look::Numbered(n),
            draw: Draw::Line,
            points,
        };
        Panel {
            title: if small { label } else { String::new() },
            small,
            x: time.axis(small),
            y: Axis { label: "MiB/s".to_owned(), scale: Scale::Linear, at_least },
            series: vec![line(0, "read", read), line(1, "written", written)],
            bands: window(&time, answer).into_iter().collect(),
            ..Panel::default()
        }
    };
    let mut caption = "Solid: read; dashed: written. Shaded: the steady window.".to_owned();
    if shown.len() < asked.len() {
        caption.push_str(&format!(" {} of {} cells, evenly spread.", shown.len(), asked.len()));
    }
    let labels = labels(campaign, &shown);
    Some(Figure {
        name: "device-over-time".to_owned(),
        title: "What the device read and wrote".to_owned(),
        caption,
        part: Part::Throughput,
        panels: shown.iter().zip(labels).zip(lines).map(panel).collect(),
    })
}

/// The latency distribution of each kind of transaction: of one cell all kinds together, of several a panel for each
/// cell. `None` where no transaction ended.
pub(super) fn latency_by_kind(answers: &[Answer<'_>]) -> Option<Figure> {
    let asked: Vec<&Answer<'_>> = answers.iter().filter(|a| a.cell.oltp.is_some()).collect();
    let shown: Vec<&Answer<'_>> = spread(asked.len(), MOST_CELLS).into_iter().map(|k| asked[k]).collect();
    let varying = varying(asked.iter().map(|a| a.cell));
    let repeated = asked.iter().any(|a| a.cell.repetition > 1);
    let small = shown.len() > 1;
    let panel = |answer: &&Answer<'_>| {
        let oltp = answer.cell.oltp.as_deref()?;
        let series = Kind::ALL.iter().zip(&oltp.latency).enumerate().map(|(n, (kind, latency))| Series {
            label: called(*kind).to_owned(),
            look: Look::Numbered(n),
            draw: Draw::Line,
            points: points(latency),
        });
        let series: Vec<Series> = series.filter(|series| series.points.len() > 1).collect();
        (!series.is_empty()).then(|| Panel {
            title: if small { short_label(answer.cell, &varying, repeated) } else { String::new() },
            x: Axis { label: "share of transactions".to_owned(), scale: Scale::Nines, at_least: 0.0 },
            y: Axis { label: "latency".to_owned(), scale: Scale::LogTime, at_least: 0.0 },
            series,
            ..Panel::default()
        })
    };
    let panels: Vec<Panel> = shown.iter().filter_map(panel).collect();
    if panels.is_empty() {
        return None;
    }
    let mut caption = "How long transactions took in the measured window, by kind: so many per cent took no longer than \
                       this. Both axes are stretched: each step to the right has ten times fewer transactions left."
        .to_owned();
    if shown.len() < asked.len() {
        caption.push_str(&format!(" {} of {} cells, evenly spread.", shown.len(), asked.len()));
    }
    Some(Figure {
        name: "latency-by-kind".to_owned(),
        title: "Latency by kind of transaction".to_owned(),
        caption,
        part: Part::Latency,
        panels,
    })
}
