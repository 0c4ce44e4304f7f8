//! The figures of rounds: convergence, measurement window, and the result matrix as curves.
//!
//! Figures over time are in `timeline`.

use super::course::{Course, Point as Measured};
use super::tables::Matrix;
use super::words::{self, DisplayUnit};
use crate::figure::{Axis, Draw, Figure, Panel, Point, Scale, Section, Series, distribution_points};
use lowtide_lab::experiment::{FactorName, Of};
use lowtide_record::analysis::Snia;

/// At most this many panels are shown.
const MOST_PANELS: usize = 16;

/// The tracked points over the rounds, with their neighbours in the matrix.
pub(crate) fn convergence(course: &Course<'_>, number: usize, several: bool) -> Option<Figure> {
    let factors = words::varying(course);
    // The neighbours differ from a tracked point in the last factor only: all block sizes at the tracked mix.
    let shown: Vec<&Measured<'_>> = match factors.split_last() {
        None => course.tracked().collect(),
        Some((_, others)) => {
            let tracked: Vec<String> = course.tracked().map(|point| words::point(point, others)).collect();
            course.points.iter().filter(|point| tracked.contains(&words::point(point, others))).collect()
        }
    };
    let shown = &shown[..shown.len().min(MOST_PANELS)];
    let small = shown.len() > 1;
    let panels = shown.iter().map(|point| one(course, point, &factors, small)).collect();
    let title = titled("Convergence", &words::course(course, several));
    let what = words::shown(course).name;
    let shaded = if course.steady {
        "the measurement window, which is steady"
    } else {
        "the last rounds, which are not steady"
    };
    let mut caption = format!("The {what} in each round. Shaded: {shaded}.");
    if small {
        caption.push_str(" ● marks tracked points. Each panel has its own vertical axis.");
    }
    let name = figure_name("convergence", number, several);
    (course.rounds > 1).then(|| Figure::new(name, title, Section::Rounds, caption, panels))
}

fn one(course: &Course<'_>, point: &Measured<'_>, factors: &[FactorName], small: bool) -> Panel {
    let values = course.values(point);
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let shown = DisplayUnit::of(course.track.of, most);
    let points: Vec<Point> = values
        .iter()
        .enumerate()
        .filter_map(|(round, value)| Some(Point::new((round + 1) as f64, (*value)? * shown.scale)))
        .collect();
    let mark = if point.tracked && small { "● " } else { "" };
    let average = course.mean(point, course.track.of).map(|mean| shown.text(mean)).unwrap_or_default();
    let from = course.window.start as f64 + 1.0;
    let series = vec![Series::new("", if point.tracked { 0 } else { 5 }, Draw::LineAndMarkers, points)];
    Panel {
        title: if small { format!("{mark}{}", words::point(point, factors)) } else { String::new() },
        aside: if small { average } else { String::new() },
        small,
        bands: vec![(from - 0.3, course.window.end as f64 + 0.3)],
        ..Panel::new(Axis::new("round", Scale::Counted), Axis::linear(label(shown)), series)
    }
}

/// The measurement window close up: values, average, ±10 %, and the least-squares line.
pub(crate) fn window(course: &Course<'_>, number: usize, several: bool) -> Option<Figure> {
    let rule = Snia::default();
    let shown = words::shown(course);
    let factors = words::varying(course);
    let mut panels = Vec::new();
    let small = course.tracked().take(2).count() > 1;
    for point in course.tracked() {
        let Some(seen) = course.seen(point) else { continue };
        let (from, to) = (course.window.start as f64 + 1.0, course.window.end as f64);
        let values = course.values(point);
        let points: Vec<Point> = (course.window.clone())
            .filter_map(|round| Some(Point::new((round + 1) as f64, values[round]? * shown.scale)))
            .collect();
        let straight = |label: &str, look, left: f64, right: f64| {
            let ends = [(from, left), (to, right)].map(|(x, y)| Point::new(x, y * shown.scale));
            Series::new(label, look, Draw::Line, ends.into())
        };
        let (mean, half) = (seen.average, rule.excursion / 2.0 * seen.average);
        let rise = seen.rise / 2.0;
        let series = vec![
            straight("average", 5, mean, mean),
            straight("average ± 10 %", 2, mean + half, mean + half),
            straight("", 2, mean - half, mean - half),
            straight("least-squares line", 1, mean - rise, mean + rise),
            Series::new("rounds", 0, Draw::LineAndMarkers, points),
        ];
        let y = Axis::new(label(shown), Scale::LinearFromData);
        panels.push(Panel {
            title: if small { words::point(point, &factors) } else { String::new() },
            aside: words::point(point, &factors),
            small,
            ..Panel::new(Axis::new("round", Scale::Counted), y, series)
        });
    }
    let caption = "The rounds of the window, close up, with their average (short dashes), 10 % above and below it (dots), \
                   and their least-squares line (long dashes). The specification allows values that span 20 % of the \
                   average, and a line that changes by 10 % of it from the first round to the last.";
    let name = figure_name("window", number, several);
    let title = titled("Measurement window", &words::course(course, several));
    (!panels.is_empty()).then(|| Figure::new(name, title, Section::Rounds, caption, panels))
}

