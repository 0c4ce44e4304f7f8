//! A trial: an experiment of one cell, planned and run like any other, in a temporary store.
//!
//! Module `search` decides which trials run.

use super::AdviseError;
use super::candidate::Candidate;
use super::question::{Asked, Question, Unit};
use super::text::{End, Setup, text};
use lowtide_core::{Bytes, Seed};
use lowtide_lab::campaign::{CampaignError, Progress, Running, Stage};
use lowtide_lab::experiment::{BadInput, Experiment};
use lowtide_lab::plan::{Plan, PlannedCell};
use lowtide_lab::store::{About, StoreError};
use lowtide_record::analysis::Verdict;
use lowtide_record::{Campaign, Cell, Row, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Precision of the level in a first trial, as a share, …
const PRECISION: f64 = 0.1;
/// … and in checks, and in a second trial if the first is inconclusive.
const CLOSE_PRECISION: f64 = 0.03;
/// Duration of a trial of a database, at full scale. A database that keeps slowing down has not settled by then.
const SECONDS: u64 = 900;

/// The result of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The level in the unit of the question: the settled level, or the mean of the last quarter.
    pub mean: f64,
    /// The lower end of its 95 % interval. Equal to the level if it did not settle.
    pub low: f64,
    /// The upper end of its 95 % interval. Equal to the level if it did not settle.
    pub high: f64,
    /// The reason that the level did not settle, if so.
    pub unsettled: Option<String>,
    /// NAND bytes written per byte the host wrote.
    pub write_amplification: Option<f64>,
    /// Bytes that the host wrote per request or New-Order transaction.
    pub written_per_unit: f64,
    /// The text of the experiment.
    pub experiment: String,
    /// The divisor for the device and the data.
    pub scale: u64,
    /// The seed.
    pub seed: u64,
}

/// An error that prevents a trial.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The experiment cannot be planned.
    #[error("{device}: {error}")]
    Experiment {
        /// The device.
        device: String,
        /// The reason.
        error: BadInput,
    },
    /// The campaign failed.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The reason that there is no result.
#[derive(Debug)]
pub(super) enum Stop {
    /// The model refused a request or could not continue. This counts against the candidate.
    Failed(String),
    /// The user interrupted it.
    Interrupted,
    /// The trial could not be run.
    Broken(TrialError),
}

impl Stop {
    /// The objection to the candidate.
    ///
    /// # Errors
    /// [`AdviseError`] if the trial ended for a reason other than the candidate.
    pub fn reason(self) -> Result<String, AdviseError> {
        match self {
            Stop::Failed(reason) => Ok(reason),
            Stop::Interrupted => Err(AdviseError::Interrupted),
            Stop::Broken(error) => Err(error.into()),
        }
    }
}

impl<E: Into<TrialError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Stop::Broken(error.into())
    }
}

impl Trial {
    /// Whether the whole 95 % interval of a settled level reaches the rate.
    pub fn meets(&self, rate: f64) -> bool {
        self.unsettled.is_none() && self.low >= rate
    }

    /// Whether the rate lies within the interval.
    fn leaves_open(&self, rate: f64) -> bool {
        self.unsettled.is_none() && self.low < rate && rate <= self.high
    }
}

/// A test bench for one candidate.
pub(super) struct Bench<'a> {
    pub question: &'a Question,
    pub candidate: &'a Candidate,
    pub interrupt: &'a Arc<AtomicBool>,
}

