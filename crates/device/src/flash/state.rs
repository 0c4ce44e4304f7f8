//! The drive's saved form: a value with everything but the map, and the map as a table.
//!
//! Which unit a physical one holds follows from the map, so only one direction is saved. Leaves out the description and
//! what is derived from it.

use super::SimulatedSsd;
use super::blocks::Blocks;
use super::buffer::WriteBuffer;
use super::collector::Collector;
use super::device::Counts;
use super::frontier::Frontier;
use super::log_units::Logs;
use super::map_cache::MapCache;
use super::nand::NandArray;
use super::slc::Slc;
use super::victim::Selector;
use crate::state::{Sink, Source, sense};
use lowtide_core::StateError;
use lowtide_core::rng::Rng;
use std::io::{Read, Write};

/// In the order in which it is written.
type Parts = (
    Blocks,
    Selector,
    (Frontier, Frontier),
    NandArray,
    WriteBuffer,
    Option<MapCache>,
    Collector,
    Option<Slc>,
    Option<Logs>,
    Rng,
    (u64, u64, u64),
    (u32, u32),
    Counts,
);

impl SimulatedSsd {
    pub(super) fn save_state(&self, out: &mut dyn Write) -> Result<(), StateError> {
        let mut sink = Sink(out);
        sink.value(&(
            &self.blocks,
            &self.selector,
            (&self.host, &self.cleaned),
            &self.nand,
            &self.buffer,
            &self.map_cache,
            &self.collector,
            &self.slc,
            &self.logs,
            &self.rng,
            (self.link_busy_ns, self.controller_busy_ns, self.last_activity_ns),
            (self.map_die, self.map_pages_unwritten),
            self.counts,
        ))?;
        sink.words(self.table.physical_of())
    }

    pub(super) fn restore_state(&mut self, from: &mut dyn Read) -> Result<(), StateError> {
        let mut source = Source(from);
        let parts: Parts = source.value()?;
        let (
            blocks,
            selector,
            frontiers,
            nand,
            buffer,
            map_cache,
            collector,
            slc,
            logs,
            rng,
            busy,
            map,
            counts,
        ) = parts;
        source.words(self.table.physical_of_mut())?;
        sense(self.table.rebuild(), "two units of the map have one home, or a home that is not there")?;
        (self.blocks, self.selector, (self.host, self.cleaned)) = (blocks, selector, frontiers);
        (self.nand, self.buffer, self.map_cache) = (nand, buffer, map_cache);
        (self.collector, self.slc, self.logs, self.rng) = (collector, slc, logs, rng);
        (self.link_busy_ns, self.controller_busy_ns, self.last_activity_ns) = busy;
        (self.map_die, self.map_pages_unwritten) = map;
        self.counts = counts;
        Ok(())
    }
}
