//! The directory: the slot of each cached line, and its valid and dirty blocks.
//!
//! The least recently used clean line is evicted. The directory has no notion of time.

use super::lru::Lru;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The lines in the flash.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Directory {
    lines: Vec<Line>,
    slots: BTreeMap<u64, u32>,
    /// The number of slots that were ever used.
    given: u32,
    /// The clean lines, by use.
    clean: Lru,
    /// Dirty lines that are not being written back, by address.
    waiting: BTreeSet<u64>,
    dirty: u32,
    sweep: u64,
}

/// A slot of the flash.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Line {
    number: u64,
    valid: u64,
    dirty: u64,
}

impl Directory {
    pub(super) fn new(slots: u32) -> Self {
        Directory {
            lines: vec![Line::default(); slots as usize],
            slots: BTreeMap::new(),
            given: 0,
            clean: Lru::new(slots),
            waiting: BTreeSet::new(),
            dirty: 0,
            sweep: 0,
        }
    }

    /// The number of slots.
    pub(super) fn size(&self) -> u32 {
        self.lines.len() as u32
    }

    /// The number of slots with a line.
    pub(super) fn held(&self) -> u32 {
        self.given
    }

    /// The number of lines with dirty blocks.
    pub(super) fn dirty(&self) -> u32 {
        self.dirty
    }

    /// The slot of a line.
    pub(super) fn find(&self, line: u64) -> Option<u32> {
        self.slots.get(&line).copied()
    }

    pub(super) fn valid(&self, slot: u32) -> u64 {
        self.lines[slot as usize].valid
    }

    /// Marks a line as just used.
    pub(super) fn touch(&mut self, slot: u32) {
        if self.lines[slot as usize].dirty == 0 {
            self.clean.touch(slot);
        }
    }

    /// A slot for a new line; `None` if every line is dirty.
    pub(super) fn allocate(&mut self, line: u64) -> Option<u32> {
        let slot = if self.given < self.size() {
            self.given += 1;
            self.given - 1
        } else {
            let slot = self.clean.take_oldest()?;
            self.slots.remove(&self.lines[slot as usize].number);
            slot
        };
        self.lines[slot as usize] = Line { number: line, valid: 0, dirty: 0 };
        self.slots.insert(line, slot);
        self.clean.touch(slot);
        Some(slot)
    }

    /// Marks blocks as valid and clean.
    pub(super) fn fill(&mut self, slot: u32, blocks: u64) {
        self.lines[slot as usize].valid |= blocks;
    }

    /// Marks blocks as valid and dirty.
    pub(super) fn soil(&mut self, slot: u32, blocks: u64) {
        let line = &mut self.lines[slot as usize];
        line.valid |= blocks;
        if line.dirty == 0 && blocks != 0 {
            self.clean.remove(slot);
            self.waiting.insert(line.number);
            self.dirty += 1;
        }
        line.dirty |= blocks;
    }

    /// Marks blocks as invalid.
    pub(super) fn forget(&mut self, slot: u32, blocks: u64) {
        let line = &mut self.lines[slot as usize];
        line.valid &= !blocks;
        if line.dirty != 0 {
            line.dirty &= !blocks;
            if line.dirty == 0 {
                self.waiting.remove(&line.number);
                self.dirty -= 1;
                self.clean.touch(slot);
            }
        }
    }

    /// The next dirty line to write back, by rising address: its number, slot and dirty blocks.
    pub(super) fn next_dirty(&mut self) -> Option<(u64, u32, u64)> {
        let number =
            self.waiting.range(self.sweep..).next().or_else(|| self.waiting.iter().next()).copied()?;
        self.waiting.remove(&number);
        self.sweep = number + 1;
        let slot = *self.slots.get(&number).expect("a dirty line has a slot");
        Some((number, slot, self.lines[slot as usize].dirty))
    }

    /// Marks blocks as clean after a write-back.
    pub(super) fn cleaned(&mut self, number: u64, blocks: u64) {
        let Some(slot) = self.find(number) else { return };
        let line = &mut self.lines[slot as usize];
        if line.dirty == 0 {
            return;
        }
        line.dirty &= !blocks;
        if line.dirty == 0 {
            self.dirty -= 1;
            self.clean.touch(slot);
        } else {
            self.waiting.insert(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clean_line_used_longest_ago_makes_room() {
        let mut lines = Directory::new(3);
        let slots: Vec<_> = (10..13).map(|line| lines.allocate(line).expect("there is room")).collect();
        lines.soil(slots[0], 1);
        lines.touch(slots[1]);
        assert_eq!(lines.allocate(20), Some(slots[2]), "12 is clean and older than 11");
        assert_eq!((lines.find(12), lines.find(20)), (None, Some(slots[2])));
        lines.soil(slots[1], 1);
        lines.soil(slots[2], 1);
        assert_eq!((lines.allocate(30), lines.dirty()), (None, 3), "all are dirty");
        assert_eq!(lines.next_dirty(), Some((10, slots[0], 1)));
        lines.cleaned(10, 1);
        assert_eq!(lines.allocate(30), Some(slots[0]));
    }

    #[test]
    fn what_is_written_meanwhile_stays_dirty() {
        let mut lines = Directory::new(1);
        let slot = lines.allocate(5).expect("there is room");
        lines.soil(slot, 0b011);
        assert_eq!(lines.next_dirty(), Some((5, slot, 0b011)));
        lines.soil(slot, 0b110);
        assert_eq!(lines.next_dirty(), None, "it is being written back");
        lines.cleaned(5, 0b001);
        assert_eq!(lines.next_dirty(), Some((5, slot, 0b110)));
        lines.forget(slot, 0b110);
        lines.cleaned(5, 0b110);
        assert_eq!((lines.dirty(), lines.valid(slot)), (0, 0b001));
    }
}
