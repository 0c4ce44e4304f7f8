//! Reads traces from files into a [`Trace`]: lowtide's own format, fio's iolog (versions 2 and 3), and the output of
//! blkparse.
//!
//! The format is detected from the first line. The trace itself is in `lowtide_core::trace`.
//!
//! # Not handled
//! Compressed files, and the binary files of blktrace, which blkparse converts to text.

mod blkparse;
mod fio;
pub mod native;
#[cfg(test)]
mod tests;

use lowtide_core::Request;
use lowtide_core::trace::{Trace, TraceError, Traced};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;

/// The accepted formats, for messages.
pub const ACCEPTED: &str = "what `lowtide drive record` writes, an iolog of fio (`write_iolog`), version 2 or 3, or the text that blkparse prints";

/// Maximum number of requests in a trace. They are kept in memory, 32 bytes each.
const MOST: usize = 1 << 27;

/// The reason why a file is not a valid trace, with the number of the faulty line (from 1) if one is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct TraceFileError {
    line: Option<usize>,
    message: String,
}

impl TraceFileError {
    fn at(line: usize, message: impl Into<String>) -> Self {
        TraceFileError { line: Some(line), message: message.into() }
    }

    fn whole(message: impl Into<String>) -> Self {
        TraceFileError { line: None, message: message.into() }
    }
}

/// Whether a file with this first line is a trace.
pub fn is_trace(first_line: &str) -> bool {
    native::version(first_line).is_some()
        || fio::version(first_line).is_some()
        || blkparse::is_event(first_line)
}

/// Reads a trace from a file.
///
/// # Errors
/// [`TraceFileError`] if the file cannot be read or is not a valid trace.
pub fn read(path: &Path) -> Result<Trace, TraceFileError> {
    let file =
        File::open(path).map_err(|error| TraceFileError::whole(format!("it cannot be read: {error}")))?;
    parse(BufReader::new(file))
}

/// Reads a trace from text.
///
/// # Errors
/// As [`read`].
pub fn parse(text: impl BufRead) -> Result<Trace, TraceFileError> {
    let mut format: Option<Format> = None;
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let line = line.map_err(|error| match error.kind() {
            ErrorKind::InvalidData => TraceFileError::at(number, "it is not text"),
            _ => TraceFileError::at(number, format!("it cannot be read: {error}")),
        })?;
        let line = line.trim();
        match &mut format {
            _ if line.is_empty() => {}
            None => format = Some(Format::of(number, line)?),
            Some(Format::Native(reader)) => reader.line(number, line)?,
            Some(Format::Fio(reader)) => reader.line(number, line)?,
            Some(Format::Blkparse(reader)) => reader.line(number, line)?,
        }
    }
    match format {
        None => Err(TraceFileError::whole("it is empty")),
        Some(Format::Native(reader)) => reader.finish().trace(),
        Some(Format::Fio(reader)) => reader.finish()?.trace(),
        Some(Format::Blkparse(reader)) => reader.finish().trace(),
    }
}

/// Parses an integer; `what` names it in the error.
fn whole(line: usize, text: Option<&str>, what: &str) -> Result<u64, TraceFileError> {
    let text = text.unwrap_or("missing");
    text.parse().map_err(|_| TraceFileError::at(line, format!("the {what} is `{text}`, no whole number")))
}

/// The reader of the detected format.
enum Format {
    Native(native::Reader),
    Fio(fio::Reader),
    Blkparse(blkparse::Reader),
}

impl Format {
    fn of(number: usize, first: &str) -> Result<Format, TraceFileError> {
        if let Some(version) = native::version(first) {
            return Ok(Format::Native(native::Reader::new(number, version)?));
        }
        if let Some(version) = fio::version(first) {
            return Ok(Format::Fio(fio::Reader::new(number, version)?));
        }
        if blkparse::is_event(first) {
            let mut reader = blkparse::Reader::default();
            reader.line(number, first)?;
            return Ok(Format::Blkparse(reader));
        }
        Err(TraceFileError::at(number, "nothing says that it is a trace"))
    }
}

/// The requests read so far, each with its line number.
#[derive(Debug, Default)]
struct Requests {
    requests: Vec<Traced>,
    lines: Vec<u32>,
}

impl Requests {
    fn push(&mut self, line: usize, at_ns: u64, request: Request) -> Result<(), TraceFileError> {
        if self.requests.len() == MOST {
            return Err(TraceFileError::at(
                line,
                format!("more than {MOST} requests: cut the file into parts"),
            ));
        }
        self.requests.push(Traced { at_ns, request });
        self.lines.push(u32::try_from(line).unwrap_or(u32::MAX));
        Ok(())
    }

    /// The trace, with times counted from its first request.
    fn trace(mut self) -> Result<Trace, TraceFileError> {
        let begin_ns = self.requests.iter().map(|traced| traced.at_ns).min().unwrap_or(0);
        self.requests.iter_mut().for_each(|traced| traced.at_ns -= begin_ns);
        let lines = self.lines;
        let line = |index: usize| lines.get(index).map_or(0, |line| *line as usize);
        Trace::new(self.requests).map_err(|error| match error {
            TraceError::Backwards { index } => {
                TraceFileError::at(line(index), "the time is before that of the request above it")
            }
            TraceError::Unaligned { index, offset, length } => TraceFileError::at(
                line(index),
                format!("{length} bytes at {offset} are not whole sectors of 512 bytes below 4 EiB"),
            ),
            TraceError::Empty => TraceFileError::whole("it holds no request"),
            other => TraceFileError::whole(other.to_string()),
        })
    }
}
