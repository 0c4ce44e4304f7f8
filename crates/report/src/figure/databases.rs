//! Figures of databases only: device traffic over time, and latency by kind of transaction.
//!
//! New orders over time and by factor are drawn like any other level.

use super::latency::points;
use super::time::{MOST_PANELS, Time, window};
use super::{Axis, Draw, Figure, Panel, Point, Scale, Section, Series, spread};
use crate::answer::Answer;
use crate::databases::called;
use crate::sweep::Labels;
use lowtide_core::Bytes;
use lowtide_engines::tpcc::Kind;
use lowtide_record::{Campaign, Row};

/// At most this many cells have their latencies drawn.
const MOST_CELLS: usize = 6;

/// MiB/s that the device of a database read and wrote over time, for at most [`MOST_PANELS`] cells.
pub(super) fn device(campaign: &Campaign, answers: &[Answer<'_>]) -> Option<Figure> {
    let databases: Vec<&Answer<'_>> =
        answers.iter().filter(|a| a.cell.oltp.is_some() && a.cell.rows.len() > 1).collect();
    let (shown, selection) = selected(&databases, MOST_PANELS);
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
    let labels = Labels::of(&campaign.cells);
    let panel = |(answer, [read, written]): (&&Answer<'_>, [Vec<Point>; 2])| {
        let series =
            vec![Series::new("read", 0, Draw::Line, read), Series::new("written", 1, Draw::Line, written)];
        Panel {
            title: if small { labels.label(answer.cell) } else { String::new() },
            small,
            bands: window(&time, answer).into_iter().collect(),
            ..Panel::new(time.axis(small), Axis { at_least, ..Axis::linear("MiB/s") }, series)
        }
    };
    Some(Figure::new(
        "device-over-time",
        "What the device read and wrote",
        Section::NewOrders,
        format!("Solid: read; dashed: written. Shaded: the steady window.{selection}"),
        shown.iter().zip(lines).map(panel).collect(),
    ))
}

/// At most `most` of the answers, and a sentence for the caption if some are left out.
fn selected<'s, 'a>(answers: &[&'s Answer<'a>], most: usize) -> (Vec<&'s Answer<'a>>, String) {
    let shown: Vec<_> = spread(answers.len(), most).into_iter().map(|k| answers[k]).collect();
    let selection = match shown.len() == answers.len() {
        true => String::new(),
        false => format!(" {} of {} cells, evenly spread.", shown.len(), answers.len()),
    };
    (shown, selection)
}

/// Latency by kind of transaction. One cell has all kinds on one panel; several cells have New-Order with a curve for
/// each cell, and the other kinds on small panels below it.
pub(super) fn latency(answers: &[Answer<'_>]) -> Vec<Figure> {
    let databases: Vec<&Answer<'_>> = answers.iter().filter(|a| a.cell.oltp.is_some()).collect();
    let (shown, selection) = selected(&databases, MOST_CELLS);
    if let [one] = shown.as_slice() {
        let curves = Kind::ALL.map(|kind| (called(kind).to_owned(), *one, kind));
        let panel = panel(String::new(), false, &curves);
        return figure("latency-by-kind", "Latency by kind of transaction", CAPTION, vec![panel]);
    }
    let labels = Labels::of(databases.iter().map(|a| a.cell));
    let of_kind = |kind: Kind, small: bool| {
        let curves: Vec<_> = shown.iter().map(|answer| (labels.label(answer.cell), *answer, kind)).collect();
        panel(if small { called(kind).to_owned() } else { String::new() }, small, &curves)
    };
    let caption = format!("{CAPTION}{selection}");
    let new_order = vec![of_kind(Kind::NewOrder, false)];
    let mut figures = figure("latency-of-new-order", "Latency of New-Order", &caption, new_order);
    let others = Kind::ALL[1..].iter().map(|kind| of_kind(*kind, true)).collect();
    let caption = "The other kinds of transaction; colours and dashes are those of the previous figure.";
    figures.extend(figure("latency-by-kind", "Latency of the other kinds of transaction", caption, others));
    figures
}

/// The caption of latency distributions.
const CAPTION: &str = "The share of transactions in the measured window that took no longer than a latency. Both axes \
                       are stretched: each step to the right has ten times fewer transactions left.";

/// The figure, unless it is empty.
fn figure(name: &str, title: &str, caption: &str, mut panels: Vec<Panel>) -> Vec<Figure> {
    panels.retain(|panel| !panel.series.is_empty());
    if panels.is_empty() {
        return Vec::new();
    }
    vec![Figure::new(name, title, Section::Latency, caption, panels)]
}

/// Latency distributions: label, cell and kind of each curve.
fn panel(title: String, small: bool, curves: &[(String, &Answer<'_>, Kind)]) -> Panel {
    let series = curves.iter().enumerate().filter_map(|(n, (label, answer, kind))| {
        let points = points(&answer.cell.oltp.as_deref()?.latency[*kind as usize]);
        (points.len() > 1).then(|| Series::new(label, n, Draw::Line, points))
    });
    let share = if small { "share" } else { "share of transactions" };
    Panel { title, small, ..Panel::new(Axis::new(share, Scale::Nines), Axis::latency(), series.collect()) }
}
