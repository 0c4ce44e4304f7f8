//! Failures as people see them: a message, what is accepted instead, and the kind of failure.
//!
//! Every program reports errors in the same words; the command line prints them in colour and maps kinds to
//! exit codes, Python raises them. Not here: the errors themselves; each stage has its own.

use crate::advise::{AdviseError, CandidateError, TrialError};
use crate::bench::LogdiskBenchError;
use crate::fit::FitError;
use crate::interleave::InterleaveError;
use crate::validate::{ChooseError, ValidateError};
use lowtide_files::catalogue::CatalogueError;
use lowtide_files::device::DeviceError;
use lowtide_files::output::OutputError;
use lowtide_files::passwords;
use lowtide_host::live::contents::SparseFileError;
use lowtide_host::{HostError, Operation};
use lowtide_lab::campaign::CampaignError;
use lowtide_lab::experiment::{BadInput, Unreadable};
use lowtide_lab::import::ImportError;
use lowtide_lab::store::StoreError;
use lowtide_live::OpenError;
use lowtide_live::attached::AttachedError;
use lowtide_live::logdisk::{BackingError, ResizeError};
use lowtide_logdisk::LogError;
use lowtide_oltp::OltpError;
use lowtide_powercut::PowercutError;
use lowtide_report::compare::ThresholdError;
use miette::{GraphicalReportHandler, GraphicalTheme};
use std::path::Path;

/// Columns of the text of a failure.
const COLUMNS: usize = 80;

/// Which kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It began well, and failed.
    Failed,
    /// The input cannot be used.
    BadInput,
    /// Going on might destroy data.
    Refused,
    /// Ended by a signal.
    Interrupted,
}

/// An error on its way to the user.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    /// What went wrong; never empty.
    reports: Vec<miette::Report>,
}

impl Failure {
    /// Which kind it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What went wrong, each with its place and what is accepted; at least one.
    pub fn reports(&self) -> &[miette::Report] {
        &self.reports
    }

    /// Everything that went wrong as plain text, each with its line of the file and what is accepted.
    pub fn text(&self) -> String {
        let theme = GraphicalTheme::unicode_nocolor();
        let handler = GraphicalReportHandler::new_themed(theme).with_links(false).with_width(COLUMNS);
        let mut text = String::new();
        for report in &self.reports {
            handler.render_report(&mut text, report.as_ref()).expect("writing to memory does not fail");
            text.push('\n');
        }
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n").trim_matches('\n').to_owned()
    }

    /// Bad input that has no place in a file.
    pub fn usage(message: impl std::fmt::Display, help: impl std::fmt::Display) -> Self {
        Failure::new(Kind::BadInput, miette::miette!(help = help.to_string(), "{message}"))
    }

    /// Something that is not done because it might destroy data.
    pub fn refused(message: impl std::fmt::Display, help: impl std::fmt::Display) -> Self {
        Failure::new(Kind::Refused, miette::miette!(help = help.to_string(), "{message}"))
    }

    fn new(kind: Kind, report: miette::Report) -> Self {
        Failure { kind, reports: vec![without_passwords(report)] }
    }

    /// A file that could not be written.
    pub fn writing(path: &Path, error: &std::io::Error) -> Self {
        let report = miette::miette!(
            help = "name another place, or make room: what was measured is in the store",
            "{} cannot be written: {error}",
            path.display()
        );
        Failure::new(Kind::Failed, report)
    }

    /// Something that failed while it ran, in words.
    pub fn failed(message: impl std::fmt::Display) -> Self {
        Failure::new(Kind::Failed, miette::miette!("{message}"))
    }
}

/// The report, or, where it quotes the address of a server with its password, one with the same words without it.
fn without_passwords(report: miette::Report) -> miette::Report {
    let causes = report.chain().map(ToString::to_string);
    let help = report.help().map(|help| help.to_string());
    let words: Vec<String> = causes.chain(help.clone()).collect();
    let shown: Vec<String> = words.iter().map(|text| passwords::without_in_prose(text)).collect();
    if shown == words {
        return report;
    }
    let (causes, help) = shown.split_at(shown.len() - usize::from(help.is_some()));
    let message = causes.join(": ");
    match help.first() {
        Some(help) => miette::miette!(help = help.clone(), "{message}"),
        None => miette::miette!("{message}"),
    }
}

