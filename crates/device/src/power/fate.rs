//! The fate of one write in a power cut ([`Fate`]): kept, dropped or torn, with equal probability.
//!
//! Durable writes have no fate.

use super::Tear;
use lowtide_core::rng::{Rng, below};

/// The fate of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    Dropped,
    Kept,
    /// Runs of bytes that are kept: first, and one past the last.
    Torn(Vec<(u64, u64)>),
}

impl Fate {
    /// Draws the fate of a write of the bytes from `first` to `end`. One of a single granule is never torn.
    pub(super) fn draw(rng: &mut Rng, tear: Tear, first: u64, end: u64) -> Fate {
        let granule = tear.granule();
        let granules = end.div_ceil(granule).saturating_sub(first / granule);
        let fates = if granules > 1 { 3 } else { 2 };
        match below(rng, fates) {
            0 => Fate::Dropped,
            1 => Fate::Kept,
            _ => Fate::Torn(torn(rng, granule, first, end, granules)),
        }
    }
}

/// A subset of the granules, neither none nor all, each such subset possible: adjacent ones as one run.
fn torn(rng: &mut Rng, granule: u64, first: u64, end: u64, granules: u64) -> Vec<(u64, u64)> {
    let kept = below(rng, granules);
    let lost = (kept + 1 + below(rng, granules - 1)) % granules;
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for n in 0..granules {
        let survives = n == kept || (n != lost && below(rng, 2) == 0);
        if !survives {
            continue;
        }
        let begin = (first / granule + n) * granule;
        let (begin, until) = (begin.max(first), (begin + granule).min(end));
        match runs.last_mut().filter(|run| run.1 == begin) {
            Some(run) => run.1 = until,
            None => runs.push((begin, until)),
        }
    }
    runs
}
