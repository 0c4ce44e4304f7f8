//! The contents of figures: a [`Figure`] holds panels in data units; `svg` draws them.
//!
//! A series names its look ([`Look`]) instead of a colour. Looks differ in colour, dash and marker at once, so a
//! grey print stays readable.

mod axis;
mod databases;
mod draw;
mod latency;
mod layer;
mod predicted;
mod style;
mod svg;
mod sweep;
mod time;
mod wear;

pub(crate) use latency::points as distribution_points;
pub(crate) use style::css;
pub(crate) use svg::{document, panel};

use super::comparison::Comparison;
use super::number;
use crate::answer::{Answer, quantity_of};
use lowtide_record::{Campaign, Quantity};

/// A figure of the report: one panel, or several of the same size.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// File name without extension: `throughput-over-time`.
    pub name: String,
    /// The heading.
    pub title: String,
    /// An explanation of the contents and the marks.
    pub caption: String,
    /// The section of the report that shows the figure.
    pub section: Section,
    /// The panels, in reading order.
    pub panels: Vec<Panel>,
}

/// A section of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// The rounds of a tracked step and their convergence.
    Rounds,
    /// Throughput over time, size, threads, fill.
    Throughput,
    /// New orders, and the device traffic of a database.
    NewOrders,
    /// Latency.
    Latency,
    /// Write amplification and erase counts.
    Wear,
}

/// One pair of axes and its contents.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Panel {
    /// The heading; may be empty.
    pub title: String,
    /// A number shown opposite the heading: `30.2 MiB/s`; may be empty.
    pub aside: String,
    /// Small panels are shown several to a row.
    pub small: bool,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Curves and points, from back to front.
    pub series: Vec<Series>,
    /// Shaded ranges of x: steady windows.
    pub bands: Vec<(f64, f64)>,
    /// Lines across the panel.
    pub marks: Vec<Mark>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axis {
    /// The quantity with its unit: `MiB/s`.
    pub label: String,
    /// The spacing of values.
    pub scale: Scale,
    /// The least upper end, so that panels can share an axis; zero leaves it to the data.
    pub at_least: f64,
}

/// The spacing of values on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Evenly, from zero.
    #[default]
    Linear,
    /// Evenly, between the least and the greatest value.
    LinearFromData,
    /// Whole numbers, between the least and the greatest value.
    Counted,
    /// By powers of ten.
    Log,
    /// By doubling: thread counts, sizes that span many magnitudes.
    Doubling,
    /// By powers of ten, of nanoseconds; labels are spans of time.
    LogTime,
    /// By nines: 0 %, 90 %, 99 %, 99.9 % are equidistant. Values are shares below 1.
    Nines,
}

/// A curve or a cloud of points.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend; empty for no entry.
    pub label: String,
    /// Colour, dash and marker.
    pub look: Look,
    /// The way the points are drawn.
    pub draw: Draw,
    /// The points, in data units.
    pub points: Vec<Point>,
}

/// Colour, dash and marker of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// One of the numbered looks; wraps around.
    Numbered(usize),
    /// Thin and grey: context.
    Context,
}

/// The way a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    /// A line only.
    Line,
    /// A line with a marker at each point and error bars where a point has them.
    LineAndMarkers,
    /// Hollow markers only: published points.
    Hollow,
    /// A dashed line, with error bars where a point has them: predicted values.
    Dashed,
    /// Bars from zero.
    Bars,
}

/// A point, optionally with half its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Horizontal value.
    pub x: f64,
    /// Vertical value.
    pub y: f64,
    /// Half of the confidence interval of `y`; zero for none.
    pub half_width: f64,
}

/// A line across a panel.
#[derive(Debug, Clone, PartialEq)]
pub enum Mark {
    /// At an x: the end of the honeymoon.
    Vertical {
        /// The x of the line.
        x: f64,
        /// A word next to the line; may be empty.
        label: String,
    },
    /// A word at an x, at the top of the panel.
    Label {
        /// The x of the word's middle.
        x: f64,
        /// The word; may be empty.
        label: String,
    },
    /// At a y: the settled level, over a range of x.
    Level {
        /// The level.
        y: f64,
        /// Half of its confidence interval.
        half_width: f64,
        /// The ends of the line on x.
        from_to: (f64, f64),
    },
}

impl Figure {
    pub(crate) fn new(
        name: impl Into<String>,
        title: impl Into<String>,
        section: Section,
        caption: impl Into<String>,
        panels: Vec<Panel>,
    ) -> Figure {
        let (name, title, caption) = (name.into(), title.into(), caption.into());
        Figure { name, title, caption, section, panels }
    }
}

