//! Fits a simulated flash drive to measurements: levels by size or by utilisation, a campaign, or a timeline.
//!
//! ```text
//!   CSV | campaign ─► Measured ─► Checked ─► Search: forms ⇄ simulator ─► Fitted ─► device file
//!                                        └─► draws of noise ─► intervals, undetermined parameters
//! ```
//!
//! The fitted parameters are the raw capacity, the time per written byte and per moved byte, the cleaning policy, and
//! the reach of the map cache. The result is an ordinary device file. docs/guide/fit.md shows how accurate a fit is.
//!
//! # Not modelled
//!
//! Reads, mixes of reads and writes, and writes that are not uniformly random.

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

/// Default request size, as in sysbench.
const BLOCK: Bytes = Bytes::kib(16);
/// Default requests in flight.
const THREADS: u32 = 16;
/// The size for which costs are entered and displayed: one map unit of most drives.
pub const COST_UNIT: Bytes = Bytes::kib(4);
/// Default limit on simulated requests: about half an hour on one core.
pub const BUDGET: u64 = 10_000_000_000;
/// Bytes in a MiB, for rates.
const MIB: f64 = 1048576.0;
/// Quantiles of the draws that bound a 95 % interval.
const ENDS: [f64; 2] = [0.025, 0.975];
/// The raw capacity counts as undetermined if the ratio of its interval's ends exceeds this. `WIDE` applies to costs
/// and rates.
const WIDE_RAW: f64 = 1.15;
const WIDE: f64 = 2.0;

/// The settings of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Name of the fitted device.
    pub name: String,
    /// The device that supplies the parameters that are not fitted.
    pub like: Option<Like>,
    /// Bytes that the host can address.
    pub capacity: Option<Bytes>,
    /// Bytes per request.
    pub block: Option<Bytes>,
    /// Requests in flight.
    pub threads: Option<u32>,
    /// Known parameters, which are not fitted.
    pub fixed: Fixed,
    /// Data sizes at which the level of the fitted drive is predicted.
    pub predict: Vec<Bytes>,
    /// The seed of every random choice.
    pub seed: Seed,
    /// Limit on simulated requests.
    pub budget: u64,
}

/// A best estimate with its 95 % interval over redrawn noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The best estimate.
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
    /// The measured level in bytes/s, if this size was measured.
    pub measured: Option<f64>,
    /// The level of the fitted drive in bytes/s.
    pub fitted: Interval,
}

/// A fitted drive.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The best parameters.
    pub parameters: Parameters,
    /// Raw NAND in bytes.
    pub raw: Interval,
    /// Write rate in bytes/s while nothing is moved.
    pub peak: Interval,
    /// Seconds per moved byte.
    pub moved: Interval,
    /// Bytes of data that the map cache covers. `None` if it covers everything.
    pub reach: Option<Interval>,
    /// Policies that fit the data about as well as the best one.
    pub other_policies: Vec<Policy>,
    /// Levels at the measured sizes and at the sizes to predict, by size.
    pub levels: Vec<Level>,
    /// Parameters that the data do not determine, a sentence each.
    pub undetermined: Vec<String>,
    /// Standard deviation of the noise of a level, as a share.
    pub deviation: f64,
    /// Number of simulations run.
    pub simulations: usize,
    /// Text of the device file.
    pub device: String,
    /// Notes for the user: assumptions and limits of this fit.
    pub notes: Vec<String>,
}

/// An error that prevents a fit.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The file cannot be read.
    #[error("{}: {why}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason, with the line number if known.
        why: String,
    },
    /// The measurements cannot be fitted: too few or too many levels, or a level that no drive has.
    #[error("{0}")]
    Data(String),
    /// The `--like` device is not a supported flash drive.
    #[error("{0}")]
    Like(String),
    /// An option is missing or its value is invalid.
    #[error("{0}")]
    Setting(String),
    /// No drive fits, or the simulation budget is too small.
    #[error("nothing fits: {0}")]
    NoFit(String),
    /// The user interrupted the fit.
    #[error("interrupted")]
    Interrupted,
}

/// The reason that a search or a simulation ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stop {
    /// The user interrupted it.
    Interrupted,
    /// The budget of simulated requests is too small.
    Budget(String),
    /// No drive fits.
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

/// Fits a drive to measurements.
///
/// # Errors
/// [`FitError`] if levels or settings are invalid, if no drive fits, or if `interrupt` is set.
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

/// Levels of the fitted drive at the measured sizes and at the sizes to predict.
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

/// Describes the parameters that the data do not determine.
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
