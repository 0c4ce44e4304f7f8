//! How full a log disk may be for which gain ([`advice`]).
//!
//! By the closed form of cleaning in the order of age, which is what random writes cost at most. Not here: loads with hot blocks, which
//! cost less.

use lowtide_core::Bytes;
use lowtide_logdisk::closed_form::by_age;
use lowtide_logdisk::{BLOCK, Options};

/// What is to be had at a fill.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Advice {
    /// Data over what is offered.
    pub fill: f64,
    /// Bytes written for a byte of the host's.
    pub write_amplification: f64,
    /// Random writes of 4 KiB a second.
    pub iops: f64,
    /// Over the drive by itself.
    pub gain: f64,
}

/// For fills of 10 to 100 %, of a disk with the usual reserve, on a drive with so many random writes a second by itself, that
/// writes so much in sequence.
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
