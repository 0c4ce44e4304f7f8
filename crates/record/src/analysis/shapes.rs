//! Synthetic series for the tests, with shapes like those of real drives and a known settled level.
//!
//! A simple state machine over host bytes written, with multiplicative AR(1) noise. It shares no code with the
//! analysis.
//!
//! # Not modelled
//! Mixes of reads and writes.

use super::series::{Context, Medium, Series};
use crate::Row;
use lowtide_core::rng::{Rng, unit};
use lowtide_core::{Bytes, Seed};

const MIB: f64 = 1_048_576.0;

/// A drive and a load. Levels in MiB/s, times in seconds, shares of the level.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub capacity_gib: f64,
    pub raw_gib: f64,
    pub data_gib: f64,
    pub raw_known: bool,
    pub read_only: bool,
    pub interval_s: f64,
    pub fresh: f64,
    pub dip: f64,
    pub dip_s: f64,
    pub overshoot: f64,
    pub overshoot_tau_s: f64,
    pub settled: f64,
    /// Initial excess over the settled level, as a share of the settled level (negative: below it), and time constant
    /// in drive writes.
    pub relax: (f64, f64),
    pub noise: f64,
    pub phi: f64,
    /// Amplitude as a share and period in seconds.
    pub sawtooth: (f64, f64),
    /// Probability and factor of an outlier.
    pub outlier: (f64, f64),
}

impl Shape {
    /// The Intel 320 160 GB of the published measurements, with a file of `data_gib`.
    pub fn drive(data_gib: f64, dip: f64, overshoot: f64, settled: f64) -> Self {
        Shape {
            capacity_gib: 149.0,
            raw_gib: 160.0,
            data_gib,
            raw_known: true,
            read_only: false,
            interval_s: 10.0,
            fresh: 80.0,
            dip,
            dip_s: 100.0,
            overshoot,
            overshoot_tau_s: 100.0,
            settled,
            relax: (0.0, 1.0),
            noise: 0.01,
            phi: 0.3,
            sawtooth: (0.0, 300.0),
            outlier: (0.0, 1.0),
        }
    }

    /// A stationary load of reads.
    pub fn reads(level: f64, noise: f64, phi: f64) -> Self {
        Shape { read_only: true, noise, phi, ..Shape::drive(100.0, level, level, level) }
    }

    pub fn context(&self) -> Context {
        let gib = |x: f64| Bytes::new((x * MIB * 1024.0) as u64);
        Context {
            capacity: gib(self.capacity_gib),
            raw_capacity: self.raw_known.then(|| gib(self.raw_gib)),
            data: gib(self.data_gib),
            read_only: self.read_only,
            medium: if self.raw_known { Medium::Flash } else { Medium::Unknown },
            written_before: Some(gib(self.data_gib)),
        }
    }

    /// An endless series of intervals.
    pub fn run(&self, seed: u64) -> Run {
        Run {
            shape: *self,
            rng: Seed::new(seed).part("shape", 0).stream(),
            noise: None,
            index: 0,
            written_mib: self.data_gib * 1024.0,
            since: None,
        }
    }

    /// The first `count` intervals.
    pub fn series(&self, seed: u64, count: usize) -> Series {
        let mut series = Series::new(self.context());
        self.run(seed).take(count).try_for_each(|row| series.push(&row)).expect("even intervals");
        series
    }
}

/// See [`Shape::run`].
pub struct Run {
    shape: Shape,
    rng: Rng,
    noise: Option<f64>,
    index: u64,
    written_mib: f64,
    /// Seconds and MiB written when the honeymoon ended.
    since: Option<(f64, f64)>,
}

/// A standard normal number (Box and Muller).
pub fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - unit(rng)).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit(rng)).cos()
}

impl Run {
    fn level(&mut self, now_s: f64) -> f64 {
        let s = self.shape;
        if s.read_only {
            return s.settled;
        }
        if self.written_mib < s.raw_gib * 1024.0 {
            return s.fresh;
        }
        let (from_s, from_mib) = *self.since.get_or_insert((now_s, self.written_mib));
        let after = now_s - from_s;
        if after < s.dip_s {
            return s.dip;
        }
        let drive_writes = (self.written_mib - from_mib) / (s.capacity_gib * 1024.0);
        let settled = s.settled * (1.0 + s.relax.0 * (-drive_writes / s.relax.1).exp());
        settled + (s.overshoot - s.settled) * (-(after - s.dip_s) / s.overshoot_tau_s).exp()
    }
}

impl Iterator for Run {
    type Item = Row;
    fn next(&mut self) -> Option<Row> {
        let s = self.shape;
        let now_s = self.index as f64 * s.interval_s;
        let innovation = normal(&mut self.rng);
        let noise = match self.noise {
            None => innovation,
            Some(last) => s.phi * last + (1.0 - s.phi * s.phi).sqrt() * innovation,
        };
        self.noise = Some(noise);
        let phase = (now_s / s.sawtooth.1).fract() + s.interval_s / s.sawtooth.1 / 2.0;
        let saw = s.sawtooth.0 * (2.0 * phase - 1.0);
        let odd = if unit(&mut self.rng) < s.outlier.0 { s.outlier.1 } else { 1.0 };
        let rate = (self.level(now_s) * (1.0 + s.noise * noise + saw) * odd).max(0.0);
        let moved_mib = rate * s.interval_s;
        let moved = (moved_mib * MIB) as u64;
        if !s.read_only {
            self.written_mib += moved_mib;
        }
        let interval_ns = (s.interval_s * 1e9) as u64;
        let start_ns = self.index * interval_ns;
        self.index += 1;
        let (read_bytes, write_bytes) = if s.read_only { (moved, 0) } else { (0, moved) };
        Some(Row { start_ns, end_ns: start_ns + interval_ns, read_bytes, write_bytes, ..Row::default() })
    }
}
