//! One of several things, each with its share of all draws.
//!
//! Leaves out what the things are: sizes of requests, zones of the data.

use crate::rng::{Rng, unit};

/// Shares that sum to 1, in order.
#[derive(Debug, Clone)]
pub(super) struct Shares {
    /// Where, from 0 to 1, each but the last one ends.
    ends: Vec<f64>,
}

impl Shares {
    /// Of at least one share; the last takes what the others leave.
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

    /// The position of the share that is drawn.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> usize {
        let at = unit(rng);
        self.ends.iter().filter(|end| at >= **end).count()
    }
}
