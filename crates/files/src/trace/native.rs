//! lowtide's trace format, with one line for each request. Unlike other formats, it records nanoseconds, forced unit
//! access and write-zeroes.
//!
//! ```text
//! lowtide trace 1
//! 0 read 4096 16384
//! 81250 write-fua 0 4096
//! 90125 flush
//! ```

use super::{Requests, TraceFileError};
use lowtide_core::suggest;
use lowtide_core::trace::Traced;
use lowtide_core::{Op, Request};
use std::io::{self, Write};

/// The first line of the format.
pub const HEAD: &str = "lowtide trace 1\n";

/// Names of the operations.
const OPS: [(&str, Op); 6] = [
    ("read", Op::Read),
    ("write", Op::Write { fua: false }),
    ("write-fua", Op::Write { fua: true }),
    ("trim", Op::Trim),
    ("write-zeroes", Op::WriteZeroes),
    ("flush", Op::Flush),
];

/// The name of an operation.
pub fn name(op: Op) -> &'static str {
    OPS.iter().find(|(_, known)| *known == op).map_or("flush", |(name, _)| name)
}

/// The operation with this name.
pub fn op(name: &str) -> Option<Op> {
    OPS.iter().find(|(known, _)| *known == name).map(|(_, op)| *op)
}

/// Writes a request as one line.
///
/// # Errors
/// Errors of the writer.
pub fn write(to: &mut impl Write, traced: &Traced) -> io::Result<()> {
    let Traced { at_ns, request: Request { op, offset, length } } = *traced;
    let name = name(op);
    match op {
        Op::Flush => writeln!(to, "{at_ns} {name}"),
        _ => writeln!(to, "{at_ns} {name} {offset} {length}"),
    }
}

/// The version number in the first line of a trace.
pub(super) fn version(first: &str) -> Option<&str> {
    first.strip_prefix("lowtide trace ")
}

/// Reads the requests line by line.
#[derive(Debug, Default)]
pub(super) struct Reader {
    requests: Requests,
}

impl Reader {
    pub(super) fn new(line: usize, version: &str) -> Result<Reader, TraceFileError> {
        match version.trim_end() {
            "1" => Ok(Reader::default()),
            other => Err(TraceFileError::at(line, format!("version {other} of lowtide's trace: 1 is read"))),
        }
    }

    pub(super) fn line(&mut self, number: usize, line: &str) -> Result<(), TraceFileError> {
        let mut words = line.split_whitespace();
        let whole = |text, what| super::whole(number, text, what);
        let at_ns = whole(words.next(), "time in nanoseconds")?;
        let name = words.next().unwrap_or("missing");
        let Some((_, op)) = OPS.iter().find(|(known, _)| *known == name) else {
            let near = suggest::nearest(name, OPS.iter().map(|(known, _)| *known));
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(TraceFileError::at(number, format!("`{name}` is not known{near}")));
        };
        let (offset, length) = match op {
            Op::Flush => (0, 0),
            _ => (whole(words.next(), "offset")?, whole(words.next(), "length")?),
        };
        if let Some(more) = words.next() {
            return Err(TraceFileError::at(number, format!("`{more}` after the request")));
        }
        self.requests.push(number, at_ns, Request { op: *op, offset, length })
    }

    pub(super) fn finish(self) -> Requests {
        self.requests
    }
}
