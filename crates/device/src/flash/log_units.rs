//! Log units: addresses mapped in large units, of which a few are open for writing (after BAST, Kim et al. 2002).
//!
//! Writes to an open unit are appended to its log in any order. When another unit needs a log, the least recently written
//! one is closed. If the whole unit was written in order, its log replaces it (switch). If only the beginning was written
//! in order, the other units are copied after it (partial merge). Otherwise the whole unit is copied (full merge). The
//! firmware of that time served one command at a time, so the controller waits for a merge. A page that stays on its die
//! is copied within the die (copy-back).
//!
//! Each log has its own row of blocks, and so has the target of a merge, always on the dies of the unit. A unit is a
//! whole number of rows, so rows are not shared, and a block without valid pages is erased at once. Garbage collection is
//! therefore not needed. Data occupies the rows of all units, and those of open units twice; the description leaves room
//! for them. A page holds one map unit, so pages are never partly filled.
//!
//! # Not modelled
//! The search for logs after a power cut. A unit with holes is compacted by a merge, while real firmware keeps the
//! positions of its pages.

use super::frontier::{Frontier, Placed};
use super::spec::LogUnits;
use super::table::UNMAPPED;
use super::{Geometry, SimulatedSsd};
use serde::{Deserialize, Serialize};

/// An open unit.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Log {
    unit: u32,
    /// Map units appended.
    appended: u32,
    /// True if these are the first map units of the log unit, in order.
    in_order: bool,
    /// Their row, to which the next one is appended.
    row: Frontier,
}

/// The open units, the least recently written first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Logs {
    open: usize,
    logs: Vec<Log>,
}

impl Logs {
    pub(super) fn new(spec: &LogUnits) -> Self {
        Logs { open: spec.open as usize, logs: Vec::with_capacity(spec.open as usize) }
    }

    /// Closes the log that has to make room for `count` more map units of `unit`: the unit's own log if they do not fit,
    /// or else the least recently written one.
    fn close(&mut self, unit: u32, count: u32, log_units: u32) -> Option<Log> {
        match self.logs.iter().position(|log| log.unit == unit) {
            Some(at) => (self.logs[at].appended + count > log_units).then(|| self.logs.remove(at)),
            None => (self.logs.len() == self.open).then(|| self.logs.remove(0)),
        }
    }

    /// Records that `count` map units of `unit` are written at `offset` in it. A unit without a log gets `row`.
    fn append(&mut self, unit: u32, offset: u32, count: u32, row: impl FnOnce() -> Frontier) {
        let found = self.logs.iter().position(|log| log.unit == unit);
        let mut log = found.map(|at| self.logs.remove(at)).unwrap_or_else(|| Log {
            unit,
            appended: 0,
            in_order: true,
            row: row(),
        });
        log.in_order &= offset == log.appended;
        log.appended += count;
        self.logs.push(log);
    }

    /// The blocks being filled.
    pub(super) fn open_blocks(&self) -> impl Iterator<Item = u32> {
        self.logs.iter().flat_map(|log| log.row.open_blocks())
    }

    pub(super) fn clear(&mut self) {
        self.logs.clear();
    }
}

impl SimulatedSsd {
    /// Writes logical units to their logs, like [`SimulatedSsd::place_units`]. Also returns the time of the controller for
    /// merges.
    pub(super) fn write_to_logs(&mut self, now_ns: u64, first: u32, end: u32) -> ((u64, u64), u64) {
        let log_units = self.geometry.log_units;
        let (mut at_ns, mut durable_ns, mut merges_ns) = (now_ns, now_ns, 0);
        let mut logical = first;
        while logical < end {
            let (unit, offset) = (logical / log_units, logical % log_units);
            let count = (end - logical).min(log_units - offset);
            let begun_ns = self.controller_busy_ns;
            let merge_ns = self.open_log(unit, offset, count);
            merges_ns += merge_ns;
            let ready_ns = at_ns.max(begun_ns + merge_ns);
            let written = self.place_units(ready_ns, logical..logical + count, Self::place_in_log);
            (at_ns, durable_ns) = (written.0, durable_ns.max(written.1));
            logical += count;
        }
        ((at_ns, durable_ns), merges_ns)
    }