impl Bench<'_> {
    /// Runs a trial with `data` bytes of data and, for a database, `pool` bytes of memory.
    pub fn run(&self, data: Bytes, pool: Option<Bytes>) -> Result<Trial, Stop> {
        let (scale, seed) = (self.candidate.scale, self.question.seed);
        match self.question.asked {
            Asked::Block(_) => {
                let steady = |precision| Setup { data, pool, end: End::Steady(precision) };
                let trial = self.once(&steady(PRECISION), seed, scale)?;
                match trial.leaves_open(self.question.rate()) {
                    true => self.once(&steady(CLOSE_PRECISION), seed, scale),
                    false => Ok(trial),
                }
            }
            Asked::Tpcc(_) => self.once(&Setup { data, pool, end: End::Seconds(SECONDS) }, seed, scale),
        }
    }

    /// Runs a check of the choice: a longer trial with a larger model and another seed.
    pub fn check(&self, data: Bytes, pool: Option<Bytes>) -> Result<Trial, Stop> {
        let (scale, seed) = ((self.candidate.scale / 2).max(1), self.question.seed.wrapping_add(1));
        let end = End::Steady(CLOSE_PRECISION);
        match self.question.asked {
            Asked::Block(_) => self.once(&Setup { data, pool, end }, seed, scale),
            Asked::Tpcc(_) => self.once(&Setup { data, pool, end: End::Seconds(2 * SECONDS) }, seed, scale),
        }
    }

    fn once(&self, setup: &Setup, seed: u64, scale: u64) -> Result<Trial, Stop> {
        let text = text(self.question, &self.candidate.target, setup);
        let refused = |error| TrialError::Experiment { device: self.candidate.device.name.clone(), error };
        let experiment = Experiment::parse("the advised experiment", &text, &[]).map_err(refused)?;
        // A plan that does not fit the device, at this scale, counts against the candidate.
        let plan =
            Plan::new(experiment, Seed::new(seed), scale).map_err(|error| Stop::Failed(error.to_string()))?;
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(Stop::Interrupted);
        }
        let running = Running::in_memory(&plan, &About::default(), self.interrupt, &Silent)?;
        running.run_group(&plan.groups[0]);
        let (store, outcome) = running.finish()?;
        if outcome.interrupted {
            return Err(Stop::Interrupted);
        }
        let campaign = store.load(outcome.campaign)?;
        self.read(&campaign, text, seed, scale)
    }

    fn read(&self, campaign: &Campaign, experiment: String, seed: u64, scale: u64) -> Result<Trial, Stop> {
        let cell = &campaign.cells[0];
        if cell.status != Status::Done {
            let reason = cell.failure.clone().unwrap_or_else(|| "it was not measured".to_owned());
            return Err(Stop::Failed(reason));
        }
        let (from, to, _) = cell.window();
        let factor = self.factor();
        let ((mean, half), unsettled) = match &cell.verdict {
            Some(Verdict::Steady(estimate)) => ((estimate.mean, estimate.half_width), None),
            Some(Verdict::NoSteadyState { reason }) => {
                ((cell.mean_rate_between(from, to).unwrap_or(0.0), 0.0), Some(reason.clone()))
            }
            None => ((0.0, 0.0), Some("it was not analysed".to_owned())),
        };
        Ok(Trial {
            mean: mean * factor,
            low: (mean - half) * factor,
            high: (mean + half) * factor,
            unsettled,
            write_amplification: cell.write_amplification_between(from, to),
            written_per_unit: written_per_unit(cell, from, to),
            experiment,
            scale,
            seed,
        })
    }

    /// Factor that converts a level of the analysis to the unit of the question.
    fn factor(&self) -> f64 {
        match &self.question.asked {
            Asked::Block(load) if load.unit == Unit::Requests => {
                Bytes::mib(1).get() as f64 / load.block.get() as f64
            }
            _ => 1.0,
        }
    }
}

/// Bytes that the host wrote per request or New-Order transaction.
fn written_per_unit(cell: &Cell, from: u64, to: u64) -> f64 {
    let rows = cell.rows.iter().filter(|row| row.start_ns >= from && row.end_ns <= to);
    let units = |row: &Row| match &row.transactions {
        Some(transactions) => transactions.new_orders(),
        None => row.reads + row.writes,
    };
    let (bytes, units) = rows.fold((0, 0), |(bytes, all), row| (bytes + row.write_bytes, all + units(row)));
    bytes as f64 / units.max(1) as f64
}

/// Discards the progress of a trial. Only the result is reported.
struct Silent;

impl Progress for Silent {
    fn cell(&self, _cell: &PlannedCell, _stage: Stage, _share: f64, _last: Option<&Row>) {}
    fn ended(&self, _cell: &PlannedCell, _failure: Option<&str>) {}
    fn note(&self, _text: &str) {}
}
