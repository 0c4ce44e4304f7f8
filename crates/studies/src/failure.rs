//! Failures for the user: a message, the accepted input, and the kind of failure.
//!
//! All programs report errors with the same text. The command line prints them in colour and maps kinds to exit
//! codes; Python raises them as exceptions. Each match on an error lists every variant, so that the compiler demands
//! a kind for a new variant. The errors themselves are defined in the crates that return them.

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

/// Width of the text in columns.
const COLUMNS: usize = 80;

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The operation started and then failed.
    Failed,
    /// The input is invalid.
    BadInput,
    /// The operation was refused because it might destroy data.
    Refused,
    /// A signal interrupted the operation.
    Interrupted,
}

/// An error for the user.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    /// The errors; never empty.
    reports: Vec<miette::Report>,
}

impl Failure {
    /// The kind of the failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The errors, each with its position and the accepted input. There is at least one.
    pub fn reports(&self) -> &[miette::Report] {
        &self.reports
    }

    /// All errors as plain text, each with its position and the accepted input.
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

    /// Creates a failure for invalid input that has no position in a file.
    pub fn usage(message: impl std::fmt::Display, help: impl std::fmt::Display) -> Self {
        Failure::new(Kind::BadInput, miette::miette!(help = help.to_string(), "{message}"))
    }

    /// Creates a refusal of an operation that might destroy data.
    pub fn refused(message: impl std::fmt::Display, help: impl std::fmt::Display) -> Self {
        Failure::new(Kind::Refused, miette::miette!(help = help.to_string(), "{message}"))
    }

    fn new(kind: Kind, report: miette::Report) -> Self {
        Failure { kind, reports: vec![without_passwords(report)] }
    }

    /// Creates a failure for a file that cannot be written.
    pub fn writing(path: &Path, error: &std::io::Error) -> Self {
        let report = miette::miette!(
            help = "name another file, or make room; the measurements are in the store",
            "{} cannot be written: {error}",
            path.display()
        );
        Failure::new(Kind::Failed, report)
    }

    /// Creates a failure of an operation that had started.
    pub fn failed(message: impl std::fmt::Display) -> Self {
        Failure::new(Kind::Failed, miette::miette!("{message}"))
    }
}

/// Removes server passwords from a report. A report without passwords is returned unchanged.
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
        // Each problem has its own position, so it becomes a report of its own.
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
            // Another drive has the file open for writing.
            OpenError::Data(SparseFileError::InUse { .. }) => {
                Failure::new(Kind::Refused, miette::miette!("{error}"))
            }
            OpenError::Data(SparseFileError::Used(error)) => (*error).into(),
            OpenError::Spec { .. }
            | OpenError::TooSmall { .. }
            | OpenError::Name { .. }
            | OpenError::State { .. }
            | OpenError::Data(
                SparseFileError::Open { .. }
                | SparseFileError::NotAFile { .. }
                | SparseFileError::Size { .. },
            ) => Failure::new(Kind::BadInput, miette::miette!("{error}")),
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
            StoreError::Output(error) => return error.into(),
            StoreError::OtherDevice { .. } => Kind::Refused,
            StoreError::Sqlite { .. } if error.is_write_protected() => Kind::BadInput,
            StoreError::Sqlite { .. } | StoreError::Damaged { .. } | StoreError::InUse { .. } => Kind::Failed,
            StoreError::Missing { .. }
            | StoreError::NotAStore { .. }
            | StoreError::NothingToResume { .. }
            | StoreError::OtherPrecision { .. }
            | StoreError::NoCampaign { .. }
            | StoreError::NoBaseline { .. }
            | StoreError::BaselineExists { .. }
            | StoreError::IntoItself { .. }
            | StoreError::AnotherCampaign { .. }
            | StoreError::BadPart { .. } => Kind::BadInput,
        };
        Failure::new(kind, error.into())
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        let kind = match error {
            OutputError::Store { .. }
            | OutputError::BesideStore { .. }
            | OutputError::OfCommand { .. }
            | OutputError::Device { .. }
            | OutputError::Elsewhere { .. }
            | OutputError::Unreadable { .. } => Kind::Refused,
            OutputError::Write { .. } => Kind::Failed,
            OutputError::Directory { .. }
            | OutputError::NotADirectory { .. }
            | OutputError::NoDirectory { .. }
            | OutputError::NotWritable { .. }
            | OutputError::Kind { .. }
            | OutputError::Exists { .. } => Kind::BadInput,
        };
        Failure::new(kind, error.into())
    }
}

