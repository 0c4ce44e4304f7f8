//! Figures over time: the level of each cell with its steady window, and write amplification.
//!
//! Up to sixteen cells get a panel each. More cells share one panel, on which every cell is a thin line and a
//! selection is coloured. Long series are averaged into at most [`MOST_POINTS`] points, which the caption states.

use super::{
    Axis, Draw, Figure, Look, Mark, Panel, Point, Section, Series, file_name, section, spread, title,
};
use crate::answer::{Answer, quantity_of};
use crate::number::{level, span};
use crate::sweep::Labels;
use lowtide_record::{Campaign, Cell, Row};

pub(super) const MOST_PANELS: usize = 16;
const MOST_POINTS: usize = 400;
const HIGHLIGHTED: usize = 5;

/// Throughput or new orders over time.
pub(crate) fn levels(campaign: &Campaign, answers: &[Answer<'_>]) -> Option<Figure> {
    let shown: Vec<&Answer<'_>> = answers.iter().filter(|a| a.cell.rows.len() > 1).collect();
    let labels = Labels::of(&campaign.cells);
    let time = Time::of(&shown)?;
    let quantity = quantity_of(answers);
    let lines: Vec<Vec<Point>> = shown.iter().map(|a| time.series(a, Row::rate)).collect();
    let most = lines.iter().flatten().map(|p| p.y).fold(0.0, f64::max);
    // Panels share the vertical axis unless that would flatten the slow ones.
    let tops: Vec<f64> = lines.iter().map(|l| l.iter().map(|p| p.y).fold(0.0, f64::max)).collect();
    let least_top = tops.iter().copied().fold(f64::INFINITY, f64::min);
    let shared = most <= 20.0 * least_top;
    let few = shown.len() <= MOST_PANELS;
    let panels = if few {
        let small = shown.len() > 1;
        let panel = |(answer, points): (&&Answer<'_>, Vec<Point>)| {
            let title = if small { labels.label(answer.cell) } else { String::new() };
            one_cell(answer, title, points, &time, small, if shared { most } else { 0.0 })
        };
        shown.iter().zip(lines).map(panel).collect()
    } else {
        let series = highlighted(lines, HIGHLIGHTED, |i| labels.label(shown[i].cell));
        vec![Panel::new(time.axis(false), Axis::linear(shown[0].quantity.unit()), series)]
    };
    let mut caption: Vec<String> = Vec::new();
    if few && shown.iter().any(|a| a.settled.is_some()) {
        caption.push("Shaded: the steady window; the thick line in it is the settled level.".to_owned());
    }
    if few && shown.iter().any(|a| a.honeymoon_end_s.is_some()) {
        caption.push(
            "Upright line: the host has written the raw capacity since the purge, so garbage collection must have \
             begun."
                .to_owned(),
        );
    }
    caption.extend(match (few, shared) {
        (false, _) => {
            Some("Thin lines: every cell. Coloured: a selection, evenly spread over the campaign.".to_owned())
        }
        (true, _) if shown.len() == 1 => None,
        (true, true) => Some("All panels have the same axes.".to_owned()),
        (true, false) => Some("Each panel has its own vertical axis.".to_owned()),
    });
    let step = shown.iter().map(|a| step(a.cell)).max().filter(|step| *step > 1);
    caption.extend(step.map(|step| format!("Each point is the mean of {step} intervals.")));
    let (name, title) = (file_name(quantity, "over-time"), title(quantity, "over time"));
    Some(Figure::new(name, title, section(quantity), caption.join(" "), panels))
}

/// Write amplification over time, for cells whose device counts NAND writes.
pub(crate) fn write_amplification(answers: &[Answer<'_>]) -> Option<Figure> {
    let shown: Vec<&Answer<'_>> = answers.iter().filter(|a| a.write_amplification.is_some()).collect();
    let time = Time::of(&shown)?;
    let labels = Labels::of(shown.iter().map(|a| a.cell));
    let lines = shown.iter().map(|answer| time.amplification(answer)).collect();
    let series = highlighted(lines, HIGHLIGHTED + 1, |i| labels.label(shown[i].cell));
    if series.iter().all(|s| s.points.len() < 2) {
        return None;
    }
    let caption = if shown.len() > HIGHLIGHTED + 1 {
        "NAND bytes per host byte in each interval. Thin lines: every cell. Coloured: a selection."
    } else {
        "NAND bytes per host byte in each interval."
    };
    let y = Axis { at_least: 1.0, ..Axis::linear("NAND bytes per host byte") };
    let panels = vec![Panel::new(time.axis(false), y, series)];
    let (name, title) = ("write-amplification-over-time", "Write amplification over time");
    Some(Figure::new(name, title, Section::Wear, caption, panels))
}

/// Lines of which at most `count` are coloured and labelled, in front of the grey ones.
fn highlighted(lines: Vec<Vec<Point>>, count: usize, label: impl Fn(usize) -> String) -> Vec<Series> {
    let chosen = spread(lines.len(), count);
    let line = |(i, points): (usize, Vec<Point>)| match chosen.iter().position(|c| *c == i) {
        Some(n) => Series::new(label(i), n, Draw::Line, points),
        None => Series::context("", points),
    };
    let mut series: Vec<Series> = lines.into_iter().enumerate().map(line).collect();
    series.sort_by_key(|s| s.look != Look::Context);
    series
}

/// The settled level for the corner of a small panel.
fn aside(answer: &Answer<'_>) -> String {
    let settled = |mean| format!("settled {}", level(mean, answer.quantity));
    answer.settled.map_or_else(|| "no steady state".to_owned(), |e| settled(e.mean))
}

fn one_cell(
    a: &Answer<'_>,
    title: String,
    points: Vec<Point>,
    time: &Time,
    small: bool,
    at_least: f64,
) -> Panel {
    let y = Axis { at_least, ..Axis::linear(a.quantity.unit()) };
    let series = vec![Series::new(a.quantity.name(), 0, Draw::Line, points)];
    let mut panel = Panel {
        title,
        aside: if small { aside(a) } else { String::new() },
        small,
        ..Panel::new(time.axis(small), y, series)
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

fn last_ns(cell: &Cell) -> u64 {
    cell.rows.last().map_or(0, |row| row.end_ns)
}

/// The time axis, shared by all cells.
pub(super) struct Time {
    unit_s: f64,
    unit: &'static str,
}

impl Time {
    /// The unit that suits the longest measurement; `None` for no measurements.
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
        Axis::linear(if small { self.unit.to_owned() } else { format!("time ({})", self.unit) })
    }
    /// Means over the intervals that each point stands for.
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

/// The number of intervals that one point stands for.
fn step(cell: &Cell) -> usize {
    cell.rows.len().div_ceil(MOST_POINTS).max(1)
}
