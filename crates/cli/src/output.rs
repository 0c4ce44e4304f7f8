//! Writing answers: to standard output in the format asked for, and files that are whole or not there.

use crate::args::Format;
use crate::failure::Failure;
use lowtide_lab::report::Report;
use std::io::{IsTerminal, Write};
use std::path::Path;

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
    let mut out = std::io::stdout().lock();
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    match write!(out, "{text}{newline}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::writing(Path::new("standard output"), &error))
        }
        _ => Ok(()),
    }
}

/// Says something on standard error; that nobody listens there is no failure.
pub fn say(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// How wide a table on standard output may be.
pub fn columns() -> usize {
    if !std::io::stdout().is_terminal() {
        return COLUMNS;
    }
    console::Term::stdout().size_checked().map_or(COLUMNS, |(_, columns)| usize::from(columns).clamp(40, 200))
}

/// Refuses a path that could never be written, before hours of measuring.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let message = match parent.map(Path::is_dir) {
        _ if path.is_dir() => format!("{} is a directory, but the report is a file", path.display()),
        Some(false) => format!("there is no directory for the report {}", path.display()),
        _ => return Ok(()),
    };
    Err(Failure::usage(message, "name a file in a directory that exists, with `--report FILE`"))
}

/// Writes a file so that it is never half there: beside it first, then renamed.
pub fn write_file(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let fail = |error: std::io::Error| Failure::writing(path, &error);
    if path.is_dir() {
        return Err(fail(std::io::Error::from(std::io::ErrorKind::IsADirectory)));
    }
    if path.exists() && !path.is_file() {
        // A pipe or /dev/stdout cannot be renamed to.
        return std::fs::write(path, content).map_err(fail);
    }
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let beside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = std::fs::write(&beside, content).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        fail(error)
    })
}
