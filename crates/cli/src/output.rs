//! Prints results to standard output in the requested format; names of the files that commands write, for
//! errors.
//!
//! Not here: writing files ([`lowtide_files::output`]).

use crate::args::Format;
use crate::failure::Failure;
pub use crate::say::say;
use lowtide_files::output::Role;
use lowtide_report::Report;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

/// The report of a campaign, or of several.
pub const REPORT: Role = Role::stored("the report", "--report FILE");

/// The same of the verb that has no other output.
pub const REPORT_AGAIN: Role = Role::stored("the report", "-o FILE");

/// Figures of a report.
pub const FIGURES: Role = Role::stored("figures", "--figures DIR");

/// Raw numbers, or a job of fio.
pub const EXPORT: Role = Role::stored("the export", "-o FILE");

/// The experiment that a choice was checked by.
pub const EXPERIMENT: Role = Role::new("the experiment", "-o FILE");

/// A fitted device.
pub const DEVICE: Role = Role::new("the device file", "-o FILE");

/// Columns of a report that is not printed to a terminal, or to one of unknown width.
const COLUMNS: usize = 80;

/// Prints a report in a format.
pub fn print_report(report: &Report, format: Format) -> Result<(), Failure> {
    print(&match format {
        Format::Table => report.terminal(columns()),
        Format::Json => report.json(),
        Format::Csv => report.csv(),
        Format::Markdown => report.markdown(),
    })
}

/// Prints a text; a reader that went away (`| head`) is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    print_by(|out| write!(out, "{text}{newline}"))
}

/// Prints what `content` writes, as it writes it.
pub fn print_by(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::new(Heard { out: io::stdout().lock(), is_gone: false });
    let written = content(&mut out).and_then(|()| out.flush());
    let is_gone = out.get_ref().is_gone;
    match written {
        Err(error) if !is_gone => Err(Failure::writing(Path::new("standard output"), &error)),
        _ => Ok(()),
    }
}

/// An output that remembers whether its reader went away: what writes to it may wrap the error.
struct Heard<W> {
    out: W,
    is_gone: bool,
}

impl<W: Write> Write for Heard<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.is_gone |= written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        written
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// How wide a table on standard output may be.
pub fn columns() -> usize {
    if !io::stdout().is_terminal() {
        return COLUMNS;
    }
    console::Term::stdout().size_checked().map_or(COLUMNS, |(_, columns)| usize::from(columns).clamp(40, 200))
}
