//! The last slots of a log, for marks ([`Recent`]).
//!
//! Leaves out slots of the map's stream, which have no numbers of their own.

use crate::format::mark::{ENTRIES, Held, Mark, STREAMS};
use crate::format::{Kind, Lba, Seq};
use std::collections::VecDeque;

/// The last slots of the streams of data.
#[derive(Debug, Default)]
pub struct Recent {
    /// The slots with the newest numbers, consecutive.
    tail: VecDeque<Held>,
    /// The number of the last of them.
    newest: Seq,
    last: [Option<(Seq, Held)>; STREAMS],
}

impl Recent {
    /// Adds a slot, with its stream if that is known.
    pub fn push(&mut self, stream: Option<usize>, seq: Seq, held: Held) {
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

    /// Adds the slots of a summary, or the first slot of a segment.
    pub fn push_kind(&mut self, stream: usize, seq: Seq, kind: Kind, lba: Lba) {
        self.push(Some(stream), seq, Held { kind, lba, count: 0 });
    }

    /// The mark that everything up to `durable` is durable, which is the number of the last slot.
    pub fn mark(&self, number: u64, durable: Seq) -> Mark {
        let tail =
            if self.newest == durable { self.tail.iter().rev().copied().collect() } else { Vec::new() };
        Mark { number, durable, last: self.last, tail }
    }
}
