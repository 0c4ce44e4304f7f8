//! The timing of requests: a closed loop, or an open loop at a fixed or Poisson rate.
//!
//! In an open loop, latency counts from the *intended* start. A stalled device therefore cannot hide its stall by
//! delaying later requests (coordinated omission).
//!
//! # Not modelled
//! Bursts. Traces have their own times ([`crate::trace`]).

use crate::rng::{Rng, unit};
use serde::{Deserialize, Serialize};

/// The timing of requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// A closed loop: each of threads × depth slots issues its next request when its last one completes.
    Closed,
    /// An open loop with equal gaps.
    Fixed {
        /// Requests per second over all threads.
        per_second: f64,
    },
    /// An open loop with exponentially distributed gaps.
    Poisson {
        /// Mean requests per second over all threads.
        per_second: f64,
    },
}

/// The intended start times of an open loop.
#[derive(Debug, Clone)]
pub struct Arrivals {
    gap_ns: f64,
    poisson: bool,
    next_ns: f64,
}

impl Arrivals {
    /// The arrivals of worker `worker` out of `workers`, which share the rate. `None` for a closed loop.
    pub fn new(arrival: Arrival, worker: u32, workers: u32) -> Option<Self> {
        let (per_second, poisson) = match arrival {
            Arrival::Closed => return None,
            Arrival::Fixed { per_second } => (per_second, false),
            Arrival::Poisson { per_second } => (per_second, true),
        };
        let whole_gap_ns = 1e9 / per_second;
        // The workers are offset from each other, so that a fixed rate stays even over all workers.
        Some(Arrivals {
            gap_ns: whole_gap_ns * f64::from(workers),
            poisson,
            next_ns: whole_gap_ns * f64::from(worker),
        })
    }

    /// Returns the next intended start, in nanoseconds since the load began.
    pub fn next(&mut self, rng: &mut Rng) -> u64 {
        let now = self.next_ns;
        self.next_ns += if self.poisson { -(1.0 - unit(rng)).ln() * self.gap_ns } else { self.gap_ns };
        now as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    #[test]
    fn two_workers_share_a_fixed_rate_evenly() {
        let mut rng = Seed::new(1).stream();
        let arrival = Arrival::Fixed { per_second: 1000.0 };
        let mut all: Vec<u64> = (0..2)
            .flat_map(|worker| {
                let mut arrivals = Arrivals::new(arrival, worker, 2).expect("open");
                (0..3).map(|_| arrivals.next(&mut rng)).collect::<Vec<_>>()
            })
            .collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000]);
    }

    #[test]
    fn poisson_keeps_its_mean_and_varies() {
        let mut rng = Seed::new(2).stream();
        let mut arrivals = Arrivals::new(Arrival::Poisson { per_second: 1e6 }, 0, 1).expect("open");
        let times: Vec<u64> = (0..100_000).map(|_| arrivals.next(&mut rng)).collect();
        let mean_gap = *times.last().unwrap() as f64 / 99_999.0;
        assert!((mean_gap / 1000.0 - 1.0).abs() < 0.02, "{mean_gap}");
        assert!(times.windows(2).any(|pair| pair[1] - pair[0] > 3000));
    }
}
