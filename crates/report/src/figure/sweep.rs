//! Figures over a factor: settled levels by size, fill, threads or any numeric factor, and latency by threads.
//!
//! A single curve over size also has its fresh and lowest levels. Published numbers are hollow markers in the look
//! of their quantity.

use super::{Axis, Draw, Figure, Panel, Point, Scale, Section, Series, file_name, section, title};
use crate::answer::{Answer, quantity_of};
use crate::comparison::{Comparison, Quantity as Published};
use crate::sweep::{Group, groups, number_of, slug, with_numbers};
use lowtide_record::{LevelKind, Quantity};

const GIB: f64 = (1u64 << 30) as f64;
const MOST_CURVES: usize = 6;

/// Throughput by data size.
pub(crate) fn over_size(answers: &[Answer<'_>], comparisons: &[Comparison]) -> Option<Figure> {
    let x = |a: &Answer<'_>| a.data_bytes() / GIB;
    let groups = groups(answers, |a| Some(x(a)))?;
    let single = groups.len() == 1;
    let mut series = settled(&groups, x);
    if single {
        let fresh = curve(&groups[0], "fresh", 1, x, |a| a.fresh);
        let lowest = curve(&groups[0], "lowest interval", 2, x, |a| a.lowest);
        series.extend([fresh, lowest].into_iter().filter(|s| !s.points.is_empty()));
    }
    for (n, (quantity, label)) in [
        (Published::Settled, "published, settled"),
        (Published::Fresh, "published, fresh"),
        (Published::Lowest, "published, lowest"),
    ]
    .into_iter()
    .enumerate()
    {
        if single || n == 0 {
            series.extend(published(answers, comparisons, quantity, label, n, x, |v| v));
        }
    }
    let x = Axis::new("data (GiB)", spacing(&series));
    figure(quantity_of(answers), ("by-size", "by data size"), x, series, groups.len())
}

/// Even steps, unless most of the points would crowd in the lowest quarter of the axis.
fn spacing(series: &[Series]) -> Scale {
    let mut values: Vec<f64> = series.iter().flat_map(|s| &s.points).map(|p| p.x).collect();
    values.sort_by(f64::total_cmp);
    let crowded = values.last().is_some_and(|last| values[values.len() / 2] < last / 4.0);
    if crowded && values[0] > 0.0 { Scale::Doubling } else { Scale::Linear }
}

/// Settled levels, with the published ones.
fn settled_with_published<'a>(
    groups: &[Group<'_, 'a>],
    answers: &[Answer<'a>],
    comparisons: &[Comparison],
    x: impl Fn(&Answer<'a>) -> f64 + Copy,
) -> Vec<Series> {
    let mut series = settled(groups, x);
    series.extend(published(answers, comparisons, Published::Settled, "published", 0, x, |v| v));
    series
}

/// Throughput by fill, if capacities differ; otherwise the figure by size is enough.
pub(crate) fn over_fill(answers: &[Answer<'_>], comparisons: &[Comparison]) -> Option<Figure> {
    let first = answers.first()?.cell.capacity;
    if answers.iter().all(|a| a.cell.capacity == first) {
        return None;
    }
    let x = |a: &Answer<'_>| a.fill().unwrap_or(0.0) * 100.0;
    let groups = groups(answers, Answer::fill)?;
    let series = settled_with_published(&groups, answers, comparisons, x);
    let x = Axis::linear("data as a share of the capacity (%)");
    figure(quantity_of(answers), ("by-fill", "by fill"), x, series, groups.len())
}

/// Levels by each numeric factor.
pub(crate) fn over_factors(answers: &[Answer<'_>], comparisons: &[Comparison]) -> Vec<Figure> {
    with_numbers(answers).iter().filter_map(|factor| over_factor(answers, comparisons, factor)).collect()
}

fn over_factor(answers: &[Answer<'_>], comparisons: &[Comparison], factor: &str) -> Option<Figure> {
    let number = |a: &Answer<'_>| number_of(a.cell, factor);
    let all = |kinds: &[LevelKind]| {
        answers.iter().all(|a| a.cell.factor(factor).is_some_and(|it| kinds.contains(&it.kind)))
    };
    let most = answers.iter().filter_map(number).fold(0.0, f64::max);
    let (unit, one) = match () {
        () if all(&[LevelKind::Count, LevelKind::Number]) => ("", 1.0),
        () if all(&[LevelKind::Time]) => (" (s)", 1e9),
        () if most < 2.0 * GIB => (" (MiB)", GIB / 1024.0),
        () => (" (GiB)", GIB),
    };
    let x = |a: &Answer<'_>| number(a).unwrap_or(0.0) / one;
    let groups = groups(answers, number)?;
    let series = settled_with_published(&groups, answers, comparisons, x);
    let name = factor.replace('_', " ");
    let axis = Axis::new(format!("{name}{unit}"), spacing(&series));
    let (file, words) = (format!("by-{}", slug(factor).replace('_', "-")), format!("by {name}"));
    figure(quantity_of(answers), (&file, &words), axis, series, groups.len())
}

/// Throughput and latency by threads.
pub(crate) fn over_threads(answers: &[Answer<'_>], comparisons: &[Comparison]) -> Vec<Figure> {
    let x = |a: &Answer<'_>| f64::from(a.cell.threads);
    let Some(groups) = groups(answers, |a| Some(x(a))) else { return Vec::new() };
    let levels = settled_with_published(&groups, answers, comparisons, x);
    let mut out = Vec::new();
    let axis = Axis::new("threads", Scale::Doubling);
    out.extend(figure(quantity_of(answers), ("by-threads", "by threads"), axis, levels, groups.len()));
    out.extend(latency_over_threads(&groups, answers, comparisons));
    out
}

fn latency_over_threads<'a>(
    groups: &[Group<'_, 'a>],
    answers: &[Answer<'a>],
    comparisons: &[Comparison],
) -> Option<Figure> {
    let x = |a: &Answer<'_>| f64::from(a.cell.threads);
    let mut latency: Vec<Series> = Vec::new();
    let few = groups.len() <= MOST_CURVES / 2;
    for (n, group) in groups.iter().enumerate().take(MOST_CURVES) {
        let name = |what: &str| {
            if group.label.is_empty() { what.to_owned() } else { format!("{}, {what}", group.label) }
        };
        let look = if few { 2 * n } else { n };
        latency.push(curve(group, &name("p95"), look, x, |a| a.latency_ns(95.0)));
        if few {
            latency.push(curve(group, &name("p99"), look + 1, x, |a| a.latency_ns(99.0)));
        }
    }
    latency.retain(|s| !s.points.is_empty());
    let quantity = Published::LatencyMsP95;
    latency.extend(published(answers, comparisons, quantity, "published p95", 0, x, |ms| ms * 1e6));
    if !latency.iter().any(|s| s.points.len() > 1) {
        return None;
    }
    Some(Figure::new(
        "latency-by-threads",
        "Latency by threads",
        Section::Latency,
        "Percentiles over the measured window of each cell; the vertical axis has powers of ten.",
        vec![Panel::new(Axis::new("threads", Scale::Doubling), Axis::latency(), latency)],
    ))
}

/// Levels over `x`; `names` are the ends of the file name and of the heading.
fn figure(
    quantity: Quantity,
    names: (&str, &str),
    x: Axis,
    series: Vec<Series>,
    curves: usize,
) -> Option<Figure> {
    if !series.iter().any(|s| s.draw == Draw::LineAndMarkers && s.points.len() > 1) {
        return None;
    }
    let mut caption = format!(
        "Settled {}, with its 95 % confidence interval if that is wider than the marker; cells without a steady state \
         are left out.",
        quantity.noun()
    );
    if series.iter().any(|s| s.draw == Draw::Hollow) {
        caption.push_str(" Hollow markers: published numbers.");
    }
    if curves > MOST_CURVES {
        caption.push_str(&format!(" Of {curves} curves, the first {MOST_CURVES} are shown."));
    }
    let panels = vec![Panel::new(x, Axis::linear(quantity.unit()), series)];
    let (name, title) = (file_name(quantity, names.0), title(quantity, names.1));
    Some(Figure::new(name, title, section(quantity), caption, panels))
}

fn settled<'a>(groups: &[Group<'_, 'a>], x: impl Fn(&Answer<'a>) -> f64 + Copy) -> Vec<Series> {
    let name = |group: &Group<'_, '_>| {
        if group.label.is_empty() { "settled".to_owned() } else { group.label.clone() }
    };
    let drawn = groups.iter().take(MOST_CURVES).enumerate();
    drawn
        .map(|(n, group)| {
            let mut series = curve(group, &name(group), n, x, |a| a.settled.map(|e| e.mean));
            let halves = group.answers.iter().filter_map(|a| a.settled.map(|e| e.half_width));
            series.points.iter_mut().zip(halves).for_each(|(point, half)| point.half_width = half);
            series
        })
        .filter(|series| !series.points.is_empty())
        .collect()
}

fn curve<'a>(
    group: &Group<'_, 'a>,
    label: &str,
    look: usize,
    x: impl Fn(&Answer<'a>) -> f64,
    y: impl Fn(&Answer<'a>) -> Option<f64>,
) -> Series {
    let points = group.answers.iter().filter_map(|a| Some(Point::new(x(a), y(a)?))).collect();
    Series::new(label, look, Draw::LineAndMarkers, points)
}

fn published<'a>(
    answers: &[Answer<'a>],
    comparisons: &[Comparison],
    quantity: Published,
    label: &str,
    look: usize,
    x: impl Fn(&Answer<'a>) -> f64,
    y: impl Fn(f64) -> f64,
) -> Option<Series> {
    let of_cell = |c: &Comparison| answers.iter().find(|a| Some(a.cell.index) == c.cell);
    let points: Vec<Point> = comparisons
        .iter()
        .filter(|c| c.quantity == quantity)
        .filter_map(|c| Some(Point::new(x(of_cell(c)?), y(c.published))))
        .collect();
    (!points.is_empty()).then(|| Series::new(label, look, Draw::Hollow, points))
}
