//! Recommends a device of the catalogue for a rate, by simulation: how full, with how much memory, how long it lasts,
//! and at what price.
//!
//! ```text
//!   Question ─► candidates ─► concurrent trials ─► rows ─► choice ─► longer trial, other seed ─► Advice ─► Report
//!               (catalogue)   (experiment, plan,    (reasons)          (if it fails: the next
//!                              campaign)                                candidate)
//! ```
//!
//! A candidate meets a rate if its level settles and the lower end of the level's 95 % interval reaches the rate. A
//! trial is an experiment of one cell and uses the same code as `lowtide run`.
//!
//! # Not modelled
//!
//! Several devices at once, power consumption, and the price of servers. The limits of the device models also apply.

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

/// An error that prevents an answer.
#[derive(Debug, thiserror::Error)]
pub enum AdviseError {
    /// The question contradicts itself.
    #[error(transparent)]
    Question(#[from] QuestionError),
    /// A device that cannot be a candidate.
    #[error(transparent)]
    Candidate(#[from] CandidateError),
    /// A trial could not be run.
    #[error(transparent)]
    Trial(#[from] TrialError),
    /// The user interrupted it.
    #[error("interrupted: nothing is advised")]
    Interrupted,
}