/// The matrix as curves over the rows, one for each column.
pub(crate) fn over_matrix(matrix: &Matrix<'_, '_>) -> Vec<Figure> {
    let of = matrix.courses[0].track.of;
    let (title, section, axis) = match of {
        Of::Throughput => ("Throughput", Section::Throughput, Axis::linear("MiB/s")),
        Of::NewOrders => ("New orders", Section::Throughput, Axis::linear("NOTPM")),
        Of::Iops => {
            let scale = if spans_magnitudes(matrix) { Scale::Log } else { Scale::Linear };
            ("IOPS", Section::Throughput, Axis::new("IOPS", scale))
        }
        _ => ("Mean latency", Section::Latency, Axis::latency()),
    };
    let mut figures = Vec::new();
    figures.extend(curves(matrix, "matrix", title, section, axis, |course, point| course.mean(point, of)));
    if of == Of::MeanLatency {
        let longest = |course: &Course<'_>, point: &Measured<'_>| course.longest_ns(point);
        let (name, title) = ("matrix-maximum", "Maximum latency");
        figures.extend(curves(matrix, name, title, Section::Latency, Axis::latency(), longest));
    }
    figures
}

/// Returns whether the largest mean IOPS is more than ten times the smallest.
fn spans_magnitudes(matrix: &Matrix<'_, '_>) -> bool {
    let points = matrix.courses.iter().flat_map(|course| course.points.iter().map(move |it| (course, it)));
    let values: Vec<f64> = points.filter_map(|(course, point)| course.mean(point, Of::Iops)).collect();
    let (low, high) =
        values.iter().fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(*v), high.max(*v)));
    high > 10.0 * low
}

/// Demand intensity, if threads and queue depth vary: response time against throughput, and the distribution of
/// response times at three demands.
pub(crate) fn demand(matrix: &Matrix<'_, '_>) -> Vec<Figure> {
    if matrix.factors != [FactorName::Threads, FactorName::Depth] {
        return Vec::new();
    }
    let [across, down] = matrix.headings();
    let found = |column: &String, row: &String| {
        let (course, point) = matrix.find(column, row)?;
        Some((course, point, course.mean(point, Of::Iops)?, course.mean(point, Of::MeanLatency)?))
    };
    let curve = |(n, column): (usize, &String)| {
        let points =
            down.iter().filter_map(|row| found(column, row)).map(|(.., iops, ns)| Point::new(iops, ns));
        Series::new(column, n, Draw::LineAndMarkers, points.collect())
    };
    let series = across.iter().enumerate().map(curve).collect();
    let y = Axis::new("mean response time", Scale::LogTime);
    let intensity = Figure::new(
        "demand-intensity",
        "Demand intensity",
        Section::Latency,
        "Mean response time against IOPS, a curve for each number of threads, a marker for each queue depth.",
        vec![Panel::new(Axis::linear("IOPS"), y, series)],
    );
    let all: Vec<_> =
        across.iter().flat_map(|column| down.iter().filter_map(move |row| found(column, row))).collect();
    let mut figures = vec![intensity];
    figures.extend(response_times(matrix, &all));
    figures
}

