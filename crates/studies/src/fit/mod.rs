//! A device fitted to what was measured: levels by size or by utilisation, a campaign, or a timeline.
//!
//! ```text
//!   CSV | campaign ─► Measured ─► Checked ─► Search: forms ⇄ simulator ─► Fitted ─► device file
//!                                        └─► draws of noise ─► intervals, what the data do not determine
//! ```
//!
//! What is looked for is raw capacity, the cost of a written and of a moved byte, what is cleaned next, and how much data the mapping table
//! in memory reaches. The result is a device file as any other. docs/guide/fit.md says what that is worth. Not here: reads, mixes and
//! loads that are not uniform.

mod amplification;
mod data;
mod family;
mod fixed;
mod limits;
mod read;
mod search;
mod show;
mod simulate;
mod solve;
#[cfg(test)]
mod tests;
mod write;

pub use data::{Knee, Measured, Point};
pub use family::{Like, Parameters, Reach};
pub use fixed::Fixed;
pub use read::{of_campaign, of_csv};
pub use show::{json, table};

pub(crate) use amplification::Amplification;

use limits::Checked;
use lowtide_core::{Bytes, Seed};
use lowtide_device::flash::spec::Policy;
use search::{Outcome, Search};
use simulate::{Allowance, Answer, Load};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// The request of which levels are where nobody says: that of sysbench.
const BLOCK: Bytes = Bytes::kib(16);
/// Requests in flight where nobody says.
const THREADS: u32 = 16;
/// What costs are given and shown for: the time of so many bytes, a map unit of most drives.
pub const COST_UNIT: Bytes = Bytes::kib(4);
/// Requests that a fit simulates at most where nobody says: some half an hour of one processor.
pub const BUDGET: u64 = 10_000_000_000;
/// Bytes of a MiB, for rates.
const MIB: f64 = 1048576.0;
/// The ends of an interval that holds 95 % of the draws.
const ENDS: [f64; 2] = [0.025, 0.975];
/// A parameter is not determined where the ends of its interval are so far apart, as a ratio.
const WIDE_RAW: f64 = 1.15;
const WIDE: f64 = 2.0;

/// What is known beside what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What the device will be called.
    pub name: String,
    /// The device that supplies every parameter not fitted.
    pub like: Option<Like>,
    /// Bytes that the host may address.
    pub capacity: Option<Bytes>,
    /// Bytes of a request.
    pub block: Option<Bytes>,
    /// Requests in flight.
    pub threads: Option<u32>,
    /// Parameters that are not looked for.
    pub fixed: Fixed,
    /// Sizes at which the fitted drive is asked for its level.
    pub predict: Vec<Bytes>,
    /// The seed of every random choice.
    pub seed: Seed,
    /// Requests that are simulated at most.
    pub budget: u64,
}

/// A number with the interval that holds 95 % of what other noise would have given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The best.
    pub best: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A level of the fitted drive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Bytes of data.
    pub data: Bytes,
    /// What was measured there, bytes a second.
    pub measured: Option<f64>,
    /// What the fitted drive gives, bytes a second.
    pub fitted: Interval,
}

/// A fitted drive.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The best parameters.
    pub parameters: Parameters,
    /// Bytes of raw NAND.
    pub raw: Interval,
    /// Bytes a second while nothing is moved.
    pub peak: Interval,
    /// Seconds that a moved byte takes.
    pub moved: Interval,
    /// Bytes that the table in memory reaches, where it does not reach all.
    pub reach: Option<Interval>,
    /// Policies that the data do not tell from the best one.
    pub other_policies: Vec<Policy>,
    /// What was measured, and what was asked for beside.
    pub levels: Vec<Level>,
    /// What the data do not determine, a sentence each.
    pub undetermined: Vec<String>,
    /// How far a level is from the fitted one, one standard deviation as a share.
    pub deviation: f64,
    /// Simulations it took.
    pub simulations: usize,
    /// The device file.
    pub device: String,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Why nothing can be fitted.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The file cannot be read.
    #[error("{}: {why}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        why: String,
    },
    /// Levels that cannot be fitted: too few, too many, or one that no drive has.
    #[error("{0}")]
    Data(String),
    /// The example is no drive of the family.
    #[error("{0}")]
    Like(String),
    /// An option that is missing, or whose value cannot be.
    #[error("{0}")]
    Setting(String),
    /// The search ended without a drive.
    #[error("nothing fits: {0}")]
    NoFit(String),
    /// Somebody ended it.
    #[error("interrupted")]
    Interrupted,
}

/// Why a search or a simulation ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stop {
    /// Somebody ended it.
    Interrupted,
    /// The simulated requests that are allowed do not suffice.
    Budget(String),
    /// There is no answer.
    NoFit(String),
}

impl From<Stop> for FitError {
    fn from(stop: Stop) -> FitError {
        match stop {
            Stop::Interrupted => FitError::Interrupted,
            Stop::Budget(why) | Stop::NoFit(why) => FitError::NoFit(why),
        }
    }
}

