//! Closed forms of write amplification for each cleaning policy.
//!
//! Under uniform random writes, write amplification depends on ρ, the share of NAND that holds live data, and on the
//! units per block:
//!
//! | policy | source |
//! |---|---|
//! | random | 1 / (1 − ρ) |
//! | FIFO | α / (α + W₀(−α e^−α)), α = 1 / ρ: Desnoyers; Xiang and Kurkoski, arXiv:1110.4245 |
//! | greedy | mean field: `greedy` below |
//! | d-choices | mean field: `best_of` below |
//!
//! # Not modelled
//!
//! Hot data and the erased blocks that a drive reserves. The simulator has both.

use lowtide_device::flash::spec::Policy;
use std::sync::{Arc, Mutex, PoisonError};

/// The largest ρ of the tables.
pub(super) const FULLEST: f64 = 0.985;
/// Points per table.
const POINTS: usize = 160;
/// Steps of a bisection.
const STEPS: usize = 60;
/// Limit on the units per block. Larger blocks use the form for this limit, since forms hardly change beyond it.
const MOST_UNITS: u64 = 4096;

/// Limit on cached forms.
const MOST_KEPT: usize = 64;

/// Cached forms by policy and units per block.
type Kept = Vec<((Policy, u64), Arc<Amplification>)>;

static KEPT: Mutex<Kept> = Mutex::new(Vec::new());

/// A table of write amplification by ρ, from 0 to [`FULLEST`].
#[derive(Debug, Clone)]
pub(crate) struct Amplification {
    /// Pairs of ρ and write amplification, both ascending.
    points: Vec<(f64, f64)>,
}

impl Amplification {
    /// [`Amplification::of`] with a cache.
    pub(super) fn shared(policy: Policy, units: u64) -> Option<Arc<Amplification>> {
        let key = (policy, units.min(MOST_UNITS));
        let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept().iter().find(|(known, _)| *known == key).map(|(_, form)| Arc::clone(form));
        if known.is_some() {
            return known;
        }
        // The lock is not held meanwhile, so two threads may compute the same form.
        let form = Arc::new(Amplification::of(policy, units)?);
        let mut kept = kept();
        if kept.len() < MOST_KEPT {
            kept.push((key, Arc::clone(&form)));
        }
        Some(form)
    }

    /// Computes the form of a policy for `units` per block. `None` if the policy has no closed form.
    pub(crate) fn of(policy: Policy, units: u64) -> Option<Amplification> {
        let units = units.min(MOST_UNITS);
        let even = |form: &dyn Fn(f64) -> f64| {
            let at = |n: usize| FULLEST * (n + 1) as f64 / POINTS as f64;
            (0..POINTS).map(at).map(|rho| (rho, form(rho))).collect()
        };
        let mut points: Vec<(f64, f64)> = match policy {
            Policy::Random => even(&|rho| 1.0 / (1.0 - rho)),
            Policy::Fifo => even(&lowtide_logdisk::closed_form::by_age),
            Policy::Greedy => even(&|rho| greedy(rho, units as usize)),
            Policy::DChoices(d) => best_of(d, units as usize),
            Policy::CostBenefit => return None,
        };
        points.insert(0, (0.0, 1.0));
        Some(Amplification { points })
    }

    /// The write amplification at `rho`. Above [`FULLEST`], the value at [`FULLEST`].
    pub(crate) fn at(&self, rho: f64) -> f64 {
        let after = self.points.partition_point(|(at, _)| *at < rho);
        match (after.checked_sub(1).map(|before| self.points[before]), self.points.get(after)) {
            (Some((from, low)), Some((to, high))) => low + (high - low) * (rho - from) / (to - from),
            (Some((_, last)), None) => last,
            (None, _) => 1.0,
        }
    }
}

/// The mean field of the greedy policy: α = b / (b − x) (H_b − H_{m+1} + p / (m + 1)), x = m + 1 − p.
///
/// Source: Desnoyers, "Analytic models of SSD write performance".
fn greedy(rho: f64, units: usize) -> f64 {
    let b = units as f64;
    let harmonic = |n: usize| (1..=n).map(|i| 1.0 / i as f64).sum::<f64>();
    let all = harmonic(units);
    let alpha = |x: f64| {
        let m = x.floor();
        let p = m + 1.0 - x;
        b / (b - x) * (all - harmonic(m as usize + 1) + p / (m + 1.0))
    };
    // `alpha` falls as x, the valid units of a victim, rises. Bisection finds x.
    let (mut low, mut high) = (0.0, b - 1.0);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if alpha(middle) > 1.0 / rho { low = middle } else { high = middle }
    }
    b / (b - low)
}

