//! Lifetimes as text: decimal sizes, and the two ends of a range.

use super::endurance::Span;
use crate::number::significant;

/// A number of bytes in the decimal unit that fits, as in ratings: `1.38 PB`, `756 GB`.
pub fn decimal(bytes: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let (mut value, mut unit) = (bytes, 0);
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", significant(value), units[unit])
}

/// Both ends of a range, or a single number if both ends have the same text.
pub fn span(span: Span, word: impl Fn(f64) -> String) -> String {
    let (low, high) = (word(span.low), word(span.high));
    match low.rsplit_once(' ').zip(high.rsplit_once(' ')) {
        _ if low == high => low,
        // A shared unit appears once: `5.2–10.4 PB`.
        Some(((number, unit), (_, other))) if unit == other => format!("{number}–{high}"),
        _ => format!("{low}–{high}"),
    }
}

/// Years; `over 1000` beyond any useful prediction.
pub fn years(years: f64) -> String {
    if years > 1000.0 { "over 1000".to_owned() } else { significant(years) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_ranges_read_well() {
        assert_eq!([756e9, 1.38e15, 0.0, 1e12].map(decimal), ["756 GB", "1.38 PB", "0 B", "1 TB"]);
        let shown = |low, high| span(Span { low, high }, decimal);
        assert_eq!(shown(5.2e15, 10.4e15), "5.20–10.4 PB");
        assert_eq!(shown(0.6e15, 1.2e15), "600 TB–1.20 PB");
        assert_eq!(shown(1e15, 1e15), "1 PB");
    }
}