/// Fits a drive to what was measured.
///
/// # Errors
/// [`FitError`] where levels or settings cannot be fitted, no drive suits them, or `interrupt` is set.
pub fn fit(measured: &Measured, question: &Question, interrupt: &AtomicBool) -> Result<Fitted, FitError> {
    let Checked { family, raw, notes: assumed } = limits::check(measured, question)?;
    let search = Search {
        family: &family,
        measured,
        fixed: question.fixed,
        raw,
        seed: question.seed,
        budget: question.budget,
        interrupt,
    };
    let found = search.run()?;
    let levels = levels(&search, &found, &question.predict)?;
    let best = found.hypotheses[0].solution.parameters;
    let interval = |of: &dyn Fn(&Parameters) -> f64| {
        interval(of(&best), found.draws.iter().map(|(_, parameters)| of(parameters)).collect())
    };
    let mut notes: Vec<String> = measured.notes.iter().cloned().chain(assumed).collect();
    if found.cut_short {
        notes.push(format!(
            "the simulated requests that are allowed (`--budget`) were used up after {} simulations, before closed forms and simulator \
             agreed",
            found.simulations
        ));
    }
    let mut fitted = Fitted {
        parameters: best,
        raw: interval(&|it| it.raw),
        peak: interval(&|it| 1.0 / it.write),
        moved: interval(&|it| it.moved),
        reach: best.map.map(|_| interval(&|it| it.map.map_or(0.0, |map| map.bytes))),
        other_policies: found.hypotheses[1..].iter().map(|it| it.solution.parameters.policy).collect(),
        levels,
        undetermined: Vec::new(),
        deviation: found.deviation,
        simulations: found.simulations,
        device: String::new(),
        notes,
    };
    fitted.undetermined = undetermined(&fitted, &question.fixed);
    fitted.device = write::device(&family, question, measured, &fitted);
    Ok(fitted)
}

/// The levels of the fitted drive where something was measured or is asked for.
fn levels(search: &Search<'_>, found: &Outcome, asked: &[Bytes]) -> Result<Vec<Level>, Stop> {
    let best = &found.hypotheses[0];
    let family = search.family;
    let drive = family.drive(&best.solution.parameters);
    let measured = search.measured.points.iter().zip(&best.seen);
    let mut known: Vec<(Bytes, Option<f64>, f64)> =
        measured.map(|(point, seen)| (point.data, Some(point.rate), seen.factor)).collect();
    let form = search.form(best);
    let allowance =
        Allowance { requests: found.left / asked.len().max(1) as u64, interrupt: search.interrupt };
    known.extend(search::each(asked, |data| {
        let expected = form.rate(&best.solution.parameters, data.get() as f64);
        let load = Load { data: *data, block: family.block, threads: family.threads, expected };
        let seed = search.seed.part("predict", data.get());
        let Answer { value, .. } = simulate::level(&drive, &load, seed, allowance)?;
        Ok((*data, None, value / expected))
    })?);
    known.sort_by_key(|(data, ..)| *data);
    let level = |(data, measured, factor): (Bytes, Option<f64>, f64)| {
        let at = data.get() as f64;
        let of = |(n, parameters): &(usize, Parameters)| {
            search.form(&found.hypotheses[*n]).rate(parameters, at) * factor
        };
        let best = of(&(0, best.solution.parameters));
        Level { data, measured, fitted: interval(best, found.draws.iter().map(of).collect()) }
    };
    Ok(known.into_iter().map(level).collect())
}

fn interval(best: f64, mut all: Vec<f64>) -> Interval {
    debug_assert!(!all.is_empty(), "noise is drawn some times");
    all.sort_by(f64::total_cmp);
    let [low, high] = ENDS.map(|share| all[((all.len() - 1) as f64 * share).round() as usize]);
    Interval { best, low: low.min(best), high: high.max(best) }
}

/// What the data do not determine.
fn undetermined(fitted: &Fitted, fixed: &Fixed) -> Vec<String> {
    let mut all = Vec::new();
    let size = |bytes: f64| write::size(bytes);
    if fixed.raw.is_none() && fitted.raw.high > fitted.raw.low * WIDE_RAW {
        let (low, high) = (size(fitted.raw.low), size(fitted.raw.high));
        all.push(format!(
            "raw capacity: anything from {low} to {high} suits the data. Measure a size near the whole capacity, or say it with \
             `--fix raw=…`"
        ));
    }
    if fixed.moved.is_none() && fitted.moved.high > fitted.moved.low.max(1e-15) * WIDE {
        all.push(
            "what a moved byte costs: measure more sizes above half of the capacity, or say it with `--fix gc-cost=…`".to_owned(),
        );
    }
    if fixed.write.is_none() && fitted.peak.high > fitted.peak.low * WIDE {
        all.push("the peak rate: measure a small size, or say it with `--fix write-cost=…`".to_owned());
    }
    if !fitted.other_policies.is_empty() {
        let words = |policy: &Policy| write::policy(*policy);
        let others: Vec<String> = fitted.other_policies.iter().map(words).collect();
        all.push(format!(
            "what is cleaned next: {} suits the data as well as {}",
            others.join(" or "),
            write::policy(fitted.parameters.policy)
        ));
    }
    if fitted.reach.is_none() && fixed.reach.is_none() {
        all.push(
            "how far the mapping table reaches: nothing in the data asks for one that does not fit"
                .to_owned(),
        );
    }
    all
}