impl From<BadInput> for Failure {
    fn from(error: BadInput) -> Self {
        // Each with its own line of the file, not as an error and its relatives.
        Failure {
            kind: Kind::BadInput,
            reports: error.problems().cloned().map(miette::Report::new).collect(),
        }
    }
}

impl From<Unreadable> for Failure {
    fn from(error: Unreadable) -> Self {
        Failure::usage(
            error,
            "export its numbers (`lowtide store export`), or report with the version that wrote the store",
        )
    }
}

impl From<ChooseError> for Failure {
    fn from(error: ChooseError) -> Self {
        match error {
            ChooseError::Unknown { ref accepted, .. } => {
                Failure::usage(&error, format!("one of {}", accepted.join(", ")))
            }
            ChooseError::RealServers { .. } => {
                Failure::usage(&error, "add `--real-servers` to run them on this machine")
            }
            ChooseError::Experiment(error) => error.into(),
        }
    }
}

impl From<CatalogueError> for Failure {
    fn from(error: CatalogueError) -> Self {
        Failure::new(Kind::BadInput, error.into())
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        Failure::new(Kind::BadInput, error.into())
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
            PowercutError::Output(error) => (*error).into(),
            PowercutError::Attached(error) => error.into(),
            PowercutError::Database(error) => error.into(),
            PowercutError::Setting(_) => Failure::new(Kind::BadInput, miette::miette!("{error}")),
            PowercutError::Interrupted => Failure::new(Kind::Interrupted, miette::miette!("{error}")),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Device(error) => error.into(),
            OpenError::Output(error) => (*error).into(),
            OpenError::Memory { .. } => Failure::failed(error),
            // Another drive writes to it.
            OpenError::Data(SparseFileError::InUse { .. }) => {
                Failure::new(Kind::Refused, miette::miette!("{error}"))
            }
            OpenError::Data(SparseFileError::Used(error)) => (*error).into(),
            _ => Failure::new(Kind::BadInput, miette::miette!("{error}")),
        }
    }
}

impl From<InterleaveError> for Failure {
    fn from(error: InterleaveError) -> Self {
        Failure::new(Kind::BadInput, error.into())
    }
}

impl From<ThresholdError> for Failure {
    fn from(error: ThresholdError) -> Self {
        Failure::new(Kind::BadInput, error.into())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let kind = match error {
            StoreError::OtherDevice { .. } => Kind::Refused,
            StoreError::Output(error) => return error.into(),
            _ if error.is_bad_input() => Kind::BadInput,
            _ => Kind::Failed,
        };
        Failure::new(kind, error.into())
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        let kind = match () {
            () if error.is_refusal() => Kind::Refused,
            () if error.is_failure() => Kind::Failed,
            () => Kind::BadInput,
        };
        Failure::new(kind, error.into())
    }
}

impl From<OltpError> for Failure {
    fn from(error: OltpError) -> Self {
        let kind = match error {
            OltpError::Invalid(_) => Kind::BadInput,
            OltpError::Interrupted => Kind::Interrupted,
            _ => Kind::Failed,
        };
        Failure::new(kind, miette::miette!("{error}"))
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        Failure::new(Kind::BadInput, error.into())
    }
}

impl From<FitError> for Failure {
    fn from(error: FitError) -> Self {
        match error {
            FitError::Interrupted => Failure::new(Kind::Interrupted, miette::miette!("{error}")),
            _ => {
                Failure::usage(error, "docs/guide/fit.md says what is accepted, as `lowtide fit --help` does")
            }
        }
    }
}

