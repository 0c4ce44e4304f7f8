//! The newest slots of a log, which marks list ([`Recent`]).
//!
//! Slots of the map are not included, because they have no sequence numbers of their own.

use crate::format::mark::{ENTRIES, Mark, STREAMS, SlotContents};
use crate::format::{Kind, Lba, Seq};
use std::collections::VecDeque;

/// The newest slots of the data streams.
#[derive(Debug, Default)]
pub struct Recent {
    /// The newest slots, with consecutive numbers.
    tail: VecDeque<SlotContents>,
    /// The number of the last slot in `tail`.
    newest: Seq,
    last: [Option<(Seq, SlotContents)>; STREAMS],
}

impl Recent {
    /// Adds a slot, and its stream if known.
    pub fn push(&mut self, stream: Option<usize>, seq: Seq, held: SlotContents) {
        if seq != self.newest + 1 {
            self.tail.clear();
        }
        if self.tail.len() == ENTRIES {
            self.tail.pop_front();
        }
        self.tail.push_back(held);
        self.newest = seq;
        if let Some(last) = stream.and_then(|stream| self.last.get_mut(stream)) {
            *last = Some((seq, held));
        }
    }

    /// Adds a slot that is not an unmap.
    pub fn push_kind(&mut self, stream: usize, seq: Seq, kind: Kind, lba: Lba) {
        self.push(Some(stream), seq, SlotContents { kind, lba, count: 0 });
    }

    /// A mark that all slots up to `durable`, the newest slot, are durable.
    pub fn mark(&self, number: u64, durable: Seq) -> Mark {
        let tail =
            if self.newest == durable { self.tail.iter().rev().copied().collect() } else { Vec::new() };
        Mark { number, durable, last: self.last, tail }
    }
}
