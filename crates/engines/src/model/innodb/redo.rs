//! The redo log: how far it is made, written and durable, and who waits for it; and how much of it is still needed.
//!
//! ```text
//!   needed ──────────────────┃ written ┃ made
//!   └ the oldest change that is only in memory         the log is full when this is as long as its files
//! ```
//!
//! Commits that come while the log is written share the next write (group commit). Leaves out what records say.

use super::settings::InnodbSettings;
use lowtide_core::Request;

/// What the kernel writes of a file at least.
const BLOCK: u64 = 4096;

/// The share of the log's files that may be needed: from half of the last eighth on pages are written in a hurry, and at its end
/// everything waits (`log0log.c`: `max_modified_age_async` and `max_modified_age_sync`, of nine tenths of the files).
const CAPACITY: f64 = 0.9;
const HURRY: f64 = 7.0 / 8.0;
const FULL: f64 = 15.0 / 16.0;

/// The log.
#[derive(Debug)]
pub(super) struct Redo {
    bytes: u64,
    made: u64,
    written: u64,
    /// Who waits for what is being written, and for what comes after that.
    in_write: Vec<u32>,
    waiting: Vec<u32>,
    /// Up to where is being written.
    until: Option<u64>,
}

impl Redo {
    pub(super) fn new(model: &InnodbSettings) -> Redo {
        Redo {
            bytes: model.log.get(),
            made: 0,
            written: 0,
            in_write: Vec::new(),
            waiting: Vec::new(),
            until: None,
        }
    }

    /// How far it is made.
    #[inline]
    pub(super) fn made(&self) -> u64 {
        self.made
    }
    pub(super) fn make(&mut self, bytes: u64) {
        self.made += bytes;
    }
    /// Bytes of it that may be needed before pages are written in a hurry, before everything waits, and in all.
    pub(super) fn hurry(&self) -> u64 {
        (self.capacity() as f64 * HURRY) as u64
    }
    pub(super) fn full(&self) -> u64 {
        (self.capacity() as f64 * FULL) as u64
    }
    pub(super) fn capacity(&self) -> u64 {
        (self.bytes as f64 * CAPACITY) as u64
    }

    /// A terminal waits until all that is made is durable.
    pub(super) fn wait(&mut self, terminal: u32) {
        self.waiting.push(terminal);
    }
    /// Whether anybody waits for a write that is not under way.
    pub(super) fn is_wanted(&self) -> bool {
        self.until.is_none() && !self.waiting.is_empty()
    }
    /// Begins to write what is made, where nothing is being written; `None` where there is nothing to write. It goes round in its files.
    pub(super) fn begin(&mut self, offset: u64) -> Option<Request> {
        if self.until.is_some() || self.made == self.written {
            return None;
        }
        self.until = Some(self.made);
        std::mem::swap(&mut self.in_write, &mut self.waiting);
        let first = self.written / BLOCK * BLOCK;
        let length = (self.made.next_multiple_of(BLOCK) - first).min(self.bytes);
        let place = first % self.bytes;
        // What goes over the end is written at its beginning by a second request in reality: here the whole of it.
        let place = if place + length > self.bytes { 0 } else { place };
        Some(Request::write(offset + place, length))
    }
    /// What was being written is durable: who waited for it, into `who`.
    pub(super) fn end(&mut self, who: &mut Vec<u32>) {
        self.written = self.until.take().expect("it was begun");
        who.clear();
        who.append(&mut self.in_write);
    }
}
