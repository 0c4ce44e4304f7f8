//! Imports the results of other programs as campaigns.
//!
//! ```text
//!   files ─► kind (from content) ─► fio_json | fio_log ─► series | sysbench ─► Run… ─► campaign ─► Store::add
//! ```
//!
//! Every parser returns [`run::Run`]s: jobs with their rows. [`campaign`] turns jobs into cells: settings that differ
//! become factors, and a time series is analysed like that of a cell measured by lowtide. A run with only totals has
//! one row and no steady state. Traces are loads, not results; [`lowtide_files::trace`] reads them.

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

/// Options of an import.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The kind of every file, which overrides detection.
    pub kind: Option<Kind>,
    /// Name of the campaign; by default, the name of the first file.
    pub name: Option<String>,
    /// Size of the data under test, for files that do not contain it.
    pub size: Option<Bytes>,
    /// The command line that repeats the import.
    pub command: String,
}

/// Reads files into one campaign.
///
/// # Errors
/// [`ImportError`] with the file, the line if known, and the accepted input.
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
