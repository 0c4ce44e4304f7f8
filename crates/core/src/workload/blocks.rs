//! Several request sizes in one load ([`Blocks`]).
//!
//! Each request begins at a multiple of its own size. [`super::Generator`] draws the requests.

use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// Tolerance of the sum of shares, because users round them.
const ROUNDING: f64 = 1e-6;

/// A request size and the share of requests with this size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BlockShare {
    /// Size of a request, above 0.
    pub size: Bytes,
    /// Share of the requests, above 0.
    pub share: f64,
}

/// Request sizes in the order given. There is at least one size, no size occurs twice, and the shares sum to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Blocks(Vec<BlockShare>);

impl Blocks {
    /// Creates the list; `None` if an invariant of the type is violated.
    pub fn new(blocks: Vec<BlockShare>) -> Option<Self> {
        let good = |block: &BlockShare| block.size > Bytes::ZERO && block.share > 0.0;
        let twice = blocks
            .iter()
            .enumerate()
            .any(|(at, one)| blocks[..at].iter().any(|other| other.size == one.size));
        let all = sum_to_one(blocks.iter().map(|block| block.share));
        (all && blocks.iter().all(good) && !twice).then_some(Blocks(blocks))
    }

    /// The sizes with their shares.
    pub fn iter(&self) -> std::slice::Iter<'_, BlockShare> {
        self.0.iter()
    }

    /// The largest size.
    pub fn largest(&self) -> Bytes {
        self.0.iter().map(|block| block.size).max().expect("there is at least one")
    }

    /// The greatest common divisor of all sizes.
    pub fn granule(&self) -> Bytes {
        Bytes::new(self.0.iter().fold(0, |granule, block| gcd(block.size.get(), granule)))
    }
}

/// Returns whether the shares sum to 1, within rounding.
pub fn sum_to_one(shares: impl Iterator<Item = f64>) -> bool {
    (shares.sum::<f64>() - 1.0).abs() <= ROUNDING
}

/// The greatest common divisor.
pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(blocks: &[(u64, f64)]) -> Option<Blocks> {
        Blocks::new(
            blocks.iter().map(|&(size, share)| BlockShare { size: Bytes::new(size), share }).collect(),
        )
    }

    #[test]
    fn sizes_have_a_largest_and_a_common_measure() {
        let some = blocks(&[(1536, 0.25), (4096, 0.5), (1024, 0.25)]).expect("valid");
        assert_eq!((some.largest(), some.granule()), (Bytes::kib(4), Bytes::new(512)));
    }

    #[test]
    fn shares_sum_to_one_and_sizes_stand_once() {
        assert!(blocks(&[(512, 0.1), (1024, 0.2), (2048, 0.7)]).is_some(), "but for rounding");
        for bad in [
            &[][..],
            &[(512, 0.5)],
            &[(0, 1.0)],
            &[(512, 0.5), (512, 0.5)],
            &[(512, 1.5), (1024, -0.5)],
            &[(512, f64::NAN)],
        ] {
            assert!(blocks(bad).is_none(), "{bad:?}");
        }
    }
}
