//! Draws one of several alternatives by share.
//!
//! The alternatives are request sizes or zones of the data.

use crate::rng::{Rng, unit};

/// Shares that sum to 1, in order.
#[derive(Debug, Clone)]
pub(super) struct Shares {
    /// Cumulative shares, without the last one (1).
    ends: Vec<f64>,
}

impl Shares {
    /// Needs at least one share. The last alternative takes the remainder to 1, so rounding errors do not matter.
    pub(super) fn new(shares: impl IntoIterator<Item = f64>) -> Self {
        let mut ends: Vec<f64> = shares
            .into_iter()
            .scan(0.0, |end, share| {
                *end += share;
                Some(*end)
            })
            .collect();
        assert!(ends.pop().is_some(), "there is at least one share");
        Shares { ends }
    }

    /// Draws an alternative and returns its position.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> usize {
        let at = unit(rng);
        self.ends.iter().filter(|end| at >= **end).count()
    }
}
