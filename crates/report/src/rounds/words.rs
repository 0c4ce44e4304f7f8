//! What rounds are called for people: quantities with their units, points by the levels that tell them apart.
//!
//! Not here: numbers.

use super::course::{Course, Point};
use crate::number;
use lowtide_lab::experiment::{FactorName, Level, Of};

/// A quantity as tables and figures show it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown {
    /// `IOPS`.
    pub name: &'static str,
    /// `1/s`.
    pub unit: &'static str,
    /// The key of its column.
    pub key: &'static str,
    /// A value is multiplied by this to be shown in `unit`.
    pub scale: f64,
}

impl Shown {
    /// How values of up to `most` are shown.
    pub fn of(of: Of, most: f64) -> Shown {
        match of {
            Of::Throughput => Shown { name: "throughput", unit: "MiB/s", key: "mib_per_s", scale: 1.0 },
            Of::NewOrders => Shown { name: "new orders", unit: "NOTPM", key: "notpm", scale: 1.0 },
            Of::Iops => Shown { name: "IOPS", unit: "1/s", key: "iops", scale: 1.0 },
            _ => Shown::latency("mean latency", "latency_ns_mean", most),
        }
    }

    /// How latencies of up to `most` nanoseconds are shown.
    pub fn latency(name: &'static str, key: &'static str, most: f64) -> Shown {
        let (unit, scale) = if most < 2e6 { ("µs", 1e-3) } else { ("ms", 1e-6) };
        Shown { name, unit, key, scale }
    }

    /// A value for a sentence: `2 530 IOPS`, `1.3 ms`.
    pub fn text(&self, value: f64) -> String {
        let unit = if self.unit == "1/s" { self.name } else { self.unit };
        format!("{}\u{a0}{unit}", number::significant(value * self.scale))
    }
}

/// How the values of all tracked points of a course are shown.
pub(crate) fn shown(course: &Course<'_>) -> Shown {
    let values = course.tracked().flat_map(|point| course.values(point)).flatten();
    Shown::of(course.track.of, values.fold(0.0, f64::max))
}

/// A level as the specification writes it: a mix as reads and writes.
pub(crate) fn level(level: &Level) -> String {
    match level {
        Level::Mix(share) => {
            let reads = (share * 1000.0).round() / 10.0;
            format!("R/W {reads}/{}", ((100.0 - reads) * 10.0).round() / 10.0)
        }
        level => lowtide_record::FactorLevel::from(level).describe(),
    }
}

/// A point by its levels of the given factors; empty where there are none.
pub(crate) fn point(point: &Point<'_>, factors: &[FactorName]) -> String {
    let named = point.levels.iter().filter(|own| factors.contains(&own.factor())).map(level);
    named.collect::<Vec<_>>().join(", ")
}

/// The factors that take several levels in a course.
pub(crate) fn varying(course: &Course<'_>) -> Vec<FactorName> {
    let several = |factor: &&lowtide_lab::experiment::Factor| {
        factor.levels.len() > 1 && factor.name != FactorName::Device
    };
    course.step.sweep.iter().filter(several).map(|factor| factor.name).collect()
}

/// What a course is called where there are several: its step, its device.
pub(crate) fn course(course: &Course<'_>, several: bool) -> String {
    let step = course.step.name.iter().filter(|_| several).cloned();
    let parts: Vec<String> = step.chain(course.device().map(str::to_owned)).collect();
    parts.join(", ")
}
