//! Finds the parameters that fit levels best, by linear least squares inside a one-dimensional search.
//!
//! A byte takes `write + moved (A(ρ) − 1) + miss (1 − reach / data)₊` seconds, with ρ = data / raw. For a given raw
//! capacity and reach, this is linear in the three costs, none of which is negative. Residuals are relative to their
//! standard deviations. Each level has a factor: the simulated level over the level of the closed form. `search`
//! computes the factors.

use super::Fixed;
use super::amplification::{Amplification, FULLEST};
use super::data::{Knee, Point};
use super::family::{Parameters, Reach};
use lowtide_device::flash::spec::Policy;

/// Raw capacities of the first, coarse search. `HALVINGS` steps then narrow the interval around the best capacity.
const CAPACITIES: usize = 160;
const HALVINGS: usize = 24;
/// Number of candidate reaches.
const REACHES: usize = 24;
/// Standard deviation of the bytes and the rate of a knee, as a share.
const OF_KNEE: f64 = 0.03;

/// A level with the correction of the simulator.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub data: f64,
    pub rate: f64,
    pub deviation: f64,
    /// The simulated level over the level of the closed form.
    pub factor: f64,
}

impl Seen {
    pub(super) fn of(point: &Point, deviation: f64) -> Seen {
        let deviation = point.deviation.unwrap_or(deviation);
        Seen { data: point.data.get() as f64, rate: point.rate, deviation, factor: 1.0 }
    }
}

/// A knee with the correction of the simulator.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bent {
    pub knee: Knee,
    /// The ratio of the simulated bytes up to the knee to the spare NAND.
    pub factor: f64,
}

/// A least-squares problem for one policy.
pub(super) struct Problem<'a> {
    pub policy: Policy,
    pub amplification: &'a Amplification,
    pub seen: &'a [Seen],
    pub knee: Option<Bent>,
    pub fixed: Fixed,
    /// Range of raw NAND, in bytes.
    pub raw: (f64, f64),
    /// The least seconds per written byte, which the link rate limits.
    pub least_write: f64,
    /// Whether a map cache of limited reach is fitted.
    pub reach: bool,
}

/// The best parameters, and their sum of squared residuals.
#[derive(Debug, Clone, Copy)]
pub(super) struct Solution {
    pub parameters: Parameters,
    pub squares: f64,
}

impl Problem<'_> {
    /// The level of the closed form in bytes/s, without the factor of the simulator.
    pub(super) fn rate(&self, parameters: &Parameters, data: f64) -> f64 {
        let Parameters { raw, write, moved, map, .. } = *parameters;
        let missed = map.map_or(0.0, |map| map.miss * missed(map.bytes, data));
        1.0 / (write + moved * (self.amplification.at(data / raw) - 1.0) + missed)
    }

    /// Finds the best solution over all reaches and raw capacities.
    pub(super) fn solve(&self) -> Solution {
        let reaches: Vec<Option<f64>> = match (self.reach, self.fixed.reach) {
            (_, Some(reach)) => vec![Some(reach)],
            (false, None) => vec![None],
            (true, None) => {
                let (first, last) = (self.seen[0].data, self.seen[self.seen.len() - 1].data);
                let (from, to) = (first / 2.0, (first + last) / 2.0);
                (0..REACHES).map(|n| Some(from * (to / from).powf(n as f64 / (REACHES - 1) as f64))).collect()
            }
        };
        let each = reaches.into_iter().map(|reach| self.with_reach(reach));
        each.min_by(|a, b| a.squares.total_cmp(&b.squares)).expect("there is one reach at least")
    }

    fn with_reach(&self, reach: Option<f64>) -> Solution {
        if let Some(raw) = self.fixed.raw {
            return self.at(raw, reach);
        }
        // Geometric spacing: levels change fastest with little spare NAND.
        let capacity = |n: usize| {
            let share = n as f64 / (CAPACITIES - 1) as f64;
            let (least, most) = self.raw;
            least + (most - least) * (5e-4f64).powf(1.0 - share)
        };
        let all: Vec<Solution> = (0..CAPACITIES).map(|n| self.at(capacity(n), reach)).collect();
        let best = (0..CAPACITIES).min_by(|a, b| all[*a].squares.total_cmp(&all[*b].squares)).expect("many");
        let (mut low, mut high) =
            (capacity(best.saturating_sub(1)), capacity((best + 1).min(CAPACITIES - 1)));
        let mut found = all[best];
        for _ in 0..HALVINGS {
            let (left, right) = (low + (high - low) * 0.382, low + (high - low) * 0.618);
            let (a, b) = (self.at(left, reach), self.at(right, reach));
            let better = if a.squares < b.squares { a } else { b };
            if a.squares < b.squares {
                high = right
            } else {
                low = left
            }
            if better.squares < found.squares {
                found = better;
            }
        }
        found
    }

    /// The best costs for a raw capacity and a reach.
    fn at(&self, raw: f64, reach: Option<f64>) -> Solution {
        let mut rows: Vec<([f64; 3], f64)> = Vec::with_capacity(self.seen.len() + 1);
        let mut row = |data: f64, amplification: f64, rate: f64, deviation: f64| {
            let missed = reach.map_or(0.0, |reach| missed(reach, data));
            let scale = rate / deviation;
            rows.push(([scale, scale * (amplification - 1.0), scale * missed], 1.0 / deviation));
        };
        for seen in self.seen {
            let amplification = self.amplification.at(seen.data / raw);
            row(seen.data, amplification, seen.rate / seen.factor, seen.deviation);
        }
        let mut squares = 0.0;
        if let Some(Bent { knee, factor }) = self.knee {
            let data = knee.data.get() as f64;
            row(data, 1.0, knee.rate, OF_KNEE);
            squares += (((raw - data) * factor / knee.written - 1.0) / OF_KNEE).powi(2);
        }
        let fixed = [self.fixed.write, self.fixed.moved, reach.is_none().then_some(0.0)];
        let (costs, left) = least_squares(&rows, fixed, [self.least_write, 0.0, 0.0]);
        // The closed forms end at FULLEST, so a fuller drive is penalised.
        let fullest = self.seen.iter().map(|seen| seen.data / raw).fold(0.0, f64::max);
        squares += left + if fullest > FULLEST { 1e6 * (fullest - FULLEST) } else { 0.0 };
        let map = reach.map(|bytes| Reach { bytes, miss: costs[2] });
        let [write, moved, _] = costs;
        Solution { parameters: Parameters { raw, write, moved, policy: self.policy, map }, squares }
    }
}

