//! Published numbers with the measured ones, as the caller of a report supplies them.
//!
//! `lowtide_studies::validate` finds the published numbers and their cells.

/// One published number and the campaign's number for the same case.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The study: `Intel 320 random write, first post`.
    pub study: String,
    /// The row of the study, from 1.
    pub line: u32,
    /// The metric: `throughput stabilised`.
    pub metric: String,
    /// The case: `100 GiB`, `16 threads`.
    pub where_label: String,
    /// Unit of `published` and `model`: `MiB/s`, `ms`, `%`.
    pub unit: String,
    /// The published number, in `unit`.
    pub published: f64,
    /// The campaign's number, in `unit`; `None` if it has no such cell.
    pub model: Option<f64>,
    /// The reason for a missing campaign number.
    pub missing: Option<String>,
    /// (model − published) / published, in percent; `None` without a model value or if a bound is met.
    pub error_percent: Option<f64>,
    /// The kind of bound, if the published number is only a bound.
    pub bound: Option<Bound>,
    /// Whether the number was used to fit the device, so that agreement is no evidence.
    pub used_to_fit: bool,
    /// The publication.
    pub source: String,
    /// A caveat; may be empty.
    pub note: String,
    /// The quantity, which decides the figure that shows the number.
    pub quantity: Quantity,
    /// The [`lowtide_record::Cell::index`] of the compared cell, if it is a single cell.
    pub cell: Option<u32>,
}

/// The direction of a one-sided published number: `never below 400`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The true value is this or more.
    AtLeast,
    /// The true value is this or less.
    AtMost,
}

impl Bound {
    /// The sign in front of the number.
    pub fn sign(self) -> &'static str {
        match self {
            Bound::AtLeast => "≥",
            Bound::AtMost => "≤",
        }
    }
    /// The word in CSV and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Bound::AtLeast => "at-least",
            Bound::AtMost => "at-most",
        }
    }
}

/// The quantity of a published number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Settled throughput in MiB/s.
    Settled,
    /// Throughput of the fresh device in MiB/s.
    Fresh,
    /// The lowest interval in MiB/s.
    Lowest,
    /// 95th percentile of latency, in milliseconds.
    LatencyMsP95,
    /// Blocks that a log layer wrote for each block written to it.
    LayerAmplification,
    /// Any other quantity; shown in the table only.
    Other,
}

impl Comparison {
    /// Returns whether the model is within `percent` of the published number or meets the published bound;
    /// `None` if there is nothing to compare.
    pub fn within(&self, percent: f64) -> Option<bool> {
        let model = self.model?;
        match self.bound {
            Some(Bound::AtLeast) if model >= self.published => Some(true),
            Some(Bound::AtMost) if model <= self.published => Some(true),
            _ => self.error_percent.map(|error| error.abs() <= percent),
        }
    }
}