/// The mean field of d-choices, as points along a curve with parameter `c`.
///
/// The fixed point is i (F_i − F_{i−1}) = c (1 − (1 − F_{i−1})^d), F_b = 1. Source: Van Houdt, "A mean field model
/// for a class of garbage collection algorithms in flash-based solid state drives".
fn best_of(d: u32, units: usize) -> Vec<(f64, f64)> {
    let b = units as f64;
    // 1 − (1 − F)^d, computed without cancellation: the first shares of a full drive are as small as 1e-30.
    let taken = |share: f64| -(f64::from(d) * (-share).ln_1p()).exp_m1();
    // For a given first share F: the last share F_b, and the sum of the probabilities `taken`.
    let run = |c: f64, first: f64| {
        let (mut share, mut sum) = (first, 0.0);
        for i in 1..=units {
            let taken = taken(share);
            sum += taken;
            share += c * taken / i as f64;
            if share >= 1.0 {
                return (share, sum + (units - i) as f64);
            }
        }
        (share, sum)
    };
    let point = |c: f64| {
        // Bisection for the logarithm of the first share, so that F_b is 1.
        let (mut low, mut high) = (-700.0f64, 0.0f64);
        for _ in 0..STEPS {
            let middle = (low + high) / 2.0;
            if run(c, middle.exp()).0 < 1.0 { low = middle } else { high = middle }
        }
        let gained = run(c, low.exp()).1;
        (c * gained / b, b / gained)
    };
    // ρ = c (b − x) / b, so this range of c covers drives from nearly empty to nearly full.
    let all = (0..POINTS).map(|n| point(0.2 * (40.0f64 / 0.2).powf(n as f64 / (POINTS - 1) as f64)));
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (rho, amplification) in all.filter(|(rho, _)| (0.0..=FULLEST).contains(rho)) {
        if points.last().is_none_or(|last| rho > last.0 && amplification >= last.1) {
            points.push((rho, amplification));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_most_units_a_form_hardly_changes() {
        for rho in [0.3, 0.6, 0.9, 0.95] {
            let (capped, exact) = (greedy(rho, MOST_UNITS as usize), greedy(rho, 4 * MOST_UNITS as usize));
            assert!((capped / exact - 1.0).abs() < 3e-3, "{rho}: {capped}, not {exact}");
        }
    }

    /// Reference values from the literature: published/write_amplification_theory.txt.
    #[test]
    fn the_forms_have_the_published_values() {
        let cases = [
            (Policy::Greedy, 64, [(0.5, 1.2389), (0.7, 1.8333), (0.9, 4.8213), (0.95, 8.8501)]),
            (Policy::Greedy, 256, [(0.5, 1.2509), (0.7, 1.8652), (0.9, 5.0832), (0.95, 9.7979)]),
            (Policy::Fifo, 256, [(0.5, 1.2550), (0.7, 1.8762), (0.9, 5.1787), (0.95, 10.1724)]),
            (Policy::Random, 256, [(0.5, 2.0), (0.7, 3.3333), (0.9, 10.0), (0.95, 20.0)]),
            (Policy::DChoices(2), 256, [(0.5, 1.5310), (0.7, 2.4282), (0.9, 6.9884), (0.95, 13.7687)]),
            (Policy::DChoices(10), 64, [(0.5, 1.2612), (0.7, 1.8796), (0.9, 5.0002), (0.95, 9.2842)]),
        ];
        for (policy, units, values) in cases {
            let form = Amplification::of(policy, units).expect("it has a closed form");
            for (rho, expected) in values {
                let found = form.at(rho);
                // The tolerance allows for linear interpolation between the points of the table.
                assert!(
                    (found / expected - 1.0).abs() < 5e-3,
                    "{policy:?} {units} {rho}: {found}, not {expected}"
                );
            }
        }
    }
}
