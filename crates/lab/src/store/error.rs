//! What can be wrong with a store.

use lowtide_files::output::OutputError;
use std::path::{Path, PathBuf};

/// An error of the store.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum StoreError {
    /// SQLite refused something.
    #[error("the store {} cannot be used: {}", path.display(), reason(sqlite))]
    #[diagnostic(help("{}", advice(sqlite)))]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite says; part of the message, so not a source.
        sqlite: rusqlite::Error,
    },
    /// Another process writes to it.
    #[error("the store {} is in use: another lowtide is writing to it", path.display())]
    #[diagnostic(help("wait for it to end, or name another store with `--store FILE`"))]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// There is no file.
    #[error("there is no store {}", path.display())]
    #[diagnostic(help("run an experiment first, or name another store with `--store FILE`"))]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file is a SQLite database of something else, or of a later version.
    #[error("{} is not a store of this version of lowtide: {found}", path.display())]
    #[diagnostic(help("name another file with `--store FILE`"))]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: String,
    },
    /// No campaign of this plan.
    #[error("the store {} has no campaign of `{name}` with this experiment, device, seed and scale", path.display())]
    #[diagnostic(help("run without `--resume` to begin one; `lowtide store show` lists what the store has"))]
    NothingToResume {
        /// The file.
        path: PathBuf,
        /// The experiment.
        name: String,
    },
    /// The campaign of this experiment, device, seed and scale is measured adaptively, or to another precision, and this is not.
    #[error("the campaign of `{name}` in {} was begun {}; this is {}", path.display(), asked(*was), asked(*is))]
    #[diagnostic(help("{}, or run without `--resume` to begin another campaign", goes_on(*was)))]
    OtherPrecision {
        /// The file.
        path: PathBuf,
        /// The experiment.
        name: String,
        /// The precision that it was begun with, a share; `None` where it measures every cell.
        was: Option<f64>,
        /// The one that it would be resumed with.
        is: Option<f64>,
    },
    /// The campaign of this plan was measured on another device.
    #[error("the campaign of `{name}` in {} was begun on another device ({was}); this is {is}", path.display())]
    #[diagnostic(help("resume it on that device, or run without `--resume` to begin another"))]
    OtherDevice {
        /// The file.
        path: PathBuf,
        /// The experiment.
        name: String,
        /// What it was begun on.
        was: String,
        /// What it would be resumed on.
        is: String,
    },
    /// No such campaign.
    #[error("the store {} has no campaign `{wanted}`{}", path.display(), near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    #[diagnostic(help("`lowtide store show` lists what the store has"))]
    NoCampaign {
        /// The file.
        path: PathBuf,
        /// The number or name asked for.
        wanted: String,
        /// The nearest name.
        near: Option<String>,
    },
    /// No such baseline.
    #[error("the store {} has no baseline `@{wanted}`{}", path.display(), near.as_ref().map(|near| format!("; did you mean `@{near}`?")).unwrap_or_default())]
    #[diagnostic(help(
        "`lowtide store baseline list` shows them, `lowtide store baseline set {wanted} CAMPAIGN` makes it"
    ))]
    NoBaseline {
        /// The file.
        path: PathBuf,
        /// The name asked for.
        wanted: String,
        /// The nearest name.
        near: Option<String>,
    },
    /// A baseline of that name is there already.
    #[error("the store {} has a baseline `@{}` already: campaign {}", path.display(), before.name, before.campaign)]
    #[diagnostic(help("`--replace` gives the name to the other campaign; campaigns are never deleted"))]
    BaselineExists {
        /// The file.
        path: PathBuf,
        /// The one that is there.
        before: Box<super::Baseline>,
    },
    /// A store would be merged into itself.
    #[error("{} is the store that is written: it cannot be merged into itself", path.display())]
    #[diagnostic(help("leave it out: what it has stays in it"))]
    IntoItself {
        /// The file.
        path: PathBuf,
    },
    /// A part of another campaign than the one it was given for.
    #[error("{} is no part of campaign {campaign}, `{name}`: its plan or its block device is another", path.display())]
    #[diagnostic(help("`lowtide store merge` puts stores together that are not known to belong together"))]
    AnotherCampaign {
        /// The part.
        path: PathBuf,
        /// The experiment.
        name: String,
        /// The campaign's number.
        campaign: i64,
    },
    /// Something would be lost.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Output(#[from] OutputError),
    /// A part holds what no writer puts there, or what does not belong to its campaign.
    #[error("{} cannot be taken: {what}", path.display())]
    #[diagnostic(help("nothing of it was taken: leave it out, and what it has is measured again"))]
    BadPart {
        /// The part.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A value in the store does not read back.
    #[error("the store {} is damaged: {what}", path.display())]
    #[diagnostic(help("`lowtide run … --resume` measures cells again that do not read back"))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Which value.
        what: String,
    },
}