/// Whether going on might destroy data.
fn is_refusal(error: &HostError) -> bool {
    matches!(
        error,
        HostError::Refused { .. }
            | HostError::NotOpened { .. }
            | HostError::Busy { .. }
            | HostError::InUse { .. }
    )
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        let kind = match &error {
            // What was left could not be undone, because that might destroy data.
            HostError::NotUndone { source, .. } | HostError::NotDetached { source, .. }
                if is_refusal(source) =>
            {
                Kind::Refused
            }
            HostError::Refused { .. }
            | HostError::NotOpened { .. }
            | HostError::NotOurs { .. }
            | HostError::BlockDevice { .. }
            | HostError::AlreadyAttached { .. }
            | HostError::Busy { .. }
            | HostError::InUse { .. } => Kind::Refused,
            HostError::WrongKind { .. }
            | HostError::Invalid { .. }
            | HostError::Certificates { .. }
            | HostError::NotAttached { .. } => Kind::BadInput,
            HostError::Io { operation: Operation::Inspect | Operation::Open, .. } => Kind::BadInput,
            HostError::Interrupted { .. } => Kind::Interrupted,
            _ => Kind::Failed,
        };
        Failure::new(kind, miette::miette!("{error}"))
    }
}

impl From<ValidateError> for Failure {
    fn from(error: ValidateError) -> Self {
        match error {
            ValidateError::Campaign(error) => error.into(),
            ValidateError::Store(error) => error.into(),
            ValidateError::Unreadable(error) => error.into(),
            ValidateError::Experiment(error) => error.into(),
        }
    }
}

impl From<AdviseError> for Failure {
    fn from(error: AdviseError) -> Self {
        match error {
            AdviseError::Question(error) => Failure::usage(&error, error.advice()),
            AdviseError::Candidate(CandidateError::Device(error)) => error.into(),
            AdviseError::Candidate(error) => Failure::usage(
                &error,
                "`lowtide devices` lists names; docs/formats.md the keys of a device file",
            ),
            AdviseError::Trial(TrialError::Experiment { error, .. }) => error.into(),
            AdviseError::Trial(TrialError::Campaign(error)) => error.into(),
            AdviseError::Trial(TrialError::Store(error)) => error.into(),
            AdviseError::Interrupted => Failure::new(Kind::Interrupted, miette::miette!("{error}")),
        }
    }
}

impl From<CampaignError> for Failure {
    fn from(error: CampaignError) -> Self {
        match error {
            CampaignError::Store(error) => error.into(),
            CampaignError::Output(error) => error.into(),
            CampaignError::Target(error) => error.into(),
        }
    }
}

impl From<BackingError> for Failure {
    fn from(error: BackingError) -> Failure {
        match &error {
            BackingError::Full(_) => {
                Failure::refused(&error, "with `--overwrite` it is, and all it holds is lost")
            }
            BackingError::None(_) => Failure::usage(&error, "give `--size` to make one"),
            BackingError::LogDisk(_) => {
                Failure::refused(&error, "with `--force-signature` all it holds is lost")
            }
            BackingError::Kind { .. } => Failure::usage(&error, "name a file or a block device"),
            BackingError::Held(_) => Failure::refused(&error, "end that one first"),
            BackingError::Size(_) => Failure::usage(&error, "leave out `--size`"),
            BackingError::NoSerial(_) => {
                Failure::usage(&error, "leave out `--destroy`; what a file holds takes `--overwrite`")
            }
            BackingError::Geometry(_) => Failure::usage(&error, "choose other sizes"),
            BackingError::File { .. } => Failure::failed(&error),
            BackingError::Device(_) | BackingError::Output(_) => match error {
                BackingError::Device(error) => error.into(),
                BackingError::Output(error) => error.into(),
                _ => unreachable!("it was just that"),
            },
        }
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Failure {
        match &error {
            LogError::Geometry(_) => Failure::usage(&error, "choose other sizes"),
            LogError::Damaged(_) => {
                let help = "restore a copy; or `lowtide logdisk repair TARGET --accept-old-data` makes it usable, with blocks \
                            that may read as older data";
                Failure::new(Kind::Failed, miette::miette!(help = help, "{error}"))
            }
            _ => Failure::failed(&error),
        }
    }
}

impl From<LogdiskBenchError> for Failure {
    fn from(error: LogdiskBenchError) -> Failure {
        match error {
            LogdiskBenchError::Backing(BackingError::Output(error)) => error.into(),
            error => Failure::failed(error),
        }
    }
}

impl From<ResizeError> for Failure {
    fn from(error: ResizeError) -> Failure {
        match error {
            ResizeError::Backing(error) => error.into(),
            ResizeError::Log(error) => error.into(),
        }
    }
}
