//! The search: closed forms give a start, the simulator corrects them until both agree, noise drawn anew gives intervals.
//!
//! ```text
//!   levels ─► form of each policy ─► best parameters ─► simulated there ─► factor of each level ┐
//!                      ▲                                                                        │ until nothing changes
//!                      └────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Leaves out what the answer means (`mod`) and how it is written down (`write`, `show`).

use super::amplification::Amplification;
use super::data::Measured;
use super::family::{Family, Parameters};
use super::simulate::{self, Load};
use super::solve::{Bent, Fixed, Problem, Seen, Solution};
use lowtide_core::rng::{Rng, unit};
use lowtide_core::{Bytes, Seed};
use lowtide_device::flash::spec::Policy;
use rayon::prelude::*;
use std::sync::atomic::AtomicBool;

/// Policies that are tried.
const POLICIES: [Policy; 6] = [
    Policy::Greedy,
    Policy::DChoices(8),
    Policy::DChoices(4),
    Policy::DChoices(2),
    Policy::Fifo,
    Policy::Random,
];
/// A policy is not ruled out while it leaves so little more than the best: two standard deviations.
const UNDECIDED: f64 = 4.0;
/// Those that are simulated: some more, since forms are not the simulator; and at most so many.
const NEARLY: f64 = 9.0;
const MOST: usize = 3;
/// The deviation of a level where nobody says, and the least that is believed.
pub(super) const DEVIATION: f64 = 0.02;
const LEAST: f64 = 0.004;
/// Rounds of simulation.
const ROUNDS: usize = 5;
/// Nothing changes any more.
const SAME: f64 = 0.002;
/// Times that noise is drawn anew.
const DRAWS: u64 = 300;
/// A table that does not fit must explain so much, for its two parameters.
const WORTH: f64 = 10.0;

/// One policy with what the simulator says of it.
#[derive(Debug, Clone)]
pub(super) struct Hypothesis {
    pub amplification: Amplification,
    pub seen: Vec<Seen>,
    pub knee: Option<Bent>,
    pub solution: Solution,
}

/// What was found.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// The best first.
    pub hypotheses: Vec<Hypothesis>,
    /// The best of each draw: which hypothesis, and its parameters.
    pub draws: Vec<(usize, Parameters)>,
    /// The deviation of levels that say none.
    pub deviation: f64,
    /// Simulations that were run.
    pub simulations: usize,
}

pub(super) struct Search<'a> {
    pub family: &'a Family,
    pub measured: &'a Measured,
    pub fixed: Fixed,
    pub least: f64,
    pub seed: Seed,
    pub interrupt: &'a AtomicBool,
}

