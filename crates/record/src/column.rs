//! The numbers of an interval and of its transactions as columns: name, unit, meaning, and access to the record.
//!
//! The tables of a store, their writer and reader, exports and frames all follow these lists. To add a number, add it
//! to the record, to its list here, and to the code that measures it. Counters of devices are listed in
//! [`lowtide_core::Counters::ALL`].

use super::{Done, Row};

/// A column: one number of a record of type `R`.
#[derive(Debug)]
pub struct Column<R: 'static> {
    /// Name in exports and frames: `read_latency_ns_p99`.
    pub name: &'static str,
    /// Name in a store: `read_p99_ns`.
    pub stored: &'static str,
    /// `B`, `ns`, or empty for a plain count.
    pub unit: &'static str,
    /// Description.
    pub doc: &'static str,
    /// The condition under which the number is known.
    pub known: Known,
    /// Access to the number in a record.
    pub value: Value<R>,
}

/// The condition under which a number is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Always.
    Always,
    /// If the device was visible ([`super::Cell::device_seen`]).
    WithDevice,
    /// If an operation of its kind completed, because the number is part of a latency.
    AfterCompletion,
}

/// Access to a number of a record.
#[derive(Debug)]
pub enum Value<R: 'static> {
    /// A whole number.
    Whole {
        /// Returns the number.
        get: fn(&R) -> u64,
        /// Replaces the number.
        set: fn(&mut R, u64),
    },
    /// A floating-point number.
    Real {
        /// Returns the number.
        get: fn(&R) -> f64,
        /// Replaces the number.
        set: fn(&mut R, f64),
    },
}

impl<R> Value<R> {
    /// The number as `f64`.
    pub fn as_f64(&self, record: &R) -> f64 {
        match self {
            Value::Whole { get, .. } => get(record) as f64,
            Value::Real { get, .. } => get(record),
        }
    }

    /// The number as decimal text.
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

/// A number of the latency in `$field`.
macro_rules! latency {
    ($kind:ident $($field:ident).+, $name:expr, $stored:expr, $doc:expr) => {
        Column { name: $name, stored: $stored, unit: "ns", doc: $doc, known: Known::AfterCompletion,
            value: value!($kind $($field).+) }
    };
}

/// A list of columns, followed by the columns of latencies. Each latency has a field, a name prefix in exports, a
/// name prefix in a store, a subject, and the description of its maximum.
macro_rules! columns {
    ($($own:expr),*; $($field:ident $name:literal $stored:literal $of:literal $longest:literal;)*) => {
        &[
            $($own,)*
            $(
                latency!(Real $field.mean_ns, concat!($name, "mean"), concat!($stored, "mean_ns"), concat!("mean of ", $of)),
                latency!(Whole $field.p50_ns, concat!($name, "p50"), concat!($stored, "p50_ns"), concat!("median of ", $of)),
                latency!(Whole $field.p95_ns, concat!($name, "p95"), concat!($stored, "p95_ns"), concat!("95th percentile of ", $of)),
                latency!(Whole $field.p99_ns, concat!($name, "p99"), concat!($stored, "p99_ns"), concat!("99th percentile of ", $of)),
                latency!(Whole $field.p999_ns, concat!($name, "p999"), concat!($stored, "p999_ns"), concat!("99.9th percentile of ", $of)),
                latency!(Whole $field.max_ns, concat!($name, "max"), concat!($stored, "max_ns"), $longest),
            )*
        ]
    };
}

impl Row {
    /// The numbers of an interval, in the order of the store's table.
    pub const COLUMNS: &'static [Column<Row>] = columns![
        column!(start_ns, "start_ns" "ns" Always "start of the interval since the start of the measurement"),
        column!(end_ns, "end_ns" "ns" Always "end of the interval"),
        column!(reads, "reads" "" WithDevice "reads completed"),
        column!(read_bytes, "read_bytes" "B" WithDevice "bytes read"),
        column!(writes, "writes" "" WithDevice "writes completed"),
        column!(write_bytes, "write_bytes" "B" WithDevice "bytes written"),
        column!(errors, "errors" "" Always "operations that failed");
        read "read_latency_ns_" "read_" "the latency of reads" "longest read latency";
        write "write_latency_ns_" "write_" "the latency of writes" "longest write latency";
    ];
}

impl Done {
    /// The numbers of one kind of transaction in an interval, in the order of the store's table.
    pub const COLUMNS: &'static [Column<Done>] = columns![
        column!(committed, "committed" "" Always "committed"),
        column!(rolled_back, "rolled_back" "" Always "rolled back as the benchmark specifies"),
        column!(retries, "retries" "" Always "retried attempts");
        latency "latency_ns_" "" "their latency" "longest latency";
    ];
}
