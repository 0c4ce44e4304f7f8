//! The log writer: appended records, writes in flight, and connections that wait for durability.
//!
//! # Not modelled
//!
//! The contents of records.

use super::Log;
use std::collections::VecDeque;

/// A write in flight.
#[derive(Debug, Clone, Copy)]
struct Write {
    end: u64,
    done: bool,
}

/// The log writer.
#[derive(Debug)]
pub(super) struct LogWriter {
    file: u64,
    align: u64,
    longest: u64,
    outstanding: usize,
    appended: u64,
    wanted: u64,
    submitted: u64,
    flushed: u64,
    in_flight: VecDeque<Write>,
    written: u64,
    waiting: VecDeque<(u64, usize)>,
}

/// A write of the log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogWrite {
    pub(super) number: u64,
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl LogWriter {
    pub(super) fn new(log: &Log) -> Self {
        let align = log.align.get();
        LogWriter {
            file: log.size.get() / align * align,
            align,
            longest: log.write.get() / align * align,
            outstanding: log.outstanding as usize,
            appended: 0,
            wanted: 0,
            submitted: 0,
            flushed: 0,
            in_flight: VecDeque::new(),
            written: 0,
            waiting: VecDeque::new(),
        }
    }

    #[inline]
    pub(super) fn append(&mut self, bytes: u64) {
        self.appended += bytes;
    }

    /// Makes `connection` wait until everything appended so far is durable.
    #[inline]
    pub(super) fn commit(&mut self, connection: usize) {
        self.wanted = self.appended;
        self.waiting.push_back((self.appended, connection));
    }

    /// Returns the next write that can be submitted: whole blocks, or a padded block if a commit waits for it.
    #[inline]
    pub(super) fn next_write(&mut self) -> Option<LogWrite> {
        if self.in_flight.len() == self.outstanding {
            return None;
        }
        let ready = self.appended.saturating_sub(self.submitted);
        let blocks =
            if self.wanted > self.submitted { ready.div_ceil(self.align) } else { ready / self.align };
        let offset = self.submitted % self.file;
        let length = (blocks * self.align).min(self.longest).min(self.file - offset);
        if length == 0 {
            return None;
        }
        self.submitted += length;
        // Padding takes space in the file, as a record does.
        self.appended = self.appended.max(self.submitted);
        self.in_flight.push_back(Write { end: self.submitted, done: false });
        self.written += 1;
        Some(LogWrite { number: self.written - 1, offset, length })
    }

    /// Completes a write. Adds the connections whose records are now durable to `released`.
    #[inline]
    pub(super) fn complete(&mut self, number: u64, released: &mut Vec<usize>) {
        let first = self.written - self.in_flight.len() as u64;
        self.in_flight[(number - first) as usize].done = true;
        while let Some(write) = self.in_flight.front().filter(|write| write.done) {
            self.flushed = write.end;
            self.in_flight.pop_front();
        }
        while let Some(&(lsn, connection)) = self.waiting.front().filter(|(lsn, _)| *lsn <= self.flushed) {
            debug_assert!(lsn <= self.appended);
            self.waiting.pop_front();
            released.push(connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Bytes;

    #[test]
    fn a_commit_waits_for_every_write_before_it_whatever_completes_first() {
        let mut log = LogWriter::new(&Log {
            size: Bytes::mib(1),
            align: Bytes::kib(4),
            write: Bytes::kib(8),
            outstanding: 2,
        });
        log.append(10_000);
        assert_eq!(log.next_write(), Some(LogWrite { number: 0, offset: 0, length: 8192 }));
        assert_eq!(log.next_write(), None, "less than a block remains");
        log.commit(7);
        assert_eq!(log.next_write(), Some(LogWrite { number: 1, offset: 8192, length: 4096 }));
        let mut released = Vec::new();
        log.complete(1, &mut released);
        assert!(released.is_empty());
        log.complete(0, &mut released);
        assert_eq!(released, [7]);
    }
}
