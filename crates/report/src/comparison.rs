//! Published numbers beside measured ones: what the caller hands over, ready to show.
//!
//! Not here: where published numbers are kept and how a cell is found for one; whoever validates knows.

/// One published number and what this campaign says in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The study: `Intel 320 random write, first post`.
    pub study: String,
    /// The row of the study, from 1.
    pub line: u32,
    /// What was measured: `throughput stabilised`.
    pub metric: String,
    /// For which case: `100 GiB`, `16 threads`.
    pub where_label: String,
    /// Unit of `published` and `model`: `MiB/s`, `ms`, `%`.
    pub unit: String,
    /// The published number, in `unit`.
    pub published: f64,
    /// What this campaign found, in `unit`; `None` where it has no such cell.
    pub model: Option<f64>,
    /// Why there is no model value.
    pub missing: Option<String>,
    /// (model − published) / published, in percent; `None` without a model value or for a bound that is met.
    pub error_percent: Option<f64>,
    /// Where the published number is only a bound.
    pub bound: Option<Bound>,
    /// The number was used to fit the device, so agreement proves nothing.
    pub used_to_fit: bool,
    /// Where it was published.
    pub source: String,
    /// A caveat; empty where there is none.
    pub note: String,
    /// What the number is a value of, so that figures can show it where it belongs.
    pub quantity: Quantity,
    /// The cell ([`lowtide_record::Cell::index`]) it compares with, where it is one cell.
    pub cell: Option<u32>,
}

/// A published number that is one-sided: `never below 400`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The true value is this or more.
    AtLeast,
    /// The true value is this or less.
    AtMost,
}

impl Bound {
    /// The sign before the number.
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

/// What a published number is a value of.
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
    /// Anything else; shown in the table only.
    Other,
}

impl Comparison {
    /// Whether the model is within `percent` of the published number, or keeps the published bound.
    /// `None` where there is nothing to compare.
    pub fn within(&self, percent: f64) -> Option<bool> {
        let model = self.model?;
        match self.bound {
            Some(Bound::AtLeast) if model >= self.published => Some(true),
            Some(Bound::AtMost) if model <= self.published => Some(true),
            _ => self.error_percent.map(|error| error.abs() <= percent),
        }
    }
}
