//! The search for the best drive.
//!
//! Closed forms give a start, the simulator corrects them until both agree, and redrawn noise gives the intervals.
//!
//! ```text
//!   levels ─► form of each policy ─► best parameters ─► simulate them ─► factor of each level ┐
//!                      ▲                                                                      │ until stable
//!                      └──────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Module `fit` interprets the result; `write` and `show` format it.

use super::amplification::Amplification;
use super::data::Measured;
use super::family::{Family, Parameters};
use super::simulate::{self, Allowance, Answer, Load};
use super::solve::{Bent, Problem, Seen, Solution};
use super::{Fixed, Stop};
use lowtide_core::rng::{Rng, unit};
use lowtide_core::{Bytes, Seed};
use lowtide_device::flash::spec::Policy;
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Policies to search.
const POLICIES: [Policy; 6] = [
    Policy::Greedy,
    Policy::DChoices(8),
    Policy::DChoices(4),
    Policy::DChoices(2),
    Policy::Fifo,
    Policy::Random,
];
/// A policy is ruled out if its sum of squares exceeds the best by more than this: two standard deviations, squared.
const UNDECIDED: f64 = 4.0;
/// Policies whose sum of squares is within this of the best are simulated, since closed forms only approximate the
/// simulator. At most `MOST_SIMULATED` policies are simulated.
const SIMULATE_WITHIN: f64 = 9.0;
const MOST_SIMULATED: usize = 3;
/// Default standard deviation of a level, as a share. `LEAST` is the lower bound of an estimated one.
pub(super) const DEVIATION: f64 = 0.02;
const LEAST: f64 = 0.004;
/// Maximum rounds of simulation.
const ROUNDS: usize = 5;
/// Relative change of the parameters below which the search has converged.
const SAME: f64 = 0.002;
/// Number of draws of noise.
const DRAWS: u64 = 300;
/// Least reduction of the squares that justifies the two extra parameters of a map cache.
const WORTH: f64 = 10.0;

/// One policy with the corrections of the simulator.
#[derive(Debug, Clone)]
pub(super) struct Hypothesis {
    pub amplification: Arc<Amplification>,
    pub seen: Vec<Seen>,
    pub knee: Option<Bent>,
    pub solution: Solution,
}

/// The result of a search.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// Policies that are not ruled out, the best first.
    pub hypotheses: Vec<Hypothesis>,
    /// The best fit to each draw: the index of its hypothesis, and its parameters.
    pub draws: Vec<(usize, Parameters)>,
    /// Estimated standard deviation, for levels without a stated deviation, as a share.
    pub deviation: f64,
    /// Number of simulations run.
    pub simulations: usize,
    /// Requests left in the budget.
    pub left: u64,
    /// Whether the budget ran out before forms and simulator agreed.
    pub cut_short: bool,
}

pub(super) struct Search<'a> {
    pub family: &'a Family,
    pub measured: &'a Measured,
    pub fixed: Fixed,
    /// Range of raw NAND, in bytes.
    pub raw: (f64, f64),
    pub seed: Seed,
    /// Limit on simulated requests.
    pub budget: u64,
    pub interrupt: &'a AtomicBool,
}

