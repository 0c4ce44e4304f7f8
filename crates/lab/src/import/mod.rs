//! Runs of other programs, read from what they wrote, as campaigns of our own.
//!
//! ```text
//!   files ─► kind (from content) ─► fio_json | fio_log ─► series | sysbench ─► Run… ─► campaign ─► Store::add
//! ```
//!
//! Every parser gives [`run::Run`]s: a job with its rows. [`campaign`] makes cells of them: what differs between jobs
//! becomes factors, and a series of rows is judged as one of our own. A run of which only totals are known has one row
//! and no steady state. Not here: traces, which are loads and not results ([`lowtide_files::trace`]).

mod bins;
mod campaign;
mod error;
mod fio_json;
mod fio_log;
mod fio_options;
mod kind;
mod run;
mod series;
mod sysbench;
#[cfg(test)]
mod tests;

pub use error::ImportError;
pub use kind::Kind;

pub use crate::store::Imported;
use kind::Source;
use lowtide_core::Bytes;
use std::path::PathBuf;

/// What the user says beside the files.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What every file is, in place of what its content says.
    pub kind: Option<Kind>,
    /// What to call the campaign; else the name of the first file.
    pub name: Option<String>,
    /// Bytes of data under test, where no file tells.
    pub size: Option<Bytes>,
    /// The command line that imports it again.
    pub command: String,
}

/// Reads files into one campaign.
///
/// # Errors
/// [`ImportError`] names the file, the line where there is one, and what is accepted. Nothing is written.
pub fn import(paths: &[PathBuf], options: &Options) -> Result<Imported, ImportError> {
    let mut runs = Vec::new();
    let mut logs = series::Logs::default();
    let mut notes = Vec::new();
    for path in paths {
        let source = Source::read(path)?;
        match source.kind(options.kind)? {
            Kind::FioJson => runs.extend(fio_json::read(&source)?),
            Kind::Sysbench => runs.push(sysbench::read(&source)?),
            Kind::FioLog(what) => notes.extend(logs.add(&source, what)?),
        }
    }
    runs.extend(logs.runs()?);
    notes.sort();
    notes.dedup();
    campaign::of(runs, paths, options, notes)
}