/// A measured point with its course, IOPS and mean latency.
type Demand<'m, 'c> = (&'m Course<'c>, &'m Measured<'c>, f64, f64);

/// The distributions of response time at three of the points with a mean below 5 ms: the most IOPS, the fewest, and
/// the point nearest to halfway.
fn response_times(matrix: &Matrix<'_, '_>, all: &[Demand<'_, '_>]) -> Option<Figure> {
    const ACCEPTABLE_NS: f64 = 5e6;
    let quick = |demand: &&Demand<'_, '_>| demand.3 < ACCEPTABLE_NS;
    let quick: Vec<&Demand<'_, '_>> = all.iter().filter(quick).collect();
    let by_iops = |a: &&&Demand<'_, '_>, b: &&&Demand<'_, '_>| a.2.total_cmp(&b.2);
    let (most, least) = (*quick.iter().max_by(by_iops)?, *quick.iter().min_by(by_iops)?);
    let half = (most.2 + least.2) / 2.0;
    let middle = *quick.iter().min_by(|a, b| (a.2 - half).abs().total_cmp(&(b.2 - half).abs()))?;
    let demands = [("most", most), ("halfway", middle), ("fewest", least)].into_iter().enumerate();
    let series = demands.map(|(n, (name, (course, point, iops, _)))| {
        let mut latency = lowtide_core::Latency::default();
        for cell in course.cells(point) {
            latency.add(&cell.read_latency);
            latency.add(&cell.write_latency);
        }
        let at = words::point(point, &matrix.factors);
        let label = format!("{name}: {} IOPS, {at}", crate::number::significant(*iops));
        Series::new(label, n, Draw::Line, distribution_points(&latency.into()))
    });
    let series: Vec<Series> = series.filter(|series| series.points.len() > 1).collect();
    let caption = "The share of requests in the measurement window that took no longer than a latency, for the points with \
                   a mean response time below 5 ms: that with the most IOPS, that with the fewest, and that nearest to \
                   halfway. Both axes are stretched: each step to the right has ten times fewer requests left.";
    (!series.is_empty()).then(|| {
        let panel = Panel::new(Axis::new("share of requests", Scale::Nines), Axis::latency(), series);
        Figure::new("response-times", "Response times", Section::Latency, caption, vec![panel])
    })
}

fn curves<'c>(
    matrix: &Matrix<'_, 'c>,
    name: &str,
    title: &str,
    section: Section,
    y: Axis,
    value: impl Fn(&Course<'c>, &Measured<'c>) -> Option<f64>,
) -> Option<Figure> {
    let [across, down] = matrix.headings();
    let factor = matrix.factors[1];
    let number = |point: &Measured<'_>| {
        let level = point.levels.iter().find(|level| level.factor() == factor)?;
        Some(level.number()? / if factor == FactorName::Block { 1024.0 } else { 1.0 })
    };
    let series: Vec<Series> = across
        .iter()
        .enumerate()
        .map(|(n, column)| {
            let points = down.iter().filter_map(|row| {
                let (course, point) = matrix.find(column, row)?;
                Some(Point::new(number(point)?, value(course, point)?))
            });
            let mut points: Vec<Point> = points.collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            Series::new(column, n, Draw::LineAndMarkers, points)
        })
        .collect();
    let by = factor.name().replace('_', " ");
    let label = if factor == FactorName::Block { "block (KiB)" } else { &by };
    series.iter().any(|series| series.points.len() > 1).then(|| {
        let caption = "The means over the measurement window, as in the table.";
        let panel = Panel::new(Axis::new(label, Scale::Doubling), y, series);
        Figure::new(name, format!("{title} by {by}"), section, caption, vec![panel])
    })
}

/// The label of an axis: the unit, or the name of a plain number.
fn label(shown: DisplayUnit) -> String {
    if shown.unit == "1/s" { shown.name.to_owned() } else { shown.unit.to_owned() }
}

fn figure_name(kind: &str, number: usize, several: bool) -> String {
    if several { format!("{kind}-{number}") } else { kind.to_owned() }
}

fn titled(title: &str, name: &str) -> String {
    if name.is_empty() { title.to_owned() } else { format!("{title}: {name}") }
}
