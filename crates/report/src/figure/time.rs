//! Figures over time: the level of each cell with its steady window, and write amplification.
//!
//! Up to sixteen cells get a panel each, with the same axes, so that they compare at a glance. More become one
//! panel: every cell as a thin line, a few spread over the sweep in colour. Long series are averaged into at
//! most [`MOST_POINTS`] points, and the caption says so.

use super::{Axis, Draw, Figure, Look, Mark, Panel, Part, Point, Scale, Series, file_name, part, title};
use crate::answer::{Answer, quantity_of};
use crate::number::{level, span};
use crate::sweep::{short_label, varying};
use lowtide_record::{Campaign, Cell, Row};

pub(super) const MOST_PANELS: usize = 16;
const MOST_POINTS: usize = 400;
const HIGHLIGHTED: usize = 5;

/// Throughput, or new orders, over time.
pub(crate) fn levels(campaign: &Campaign, answers: &[Answer<'_>]) -> Option<Figure> {
    let shown: Vec<&Answer<'_>> = answers.iter().filter(|a| a.cell.rows.len() > 1).collect();
    let labels = labels(campaign, &shown);
    let time = Time::of(&shown)?;
    let quantity = quantity_of(answers);
    let lines: Vec<Vec<Point>> = shown.iter().map(|a| time.series(a, Row::rate)).collect();
    let most = lines.iter().flatten().map(|p| p.y).fold(0.0, f64::max);
    // Panels share the vertical axis unless that would flatten the slow ones.
    let tops: Vec<f64> = lines.iter().map(|l| l.iter().map(|p| p.y).fold(0.0, f64::max)).collect();
    let least_top = tops.iter().copied().fold(f64::INFINITY, f64::min);
    let shared = most <= 20.0 * least_top;
    let mut caption = String::new();
    let panels = if shown.len() <= MOST_PANELS {
        let small = shown.len() > 1;
        shown
            .iter()
            .zip(&labels)
            .zip(lines)
            .map(|((answer, label), points)| {
                let title = if small { label.clone() } else { String::new() };
                one_cell(answer, title, points, &time, small, if shared { most } else { 0.0 })
            })
            .collect()
    } else {
        vec![overlay(&shown, &labels, lines, &time)]
    };
    if shown.iter().any(|a| a.settled.is_some()) && shown.len() <= MOST_PANELS {
        caption.push_str("Shaded: the steady window; the thick line in it is the settled level. ");
    }
    if shown.iter().any(|a| a.honeymoon_end_s.is_some()) && shown.len() <= MOST_PANELS {
        caption.push_str(
            "Upright line: as many bytes were written since the purge as the device has raw, \
             so garbage collection must have begun. ",
        );
    }
    if shown.len() > MOST_PANELS {
        caption.push_str("Thin lines: every cell. Coloured: a selection, evenly spread over the campaign. ");
    } else if shown.len() > 1 {
        caption.push_str(if shared {
            "All panels have the same axes. "
        } else {
            "Each panel has its own vertical axis. "
        });
    }
    if let Some(step) = time.averaged(&shown) {
        caption.push_str(&format!("Each point is the mean of {step} intervals. "));
    }
    Some(Figure {
        name: file_name(quantity, "over-time"),
        title: title(quantity, "over time"),
        caption: caption.trim_end().to_owned(),
        part: part(quantity),
        panels,
    })
}

/// Write amplification over time, for cells whose device counts NAND writes.
pub(crate) fn write_amplification(answers: &[Answer<'_>]) -> Option<Figure> {
    let shown: Vec<&Answer<'_>> = answers.iter().filter(|a| a.write_amplification.is_some()).collect();
    let time = Time::of(&shown)?;
    let varying = varying(shown.iter().map(|a| a.cell));
    let repeated = shown.iter().any(|a| a.cell.repetition > 1);
    let chosen = spread(shown.len(), HIGHLIGHTED + 1);
    let mut series = Vec::new();
    for (i, answer) in shown.iter().enumerate() {
        let points = time.amplification(answer);
        let place = chosen.iter().position(|c| *c == i);
        let label = place.map_or_else(String::new, |_| short_label(answer.cell, &varying, repeated));
        series.push(Series {
            label,
            look: place.map_or(Look::Context, Look::Numbered),
            draw: Draw::Line,
            points,
        });
    }
    series.sort_by_key(|s| s.look != Look::Context);
    if series.iter().all(|s| s.points.len() < 2) {
        return None;
    }
    let caption = if chosen.len() < shown.len() {
        "NAND bytes per host byte in each interval. Thin lines: every cell. Coloured: a selection."
    } else {
        "NAND bytes per host byte in each interval."
    };
    Some(Figure {
        name: "write-amplification-over-time".to_owned(),
        title: "Write amplification over time".to_owned(),
        caption: caption.to_owned(),
        part: Part::Wear,
        panels: vec![Panel {
            x: time.axis(false),
            y: Axis { label: "NAND bytes per host byte".to_owned(), scale: Scale::Linear, at_least: 1.0 },
            series,
            ..Panel::default()
        }],
    })
}

pub(super) fn labels(campaign: &Campaign, shown: &[&Answer<'_>]) -> Vec<String> {
    let varying = varying(&campaign.cells);
    let repeated = campaign.cells.iter().any(|c| c.repetition > 1);
    shown.iter().map(|a| short_label(a.cell, &varying, repeated)).collect()
}

fn aside(answer: &Answer<'_>) -> String {
    answer.settled.map_or_else(
        || "no steady state".to_owned(),
        |e| format!("settled {}", level(e.mean, answer.quantity)),
    )
}

fn one_cell(
    a: &Answer<'_>,
    title: String,
    points: Vec<Point>,
    time: &Time,
    small: bool,
    at_least: f64,
) -> Panel {
    let mut panel = Panel {
        title,
        aside: if small { aside(a) } else { String::new() },
        small,
        x: time.axis(small),
        y: Axis { label: a.quantity.unit().to_owned(), scale: Scale::Linear, at_least },
        series: vec![Series {
            label: a.quantity.name().to_owned(),
            look: Look::Numbered(0),
            draw: Draw::Line,
            points,
        }],
        ..Panel::default()
    };
    if let (Some(e), Some(from_to)) = (a.settled, window(time, a)) {
        panel.bands.push(from_to);
        panel.marks.push(Mark::Level { y: e.mean, half_width: e.half_width, from_to });
    }
    if let Some(end) = a.honeymoon_end_s {
        let label = if small { String::new() } else { format!("raw capacity written, {}", span(end * 1e9)) };
        panel.marks.push(Mark::Vertical { x: end / time.unit_s, label });
    }
    panel
}

/// The steady window on the time axis.
pub(super) fn window(time: &Time, a: &Answer<'_>) -> Option<(f64, f64)> {
    let e = a.settled?;
    Some((time.of_ns(a, e.from_ns), time.of_ns(a, e.to_ns.min(last_ns(a.cell)))))
}

fn overlay(shown: &[&Answer<'_>], labels: &[String], lines: Vec<Vec<Point>>, time: &Time) -> Panel {
    let chosen = spread(shown.len(), HIGHLIGHTED);
    let mut series: Vec<Series> = lines
        .into_iter()
        .enumerate()
        .map(|(i, points)| match chosen.iter().position(|c| *c == i) {
            Some(n) => Series { label: labels[i].clone(), look: Look::Numbered(n), draw: Draw::Line, points },
            None => Series { label: String::new(), look: Look::Context, draw: Draw::Line, points },
        })
        .collect();
    series.sort_by_key(|s| s.look != Look::Context);
    let unit = shown.first().map_or("", |answer| answer.quantity.unit());
    let y = Axis { label: unit.to_owned(), ..Axis::default() };
    Panel { x: time.axis(false), y, series, ..Panel::default() }
}

/// At most `count` indices spread evenly over `0..length`, ends included.
pub(super) fn spread(length: usize, count: usize) -> Vec<usize> {
    if length <= count {
        return (0..length).collect();
    }
    (0..count).map(|k| k * (length - 1) / (count - 1)).collect()
}

fn last_ns(cell: &Cell) -> u64 {
    cell.rows.last().map_or(0, |row| row.end_ns)
}

/// The time axis all cells share.
pub(super) struct Time {
    unit_s: f64,
    unit: &'static str,
}

impl Time {
    /// The unit that suits the longest measurement; `None` without any.
    pub fn of(answers: &[&Answer<'_>]) -> Option<Time> {
        let longest = answers.iter().map(|a| a.seconds(last_ns(a.cell))).reduce(f64::max)?;
        let (unit_s, unit) = match longest {
            s if s <= 0.5 => (1e-3, "ms"),
            s if s <= 300.0 => (1.0, "s"),
            s if s <= 4.0 * 3600.0 => (60.0, "min"),
            s if s <= 96.0 * 3600.0 => (3600.0, "h"),
            _ => (86_400.0, "d"),
        };
        Some(Time { unit_s, unit })
    }
    fn of_ns(&self, answer: &Answer<'_>, ns: u64) -> f64 {
        answer.seconds(ns) / self.unit_s
    }
    pub fn axis(&self, small: bool) -> Axis {
        let label = if small { self.unit.to_owned() } else { format!("time ({})", self.unit) };
        Axis { label, ..Axis::default() }
    }
    /// How many intervals one point stands for, where that is more than one.
    fn averaged(&self, answers: &[&Answer<'_>]) -> Option<usize> {
        answers.iter().map(|a| step(a.cell)).max().filter(|step| *step > 1)
    }
    /// Means of something over the intervals that each point stands for.
    pub fn series(&self, answer: &Answer<'_>, of: impl Fn(&Row) -> f64) -> Vec<Point> {
        let rows = answer.cell.rows.chunks(step(answer.cell));
        rows.filter_map(|rows| {
            let (from, to) = (rows.first()?.start_ns, rows.last()?.end_ns);
            let done: f64 = rows.iter().map(|row| of(row) * row.seconds()).sum();
            let rate = done / ((to - from) as f64 / 1e9);
            rate.is_finite().then(|| Point::new(self.of_ns(answer, from / 2 + to / 2), rate))
        })
        .collect()
    }
    fn amplification(&self, answer: &Answer<'_>) -> Vec<Point> {
        let mut before = answer.cell.counters_before;
        let mut points = Vec::new();
        for rows in answer.cell.rows.chunks(step(answer.cell)) {
            let (Some(first), Some(last)) = (rows.first(), rows.last()) else { continue };
            if let (Some(earlier), Some(now)) = (before, last.counters)
                && let Some(factor) = now.write_amplification_since(&earlier)
            {
                points.push(Point::new(self.of_ns(answer, first.start_ns / 2 + last.end_ns / 2), factor));
            }
            before = last.counters.or(before);
        }
        points
    }
}

fn step(cell: &Cell) -> usize {
    cell.rows.len().div_ceil(MOST_POINTS).max(1)
}
