//! Figures: what is drawn, apart from how. A [`Figure`] holds panels in data units; `svg` draws them.
//!
//! Not here: colour and layout; a series only says which look it has ([`Look`]), and looks differ in colour,
//! dash and marker at once, so a print in grey stays readable.

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
    /// What to see, and what the marks mean.
    pub caption: String,
    /// The part of the report it belongs to.
    pub part: Part,
    /// The panels, in reading order.
    pub panels: Vec<Panel>,
}

/// Where in the report a figure stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Rounds, and how they became steady.
    Rounds,
    /// Throughput over time, size, threads, fill.
    Throughput,
    /// The same of new orders, and what the device of a database did.
    NewOrders,
    /// Latency.
    Latency,
    /// Write amplification and erase counts.
    Wear,
}

/// One pair of axes and what is drawn on them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Panel {
    /// The heading; empty where the figure's title says enough.
    pub title: String,
    /// A figure of the panel's own, opposite the heading: `30.2 MiB/s`; may be empty.
    pub aside: String,
    /// Small panels stand several to a row.
    pub small: bool,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Curves and points, the first at the back.
    pub series: Vec<Series>,
    /// Shaded ranges of x: steady windows.
    pub bands: Vec<(f64, f64)>,
    /// Lines across the panel.
    pub marks: Vec<Mark>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axis {
    /// What it shows, with the unit: `MiB/s`.
    pub label: String,
    /// How values are spread.
    pub scale: Scale,
    /// The least upper end, so that panels can share one; zero where the data decide.
    pub at_least: f64,
}

/// How the values of an axis are spread.
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
    /// By nines: 0 %, 90 %, 99 %, 99.9 % are equally far apart. Values are shares below 1.
    Nines,
}

/// A curve or a cloud of points.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend; empty to stay out of it.
    pub label: String,
    /// Which colour, dash and marker.
    pub look: Look,
    /// What is drawn of it.
    pub draw: Draw,
    /// The points, in data units.
    pub points: Vec<Point>,
}

/// Which of the palette's looks a series has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// One of the numbered looks; wraps around.
    Numbered(usize),
    /// Thin and grey: context.
    Context,
}

/// What is drawn of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    /// A line only.
    Line,
    /// A line with a marker at each point and error bars where a point has them.
    LineAndMarkers,
    /// Hollow markers only: published points.
    Hollow,
    /// A dashed line, with error bars where a point has them: what was not measured.
    Dashed,
    /// Bars from zero.
    Bars,
}

/// A point, with half its confidence interval where there is one.
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
        /// Where.
        x: f64,
        /// A word beside it; may be empty.
        label: String,
    },
    /// A word at an x, at the top of the panel.
    Label {
        /// Where its middle is.
        x: f64,
        /// The word; may be empty.
        label: String,
    },
    /// At a y: the settled level, over part of x.
    Level {
        /// The level.
        y: f64,
        /// Half of its confidence interval.
        half_width: f64,
        /// Where it begins and ends on x.
        from_to: (f64, f64),
    },
}

impl Point {
    /// A point without an interval.
    pub fn new(x: f64, y: f64) -> Point {
        Point { x, y, half_width: 0.0 }
    }
}

/// The file name of a figure of levels: `throughput-over-time`, `new-orders-over-time`.
fn file_name(quantity: Quantity, of_what: &str) -> String {
    format!("{}-{of_what}", quantity.name().replace(' ', "-"))
}

/// Where figures of levels stand.
fn part(quantity: Quantity) -> Part {
    match quantity {
        Quantity::Throughput => Part::Throughput,
        Quantity::NewOrders => Part::NewOrders,
    }
}

/// The heading of a figure of levels: `Throughput over time`.
fn title(quantity: Quantity, of_what: &str) -> String {
    number::capitalised(&format!("{} {of_what}", quantity.name()))
}

/// The figures of a campaign, those that have something to show.
pub(crate) fn figures(
    campaign: &Campaign,
    answers: &[Answer<'_>],
    comparisons: &[Comparison],
) -> Vec<Figure> {
    if answers.is_empty() {
        return Vec::new();
    }
    let mut figures: Vec<Figure> = Vec::new();
    figures.extend(over_factors(answers, comparisons));
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

/// Levels over the factors that vary: of block devices over size, fill and threads; of databases, where any factor may be
/// the question, over each that has numbers.
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

/// The figures of a campaign on which published points stand.
pub(crate) fn beside_published(campaign: &Campaign, comparisons: &[Comparison]) -> Vec<Figure> {
    let answers = Answer::of_all(campaign);
    if answers.is_empty() {
        return Vec::new();
    }
    let mut figures: Vec<Figure> = Vec::new();
    figures.extend(over_factors(&answers, comparisons));
    figures.extend(layer::by_fill(campaign, &answers, comparisons));
    figures.retain(|figure| {
        figure.panels.iter().flat_map(|panel| &panel.series).any(|series| series.draw == Draw::Hollow)
    });
    figures
}

/// The figures of a comparison: the sweeps, with a curve for each side of `factor`.
pub(crate) fn sweeps(answers: &[Answer<'_>], factor: &str) -> Vec<Figure> {
    let mut figures: Vec<Figure> = Vec::new();
    figures.extend(over_factors(answers, &[]));
    figures.extend(latency::distribution(&latency::matched(answers, factor)));
    figures
}
