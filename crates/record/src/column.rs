//! The numbers of an interval and of its transactions as columns: name, unit, meaning, and how a record holds them.
//!
//! The tables of a store, their writer and reader, exports and frames all follow these lists. A new number is added to
//! the record, to its list, and where it is measured.
//!
//! Leaves out counters of devices: those are [`lowtide_core::Counters::ALL`].

use super::{Done, Percentiles, Row};

/// A number of records of type `R`.
#[derive(Debug)]
pub struct Column<R: 'static> {
    /// Its name in exports and frames: `read_latency_ns_p99`.
    pub name: &'static str,
    /// Its name in a store: `read_p99_ns`.
    pub stored: &'static str,
    /// `B`, `ns`, or nothing for a plain count.
    pub unit: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// When it is known.
    pub known: Known,
    /// How a record holds it.
    pub value: Value<R>,
}

/// When a number is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Always.
    Always,
    /// Where the device was seen ([`super::Cell::device_seen`]).
    WithDevice,
    /// Where an operation of its kind completed: it is part of a latency.
    AfterCompletion,
}

/// How a record holds a number.
#[derive(Debug)]
pub enum Value<R: 'static> {
    /// A whole number.
    Whole {
        /// Reads it.
        get: fn(&R) -> u64,
        /// Sets it.
        set: fn(&mut R, u64),
    },
    /// A number.
    Real {
        /// Reads it.
        get: fn(&R) -> f64,
        /// Sets it.
        set: fn(&mut R, f64),
    },
}

impl<R> Value<R> {
    /// The number of a record.
    pub fn as_f64(&self, record: &R) -> f64 {
        match self {
            Value::Whole { get, .. } => get(record) as f64,
            Value::Real { get, .. } => get(record),
        }
    }

    /// The number of a record in digits.
    pub fn text(&self, record: &R) -> String {
        match self {
            Value::Whole { get, .. } => get(record).to_string(),
            Value::Real { get, .. } => get(record).to_string(),
        }
    }
}

macro_rules! value {
    ($kind:ident $($field:ident).+) => {
        Value::$kind { get: |it| it.$($field).+, set: |it, value| it.$($field).+ = value }
    };
}

/// A count or a time.
macro_rules! column {
    ($($field:ident).+, $name:literal $unit:literal $known:ident $doc:literal) => {
        Column { name: $name, stored: $name, unit: $unit, doc: $doc, known: Known::$known,
            value: value!(Whole $($field).+) }
    };
}

/// A percentile of the latency in `$field`, whose names begin with `$name` and `$stored`.
macro_rules! percentile {
    ($kind:ident $($field:ident).+, $name:expr, $stored:expr, $doc:expr) => {
        Column { name: $name, stored: $stored, unit: "ns", doc: $doc, known: Known::AfterCompletion,
            value: value!($kind $($field).+) }
    };
}

impl Row {
    /// The numbers of an interval, in the order of the store's table.
    pub const COLUMNS: &'static [Column<Row>] = &[
        column!(start_ns, "start_ns" "ns" Always "start of the interval since the start of the measurement"),
        column!(end_ns, "end_ns" "ns" Always "end of the interval"),
        column!(reads, "reads" "" WithDevice "reads completed"),
        column!(read_bytes, "read_bytes" "B" WithDevice "bytes read"),
        column!(writes, "writes" "" WithDevice "writes completed"),
        column!(write_bytes, "write_bytes" "B" WithDevice "bytes written"),
        column!(errors, "errors" "" Always "operations that failed"),
        percentile!(Real read.mean_ns, "read_latency_ns_mean", "read_mean_ns", "mean of the latency of reads"),
        percentile!(Whole read.p50_ns, "read_latency_ns_p50", "read_p50_ns", "median of the latency of reads"),
        percentile!(Whole read.p95_ns, "read_latency_ns_p95", "read_p95_ns", "95th percentile of the latency of reads"),
        percentile!(Whole read.p99_ns, "read_latency_ns_p99", "read_p99_ns", "99th percentile of the latency of reads"),
        percentile!(Whole read.p999_ns, "read_latency_ns_p999", "read_p999_ns", "99.9th percentile of the latency of reads"),
        percentile!(Whole read.max_ns, "read_latency_ns_max", "read_max_ns", "longest read latency"),
        percentile!(Real write.mean_ns, "write_latency_ns_mean", "write_mean_ns", "mean of the latency of writes"),
        percentile!(Whole write.p50_ns, "write_latency_ns_p50", "write_p50_ns", "median of the latency of writes"),
        percentile!(Whole write.p95_ns, "write_latency_ns_p95", "write_p95_ns", "95th percentile of the latency of writes"),
        percentile!(Whole write.p99_ns, "write_latency_ns_p99", "write_p99_ns", "99th percentile of the latency of writes"),
        percentile!(Whole write.p999_ns, "write_latency_ns_p999", "write_p999_ns", "99.9th percentile of the latency of writes"),
        percentile!(Whole write.max_ns, "write_latency_ns_max", "write_max_ns", "longest write latency"),
    ];
}

impl Done {
    /// The numbers of one kind of transaction in an interval, in the order of the store's table.
    pub const COLUMNS: &'static [Column<Done>] = &[
        column!(committed, "committed" "" Always "committed"),
        column!(rolled_back, "rolled_back" "" Always "rolled back as the benchmark specifies"),
        column!(retries, "retries" "" Always "retried attempts"),
        percentile!(Real latency.mean_ns, "latency_ns_mean", "mean_ns", "mean of their latency"),
        percentile!(Whole latency.p50_ns, "latency_ns_p50", "p50_ns", "median of their latency"),
        percentile!(Whole latency.p95_ns, "latency_ns_p95", "p95_ns", "95th percentile of their latency"),
        percentile!(Whole latency.p99_ns, "latency_ns_p99", "p99_ns", "99th percentile of their latency"),
        percentile!(Whole latency.p999_ns, "latency_ns_p999", "p999_ns", "99.9th percentile of their latency"),
        percentile!(Whole latency.max_ns, "latency_ns_max", "max_ns", "longest latency"),
    ];
}

impl Percentiles {
    /// The percentiles of a latency; names are those after `latency_`.
    pub const COLUMNS: &'static [Column<Percentiles>] = &[
        percentile!(Real mean_ns, "ns_mean", "mean_ns", "mean"),
        percentile!(Whole p50_ns, "ns_p50", "p50_ns", "median"),
        percentile!(Whole p95_ns, "ns_p95", "p95_ns", "95th percentile"),
        percentile!(Whole p99_ns, "ns_p99", "p99_ns", "99th percentile"),
        percentile!(Whole p999_ns, "ns_p999", "p999_ns", "99.9th percentile"),
        percentile!(Whole max_ns, "ns_max", "max_ns", "longest"),
    ];
}
