//! Seek time by distance in cylinders ([`SeekCurve`]).
//!
//! The time grows with the square root of the distance while the arm only accelerates and brakes, and linearly once
//! the arm also coasts (Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994). In
//! this model both parts have the same slope at the knee, so the three rated times determine the curve. The knee is
//! chosen so that the mean over random pairs of bytes is the rated average.
//!
//! # Not modelled
//! Differences between drives of one type, and between inward and outward seeks.

use super::spec::Seek;
use super::surface::Surface;

/// Number of slices of the stroke for computing the mean.
const SLICES: usize = 1024;

/// Seek time by distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeekCurve {
    /// `base + root · √d` up to `knee` cylinders.
    base: f64,
    root: f64,
    knee: f64,
    /// `start + slope · d` above `knee`.
    start: f64,
    slope: f64,
}

impl SeekCurve {
    /// Fits the curve to the rated times. The error describes an average outside the possible range.
    pub(super) fn new(seek: &Seek, surface: &Surface) -> Result<Self, String> {
        let distances = distances(surface);
        let stroke = (surface.cylinders() - 1) as f64;
        let curve = |knee: f64| SeekCurve::with_knee(seek, stroke, knee);
        let mean = |knee: f64| {
            let curve = curve(knee);
            distances.iter().map(|(share, weight)| weight * curve.at((share * stroke).max(1.0))).sum::<f64>()
        };
        let average = seek.average.get() as f64;
        let (mut low, mut high) = (1.0, stroke);
        let (least, most) = (mean(low), mean(high));
        if seek.track > seek.full || !(least..=most).contains(&average) {
            return Err(format!(
                "{} is not between {:.2}ms and {:.2}ms, where a seek curve from {} to {} has its mean",
                seek.average,
                least / 1e6,
                most / 1e6,
                seek.track,
                seek.full
            ));
        }
        for _ in 0..64 {
            let middle = 0.5 * (low + high);
            if mean(middle) < average {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(curve(0.5 * (low + high)))
    }

    fn with_knee(seek: &Seek, stroke: f64, knee: f64) -> Self {
        let (track, full) = (seek.track.get() as f64, seek.full.get() as f64);
        let root = (full - track) / (knee.sqrt() - 1.0 + (stroke - knee) / (2.0 * knee.sqrt()));
        let base = track - root;
        let slope = root / (2.0 * knee.sqrt());
        SeekCurve { base, root, knee, start: base + root * knee.sqrt() - slope * knee, slope }
    }

    #[inline]
    fn at(&self, distance: f64) -> f64 {
        if distance <= self.knee {
            self.base + self.root * distance.sqrt()
        } else {
            self.start + self.slope * distance
        }
    }

    /// Seek time over `distance` cylinders in nanoseconds; 0 within a cylinder.
    #[inline]
    pub fn ns(&self, distance: u64) -> u64 {
        if distance == 0 { 0 } else { self.at(distance as f64) as u64 }
    }

    /// The distance in cylinders above which the arm coasts.
    pub fn knee(&self) -> u64 {
        self.knee as u64
    }

    /// The curve in coarse units of time, for comparing many seeks quickly.
    pub(super) fn coarse(&self, units_per_ns: f64) -> Coarse {
        let scaled = |ns: f64| (ns * units_per_ns) as f32;
        Coarse {
            base: scaled(self.base),
            root: scaled(self.root),
            knee: self.knee as f32,
            start: scaled(self.start),
            slope: scaled(self.slope),
        }
    }
}

/// A [`SeekCurve`] in single precision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Coarse {
    base: f32,
    root: f32,
    knee: f32,
    start: f32,
    slope: f32,
}

impl Coarse {
    /// Seek time over `distance` cylinders in coarse units. Free of branches, so that many seeks can be computed at
    /// once.
    #[inline]
    pub(super) fn at(&self, distance: f32) -> f32 {
        let near = self.base + self.root * distance.sqrt();
        let far = self.start + self.slope * distance;
        let time = if distance <= self.knee { near } else { far };
        if distance == 0.0 { 0.0 } else { time }
    }
}

/// The distances between two random bytes, as shares of the stroke, with their probabilities.
fn distances(surface: &Surface) -> Vec<(f64, f64)> {
    let zones = surface.weights();
    let per_zone = SLICES.div_ceil(zones.len());
    let slices: Vec<f64> =
        zones.iter().flat_map(|weight| std::iter::repeat_n(weight / per_zone as f64, per_zone)).collect();
    let count = slices.len();
    let width = 1.0 / count as f64;
    (0..count)
        .map(|apart| {
            let pairs: f64 = slices[apart..].iter().zip(&slices).map(|(a, b)| a * b).sum();
            // Two random points in one slice are on average a third of its width apart.
            if apart == 0 { (width / 3.0, pairs) } else { (apart as f64 * width, 2.0 * pairs) }
        })
        .collect()
}
