//! Names and units of rounds for people: quantities with their units, points by their varying levels.

use super::course::{Course, Point};
use crate::number;
use lowtide_lab::experiment::{FactorName, Level, Of};

/// The name, unit and scale of a displayed quantity.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DisplayUnit {
    /// `IOPS`.
    pub name: &'static str,
    /// `1/s`.
    pub unit: &'static str,
    /// The key of the quantity's column.
    pub key: &'static str,
    /// The factor from a value to `unit`.
    pub scale: f64,
}

impl DisplayUnit {
    /// The display unit for values of up to `most`.
    pub fn of(of: Of, most: f64) -> DisplayUnit {
        match of {
            Of::Throughput => DisplayUnit { name: "throughput", unit: "MiB/s", key: "mib_per_s", scale: 1.0 },
            Of::NewOrders => DisplayUnit { name: "new orders", unit: "NOTPM", key: "notpm", scale: 1.0 },
            Of::Iops => DisplayUnit { name: "IOPS", unit: "1/s", key: "iops", scale: 1.0 },
            _ => DisplayUnit::latency("mean latency", "latency_ns_mean", most),
        }
    }

    /// The display unit for latencies of up to `most` nanoseconds.
    pub fn latency(name: &'static str, key: &'static str, most: f64) -> DisplayUnit {
        let (unit, scale) = if most < 2e6 { ("µs", 1e-3) } else { ("ms", 1e-6) };
        DisplayUnit { name, unit, key, scale }
    }

    /// A value for a sentence: `2 530 IOPS`, `1.3 ms`.
    pub fn text(&self, value: f64) -> String {
        let unit = if self.unit == "1/s" { self.name } else { self.unit };
        format!("{}\u{a0}{unit}", number::significant(value * self.scale))
    }
}

/// The display unit for all tracked points of a course.
pub(crate) fn shown(course: &Course<'_>) -> DisplayUnit {
    let values = course.tracked().flat_map(|point| course.values(point)).flatten();
    DisplayUnit::of(course.track.of, values.fold(0.0, f64::max))
}

/// A level in the notation of the specification, which writes a mix as reads and writes.
pub(crate) fn level(level: &Level) -> String {
    match level {
        Level::Mix(share) => {
            let reads = (share * 1000.0).round() / 10.0;
            format!("R/W {reads}/{}", ((100.0 - reads) * 10.0).round() / 10.0)
        }
        level => lowtide_record::FactorLevel::from(level).describe(),
    }
}

/// A point by its levels of the given factors; empty without factors.
pub(crate) fn point(point: &Point<'_>, factors: &[FactorName]) -> String {
    let named = point.levels.iter().filter(|own| factors.contains(&own.factor())).map(level);
    named.collect::<Vec<_>>().join(", ")
}

/// The factors with several levels in a course, except the device.
pub(crate) fn varying(course: &Course<'_>) -> Vec<FactorName> {
    let several = |factor: &&lowtide_lab::experiment::Factor| {
        factor.levels.len() > 1 && factor.name != FactorName::Device
    };
    course.step.sweep.iter().filter(several).map(|factor| factor.name).collect()
}

/// The name of a course among several: its step and its device.
pub(crate) fn course(course: &Course<'_>, several: bool) -> String {
    let step = course.step.name.iter().filter(|_| several).cloned();
    let parts: Vec<String> = step.chain(course.device().map(str::to_owned)).collect();
    parts.join(", ")
}
