//! The redo log: appended, written and durable positions, waiting commits, and limits of the checkpoint age.
//!
//! ```text
//!   needed ──────────────────┃ written ┃ appended
//!   └ first change of the oldest dirty page       full when this range is as long as the log files
//! ```
//!
//! Commits that arrive during a write share the next write (group commit).
//!
//! # Not modelled
//!
//! The contents of records.

use super::settings::InnodbSettings;
use lowtide_core::Request;

/// Minimum size of a write to a file, in bytes.
const BLOCK: u64 = 4096;

/// Usable share of the log files. `ASYNC` and `SYNC` are the shares of this capacity at which flushing becomes
/// asynchronous and synchronous (`log0log.c`: `max_modified_age_async`, `max_modified_age_sync`). At the synchronous
/// limit, transactions wait.
const CAPACITY: f64 = 0.9;
const ASYNC: f64 = 7.0 / 8.0;
const SYNC: f64 = 15.0 / 16.0;

/// The redo log.
#[derive(Debug)]
pub(super) struct Redo {
    bytes: u64,
    appended: u64,
    written: u64,
    /// Terminals that wait for the write in flight, and terminals that wait for the next write.
    in_write: Vec<u32>,
    waiting: Vec<u32>,
    /// End of the write in flight.
    until: Option<u64>,
}

impl Redo {
    pub(super) fn new(model: &InnodbSettings) -> Redo {
        Redo {
            bytes: model.log.get(),
            appended: 0,
            written: 0,
            in_write: Vec::new(),
            waiting: Vec::new(),
            until: None,
        }
    }

    /// LSN: the end of the appended records.
    #[inline]
    pub(super) fn lsn(&self) -> u64 {
        self.appended
    }
    pub(super) fn append(&mut self, bytes: u64) {
        self.appended += bytes;
    }
    /// Limits of the checkpoint age for asynchronous and synchronous flushing, and the capacity, in bytes.
    pub(super) fn async_limit(&self) -> u64 {
        (self.capacity() as f64 * ASYNC) as u64
    }
    pub(super) fn sync_limit(&self) -> u64 {
        (self.capacity() as f64 * SYNC) as u64
    }
    pub(super) fn capacity(&self) -> u64 {
        (self.bytes as f64 * CAPACITY) as u64
    }

    /// Makes a terminal wait until all appended records are durable.
    pub(super) fn wait(&mut self, terminal: u32) {
        self.waiting.push(terminal);
    }
    /// Returns true if a terminal waits and no write is in flight.
    pub(super) fn is_wanted(&self) -> bool {
        self.until.is_none() && !self.waiting.is_empty()
    }
    /// Begins a write of all appended records. Returns `None` if a write is in flight or all records are written.
    pub(super) fn begin(&mut self, offset: u64) -> Option<Request> {
        if self.until.is_some() || self.appended == self.written {
            return None;
        }
        self.until = Some(self.appended);
        std::mem::swap(&mut self.in_write, &mut self.waiting);
        let first = self.written / BLOCK * BLOCK;
        let length = (self.appended.next_multiple_of(BLOCK) - first).min(self.bytes);
        let place = first % self.bytes;
        // A write that would wrap around is modelled as one request at the start of the file.
        let place = if place + length > self.bytes { 0 } else { place };
        Some(Request::write(offset + place, length))
    }
    /// Ends the write in flight. Moves its waiters to `who`.
    pub(super) fn end(&mut self, who: &mut Vec<u32>) {
        self.written = self.until.take().expect("a write is in flight");
        who.clear();
        who.append(&mut self.in_write);
    }
}