impl From<OltpError> for Failure {
    fn from(error: OltpError) -> Self {
        let kind = match error {
            OltpError::Invalid(_) => Kind::BadInput,
            OltpError::Interrupted => Kind::Interrupted,
            OltpError::Missing { .. }
            | OltpError::Server { .. }
            | OltpError::Told { .. }
            | OltpError::Sql { .. }
            | OltpError::Transaction { .. }
            | OltpError::Io { .. } => Kind::Failed,
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
            FitError::Read { .. }
            | FitError::Data(_)
            | FitError::Like(_)
            | FitError::Setting(_)
            | FitError::NoFit(_) => Failure::usage(
                error,
                "docs/guide/fit.md and `lowtide fit --help` describe the accepted input",
            ),
        }
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        Failure::new(kind_of_host_error(&error), miette::miette!("{error}"))
    }
}

fn kind_of_host_error(error: &HostError) -> Kind {
    match error {
        // A cleanup that might destroy data is refused. With any other cause, the cleanup has failed.
        HostError::NotUndone { source, .. } | HostError::NotDetached { source, .. } => {
            match kind_of_host_error(source) {
                Kind::Refused => Kind::Refused,
                Kind::Failed | Kind::BadInput | Kind::Interrupted => Kind::Failed,
            }
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
        HostError::Io { .. }
        | HostError::TooManyErrors { .. }
        | HostError::NoSpace { .. }
        | HostError::Tool { .. }
        | HostError::NoBlockDevice { .. }
        | HostError::ServerEnded { .. }
        | HostError::Hangs { .. }
        | HostError::NoUring { .. }
        | HostError::Listen { .. } => Kind::Failed,
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
                "`lowtide devices` lists the names; docs/formats.md describes device files",
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
        match error {
            BackingError::Full(_) => {
                Failure::refused(&error, "`--overwrite` replaces it, and destroys its contents")
            }
            BackingError::None(_) => Failure::usage(&error, "`--size` creates it"),
            BackingError::LogDisk(_) => {
                Failure::refused(&error, "`--force-signature` replaces it, and destroys its contents")
            }
            BackingError::Kind { .. } => Failure::usage(&error, "name a file or a block device"),
            BackingError::Held(_) => Failure::refused(&error, "end the other process first"),
            BackingError::Size(_) => Failure::usage(&error, "leave out `--size`"),
            BackingError::NoSerial(_) => {
                Failure::usage(&error, "leave out `--destroy`; `--overwrite` replaces the contents of a file")
            }
            BackingError::Geometry(_) => Failure::usage(&error, "choose other sizes"),
            BackingError::File { .. } => Failure::failed(&error),
            BackingError::Device(error) => error.into(),
            BackingError::Output(error) => error.into(),
        }
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Failure {
        match &error {
            LogError::Geometry(_) => Failure::usage(&error, "choose other sizes"),
            LogError::Damaged(_) => {
                let help = "restore a copy, or run `lowtide logdisk repair TARGET --accept-old-data`, after which some blocks may \
                            read as older data";
                Failure::new(Kind::Failed, miette::miette!(help = help, "{error}"))
            }
            LogError::Medium { .. }
            | LogError::Format(_)
            | LogError::NoCheckpoint(_)
            | LogError::Broken
            | LogError::OutOfRange { .. }
            | LogError::Unreadable(_)
            | LogError::Exhausted { .. } => Failure::failed(&error),
        }
    }
}

impl From<LogdiskBenchError> for Failure {
    fn from(error: LogdiskBenchError) -> Failure {
        match error {
            LogdiskBenchError::Log(error) => error.into(),
            LogdiskBenchError::Backing(error) => error.into(),
            LogdiskBenchError::File { .. } => Failure::failed(error),
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
