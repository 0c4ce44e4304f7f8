//! Printing of results to standard output, and the roles of output files in errors. [`lowtide_files::output`] writes
//! the files.

use crate::args::Format;
use crate::failure::Failure;
pub use crate::say::say;
use lowtide_files::output::Role;
use lowtide_files::table;
use lowtide_report::Report;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

/// The report of `run`, `compare` and `validate`.
pub const REPORT: Role = Role::stored("the report", "--report FILE");

/// The report of `report`.
pub const REPORT_AGAIN: Role = Role::stored("the report", "-o FILE");

/// Figures of a report.
pub const FIGURES: Role = Role::stored("figures", "--figures DIR");

/// Raw numbers, or a fio job.
pub const EXPORT: Role = Role::stored("the export", "-o FILE");

/// The experiment that checks a choice of `advise`.
pub const EXPERIMENT: Role = Role::new("the experiment", "-o FILE");

/// A fitted device.
pub const DEVICE: Role = Role::new("the device file", "-o FILE");

/// Columns of a report if standard output is not a terminal, or its width is unknown.
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

/// Prints a table in a format; `json` makes its JSON value.
pub fn print_table(
    head: &[&str],
    rows: &[Vec<String>],
    format: Format,
    json: impl FnOnce() -> serde_json::Value,
) -> Result<(), Failure> {
    print(&match format {
        Format::Table => table::plain(head, rows, columns()),
        Format::Csv => table::csv(head, rows),
        Format::Markdown => table::markdown(head, rows),
        Format::Json => format!("{:#}\n", json()),
    })
}

/// Prints a text. A broken pipe (`| head`) is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    print_by(|out| write!(out, "{text}{newline}"))
}

/// Passes standard output to `content`. A broken pipe is no failure.
pub fn print_by(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::new(Pipe { out: io::stdout().lock(), is_broken: false });
    let written = content(&mut out).and_then(|()| out.flush());
    let is_broken = out.get_ref().is_broken;
    match written {
        Err(error) if !is_broken => Err(Failure::writing(Path::new("standard output"), &error)),
        _ => Ok(()),
    }
}

/// An output that remembers a broken pipe, because `content` may wrap the error.
struct Pipe<W> {
    out: W,
    is_broken: bool,
}

impl<W: Write> Write for Pipe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.is_broken |= written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        written
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The width of a table on standard output, in columns.
pub fn columns() -> usize {
    if !io::stdout().is_terminal() {
        return COLUMNS;
    }
    console::Term::stdout().size_checked().map_or(COLUMNS, |(_, columns)| usize::from(columns).clamp(40, 200))
}
