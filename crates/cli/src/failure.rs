//! What went wrong, and the exit code that says so.

use crate::output;
use lowtide_host::{HostError, Operation};
use lowtide_lab::advise::{AdviseError, CandidateError, TrialError};
use lowtide_lab::campaign::CampaignError;
use lowtide_lab::catalogue::CatalogueError;
use lowtide_lab::compare::ThresholdError;
use lowtide_lab::experiment::BadInput;
use lowtide_lab::fit::FitError;
use lowtide_lab::import::ImportError;
use lowtide_lab::interleave::InterleaveError;
use lowtide_lab::live::OpenError;
use lowtide_lab::live::attached::AttachedError;
use lowtide_lab::powercut::PowercutError;
use lowtide_lab::store::StoreError;
use lowtide_lab::validate::{ChooseError, ValidateError};
use lowtide_oltp::OltpError;
use std::path::Path;

/// Measured to the end, but not all is well.
pub const FAILED: u8 = 1;
/// The input cannot be used.
const BAD_INPUT: u8 = 2;
/// Going on might destroy data.
const REFUSED: u8 = 3;
/// A steady state was demanded, and there is none.
pub const NO_STEADY_STATE: u8 = 4;
/// Slower than allowed.
pub const REGRESSION: u8 = 5;
/// Ended by a signal.
pub const INTERRUPTED: u8 = 130;

/// An error on its way to the user.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    /// What went wrong; never empty.
    reports: Vec<miette::Report>,
}

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Bad input that has no place in a file.
    pub fn usage(message: impl std::fmt::Display, help: impl std::fmt::Display) -> Self {
        Failure::new(BAD_INPUT, miette::miette!(help = help.to_string(), "{message}"))
    }

    /// Something that is not done because it might destroy data.
    pub fn refused(message: impl std::fmt::Display, help: impl std::fmt::Display) -> Self {
        Failure::new(REFUSED, miette::miette!(help = help.to_string(), "{message}"))
    }

    fn new(code: u8, report: miette::Report) -> Self {
        Failure { code, reports: vec![report] }
    }

    /// A file that could not be written.
    pub fn writing(path: &Path, error: &std::io::Error) -> Self {
        let report = miette::miette!(
            help = "name another place, or make room: what was measured is in the store",
            "{} cannot be written: {error}",
            path.display()
        );
        Failure::new(FAILED, report)
    }

    /// Something that failed while it ran, in words.
    pub fn failed(message: impl std::fmt::Display) -> Self {
        Failure::new(FAILED, miette::miette!("{message}"))
    }

    /// Prints it to standard error.
    pub fn print(&self) {
        self.reports.iter().for_each(|report| output::say(format_args!("{report:?}")));
    }
}

impl From<BadInput> for Failure {
    fn from(error: BadInput) -> Self {
        // Each with its own line of the file, not as an error and its relatives.
        Failure { code: BAD_INPUT, reports: error.problems().cloned().map(miette::Report::new).collect() }
    }
}

impl From<ChooseError> for Failure {
    fn from(error: ChooseError) -> Self {
        match error {
            ChooseError::Unknown { ref accepted, .. } => {
                Failure::usage(&error, format!("one of {}", accepted.join(", ")))
            }
            ChooseError::Experiment(error) => error.into(),
        }
    }
}

impl From<CatalogueError> for Failure {
    fn from(error: CatalogueError) -> Self {
        Failure::new(BAD_INPUT, error.into())
    }
}

impl From<AttachedError> for Failure {
    fn from(error: AttachedError) -> Self {
        match error {
            AttachedError::Open(error) => error.into(),
            AttachedError::Host(error) => error.into(),
            AttachedError::Ask { .. } | AttachedError::Start { .. } | AttachedError::Lost { .. } => {
                Failure::failed(error)
            }
        }
    }
}

impl From<PowercutError> for Failure {
    fn from(error: PowercutError) -> Self {
        match error {
            PowercutError::Drive(error) => error.into(),
            PowercutError::Attached(error) => error.into(),
            PowercutError::Database(error) => error.into(),
            PowercutError::Setting(_) => Failure::new(BAD_INPUT, miette::miette!("{error}")),
            PowercutError::Interrupted => Failure::new(INTERRUPTED, miette::miette!("{error}")),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Catalogue(error) => error.into(),
            OpenError::Memory { .. } => Failure::failed(error),
            _ => Failure::new(BAD_INPUT, miette::miette!("{error}")),
        }
    }
}

impl From<InterleaveError> for Failure {
    fn from(error: InterleaveError) -> Self {
        Failure::new(BAD_INPUT, error.into())
    }
}

impl From<ThresholdError> for Failure {
    fn from(error: ThresholdError) -> Self {
        Failure::new(BAD_INPUT, error.into())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let code = match error {
            StoreError::OtherDevice { .. } => REFUSED,
            _ if error.is_bad_input() => BAD_INPUT,
            _ => FAILED,
        };
        Failure::new(code, error.into())
    }
}

impl From<OltpError> for Failure {
    fn from(error: OltpError) -> Self {
        let code = match error {
            OltpError::Invalid(_) => BAD_INPUT,
            OltpError::Interrupted => INTERRUPTED,
            _ => FAILED,
        };
        Failure::new(code, miette::miette!("{error}"))
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        Failure::new(BAD_INPUT, error.into())
    }
}

impl From<FitError> for Failure {
    fn from(error: FitError) -> Self {
        let code = if matches!(error, FitError::Interrupted) { INTERRUPTED } else { BAD_INPUT };
        Failure::new(code, miette::miette!("{error}"))
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        let code = match error {
            HostError::Refused { .. }
            | HostError::NotOpened { .. }
            | HostError::NotOurs { .. }
            | HostError::BlockDevice { .. }
            | HostError::AlreadyAttached { .. }
            | HostError::Busy { .. }
            | HostError::InUse { .. } => REFUSED,
            HostError::WrongKind { .. }
            | HostError::Invalid { .. }
            | HostError::Certificates { .. }
            | HostError::NotAttached { .. } => BAD_INPUT,
            HostError::Io { operation: Operation::Inspect | Operation::Open, .. } => BAD_INPUT,
            HostError::Interrupted { .. } => INTERRUPTED,
            _ => FAILED,
        };
        Failure::new(code, miette::miette!("{error}"))
    }
}

impl From<ValidateError> for Failure {
    fn from(error: ValidateError) -> Self {
        match error {
            ValidateError::Campaign(error) => error.into(),
            ValidateError::Store(error) => error.into(),
            ValidateError::Experiment(error) => error.into(),
        }
    }
}

impl From<AdviseError> for Failure {
    fn from(error: AdviseError) -> Self {
        match error {
            AdviseError::Question(error) => Failure::usage(&error, error.advice()),
            AdviseError::Candidate(CandidateError::Catalogue(error)) => error.into(),
            AdviseError::Candidate(error) => Failure::usage(
                &error,
                "`lowtide devices` lists names; docs/formats.md the keys of a device file",
            ),
            AdviseError::Trial(TrialError::Experiment { error, .. }) => error.into(),
            AdviseError::Trial(TrialError::Campaign(error)) => error.into(),
            AdviseError::Trial(TrialError::Store(error)) => error.into(),
            AdviseError::Interrupted => Failure::new(INTERRUPTED, miette::miette!("{error}")),
        }
    }
}

impl From<CampaignError> for Failure {
    fn from(error: CampaignError) -> Self {
        match error {
            CampaignError::Store(error) => error.into(),
            CampaignError::Target(error) => error.into(),
        }
    }
}