    /// Opens the log of `unit` for `count` map units at `offset` in it, and merges the log that is closed for it. Returns the
    /// time of the controller.
    fn open_log(&mut self, unit: u32, offset: u32, count: u32) -> u64 {
        let log_units = self.geometry.log_units;
        let Some(logs) = &mut self.logs else { return 0 };
        let closed = logs.close(unit, count, log_units);
        let begun_ns = self.controller_busy_ns;
        let merged_ns = closed.map_or(begun_ns, |log| self.merge(begun_ns, log));
        self.controller_busy_ns = merged_ns;
        let row = || new_row(&self.geometry, unit);
        if let Some(logs) = &mut self.logs {
            logs.append(unit, offset, count, row);
        }
        merged_ns - begun_ns
    }

    /// Places a unit in the log that was opened last.
    fn place_in_log(&mut self) -> Placed {
        let logs = self.logs.as_mut().expect("a drive without logs has no log to write to");
        let mut log = logs.logs.pop().expect("a log was opened");
        let placed = self.place_in_row(&mut log.row);
        if let Some(logs) = &mut self.logs {
            logs.logs.push(log);
        }
        placed
    }

    fn place_in_row(&mut self, row: &mut Frontier) -> Placed {
        if row.needs_block() {
            let block = row.open(&mut self.blocks).expect("a valid drive has room for every row");
            self.table.prefetch_block(block * self.geometry.block_units, self.geometry.block_units);
            self.observe_pool();
        }
        row.place()
    }

    /// Merges the unit of a closed log. Returns the instant at which it is complete.
    fn merge(&mut self, now_ns: u64, log: Log) -> u64 {
        let Log { unit, appended, in_order, mut row } = log;
        let first = unit * self.geometry.log_units;
        let end = (first + self.geometry.log_units).min(self.geometry.logical_units);
        if in_order {
            let done_ns = self.copy(now_ns, first + appended, end, &mut row);
            self.leave(&row);
            return done_ns;
        }
        let mut whole = new_row(&self.geometry, unit);
        let done_ns = self.copy(now_ns, first, end, &mut whole);
        // The log's row has no valid units any more.
        self.leave(&row);
        self.leave(&whole);
        done_ns
    }

    /// Reads logical units and appends them to a row, in order. Returns the instant at which they are written.
    fn copy(&mut self, now_ns: u64, first: u32, end: u32, row: &mut Frontier) -> u64 {
        let mut done_ns = now_ns;
        for logical in first..end {
            if self.table.physical(logical) == UNMAPPED {
                continue;
            }
            let placed = self.place_in_row(row);
            let old = self.table.map(logical, placed.physical);
            let from = self.blocks.die_of(self.geometry.block_of(old));
            self.blocks.add(placed.block);
            self.counts.moved_units += 1;
            let ready_ns = now_ns.max(placed.page_full.expect("a page holds one map unit"));
            let to = self.blocks.die_of(placed.block);
            let at_ns = if to == from {
                self.nand.copy_back(from, ready_ns)
            } else {
                let read_ns = self.nand.read(from, now_ns, now_ns, 1, 1);
                self.nand.program(to, now_ns, read_ns.max(ready_ns), 1)
            };
            done_ns = done_ns.max(at_ns);
            if placed.block_full {
                self.fill_block(placed.block);
            }
            self.drop_unit(old);
        }
        done_ns
    }

    /// Leaves the unwritten pages of a row's open blocks unused until the blocks are erased.
    fn leave(&mut self, row: &Frontier) {
        row.open_blocks().for_each(|block| self.fill_block(block));
    }

    /// Erases a full block without valid units.
    pub(super) fn erase_dead(&mut self, block: u32) {
        self.blocks.take_full(block);
        let ready_ns = self.nand.erase(self.blocks.die_of(block), self.controller_busy_ns);
        self.blocks.erased(block, ready_ns);
        self.observe_pool();
    }
}

/// An unwritten row for a unit, always on the same dies.
fn new_row(geometry: &Geometry, unit: u32) -> Frontier {
    let block = geometry.block_units;
    Frontier::new(geometry.row_lanes, geometry.dies, geometry.page_units, block, block)
        .starting_on(unit % geometry.dies)
}