impl StoreError {
    pub(super) fn on(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
        let path = path.to_owned();
        move |sqlite| StoreError::Sqlite { path: path.clone(), sqlite }
    }

    /// Whether it is about a part that was to be taken, and not about the store that takes it: another part may be better.
    pub fn is_of_part(&self) -> bool {
        matches!(
            self,
            StoreError::BadPart { .. } | StoreError::AnotherCampaign { .. } | StoreError::NotAStore { .. }
        )
    }

    /// What of a cell does not read back.
    ///
    /// # Errors
    /// The error, where it is about more than a cell.
    pub(super) fn damage(self) -> Result<String, StoreError> {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error,
        };
        match self {
            StoreError::Damaged { what, .. } => Ok(what),
            StoreError::Sqlite {
                sqlite:
                    sqlite @ (FromSqlConversionFailure(..)
                    | IntegralValueOutOfRange(..)
                    | InvalidColumnType(..)
                    | Utf8Error(..)),
                ..
            } => Ok(sqlite.to_string()),
            other => Err(other),
        }
    }

    /// Whether the user named a place that cannot hold a store, in contrast to a store that failed.
    pub fn is_bad_input(&self) -> bool {
        match self {
            StoreError::Sqlite { sqlite, .. } => super::is_write_protected(sqlite),
            StoreError::Damaged { .. } | StoreError::InUse { .. } => false,
            StoreError::Output(error) => !error.is_refusal() && !error.is_failure(),
            _ => true,
        }
    }
}

/// What asks for a precision.
fn asked(precision: Option<f64>) -> String {
    precision.map_or("without `--adaptive`".to_owned(), |share| format!("with {}", options(share)))
}

/// What goes on with a campaign that was begun with a precision.
fn goes_on(precision: Option<f64>) -> String {
    match precision {
        Some(share) => format!("go on with it by {}", options(share)),
        None => "leave out `--adaptive` to go on with it".to_owned(),
    }
}

/// As they are typed: six digits say every precision that can be asked for.
fn options(share: f64) -> String {
    format!("`--adaptive --precision {}%`", (share * 1e8).round() / 1e6)
}

/// SQLite's own words, but for the path, which the message has already.
fn reason(sqlite: &rusqlite::Error) -> String {
    match sqlite.sqlite_error_code() {
        Some(rusqlite::ErrorCode::CannotOpen) => "it cannot be opened or made".to_owned(),
        _ => sqlite.to_string(),
    }
}

fn advice(sqlite: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode::{CannotOpen, DatabaseBusy, DiskFull, ReadOnly, SystemIoFailure};
    match sqlite.sqlite_error_code() {
        Some(DiskFull | SystemIoFailure) => {
            "is the disk full? What was committed is kept: make room and run again with `--resume`"
        }
        Some(CannotOpen) => "does its directory exist, and may you write there? `--store FILE` names another",
        Some(ReadOnly) => "the file or its directory is read-only; `--store FILE` names another",
        Some(DatabaseBusy) => {
            "another lowtide is writing to it; wait for it, or name another with `--store FILE`"
        }
        _ => "`--store FILE` names another",
    }
}
