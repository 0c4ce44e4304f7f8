//! Figures that only databases have: what their device read and wrote over time, and latency by kind of transaction.
//!
//! Not here: new orders over time and by factor, which are drawn as levels of any kind are.

use super::latency::points;
use super::time::{MOST_PANELS, Time, labels, spread, window};
use super::{Axis, Draw, Figure, Look, Panel, Part, Scale, Series};
use crate::answer::Answer;
use crate::databases::called;
use crate::sweep::{short_label, varying};
use lowtide_core::Bytes;
use lowtide_engines::tpcc::Kind;
use lowtide_record::{Campaign, Row};

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
        part: Part::NewOrders,
        panels: shown.iter().zip(labels).zip(lines).map(panel).collect(),
    })
}

/// Latency by kind of transaction: of one cell, all kinds on one panel; of several, New-Order with a curve for each cell,
/// and the other kinds in small below it.
pub(super) fn latency(answers: &[Answer<'_>]) -> Vec<Figure> {
    let asked: Vec<&Answer<'_>> = answers.iter().filter(|a| a.cell.oltp.is_some()).collect();
    let shown: Vec<&Answer<'_>> = spread(asked.len(), MOST_CELLS).into_iter().map(|k| asked[k]).collect();
    if let [one] = shown.as_slice() {
        let curves = Kind::ALL.map(|kind| (called(kind).to_owned(), *one, kind));
        let panel = panel(String::new(), false, &curves);
        return figure("latency-by-kind", "Latency by kind of transaction", CAPTION.to_owned(), vec![panel]);
    }
    let varying = varying(asked.iter().map(|a| a.cell));
    let repeated = asked.iter().any(|a| a.cell.repetition > 1);
    let of_kind = |kind: Kind, small: bool| {
        let label = |answer: &Answer<'_>| short_label(answer.cell, &varying, repeated);
        let curves: Vec<_> = shown.iter().map(|answer| (label(answer), *answer, kind)).collect();
        panel(if small { called(kind).to_owned() } else { String::new() }, small, &curves)
    };
    let mut caption = CAPTION.to_owned();
    if shown.len() < asked.len() {
        caption.push_str(&format!(" {} of {} cells, evenly spread.", shown.len(), asked.len()));
    }
    let mut figures =
        figure("latency-of-new-order", "Latency of New-Order", caption, vec![of_kind(Kind::NewOrder, false)]);
    let others = Kind::ALL[1..].iter().map(|kind| of_kind(*kind, true)).collect();
    let caption =
        "The same of the other kinds; colours and dashes are those of the figure before.".to_owned();
    figures.extend(figure("latency-by-kind", "Latency of the other kinds of transaction", caption, others));
    figures
}

/// What distributions of latency show.
const CAPTION: &str = "How long transactions took in the measured window: so many per cent took no longer than this. Both \
                       axes are stretched: each step to the right has ten times fewer transactions left.";

/// The figure, unless it is empty.
fn figure(name: &str, title: &str, caption: String, mut panels: Vec<Panel>) -> Vec<Figure> {
    panels.retain(|panel| !panel.series.is_empty());
    if panels.is_empty() {
        return Vec::new();
    }
    vec![Figure { name: name.to_owned(), title: title.to_owned(), caption, part: Part::Latency, panels }]
}

/// Distributions of latency: the name of each curve, and the cell and kind that it is of.
fn panel(title: String, small: bool, curves: &[(String, &Answer<'_>, Kind)]) -> Panel {
    let series = curves.iter().enumerate().filter_map(|(n, (label, answer, kind))| {
        let points = points(&answer.cell.oltp.as_deref()?.latency[*kind as usize]);
        let look = Look::Numbered(n);
        (points.len() > 1).then(|| Series { label: label.clone(), look, draw: Draw::Line, points })
    });
    let share = if small { "share" } else { "share of transactions" };
    Panel {
        title,
        small,
        x: Axis { label: share.to_owned(), scale: Scale::Nines, at_least: 0.0 },
        y: Axis { label: "latency".to_owned(), scale: Scale::LogTime, at_least: 0.0 },
        series: series.collect(),
        ..Panel::default()
    }
}