impl Search<'_> {
    /// # Errors
    /// [`Stop`] if the search was interrupted or nothing fits.
    pub(super) fn run(&self) -> Result<Outcome, Stop> {
        let seen: Vec<Seen> = self.measured.points.iter().map(|point| Seen::of(point, DEVIATION)).collect();
        let knee = self.measured.knee.map(|knee| Bent { knee, factor: 1.0 });
        let policies: Vec<Policy> = self.fixed.policy.map_or(POLICIES.to_vec(), |policy| vec![policy]);
        let begin = |policy: &Policy| {
            self.go_on()?;
            let Some(amplification) = Amplification::shared(*policy, self.family.units_per_block()) else {
                return Ok(None);
            };
            let mut it = Hypothesis { amplification, seen: seen.clone(), knee, solution: EMPTY };
            it.solution = self.problem(*policy, &it, false).solve();
            Ok(Some(it))
        };
        let mut all: Vec<Hypothesis> = each(&policies, begin)?.into_iter().flatten().collect();
        let reach = self.wants_reach(&mut all)?;
        keep(&mut all, SIMULATE_WITHIN)?;
        all.truncate(MOST_SIMULATED);
        let (mut simulations, mut left, mut cut_short) = (0, self.budget, false);
        for round in 0..ROUNDS {
            let before: Vec<Parameters> = all.iter().map(|it| it.solution.parameters).collect();
            let mut jobs: Vec<(usize, usize)> = Vec::new();
            for (n, it) in all.iter().enumerate() {
                jobs.extend((0..it.seen.len() + usize::from(it.knee.is_some())).map(|point| (n, point)));
            }
            // The budget is divided in advance, so that the result does not depend on the order of the threads.
            let allowance = Allowance { requests: left / jobs.len() as u64, interrupt: self.interrupt };
            let answers = match each(&jobs, |&(n, point)| self.factor(&all[n], point, allowance)) {
                // Earlier rounds already gave an answer.
                Err(Stop::Budget(_)) if round > 0 => {
                    cut_short = true;
                    break;
                }
                answers => answers?,
            };
            simulations += jobs.len();
            left = left.saturating_sub(answers.iter().map(|answer| answer.requests).sum());
            for ((n, point), answer) in jobs.into_iter().zip(answers) {
                let it = &mut all[n];
                match it.seen.get_mut(point) {
                    Some(seen) => seen.factor = answer.value,
                    None => it.knee.iter_mut().for_each(|knee| knee.factor = answer.value),
                }
            }
            all = each(&all, |it| {
                self.go_on()?;
                let solution = self.problem(it.solution.parameters.policy, it, reach).solve();
                Ok(Hypothesis { solution, ..it.clone() })
            })?;
            let is_same = |(it, before): (&Hypothesis, &Parameters)| same(&it.solution.parameters, before);
            if all.iter().zip(&before).all(is_same) {
                break;
            }
        }
        keep(&mut all, UNDECIDED)?;
        let deviation = self.deviation(&all[0], reach);
        for seen in all.iter_mut().flat_map(|it| &mut it.seen).zip(self.measured.points.iter().cycle()) {
            seen.0.deviation = seen.1.deviation.unwrap_or(deviation);
        }
        let draws: Vec<u64> = (0..DRAWS).collect();
        let draws = each(&draws, |draw| {
            self.go_on()?;
            Ok(self.draw(&all, *draw, reach))
        })?;
        Ok(Outcome { hypotheses: all, draws, deviation, simulations, left, cut_short })
    }

    /// # Errors
    /// [`Stop::Interrupted`] if the interrupt flag is set.
    fn go_on(&self) -> Result<(), Stop> {
        if self.interrupt.load(Ordering::Relaxed) { Err(Stop::Interrupted) } else { Ok(()) }
    }

    /// The closed form of a hypothesis, for levels at other sizes.
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
            raw: self.raw,
            least_write: self.family.least_write(),
            reach,
        }
    }

    /// Returns whether a map cache of limited reach fits the levels much better. If so, updates all solutions.
    fn wants_reach(&self, all: &mut [Hypothesis]) -> Result<bool, Stop> {
        if self.fixed.reach.is_some() {
            return Ok(true);
        }
        if self.measured.points.len() < 6 {
            return Ok(false);
        }
        let with = each(all, |it| {
            self.go_on()?;
            Ok(self.problem(it.solution.parameters.policy, it, true).solve())
        })?;
        let least = |squares: &mut dyn Iterator<Item = f64>| squares.fold(f64::INFINITY, f64::min);
        let without = least(&mut all.iter().map(|it| it.solution.squares));
        let worth = without - least(&mut with.iter().map(|it| it.squares)) > WORTH;
        if worth {
            all.iter_mut().zip(with).for_each(|(it, solution)| it.solution = solution);
        }
        Ok(worth)
    }

    /// The ratio of the simulated level, or knee, to its closed form.
    fn factor(&self, it: &Hypothesis, point: usize, allowance: Allowance<'_>) -> Result<Answer, Stop> {
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
                let Answer { value, requests } = simulate::level(&drive, &load, seed, allowance)?;
                Ok(Answer { value: value / expected, requests })
            }
            None => {
                let knee = it.knee.expect("it was asked for").knee;
                let load = Load { data: knee.data, block, threads, expected: 16.0 * knee.rate };
                // The room is at least one byte, so that the ratio is finite.
                let room = (parameters.raw - knee.data.get() as f64).max(1.0);
                let Answer { value, requests } = simulate::knee(&drive, &load, seed, allowance)?;
                Ok(Answer { value: value / room, requests })
            }
        }
    }

    /// Estimates the standard deviation of a level from the residuals of the best fit.
    fn deviation(&self, best: &Hypothesis, reach: bool) -> f64 {
        let free = 2 + usize::from(self.fixed.raw.is_none()) + 2 * usize::from(reach);
        let count = self.measured.points.len() + 2 * usize::from(best.knee.is_some());
        match count.checked_sub(free) {
            // Too few levels for an estimate.
            None | Some(0) => DEVIATION,
            Some(rest) => (best.solution.squares / rest as f64).sqrt().max(LEAST / DEVIATION) * DEVIATION,
        }
    }

    /// Fits again with random noise added to the fitted levels. Returns index and parameters of the best hypothesis.
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

/// Sorts hypotheses by their squares, and drops hypotheses that exceed the least by over `more`.
fn keep(all: &mut Vec<Hypothesis>, more: f64) -> Result<(), Stop> {
    all.retain(|it| it.solution.squares.is_finite());
    all.sort_by(|a, b| a.solution.squares.total_cmp(&b.solution.squares));
    let Some(least) = all.first().map(|it| it.solution.squares) else {
        return Err(Stop::NoFit(
            "no drive of the family has costs above zero that suit these levels: correct levels that are far from the others, or \
             fix fewer parameters"
                .to_owned(),
        ));
    };
    all.retain(|it| it.solution.squares <= least + more);
    Ok(())
}

/// Applies `of` to each element in parallel. An interruption takes precedence over any other error.
pub(super) fn each<A: Sync, B: Send>(
    all: &[A],
    of: impl Fn(&A) -> Result<B, Stop> + Sync + Send,
) -> Result<Vec<B>, Stop> {
    let results: Vec<Result<B, Stop>> = all.par_iter().map(of).collect();
    if results.iter().any(|result| matches!(result, Err(Stop::Interrupted))) {
        return Err(Stop::Interrupted);
    }
    results.into_iter().collect()
}

fn same(a: &Parameters, b: &Parameters) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= SAME * a.abs().max(b.abs());
    near(a.raw, b.raw) && near(a.write, b.write) && near(a.moved, b.moved)
}

/// A standard normal random number (Box and Muller).
fn normal(rng: &mut Rng) -> f64 {
    let (radius, angle) = (1.0 - unit(rng), std::f64::consts::TAU * unit(rng));
    (-2.0 * radius.ln()).sqrt() * angle.cos()
}
