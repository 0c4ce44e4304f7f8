//! fio's iolog, versions 2 and 3 (section "Trace file format" of fio's manual).
//!
//! Version 3 has a time in microseconds before each action. Version 2 has `wait` actions instead, each with the time
//! since the previous `wait`. Without `wait` actions, its requests have an order but no times.
//!
//! Several files are laid out one after another in the trace's address space, each as large as the highest offset
//! requested. `add`, `open` and `close` are ignored, and so is `sync_file_range`, which makes nothing durable.
//!
//! # Not handled
//! Version 1.

use super::{Requests, TraceFileError};
use lowtide_core::{Op, Request};

/// Alignment of the first byte of each file, in bytes.
const FILE_ALIGNMENT: u64 = 4096;

/// The version number in the first line of an iolog.
pub(super) fn version(first: &str) -> Option<&str> {
    first.strip_prefix("fio version ")?.trim_end().strip_suffix(" iolog")
}

/// Reads the requests line by line.
#[derive(Debug)]
pub(super) struct Reader {
    timed: bool,
    /// Sum of all waits, in microseconds (version 2 only).
    waited_us: u64,
    /// Files by name, each with the end of its highest request, in bytes.
    files: Vec<(String, u64)>,
    /// Index in `files` of each request's file.
    file_of: Vec<u32>,
    requests: Requests,
}

impl Reader {
    pub(super) fn new(line: usize, version: &str) -> Result<Reader, TraceFileError> {
        let timed = match version {
            "2" => false,
            "3" => true,
            other => {
                let message = format!("version {other} of the iolog: 2 and 3 are read");
                return Err(TraceFileError::at(line, message));
            }
        };
        Ok(Reader {
            timed,
            waited_us: 0,
            files: Vec::new(),
            file_of: Vec::new(),
            requests: Requests::default(),
        })
    }

    pub(super) fn line(&mut self, number: usize, line: &str) -> Result<(), TraceFileError> {
        let mut words = line.split_whitespace();
        let whole = |text, what| super::whole(number, text, what);
        let at_us = if self.timed { whole(words.next(), "time in microseconds")? } else { self.waited_us };
        let (Some(file), Some(action)) = (words.next(), words.next()) else {
            return Err(TraceFileError::at(number, "a line without a file and an action"));
        };
        let op = match action {
            "add" | "open" | "close" | "sync_file_range" => return Ok(()),
            "wait" if !self.timed => {
                let wait_us = whole(words.next(), "time to wait")?;
                let sum = self.waited_us.checked_add(wait_us);
                self.waited_us =
                    sum.ok_or_else(|| TraceFileError::at(number, "waits longer than any clock counts"))?;
                return Ok(());
            }
            "wait" => return Err(TraceFileError::at(number, "`wait` in version 3, which has times")),
            "read" => Op::Read,
            "write" => Op::Write { fua: false },
            "trim" => Op::Trim,
            "sync" | "datasync" => Op::Flush,
            other => {
                let known = ["read", "write", "trim", "sync", "datasync", "add", "open", "close", "wait"];
                let near = lowtide_core::suggest::nearest(other, known);
                let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                return Err(TraceFileError::at(number, format!("the action `{other}` is not known{hint}")));
            }
        };
        let at_ns = at_us.checked_mul(1000);
        let at_ns = at_ns.ok_or_else(|| TraceFileError::at(number, "a time later than any clock counts"))?;
        let request = match op {
            Op::Flush => Request::flush(),
            op => {
                Request { op, offset: whole(words.next(), "offset")?, length: whole(words.next(), "length")? }
            }
        };
        let at = self.files.iter().rposition(|(name, _)| name == file).unwrap_or_else(|| {
            self.files.push((file.to_owned(), 0));
            self.files.len() - 1
        });
        let end = &mut self.files[at].1;
        *end = (*end).max(request.offset.saturating_add(request.length));
        self.file_of.push(at as u32);
        self.requests.push(number, at_ns, request)
    }

    pub(super) fn finish(mut self) -> Result<Requests, TraceFileError> {
        let mut begin = 0u64;
        let mut begins = Vec::new();
        for (name, end) in &self.files {
            begins.push(begin);
            let next = end.checked_next_multiple_of(FILE_ALIGNMENT).and_then(|size| begin.checked_add(size));
            begin = next
                .ok_or_else(|| TraceFileError::whole(format!("what is asked of {name} reaches too far")))?;
        }
        for (traced, file) in self.requests.requests.iter_mut().zip(&self.file_of) {
            if traced.request.op != Op::Flush {
                traced.request.offset += begins[*file as usize];
            }
        }
        Ok(self.requests)
    }
}
