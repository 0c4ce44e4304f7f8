//! Numbers as text for people: significant digits, grouped thousands, sizes and spans of time.
//!
//! JSON and CSV have every digit, so they do not use this module.

use lowtide_record::Quantity;

/// The no-break space between a number and its unit.
pub(crate) const NBSP: char = '\u{a0}';
/// The narrow no-break space between groups of three digits.
const GROUP: char = '\u{202f}';

/// The decimals for about three significant digits of `value`; at most three.
pub(crate) fn decimals_for(value: f64) -> usize {
    let size = value.abs();
    match size {
        s if s >= 99.95 => 0,
        s if s >= 9.995 => 1,
        s if s >= 0.9995 || s == 0.0 => 2,
        _ => 3,
    }
}

/// The decimals for the first digit of an uncertainty of `half_width`, or for two digits if the first is 1; at most
/// three.
pub(crate) fn decimals_for_half_width(half_width: f64) -> usize {
    if half_width.is_nan() || half_width <= 0.0 {
        return 0;
    }
    let exponent = half_width.log10().floor();
    let leading_one = half_width / 10f64.powf(exponent) < 1.95;
    (f64::from(u8::from(leading_one)) - exponent).clamp(0.0, 3.0) as usize
}

/// `value` with a fixed number of decimals and grouped thousands: `12 345.6`.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let text = format!("{value:.decimals$}");
    let (sign, digits) = match text.strip_prefix('-') {
        // A rounded zero has no sign.
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => ("", rest),
        Some(rest) => ("−", rest),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let mut out = String::from(sign);
    for (i, digit) in whole.chars().enumerate() {
        // Four digits stay together: `4495`, `12 345`.
        if i > 0 && whole.len() > 4 && (whole.len() - i).is_multiple_of(3) {
            out.push(GROUP);
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// `value` to about three significant digits, never in exponent form: `0.053`, `2.6`, `30.2`, `12 345`.
pub fn significant(value: f64) -> String {
    let text = fixed(value, decimals_for(value));
    if text.contains('.') && value.fract() == 0.0 { fixed(value, 0) } else { text }
}

/// A mean and half its confidence interval: `30.2 ± 0.3`, without a unit.
pub(crate) fn estimate(mean: f64, half_width: f64) -> String {
    estimate_with(mean, half_width, decimals_for_half_width(half_width).max(decimals_for(mean).min(1)))
}

/// As [`estimate`], with a fixed number of decimals; an interval too narrow for them is shown as `<0.1`.
pub(crate) fn estimate_with(mean: f64, half_width: f64, decimals: usize) -> String {
    let smallest = 10f64.powi(-(decimals as i32));
    let half = if half_width > 0.0 && half_width < smallest / 2.0 {
        format!("<{}", fixed(smallest, decimals))
    } else {
        fixed(half_width, decimals)
    };
    format!("{}{NBSP}±{NBSP}{half}", fixed(mean, decimals))
}

/// A level for people: `30.2 MiB/s`, `12 345 NOTPM`.
pub(crate) fn level(value: f64, quantity: Quantity) -> String {
    format!("{}{NBSP}{}", significant(value), quantity.unit())
}

/// A size for people, in the binary unit that fits: `100 GiB`, `1.5 TiB`.
pub(crate) fn size(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    // Sizes near a whole number have no decimals: 149 GiB, not 149.01.
    let rounded = if value >= 99.95 || (value - value.round()).abs() < 0.005 {
        fixed(value, 0)
    } else {
        significant(value)
    };
    format!("{rounded}{NBSP}{}", units[unit])
}

/// A span of time for people: `250 ns`, `85 µs`, `2.9 ms`, `42 s`, `31 min`, `2.5 h`.
pub(crate) fn span(ns: f64) -> String {
    let (value, unit) = match ns {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "µs"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n if n < 120e9 => (n / 1e9, "s"),
        n if n < 7200e9 => (n / 60e9, "min"),
        n if n < 172_800e9 => (n / 3600e9, "h"),
        n => (n / 86_400e9, "d"),
    };
    let decimals = decimals_for(value).min(if value < 10.0 { 1 } else { 0 });
    let text = fixed(value, decimals);
    format!("{}{NBSP}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// A share as a percentage: `38 %`, `7.5 %`.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    format!("{}{NBSP}%", fixed(value, usize::from(value.abs() < 9.95 && value.fract().abs() > 0.05)))
}

/// `words` with a capital first letter.
pub(crate) fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The unit of a column of latencies, and the factor from nanoseconds to that unit. `longest_ns` is the longest
/// typical latency.
pub fn latency_unit(longest_ns: f64) -> (&'static str, f64) {
    match longest_ns {
        ns if ns < 2e6 => ("µs", 1e-3),
        ns if ns < 10e9 => ("ms", 1e-6),
        _ => ("s", 1e-9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_about_three_digits() {
        let shown: Vec<String> =
            [0.0, 0.0534, 1.0, 2.604, 30.17, 99.96, 174.6, 4495.0, 12_345.6, -3.2, f64::NAN]
                .map(significant)
                .to_vec();
        assert_eq!(
            shown,
            ["0", "0.053", "1", "2.60", "30.2", "100", "175", "4495", "12\u{202f}346", "−3.20", "–"]
        );
        assert_eq!(fixed(-0.001, 1), "0.0");
        assert_eq!(fixed(1_234_567.0, 0), "1\u{202f}234\u{202f}567");
    }

    #[test]
    fn an_estimate_shows_the_digits_that_its_interval_supports() {
        let estimate = |mean, half| super::estimate(mean, half).replace(NBSP, " ");
        assert_eq!(estimate(30.17, 0.31), "30.2 ± 0.3");
        assert_eq!(estimate(30.17, 0.14), "30.17 ± 0.14");
        assert_eq!(estimate(355.2, 12.4), "355 ± 12");
        assert_eq!(estimate(959.0, 3.2), "959 ± 3");
        assert_eq!(estimate(30.17, 0.0), "30.2 ± 0.0");
        assert_eq!(estimate_with(30.17, 0.01, 1), "30.2\u{a0}±\u{a0}<0.1");
    }

    #[test]
    fn sizes_and_spans_pick_their_unit() {
        let gib = f64::from(1 << 30);
        assert_eq!(
            [size(100.0 * gib), size(149.01 * gib), size(1.5 * gib), size(16384.0)],
            ["100\u{a0}GiB", "149\u{a0}GiB", "1.50\u{a0}GiB", "16\u{a0}KiB"]
        );
        assert_eq!(
            [250.0, 85_200.0, 2_864_000.0, 42e9, 1860e9, 9000e9, 864_000e9]
                .map(|ns| span(ns).replace(NBSP, " ")),
            ["250 ns", "85 µs", "2.9 ms", "42 s", "31 min", "2.5 h", "10 d"]
        );
        assert_eq!(
            [percent(0.381), percent(0.075), percent(0.05)].map(|p| p.replace(NBSP, " ")),
            ["38 %", "7.5 %", "5 %"]
        );
    }
}