/// The share of random accesses that miss the map cache.
fn missed(reach: f64, data: f64) -> f64 {
    (1.0 - reach / data).max(0.0)
}

/// Least squares with a floor for each cost. Fixed costs keep their value.
fn least_squares(rows: &[([f64; 3], f64)], fixed: [Option<f64>; 3], floors: [f64; 3]) -> ([f64; 3], f64) {
    let mut best: Option<([f64; 3], f64)> = None;
    // With three unknowns, every subset of costs at their floor can be tried.
    for lowest in 0..8u8 {
        let is_lowest = |n: usize| lowest >> n & 1 == 1;
        let held = |n: usize| fixed[n].or(is_lowest(n).then_some(floors[n]));
        if (0..3).any(|n| fixed[n].is_some() && is_lowest(n)) {
            continue;
        }
        let free: Vec<usize> = (0..3).filter(|n| held(*n).is_none()).collect();
        let mut costs = [0, 1, 2].map(|n| held(n).unwrap_or(0.0));
        if !free.is_empty() {
            let Some(found) = normal(rows, &costs, &free) else { continue };
            if free.iter().zip(&found).any(|(n, cost)| *cost < floors[*n]) {
                continue;
            }
            free.iter().zip(found).for_each(|(n, cost)| costs[*n] = cost);
        }
        let left = |(row, target): &([f64; 3], f64)| {
            (row.iter().zip(costs).map(|(a, cost)| a * cost).sum::<f64>() - target).powi(2)
        };
        let squares: f64 = rows.iter().map(left).sum();
        if best.is_none_or(|(_, least)| squares < least) {
            best = Some((costs, squares));
        }
    }
    let at_floors = [0, 1, 2].map(|n| fixed[n].unwrap_or(floors[n]));
    best.unwrap_or((at_floors, f64::INFINITY))
}

/// Solves the normal equations of the free costs by elimination. `None` if the equations are singular.
fn normal(rows: &[([f64; 3], f64)], held: &[f64; 3], free: &[usize]) -> Option<Vec<f64>> {
    let size = free.len();
    let mut matrix = vec![vec![0.0; size + 1]; size];
    for (row, target) in rows {
        let rest = target - (0..3).filter(|n| !free.contains(n)).map(|n| row[n] * held[n]).sum::<f64>();
        for (i, a) in free.iter().enumerate() {
            for (j, b) in free.iter().enumerate() {
                matrix[i][j] += row[*a] * row[*b];
            }
            matrix[i][size] += row[*a] * rest;
        }
    }
    for pivot in 0..size {
        let largest = matrix[pivot][pivot];
        let whole = (0..size).map(|n| matrix[pivot][n].abs()).fold(0.0, f64::max);
        if largest <= whole * 1e-12 {
            return None;
        }
        for below in pivot + 1..size {
            let factor = matrix[below][pivot] / largest;
            let (above, from_here) = matrix.split_at_mut(below);
            let row = from_here[0].iter_mut().zip(&above[pivot]).skip(pivot);
            row.for_each(|(value, of)| *value -= factor * of);
        }
    }
    let mut found = vec![0.0; size];
    for n in (0..size).rev() {
        let rest: f64 = (n + 1..size).map(|k| matrix[n][k] * found[k]).sum();
        found[n] = (matrix[n][size] - rest) / matrix[n][n];
    }
    Some(found)
}
