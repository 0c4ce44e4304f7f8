//! The disk's saved form: where the head is, and what is in memory and in the queue.
//!
//! Leaves out the description and what is derived from it.

use super::SimulatedDisk;
use super::device::Done;
use super::mechanism::Position;
use super::queue::{Command, Queue};
use super::read_ahead::Segments;
use super::write_cache::WriteCache;
use crate::state::{Sink, Source};
use lowtide_core::{Counters, StateError};
use std::collections::VecDeque;
use std::io::{Read, Write};

/// In the order in which it is written.
type Parts = (
    Position,
    Queue,
    Segments,
    Option<WriteCache>,
    VecDeque<Command>,
    bool,
    VecDeque<Done>,
    (u64, u64),
    Counters,
);

impl SimulatedDisk {
    pub(super) fn save_state(&self, out: &mut dyn Write) -> Result<(), StateError> {
        Sink(out).value(&(
            self.mechanism.position(),
            &self.queue,
            &self.segments,
            &self.cache,
            &self.stalled,
            self.cache_turn,
            &self.done,
            (self.last_done_ns, self.link_free_ns),
            self.counters,
        ))
    }

    pub(super) fn restore_state(&mut self, from: &mut dyn Read) -> Result<(), StateError> {
        let parts: Parts = Source(from).value()?;
        let (position, queue, segments, cache, stalled, cache_turn, done, free, counters) = parts;
        self.mechanism.move_to(position);
        (self.queue, self.segments, self.cache) = (queue, segments, cache);
        (self.stalled, self.cache_turn, self.done) = (stalled, cache_turn, done);
        (self.last_done_ns, self.link_free_ns) = free;
        self.counters = counters;
        Ok(())
    }
}
