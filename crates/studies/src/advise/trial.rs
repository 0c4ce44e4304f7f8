//! One trial: an experiment of one cell, planned and run as any other, in a store that nobody keeps.
//!
//! Not here: which trials are made (`search`).

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

/// How well the level of a candidate has to be known, as a share of it …
const PRECISION: f64 = 0.1;
/// … where that does not tell whether it is the rate, and for the choice.
const CLOSE_PRECISION: f64 = 0.03;
/// How long a database is asked, at full size; it is not yet settled where it goes on becoming slower.
const SECONDS: u64 = 900;

/// What a trial found.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The level, in the unit that was asked for: the settled one, or that of the last quarter.
    pub mean: f64,
    /// The ends of its 95 % interval; the level itself where it did not settle.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Why it did not settle.
    pub unsettled: Option<String>,
    /// Bytes of NAND for each byte the host wrote.
    pub write_amplification: Option<f64>,
    /// Bytes that the host wrote for each request, or each new order.
    pub written_per_unit: f64,
    /// The text of the experiment.
    pub experiment: String,
    /// How many times smaller it was run.
    pub scale: u64,
    /// Its seed.
    pub seed: u64,
}

/// Why a trial was not made.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The experiment cannot be planned.
    #[error("{device}: {error}")]
    Experiment {
        /// The device.
        device: String,
        /// What is wrong.
        error: BadInput,
    },
    /// The campaign failed.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// Its store did.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why there is no figure.
#[derive(Debug)]
pub(super) enum Stop {
    /// The model refused a request, or could not go on; why. That is an answer about the candidate.
    Failed(String),
    /// The user ended it.
    Interrupted,
    /// The machinery failed.
    Broken(TrialError),
}

impl Stop {
    /// What speaks against the candidate.
    ///
    /// # Errors
    /// [`AdviseError`] where nothing does, but there is no answer.
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
    /// Whether the level is the rate or more, in all of its interval.
    pub fn meets(&self, rate: f64) -> bool {
        self.unsettled.is_none() && self.low >= rate
    }

    /// Whether the rate is inside the interval.
    fn leaves_open(&self, rate: f64) -> bool {
        self.unsettled.is_none() && self.low < rate && rate <= self.high
    }
}

/// What is asked of a candidate: a data size, and memory where it is a database.
pub(super) struct Bench<'a> {
    pub question: &'a Question,
    pub candidate: &'a Candidate,
    pub interrupt: &'a Arc<AtomicBool>,
}

impl Bench<'_> {
    /// A trial of a candidate.
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

    /// A trial of the choice: longer, of a larger model, and with another seed.
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
        // What does not fit on this device, or not on a smaller one, is an answer about it.
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

    /// What a level of the analysis is multiplied by to be in the unit that was asked for.
    fn factor(&self) -> f64 {
        match &self.question.asked {
            Asked::Block(load) if load.unit == Unit::Requests => {
                Bytes::mib(1).get() as f64 / load.block.get() as f64
            }
            _ => 1.0,
        }
    }
}

/// Bytes that the host wrote for each request, or each new order of a database.
fn written_per_unit(cell: &Cell, from: u64, to: u64) -> f64 {
    let rows = cell.rows.iter().filter(|row| row.start_ns >= from && row.end_ns <= to);
    let units = |row: &Row| match &row.transactions {
        Some(transactions) => transactions.new_orders(),
        None => row.reads + row.writes,
    };
    let (bytes, units) = rows.fold((0, 0), |(bytes, all), row| (bytes + row.write_bytes, all + units(row)));
    bytes as f64 / units.max(1) as f64
}

/// Nobody watches a trial; what is found is told when it ends.
struct Silent;

impl Progress for Silent {
    fn cell(&self, _cell: &PlannedCell, _stage: Stage, _share: f64, _last: Option<&Row>) {}
    fn ended(&self, _cell: &PlannedCell, _failure: Option<&str>) {}
    fn note(&self, _text: &str) {}
}
