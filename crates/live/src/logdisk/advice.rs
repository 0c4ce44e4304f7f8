//! The gain of a log disk at each fill ([`advice`]), from the closed form of FIFO cleaning.
//!
//! The closed form is an upper bound on the cost of random writes.
//!
//! # Not modelled
//! Workloads with hot blocks, which cost less.

use lowtide_core::Bytes;
use lowtide_logdisk::closed_form::by_age;
use lowtide_logdisk::{BLOCK, Options};

/// The performance of a log disk at a fill.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Advice {
    /// Data as a share of the capacity.
    pub fill: f64,
    /// Bytes written to the drive per byte that the host writes.
    pub write_amplification: f64,
    /// Random writes of 4 KiB per second.
    pub iops: f64,
    /// `iops` as a multiple of the bare drive's.
    pub gain: f64,
}

/// An [`Advice`] for each fill from 10 to 100 %, with the default reserve. `bare` is the bare drive's rate of random
/// writes in 1/s, `sequential` its sequential write rate in bytes/s.
pub fn advice(bare: f64, sequential: Bytes) -> Vec<Advice> {
    (1..=10)
        .map(|tenth| {
            let fill = f64::from(tenth) / 10.0;
            let write_amplification = by_age(fill * (1.0 - Options::default().reserve));
            let iops = sequential.get() as f64 / BLOCK as f64 / write_amplification;
            Advice { fill, write_amplification, iops, gain: iops / bare }
        })
        .collect()
}