impl Search<'_> {
    /// `None` where it was interrupted.
    pub(super) fn run(&self) -> Option<Found> {
        let seen: Vec<Seen> = self.measured.points.iter().map(|point| Seen::of(point, DEVIATION)).collect();
        let knee = self.measured.knee.map(|knee| Bent { knee, factor: 1.0 });
        let policies: Vec<Policy> = self.fixed.policy.map_or(POLICIES.to_vec(), |policy| vec![policy]);
        let begin = |policy: &Policy| {
            let amplification = Amplification::of(*policy, self.family.units_per_block())?;
            let mut it = Hypothesis { amplification, seen: seen.clone(), knee, solution: EMPTY };
            it.solution = self.problem(*policy, &it, false).solve();
            Some(it)
        };
        let mut all: Vec<Hypothesis> = policies.par_iter().filter_map(begin).collect();
        let reach = self.wants_reach(&mut all);
        keep(&mut all, NEARLY);
        all.truncate(MOST);
        let mut simulations = 0;
        for _ in 0..ROUNDS {
            let before: Vec<Parameters> = all.iter().map(|it| it.solution.parameters).collect();
            let mut jobs: Vec<(usize, usize)> = Vec::new();
            for (n, it) in all.iter().enumerate() {
                jobs.extend((0..it.seen.len() + usize::from(it.knee.is_some())).map(|point| (n, point)));
            }
            simulations += jobs.len();
            let factors: Option<Vec<f64>> =
                jobs.par_iter().map(|&(n, point)| self.factor(&all[n], point)).collect();
            for ((n, point), factor) in jobs.into_iter().zip(factors?) {
                let it = &mut all[n];
                match it.seen.get_mut(point) {
                    Some(seen) => seen.factor = factor,
                    None => it.knee.iter_mut().for_each(|knee| knee.factor = factor),
                }
            }
            for it in &mut all {
                it.solution = self.problem(it.solution.parameters.policy, it, reach).solve();
            }
            let is_same = |(it, before): (&Hypothesis, &Parameters)| same(&it.solution.parameters, before);
            if all.iter().zip(&before).all(is_same) {
                break;
            }
        }
        keep(&mut all, UNDECIDED);
        let deviation = self.deviation(&all[0], reach);
        for seen in all.iter_mut().flat_map(|it| &mut it.seen).zip(self.measured.points.iter().cycle()) {
            seen.0.deviation = seen.1.deviation.unwrap_or(deviation);
        }
        let draws = (0..DRAWS).into_par_iter().map(|draw| self.draw(&all, draw, reach)).collect();
        Some(Found { hypotheses: all, draws, deviation, simulations })
    }

    /// The form of a hypothesis, for levels at other sizes.
    pub(super) fn form<'h>(&'h self, it: &'h Hypothesis) -> Problem<'h> {
        self.problem(it.solution.parameters.policy, it, false)
    }

    fn problem<'h>(&'h self, policy: Policy, it: &'h Hypothesis, reach: bool) -> Problem<'h> {
        Problem {
            policy,
            amplification: &it.amplification,
            seen: &it.seen,
            knee: it.knee,
            fixed: self.fixed,
            least: self.least,
            reach,
        }
    }

    /// Whether a mapping table that does not fit explains levels that nothing else does; then all are solved so.
    fn wants_reach(&self, all: &mut [Hypothesis]) -> bool {
        if self.fixed.reach.is_some() {
            return true;
        }
        if self.measured.points.len() < 6 {
            return false;
        }
        let solve = |it: &Hypothesis| self.problem(it.solution.parameters.policy, it, true).solve();
        let with: Vec<Solution> = all.par_iter().map(solve).collect();
        let least = |squares: &mut dyn Iterator<Item = f64>| squares.fold(f64::INFINITY, f64::min);
        let without = least(&mut all.iter().map(|it| it.solution.squares));
        let worth = without - least(&mut with.iter().map(|it| it.squares)) > WORTH;
        if worth {
            all.iter_mut().zip(with).for_each(|(it, solution)| it.solution = solution);
        }
        worth
    }

    /// What the simulator says of a level, or of the knee, over what the form says.
    fn factor(&self, it: &Hypothesis, point: usize) -> Option<f64> {
        let parameters = it.solution.parameters;
        let drive = self.family.drive(&parameters);
        let (block, threads) = (self.family.block, self.family.threads);
        let problem = self.problem(parameters.policy, it, false);
        let seed = self.seed.part("simulate", point as u64);
        match it.seen.get(point) {
            Some(seen) => {
                let expected = problem.rate(&parameters, seen.data);
                let data = Bytes::new(seen.data as u64);
                let load = Load { data, block, threads, expected };
                simulate::level(&drive, &load, seed, self.interrupt).map(|rate| rate / expected)
            }
            None => {
                let knee = it.knee.expect("it was asked for").knee;
                let load = Load { data: knee.data, block, threads, expected: 16.0 * knee.rate };
                let room = parameters.raw - knee.data.get() as f64;
                simulate::knee(&drive, &load, seed, self.interrupt).map(|written| written / room)
            }
        }
    }

    /// The deviation of levels, from what the best leaves of those that say none.
    fn deviation(&self, best: &Hypothesis, reach: bool) -> f64 {
        let free = 2 + usize::from(self.fixed.raw.is_none()) + 2 * usize::from(reach);
        let count = self.measured.points.len() + 2 * usize::from(best.knee.is_some());
        match count.checked_sub(free) {
            // Too few to tell.
            None | Some(0) => DEVIATION,
            Some(rest) => (best.solution.squares / rest as f64).sqrt().max(LEAST / DEVIATION) * DEVIATION,
        }
    }

    /// The best parameters where the levels of the best had other noise.
    fn draw(&self, all: &[Hypothesis], draw: u64, reach: bool) -> (usize, Parameters) {
        let mut rng = self.seed.part("draw", draw).stream();
        let best = &all[0];
        let form = self.problem(best.solution.parameters.policy, best, reach);
        let noisy: Vec<f64> = best
            .seen
            .iter()
            .map(|seen| {
                let rate = form.rate(&best.solution.parameters, seen.data) * seen.factor;
                rate * (1.0 + seen.deviation * normal(&mut rng)).max(0.05)
            })
            .collect();
        let solved = all.iter().enumerate().map(|(n, it)| {
            let with = |(seen, rate): (&Seen, &f64)| Seen { rate: *rate, ..*seen };
            let drawn = Hypothesis { seen: it.seen.iter().zip(&noisy).map(with).collect(), ..it.clone() };
            (n, self.problem(it.solution.parameters.policy, &drawn, reach).solve())
        });
        let (n, solution) = solved
            .min_by(|a, b| a.1.squares.total_cmp(&b.1.squares))
            .expect("there is one hypothesis at least");
        (n, solution.parameters)
    }
}

const EMPTY: Solution = Solution {
    parameters: Parameters { raw: 0.0, write: 0.0, moved: 0.0, policy: Policy::Greedy, map: None },
    squares: f64::INFINITY,
};

/// The best first, and none that leaves so much more.
fn keep(all: &mut Vec<Hypothesis>, more: f64) {
    all.sort_by(|a, b| a.solution.squares.total_cmp(&b.solution.squares));
    let least = all[0].solution.squares;
    all.retain(|it| it.solution.squares <= least + more);
}

fn same(a: &Parameters, b: &Parameters) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= SAME * a.abs().max(b.abs());
    near(a.raw, b.raw) && near(a.write, b.write) && near(a.moved, b.moved)
}

/// A number from the normal distribution (Box and Muller).
fn normal(rng: &mut Rng) -> f64 {
    let (radius, angle) = (1.0 - unit(rng), std::f64::consts::TAU * unit(rng));
    (-2.0 * radius.ln()).sqrt() * angle.cos()
}
