//! How full a log disk may be for which gain ([`advice`]).
//!
//! By the closed form of cleaning in the order of age under uniform writes, which is what random writes cost at most (Desnoyers,
//! "Analytic modeling of SSD write performance", 2012): `WA = a / (a + W(-a e^-a))` with `a` one over the share of live slots. Leaves out
//! loads with hot blocks, which cost less.

use lowtide_core::Bytes;
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

fn by_age(share: f64) -> f64 {
    let alpha = 1.0 / share;
    let x = -alpha * (-alpha).exp();
    // The branch of Lambert's W through 0, by Newton's steps.
    let mut w: f64 = 0.0;
    for _ in 0..100 {
        let e = w.exp();
        w -= (w * e - x) / (e * (w + 1.0));
    }
    alpha / (alpha + w)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closed_form_has_the_published_values() {
        for (share, expected) in [(0.5, 1.2550), (0.7, 1.8762), (0.8, 2.6927), (0.9, 5.1787), (0.95, 10.1724)]
        {
            assert!((by_age(share) - expected).abs() < 1e-3, "{share}: {}", by_age(share));
        }
    }
}
