//! Axes: positions of data values, and positions and labels of ticks.
//!
//! Every scale is a monotone map to an even scale, so the drawing code knows only even axes.

use super::{Axis, Panel, Scale};
use crate::number;

/// An axis with its even range and its ticks.
pub(crate) struct Layout {
    scale: Scale,
    /// Even position of the lower end.
    pub from: f64,
    /// Even position of the upper end.
    pub to: f64,
    /// Even positions and labels of the ticks.
    pub ticks: Vec<(f64, String)>,
}

impl Layout {
    /// Lays out the horizontal axis of a panel.
    pub fn x(panel: &Panel) -> Layout {
        let bars = panel.series.iter().any(|s| s.draw == super::Draw::Bars);
        let values = panel.series.iter().flat_map(|s| &s.points).map(|p| p.x);
        Layout::of(&panel.x, values, if panel.small { 4 } else { 8 }, bars)
    }
    /// Lays out the vertical axis of a panel.
    pub fn y(panel: &Panel) -> Layout {
        let values = panel.series.iter().flat_map(|s| &s.points).map(|p| p.y + p.half_width);
        Layout::of(&panel.y, values, if panel.small { 3 } else { 6 }, false)
    }

    fn of(axis: &Axis, values: impl Iterator<Item = f64>, about: usize, bars: bool) -> Layout {
        let place = |v: f64| even(axis.scale, v);
        let (low, high) = values
            .map(place)
            .filter(|v| v.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        match axis.scale {
            Scale::Linear => {
                let high = high.max(axis.at_least);
                let high = if high > 0.0 { high } else { 1.0 };
                linear(0.0, high * 1.02, about, axis.scale)
            }
            Scale::LinearFromData => {
                let margin = if bars {
                    ((high - low) * 0.02).max(0.7)
                } else {
                    ((high - low) * 0.04).max(high.abs() * 1e-3)
                };
                linear(low - margin, (high + margin).max(low + 1e-9), about, axis.scale)
            }
            Scale::Doubling => {
                let (first, last) = (low.floor() as i32, high.ceil().max(low.floor() + 1.0) as i32);
                let ticks = (first..=last).map(|p| (f64::from(p), power_of_two(p))).collect();
                Layout { scale: axis.scale, from: f64::from(first) - 0.15, to: f64::from(last) + 0.15, ticks }
            }
            Scale::Counted => {
                let step = ((high - low) / about as f64).ceil().max(1.0);
                let count = ((high - low) / step) as i32;
                let ticks = (0..=count).map(|n| low + f64::from(n) * step).map(|v| (v, number::fixed(v, 0)));
                Layout { scale: axis.scale, from: low - 0.5, to: high + 0.5, ticks: ticks.collect() }
            }
            Scale::Log | Scale::LogTime => {
                let label = |value: f64| match axis.scale {
                    Scale::LogTime => number::span(value.round()),
                    _ => number::significant(value),
                };
                // The ends are 1, 2 or 5 of a power of ten; so are the ticks, unless powers alone are enough.
                let steps = |p: i32| [1.0, 2.0, 5.0].map(|m: f64| m.log10() + f64::from(p));
                let range = low.floor() as i32..=high.floor() as i32 + 1;
                let all: Vec<f64> = range.flat_map(steps).collect();
                let from = all.iter().copied().rfind(|s| *s <= low + 1e-9).unwrap_or(low);
                let to = all.iter().copied().find(|s| *s >= high - 1e-9 && *s > from).unwrap_or(high);
                let powers = to - from > (about as f64 / 2.0).min(3.0);
                let ticks = all
                    .iter()
                    .filter(|s| (from..=to).contains(*s) && (!powers || s.fract() == 0.0))
                    .map(|s| (*s, label(10f64.powf(*s))))
                    .collect();
                Layout { scale: axis.scale, from, to, ticks }
            }
            Scale::Nines => {
                let last = high.max(2.0);
                let mut ticks = vec![(0.0, "0 %".to_owned()), (even(Scale::Nines, 0.5), "50 %".to_owned())];
                ticks.extend((1..=(last + 1e-9) as i32).map(|n| {
                    let decimals = (n - 2).max(0) as usize;
                    (f64::from(n), format!("{:.decimals$} %", 100.0 * (1.0 - 0.1f64.powi(n))))
                }));
                Layout { scale: axis.scale, from: 0.0, to: last, ticks }
            }
        }
    }

    /// The even position of a value, clamped to the axis.
    pub fn place(&self, value: f64) -> f64 {
        even(self.scale, value).clamp(self.from, self.to)
    }
}

/// The even position of a value on a scale.
fn even(scale: Scale, value: f64) -> f64 {
    match scale {
        Scale::Linear | Scale::LinearFromData | Scale::Counted => value,
        Scale::Log => value.max(f64::MIN_POSITIVE).log10(),
        Scale::Doubling => value.max(f64::MIN_POSITIVE).log2(),
        Scale::LogTime => value.max(1.0).log10(),
        Scale::Nines => -(1.0 - value.clamp(0.0, 1.0 - 1e-9)).log10(),
    }
}

/// The label of a power of two: `0.5`, `16`, `1 024`.
fn power_of_two(power: i32) -> String {
    number::fixed(2f64.powi(power), (-power).clamp(0, 3) as usize)
}

/// An axis with about `about` steps of 1, 2 or 5 times a power of ten.
fn linear(from: f64, to: f64, about: usize, scale: Scale) -> Layout {
    let rough = (to - from) / about as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|s| *s >= rough * 0.9)
        .unwrap_or(10.0 * power);
    let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    let first = (from / step).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    let ticks = (first..=last).map(|k| (k as f64 * step, number::fixed(k as f64 * step, decimals))).collect();
    Layout { scale, from, to, ticks }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(layout: &Layout) -> Vec<&str> {
        layout.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(&linear(0.0, 81.0, 5, Scale::Linear)), ["0", "20", "40", "60", "80"]);
        assert_eq!(labels(&linear(0.0, 0.9, 4, Scale::Linear)), ["0.0", "0.5"]);
        assert_eq!(labels(&linear(0.0, 61.0, 8, Scale::Linear)), ["0", "10", "20", "30", "40", "50", "60"]);
    }

    #[test]
    fn counts_stand_at_whole_numbers_and_magnitudes_at_1_2_and_5() {
        let of = |scale, values: &[f64]| {
            Layout::of(&Axis { scale, ..Axis::default() }, values.iter().copied(), 8, false)
        };
        assert_eq!(labels(&of(Scale::Counted, &[1.0, 5.0])), ["1", "2", "3", "4", "5"]);
        let many = of(Scale::Counted, &[1.0, 25.0]);
        assert_eq!(labels(&many), ["1", "4", "7", "10", "13", "16", "19", "22", "25"]);
        assert_eq!((many.from, many.to), (0.5, 25.5));
        assert_eq!(labels(&of(Scale::Log, &[30.0, 180.0])), ["20.0", "50.0", "100", "200"]);
        assert_eq!(labels(&of(Scale::Doubling, &[0.5, 2.0])), ["0.5", "1", "2"]);
    }

    #[test]
    fn the_nines_are_evenly_spaced() {
        let axis = Axis { scale: Scale::Nines, ..Axis::default() };
        let layout = Layout::of(&axis, [0.0, 0.9999].into_iter(), 8, false);
        assert_eq!(labels(&layout), ["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert!((layout.place(0.999) - 3.0).abs() < 1e-9);
    }
}
