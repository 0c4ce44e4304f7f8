//! Log units: addresses mapped in large units, of which a few are open for writing (after BAST, Kim et al. 2002).
//!
//! Writes to an open unit are appended to its log, in whatever order they come. When another unit needs the log, the
//! least recently written one is closed: if all of it was written in order, the log takes the unit's place (switch);
//! if only its beginning was, the rest is copied behind (partial merge); otherwise all of it is copied (full merge).
//! Firmware of that time serves one command at a time, so the controller waits for a merge. A page that stays on its
//! die is copied within it (copy-back), where a page holds one map unit. Logs lie on
//! the host's frontier, merged units on the collector's; a unit as large as a block on each die leaves blocks that are
//! all garbage, which cleaning only erases. Leaves out the search of logs after a power cut.

use super::SimulatedSsd;
use super::spec::LogUnits;
use super::table::UNMAPPED;
use serde::{Deserialize, Serialize};

/// An open unit.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Log {
    unit: u32,
    /// Map units appended.
    appended: u32,
    /// Whether they are the unit's first ones, in order.
    in_order: bool,
}

/// The open units, the least recently written first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Logs {
    units: u32,
    open: usize,
    logs: Vec<Log>,
}

impl Logs {
    pub(super) fn new(spec: &LogUnits, map_unit_bytes: u64) -> Self {
        let units = (spec.unit.get() / map_unit_bytes) as u32;
        Logs { units, open: spec.open as usize, logs: Vec::with_capacity(spec.open as usize) }
    }

    /// Notes that `count` map units of `unit` are written at `offset` in it. What must be merged first: a unit, and
    /// the first of its map units to be copied.
    fn append(&mut self, unit: u32, offset: u32, count: u32) -> Option<(u32, u32)> {
        let found = self.logs.iter().position(|log| log.unit == unit);
        let (mut log, closed) = match found.map(|at| self.logs.remove(at)) {
            Some(log) if log.appended + count <= self.units => (log, None),
            full => {
                let evicted = if full.is_none() && self.logs.len() == self.open {
                    Some(self.logs.remove(0))
                } else {
                    full
                };
                (Log { unit, appended: 0, in_order: true }, evicted)
            }
        };
        log.in_order &= offset == log.appended;
        log.appended += count;
        self.logs.push(log);
        closed.map(|log| (log.unit, if log.in_order { log.appended } else { 0 }))
    }

    pub(super) fn clear(&mut self) {
        self.logs.clear();
    }
}

impl SimulatedSsd {
    /// Opens the units that a write touches, and merges those that make way; the instant that is done.
    pub(super) fn open_logs(&mut self, now_ns: u64, first: u32, end: u32) -> u64 {
        let mut done_ns = now_ns;
        let Some(units) = self.logs.as_ref().map(|logs| logs.units) else { return now_ns };
        let mut logical = first;
        while logical < end {
            let (unit, offset) = (logical / units, logical % units);
            let count = (end - logical).min(units - offset);
            let merge = self.logs.as_mut().and_then(|logs| logs.append(unit, offset, count));
            if let Some((closed, from)) = merge {
                let last = ((closed + 1) * units).min(self.geometry.logical_units);
                done_ns = self.copy(done_ns, closed * units + from, last);
            }
            logical += count;
        }
        done_ns
    }

    /// Reads logical units and writes them anew, in order; the instant that is done.
    fn copy(&mut self, now_ns: u64, first: u32, end: u32) -> u64 {
        let mut done_ns = now_ns;
        let mut last_page = u32::MAX;
        for logical in first..end {
            let old = self.table.physical(logical);
            if old == UNMAPPED {
                continue;
            }
            let page = old / self.geometry.page_units;
            let die = self.blocks.die_of(self.geometry.block_of(old));
            let pages = u32::from(page != last_page);
            last_page = page;
            if self.cleaned.needs_block() {
                self.open_for_merge();
            }
            let placed = self.cleaned.place();
            // Opening a block may have cleaned the one that held the unit.
            let old = self.table.map(logical, placed.physical);
            self.drop_unit(old);
            self.blocks.add(placed.block);
            self.counts.moved_units += 1;
            if let Some(ready_ns) = placed.page_full {
                let to = self.blocks.die_of(placed.block);
                let at_ns = if to == die && self.geometry.page_units == 1 {
                    self.nand.copy_back(die, now_ns.max(ready_ns))
                } else {
                    let read_ns = self.nand.read(die, now_ns, now_ns, pages, 1);
                    self.nand.program(to, now_ns, read_ns.max(ready_ns), self.geometry.page_units)
                };
                done_ns = done_ns.max(at_ns);
                if placed.block_full {
                    self.blocks.fill(placed.block);
                    self.selector.filled(placed.block, self.blocks.count(placed.block));
                }
                self.pay_for_page(placed.block);
            } else {
                done_ns = done_ns.max(self.nand.read(die, now_ns, now_ns, pages, 1));
            }
        }
        done_ns
    }
}
