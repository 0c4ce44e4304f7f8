//! Errors of the store.

use lowtide_files::output::OutputError;
use std::path::{Path, PathBuf};

/// An error of the store.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum StoreError {
    /// SQLite reported an error.
    #[error("the store {} cannot be used: {}", path.display(), reason(sqlite))]
    #[diagnostic(help("{}", advice(sqlite)))]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's error. It is not the `source`, because the message already contains its text.
        sqlite: rusqlite::Error,
    },
    /// Another process writes to the store.
    #[error("the store {} is in use: another lowtide is writing to it", path.display())]
    #[diagnostic(help("wait for it to end, or name another store with `--store FILE`"))]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file does not exist.
    #[error("there is no store {}", path.display())]
    #[diagnostic(help("run an experiment first, or name another store with `--store FILE`"))]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a SQLite database, belongs to another program, or has a later format.
    #[error("{} is not a store of this version of lowtide: {found}", path.display())]
    #[diagnostic(help("name another file with `--store FILE`"))]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// Description of the file.
        found: String,
    },
    /// The store has no campaign with this plan.
    #[error("the store {} has no campaign of `{name}` with this experiment, device, seed and scale", path.display())]
    #[diagnostic(help("run without `--resume` to begin one; `lowtide store show` lists what the store has"))]
    NothingToResume {
        /// The file.
        path: PathBuf,
        /// The experiment.
        name: String,
    },
    /// The campaign with this experiment, device, seed and scale was begun with another precision.
    #[error("the campaign of `{name}` in {} was begun {}; this is {}", path.display(), asked(*was), asked(*is))]
    #[diagnostic(help("{}, or run without `--resume` to begin another campaign", resume_help(*was)))]
    OtherPrecision {
        /// The file.
        path: PathBuf,
        /// The experiment.
        name: String,
        /// The precision (a share) with which the campaign was begun; `None` if it measures every cell.
        was: Option<f64>,
        /// The precision of the run that would resume the campaign.
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
        /// The device on which the campaign was begun.
        was: String,
        /// The device of the run that would resume the campaign.
        is: String,
    },
    /// The store has no such campaign.
    #[error("the store {} has no campaign `{wanted}`{}", path.display(), suggestion("", near.as_deref()))]
    #[diagnostic(help("`lowtide store show` lists what the store has"))]
    NoCampaign {
        /// The file.
        path: PathBuf,
        /// The requested number or name.
        wanted: String,
        /// The nearest name.
        near: Option<String>,
    },
    /// The store has no such baseline.
    #[error("the store {} has no baseline `@{wanted}`{}", path.display(), suggestion("@", near.as_deref()))]
    #[diagnostic(help(
        "`lowtide store baseline list` shows them, `lowtide store baseline set {wanted} CAMPAIGN` makes it"
    ))]
    NoBaseline {
        /// The file.
        path: PathBuf,
        /// The requested name.
        wanted: String,
        /// The nearest name.
        near: Option<String>,
    },
    /// The store already has a baseline of this name.
    #[error("the store {} has a baseline `@{}` already: campaign {}", path.display(), before.name, before.campaign)]
    #[diagnostic(help("`--replace` gives the name to the other campaign; campaigns are never deleted"))]
    BaselineExists {
        /// The file.
        path: PathBuf,
        /// The existing baseline.
        before: Box<super::Baseline>,
    },
    /// An input of a merge is also its output.
    #[error("{} cannot be merged into itself", path.display())]
    #[diagnostic(help("leave it out of the inputs: its campaigns stay in it"))]
    IntoItself {
        /// The file.
        path: PathBuf,
    },
    /// A part belongs to another campaign.
    #[error("{} is not part of campaign {campaign}, `{name}`: its plan or its block device differs", path.display())]
    #[diagnostic(help("`lowtide store merge` accepts stores with any campaigns"))]
    AnotherCampaign {
        /// The part.
        path: PathBuf,
        /// The experiment.
        name: String,
        /// The campaign's number.
        campaign: i64,
    },
    /// The file must not or cannot be written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Output(#[from] OutputError),
    /// The contents of a part are invalid, or do not belong to its campaign.
    #[error("{} cannot be merged: {what}", path.display())]
    #[diagnostic(help("nothing of it was merged; leave it out, and its cells are measured again"))]
    BadPart {
        /// The part.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// A value in the store cannot be read back.
    #[error("the store {} is damaged: {what}", path.display())]
    #[diagnostic(help("`lowtide run … --resume` measures damaged cells again"))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The value.
        what: String,
    },
}

impl StoreError {
    pub(super) fn on(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
        let path = path.to_owned();
        move |sqlite| StoreError::Sqlite { path: path.clone(), sqlite }
    }

    /// Returns whether the cause is the contents of a part, so that another part may be accepted.
    pub fn is_of_part(&self) -> bool {
        matches!(
            self,
            StoreError::BadPart { .. } | StoreError::AnotherCampaign { .. } | StoreError::NotAStore { .. }
        )
    }

    /// The damage to a cell.
    ///
    /// # Errors
    /// The error itself, if it concerns more than one cell.
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

    /// Returns whether the file is write-protected, so that SQLite cannot create or write it.
    pub fn is_write_protected(&self) -> bool {
        matches!(self, StoreError::Sqlite { sqlite, .. } if super::is_write_protected(sqlite))
    }
}

/// A suggestion of a similar name, as the end of a message.
fn suggestion(prefix: &str, near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean `{prefix}{near}`?")).unwrap_or_default()
}

/// The options of a run with this precision.
fn asked(precision: Option<f64>) -> String {
    precision.map_or("without `--adaptive`".to_owned(), |share| format!("with {}", options(share)))
}

/// The advice for resuming a campaign that was begun with this precision.
fn resume_help(precision: Option<f64>) -> String {
    match precision {
        Some(share) => format!("resume it with {}", options(share)),
        None => "leave out `--adaptive` to resume it".to_owned(),
    }
}

/// The options as typed. Six digits represent every accepted precision exactly.
fn options(share: f64) -> String {
    format!("`--adaptive --precision {}%`", (share * 1e8).round() / 1e6)
}

/// The text of SQLite's error. A path in the text is removed, because the message already names it.
fn reason(sqlite: &rusqlite::Error) -> String {
    match sqlite.sqlite_error_code() {
        Some(rusqlite::ErrorCode::CannotOpen) => "it cannot be opened or created".to_owned(),
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

/// An error of reading, before the path of the store is added.
pub(super) enum Fault {
    Sqlite(rusqlite::Error),
    Damaged(String),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Fault::Sqlite(error)
    }
}

impl Fault {
    pub(super) fn at(self, path: &Path) -> StoreError {
        match self {
            Fault::Sqlite(sqlite) => StoreError::on(path)(sqlite),
            Fault::Damaged(what) => StoreError::Damaged { path: path.to_owned(), what },
        }
    }
}