impl Panel {
    /// A large panel without title and marks.
    pub(crate) fn new(x: Axis, y: Axis, series: Vec<Series>) -> Panel {
        Panel { x, y, series, ..Panel::default() }
    }
}

impl Axis {
    /// An axis whose upper end the data decide.
    pub(crate) fn new(label: impl Into<String>, scale: Scale) -> Axis {
        Axis { label: label.into(), scale, at_least: 0.0 }
    }

    /// An even axis from zero.
    pub(crate) fn linear(label: impl Into<String>) -> Axis {
        Axis::new(label, Scale::Linear)
    }

    /// An axis of latencies in nanoseconds.
    pub(crate) fn latency() -> Axis {
        Axis::new("latency", Scale::LogTime)
    }
}

impl Series {
    /// A series with a numbered look.
    pub(crate) fn new(label: impl Into<String>, look: usize, draw: Draw, points: Vec<Point>) -> Series {
        Series { label: label.into(), look: Look::Numbered(look), draw, points }
    }

    /// A thin grey line.
    fn context(label: &str, points: Vec<Point>) -> Series {
        Series { label: label.to_owned(), look: Look::Context, draw: Draw::Line, points }
    }
}

impl Point {
    /// A point without an interval.
    pub fn new(x: f64, y: f64) -> Point {
        Point { x, y, half_width: 0.0 }
    }
}

/// At most `count` indices spread evenly over `0..length`, ends included.
fn spread(length: usize, count: usize) -> Vec<usize> {
    if length <= count {
        return (0..length).collect();
    }
    (0..count).map(|k| k * (length - 1) / (count - 1)).collect()
}

/// The file name of a figure of levels: `throughput-over-time`, `new-orders-over-time`.
fn file_name(quantity: Quantity, of_what: &str) -> String {
    format!("{}-{of_what}", quantity.name().replace(' ', "-"))
}

/// The section of figures of levels.
fn section(quantity: Quantity) -> Section {
    match quantity {
        Quantity::Throughput => Section::Throughput,
        Quantity::NewOrders => Section::NewOrders,
    }
}

/// The heading of a figure of levels: `Throughput over time`.
fn title(quantity: Quantity, of_what: &str) -> String {
    number::capitalised(&format!("{} {of_what}", quantity.name()))
}

/// The figures of a campaign.
pub(crate) fn figures(
    campaign: &Campaign,
    answers: &[Answer<'_>],
    comparisons: &[Comparison],
) -> Vec<Figure> {
    if answers.is_empty() {
        return Vec::new();
    }
    let mut figures = over_factors(answers, comparisons);
    if campaign.cells.iter().any(|cell| cell.predicted.is_some()) {
        predicted::add(campaign, answers, &mut figures);
    }
    figures.extend(time::levels(campaign, answers));
    figures.extend(databases::device(campaign, answers));
    match quantity_of(answers) {
        Quantity::Throughput => figures.extend(latency::distribution(answers)),
        Quantity::NewOrders => figures.extend(databases::latency(answers)),
    }
    figures.extend(time::write_amplification(answers));
    figures.extend(layer::by_fill(campaign, answers, comparisons));
    figures.extend(wear::erase_counts(answers));
    figures
}

/// Levels over the varying factors: of block devices over size, fill and threads; of databases, whose question may be
/// any factor, over each numeric factor.
fn over_factors(answers: &[Answer<'_>], comparisons: &[Comparison]) -> Vec<Figure> {
    if quantity_of(answers) == Quantity::NewOrders {
        return sweep::over_factors(answers, comparisons);
    }
    let mut figures: Vec<Figure> = Vec::new();
    figures.extend(sweep::over_size(answers, comparisons));
    figures.extend(sweep::over_fill(answers, comparisons));
    figures.extend(sweep::over_threads(answers, comparisons));
    figures
}

/// The figures of a campaign that show published points.
pub(crate) fn with_published(campaign: &Campaign, comparisons: &[Comparison]) -> Vec<Figure> {
    let answers = Answer::of_all(campaign);
    if answers.is_empty() {
        return Vec::new();
    }
    let mut figures = over_factors(&answers, comparisons);
    figures.extend(layer::by_fill(campaign, &answers, comparisons));
    figures.retain(|figure| {
        figure.panels.iter().flat_map(|panel| &panel.series).any(|series| series.draw == Draw::Hollow)
    });
    figures
}

/// The figures of a comparison: the sweeps, with a curve for each side of `factor`.
pub(crate) fn sweeps(answers: &[Answer<'_>], factor: &str) -> Vec<Figure> {
    let mut figures = over_factors(answers, &[]);
    figures.extend(latency::distribution(&latency::matched(answers, factor)));
    figures
}
