//! The prior of a curve: forms of the seconds per byte by data size.
//!
//! Uniform random writes follow the forms of `fit`, `write + moved (A(ρ) − 1) + more · knee(data)`, for every policy,
//! every raw capacity of a grid, and every knee below. Another form, `a + b · data`, assumes no law; it is the only
//! form for other loads. Each form is linear in its costs, so the costs need no grid.
//!
//! | knee | cause |
//! |---|---|
//! | none | |
//! | (1 − reach / data)₊ | a map cache that covers only `reach` bytes of data |
//! | 1 / (1 + (onset / data)ᵖ) | cleaning that is free while victim blocks are empty, and has a cost above `onset` |
//! | 1 above a size, else 0 | a step: a cache or a region is full |
//!
//! The deviation of a drive from its form is modelled in `posterior`.

use crate::fit::Amplification;
use lowtide_device::flash::spec::Policy;

/// Cleaning policies.
const POLICIES: [Policy; 6] = [
    Policy::Greedy,
    Policy::DChoices(8),
    Policy::DChoices(4),
    Policy::DChoices(2),
    Policy::Fifo,
    Policy::Random,
];
/// Map units per block. The forms hardly depend on it.
const UNITS: u64 = 256;
/// The grid of spare NAND as a share of the capacity, spaced geometrically.
const ROOMS: usize = 30;
const LEAST_ROOM: f64 = 0.01;
const MOST_ROOM: f64 = 1.0;
/// Numbers of knee positions, from half the smallest size to `FARTHEST` of the largest. Onsets need more positions
/// than reaches because they are narrower.
const REACHES: usize = 10;
const ONSETS: usize = 24;
const FARTHEST: f64 = 0.7;
/// Powers p of an onset: a larger power makes it narrower.
const POWERS: [f64; 3] = [4.0, 7.0, 11.0];
/// Prior probability of a knee, divided equally among the kinds, …
const WITH_KNEE: f64 = 0.3;
/// … and of a curve without a law.
const LAWLESS: f64 = 0.05;
/// Prior mean and standard deviation of each cost, in units of the fastest byte.
const COSTS: [(f64, f64); 3] = [(1.0, 0.5), (1.5, 2.0), (0.0, 0.6)];
const LAWLESS_COSTS: [(f64, f64); 3] = [(1.0, 0.5), (0.0, 2.0), (0.0, 1e-6)];
/// Prior median of the deviation of a drive from its form, as a share.
const FROM_LAW: f64 = 0.012;
const FROM_LINE: f64 = 0.04;

/// An additional bend of a curve.
#[derive(Debug, Clone, Copy)]
enum Knee {
    None,
    /// A map cache that covers this many bytes.
    Reach(f64),
    /// A gradual rise around this many bytes, with this power.
    Onset(f64, f64),
    /// A step above this many bytes.
    Step(f64),
}

impl Knee {
    /// All knees, each with its prior probability.
    fn all(data: &[f64]) -> Vec<(Knee, f64)> {
        let (from, to) = (data[0] / 2.0, data[data.len() - 1] * FARTHEST);
        let places =
            |count: usize| (0..count).map(move |n| from * (to / from).powf(n as f64 / (count - 1) as f64));
        let of_reach = WITH_KNEE / 3.0 / REACHES as f64;
        let of_onset = WITH_KNEE / 3.0 / (ONSETS * POWERS.len()) as f64;
        let of_step = WITH_KNEE / 3.0 / (data.len() - 1) as f64;
        let steps = data.windows(2).map(|pair| Knee::Step((pair[0] + pair[1]) / 2.0));
        let onsets = places(ONSETS).flat_map(|at| POWERS.map(|power| Knee::Onset(at, power)));
        std::iter::once((Knee::None, 1.0 - WITH_KNEE))
            .chain(places(REACHES).map(|at| (Knee::Reach(at), of_reach)))
            .chain(onsets.map(|knee| (knee, of_onset)))
            .chain(steps.map(|knee| (knee, of_step)))
            .collect()
    }

    fn at(self, data: f64) -> f64 {
        match self {
            Knee::None => 0.0,
            Knee::Reach(reach) => (1.0 - reach / data).max(0.0),
            Knee::Onset(onset, power) => 1.0 / (1.0 + (onset / data).powf(power)),
            Knee::Step(edge) => f64::from(u8::from(data > edge)),
        }
    }
}

/// A form of a curve, linear in its costs.
#[derive(Debug, Clone)]
pub(super) struct Form {
    /// The coefficient of each cost, at each size.
    pub rows: Vec<[f64; 3]>,
    /// Prior mean and standard deviation of each cost.
    pub costs: [(f64, f64); 3],
    /// The logarithm of the prior probability.
    pub ln_prior: f64,
    /// Prior median of the deviation of a drive from this form, as a share.
    pub misfit: f64,
}

/// The forms at `data` (bytes, ascending), which has at least two sizes.
pub(super) fn forms(data: &[f64], capacity: f64, uniform_writes: bool) -> Vec<Form> {
    let largest = data.iter().copied().fold(0.0, f64::max);
    let line = data.iter().map(|data| [1.0, data / largest, 0.0]).collect();
    let of_line = if uniform_writes { LAWLESS } else { 1.0 };
    let mut all =
        vec![Form { rows: line, costs: LAWLESS_COSTS, ln_prior: f64::ln(of_line), misfit: FROM_LINE }];
    if !uniform_writes {
        return all;
    }
    let knees = Knee::all(data);
    let each = f64::ln((1.0 - LAWLESS) / (POLICIES.len() * ROOMS) as f64);
    for amplification in POLICIES.iter().filter_map(|policy| Amplification::of(*policy, UNITS)) {
        for n in 0..ROOMS {
            let room = LEAST_ROOM * (MOST_ROOM / LEAST_ROOM).powf(n as f64 / (ROOMS - 1) as f64);
            let raw = capacity * (1.0 + room);
            all.extend(knees.iter().map(|(knee, probability)| {
                Form {
                    rows: data
                        .iter()
                        .map(|data| [1.0, amplification.at(data / raw) - 1.0, knee.at(*data)])
                        .collect(),
                    costs: COSTS,
                    ln_prior: each + probability.ln(),
                    misfit: FROM_LAW,
                }
            }));
        }
    }
    all
}
