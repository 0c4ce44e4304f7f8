//! The curves that are thought possible before anything is measured: seconds of a byte by size of data.
//!
//! Of uniform random writes they are the forms of `fit`, `write + moved (A(ρ) − 1) + more · knee(data)`, for every policy and raw capacity
//! of a grid and one of the knees below; and one that knows no law, `a + b · data`, which is all there is for other loads. Each is
//! linear in its costs, so the costs need no grid.
//!
//! | knee | what it is of |
//! |---|---|
//! | none | |
//! | (1 − reach / data)₊ | a mapping table that reaches so much data |
//! | 1 / (1 + (onset / data)ᵖ) | cleaning that costs nothing while whatever is cleaned is empty, and something from there on |
//! | 1 beyond a size, else 0 | a step: a cache or a region that is full |
//!
//! Not here: how far a drive is from its form (`posterior`).

use crate::fit::Amplification;
use lowtide_device::flash::spec::Policy;

/// What is cleaned next.
const POLICIES: [Policy; 6] = [
    Policy::Greedy,
    Policy::DChoices(8),
    Policy::DChoices(4),
    Policy::DChoices(2),
    Policy::Fifo,
    Policy::Random,
];
/// Map units of a block: forms hardly depend on it.
const UNITS: u64 = 256;
/// Room beside the capacity, as shares of it, on a scale of ratios.
const ROOMS: usize = 30;
const LEAST_ROOM: f64 = 0.01;
const MOST_ROOM: f64 = 1.0;
/// Places of knees, from half the smallest size to a part of the largest: few of the wide ones, more of the narrow ones.
const REACHES: usize = 10;
const ONSETS: usize = 24;
const FARTHEST: f64 = 0.7;
/// How narrow an onset may be.
const POWERS: [f64; 3] = [4.0, 7.0, 11.0];
/// How probable it is beforehand that there is a knee, each kind as well as the others, …
const WITH_KNEE: f64 = 0.3;
/// … and that no law is followed.
const LAWLESS: f64 = 0.05;
/// What is expected of the costs beforehand, in units of the fastest byte, and one standard deviation.
const COSTS: [(f64, f64); 3] = [(1.0, 0.5), (1.5, 2.0), (0.0, 0.6)];
const LAWLESS_COSTS: [(f64, f64); 3] = [(1.0, 0.5), (0.0, 2.0), (0.0, 1e-6)];
/// How far a drive is from its form: the median expected beforehand, as a share.
const FROM_LAW: f64 = 0.012;
const FROM_LINE: f64 = 0.04;

/// Where a curve bends beside its law.
#[derive(Debug, Clone, Copy)]
enum Knee {
    None,
    /// From this much data on.
    Reach(f64),
    /// Around this much data, with this power.
    Onset(f64, f64),
    /// Beyond this much data.
    Step(f64),
}

impl Knee {
    /// All of them, each with its probability beforehand.
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

/// One curve up to its costs.
#[derive(Debug, Clone)]
pub(super) struct Form {
    /// What each cost is multiplied by, at each size.
    pub rows: Vec<[f64; 3]>,
    /// Mean and standard deviation of each cost beforehand.
    pub costs: [(f64, f64); 3],
    /// The logarithm of its probability beforehand.
    pub ln_prior: f64,
    /// How far from it a drive is expected to be, as a share.
    pub misfit: f64,
}

/// The forms at sizes of data, bytes, rising; there are two at least.
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
