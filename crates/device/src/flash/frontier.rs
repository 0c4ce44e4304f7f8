//! A write frontier: the open blocks for one kind of data. Pages go to its blocks in turn.
//!
//! The drive has a frontier for host data and one for data moved by garbage collection, so that data of different ages
//! is not mixed. Each log unit has its own. Frontiers have no notion of time.

use super::blocks::Blocks;
use serde::{Deserialize, Serialize};

/// One open block.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Lane {
    block: u32,
    written: u32,
    ready_at_ns: u64,
}

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Frontier {
    lanes: Vec<Lane>,
    turn: usize,
    /// The die of the first lane, if that die has an erased block.
    first_die: u32,
    dies: u32,
    page_units: u32,
    /// The distance between two blocks, and the part of each block that is written.
    block_units: u32,
    written_units: u32,
    /// Units in the current page.
    in_page: u32,
    /// Open blocks on each die. Lanes on the same die share its program time and delay the other lanes.
    open_on: Vec<u32>,
}

/// The position of a unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) physical: u32,
    pub(super) block: u32,
    /// The instant at which the block can be programmed, if the page is now full.
    pub(super) page_full: Option<u64>,
    /// True if the block is full, too.
    pub(super) block_full: bool,
}

impl Frontier {
    /// Blocks of `block_units`, of which the first `written_units` are written.
    pub(super) fn new(lanes: u32, dies: u32, page_units: u32, block_units: u32, written_units: u32) -> Self {
        let lane = Lane { block: NONE, written: 0, ready_at_ns: 0 };
        Frontier {
            lanes: vec![lane; lanes as usize],
            turn: 0,
            first_die: 0,
            dies,
            page_units,
            block_units,
            written_units,
            in_page: 0,
            open_on: vec![0; dies as usize],
        }
    }

    /// Places the first lane on `die`.
    pub(super) fn starting_on(self, die: u32) -> Self {
        Frontier { first_die: die, ..self }
    }

    /// Returns whether the next unit needs a new block.
    #[inline]
    pub(super) fn needs_block(&self) -> bool {
        self.lanes[self.turn].block == NONE
    }

    /// Returns whether the current page is partly filled.
    #[inline]
    pub(super) fn in_page(&self) -> bool {
        self.in_page > 0
    }

    /// Opens an erased block for the next unit. `None` if no block is erased.
    pub(super) fn open(&mut self, blocks: &mut Blocks) -> Option<u32> {
        let lane_die = self.turn as u32 * self.dies / self.lanes.len() as u32;
        let die = (self.first_die + lane_die) % self.dies;
        let (block, ready_at_ns) = blocks.take_free(die, &self.open_on)?;
        self.open_on[blocks.die_of(block) as usize] += 1;
        self.lanes[self.turn] = Lane { block, written: 0, ready_at_ns };
        Some(block)
    }

    /// Places the next unit.
    #[inline]
    pub(super) fn place(&mut self) -> Placed {
        self.place_run(1)
    }

    /// The number of units that still fit into the current page.
    #[inline]
    pub(super) fn room_in_page(&self) -> u32 {
        self.page_units - self.in_page
    }

    /// Places the next `units`, at least one and at most as many as fit into the page. They are consecutive from
    /// [`Placed::physical`] on.
    #[inline]
    pub(super) fn place_run(&mut self, units: u32) -> Placed {
        let lane = &mut self.lanes[self.turn];
        let block = lane.block;
        debug_assert_ne!(block, NONE, "a block was opened");
        let physical = block * self.block_units + lane.written;
        lane.written += units;
        self.in_page += units;
        if self.in_page < self.page_units {
            return Placed { physical, block, page_full: None, block_full: false };
        }
        self.in_page = 0;
        let page_full = Some(lane.ready_at_ns);
        let block_full = lane.written == self.written_units;
        if block_full {
            lane.block = NONE;
            self.open_on[(block % self.dies) as usize] -= 1;
        }
        self.turn = if self.turn + 1 == self.lanes.len() { 0 } else { self.turn + 1 };
        Placed { physical, block, page_full, block_full }
    }

    /// The blocks being filled.
    pub(super) fn open_blocks(&self) -> impl Iterator<Item = u32> {
        self.lanes.iter().map(|lane| lane.block).filter(|&block| block != NONE)
    }

    /// Drops all open blocks.
    pub(super) fn clear(&mut self) {
        self.lanes.iter_mut().for_each(|lane| *lane = Lane { block: NONE, written: 0, ready_at_ns: 0 });
        self.open_on.fill(0);
        self.turn = 0;
        self.in_page = 0;
    }
}
