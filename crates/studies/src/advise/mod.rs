//! Which device of the catalogue meets a rate, how full, with how much memory, for how long and for what price: by simulation.
//!
//! ```text
//!   Question ─► candidates ─► trials, side by side ─► rows ─► choice ─► a longer trial with another seed ─► Advice ─► Report
//!               (catalogue)   (experiment, plan, campaign)    (reasons)  (else the next)
//! ```
//!
//! A candidate meets a rate where the lower end of the 95 % interval of its settled level does. A trial is an experiment of one cell,
//! run by the pipeline as every other; nothing is simulated in a second way. Not here: more than one device, power, servers, and
//! what the models leave out.

mod assumptions;
mod candidate;
mod choose;
mod question;
mod row;
mod search;
mod show;
mod text;
mod trial;

pub use candidate::{Candidate, CandidateError, candidates};
pub use choose::{Advice, Checked, advise};
pub use question::{Asked, BlockLoad, Question, QuestionError, TpccLoad, Unit};
pub use row::{Cost, Life, Measured, Outcome, Row};
pub use search::UpTo;
pub use show::report;
pub use trial::{Trial, TrialError};

/// What goes wrong beside a bad answer.
#[derive(Debug, thiserror::Error)]
pub enum AdviseError {
    /// What is asked contradicts itself.
    #[error(transparent)]
    Question(#[from] QuestionError),
    /// A device that cannot be a candidate.
    #[error(transparent)]
    Candidate(#[from] CandidateError),
    /// A trial could not be run.
    #[error(transparent)]
    Trial(#[from] TrialError),
    /// The user ended it.
    #[error("interrupted: nothing is advised")]
    Interrupted,
}
