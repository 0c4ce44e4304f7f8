//! Victim selection: which full block to clean next.
//!
//! Greedy finds the block with the fewest valid units exactly. It keeps lists only of blocks below a
//! threshold, raised when the lists run empty: under random writes most blocks are far above it, so most
//! overwrites touch a count and nothing else. Leaves out static wear levelling.

use super::blocks::{Blocks, NOT_FULL};
use super::spec::Policy;
use lowtide_core::rng::{Rng, below};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Selector {
    Greedy(CountLists),
    DChoices(u32),
    Fifo(VecDeque<u32>),
    CostBenefit { block_units: u32 },
}

impl Selector {
    pub(super) fn new(policy: Policy, blocks: u32, block_units: u32) -> Self {
        match policy {
            Policy::Greedy => Selector::Greedy(CountLists::new(blocks, block_units)),
            Policy::DChoices(d) => Selector::DChoices(d),
            Policy::Random => Selector::DChoices(1),
            Policy::Fifo => Selector::Fifo(VecDeque::new()),
            Policy::CostBenefit => Selector::CostBenefit { block_units },
        }
    }

    /// A block was filled.
    pub(super) fn filled(&mut self, block: u32, count: u32) {
        match self {
            Selector::Greedy(lists) => lists.enter(block, count),
            Selector::Fifo(queue) => queue.push_back(block),
            Selector::DChoices(_) | Selector::CostBenefit { .. } => {}
        }
    }

    /// A unit of a block became invalid; `count` as [`Blocks::remove`] gives it.
    #[inline]
    pub(super) fn lowered(&mut self, block: u32, count: u32) {
        if let Selector::Greedy(lists) = self
            && count < lists.threshold
        {
            lists.lower(block, count);
        }
    }

    /// Takes the next block to clean out of the full ones; `None` where nothing is full.
    pub(super) fn take(&mut self, blocks: &mut Blocks, rng: &mut Rng) -> Option<u32> {
        let victim = match self {
            Selector::Greedy(lists) => lists.lowest(blocks)?,
            Selector::DChoices(d) => {
                let full = blocks.full();
                let count = full.len() as u64;
                if count == 0 {
                    return None;
                }
                (0..*d).map(|_| full[below(rng, count) as usize]).min_by_key(|&block| blocks.count(block))?
            }
            Selector::Fifo(queue) => queue.pop_front()?,
            Selector::CostBenefit { block_units } => {
                let now = blocks.fills();
                let score = |block: u32| {
                    let used = f64::from(blocks.count(block)) / f64::from(*block_units);
                    let age = (now - blocks.filled_at(block)) as f64;
                    (1.0 - used) * age / (2.0 * used)
                };
                *blocks.full().iter().max_by(|&&a, &&b| score(a).total_cmp(&score(b)).then(b.cmp(&a)))?
            }
        };
        if let Selector::Greedy(lists) = self {
            lists.leave(victim, blocks.count(victim));
        }
        blocks.take_full(victim);
        Some(victim)
    }

    /// Checks the lists against the block table, for tests.
    pub(super) fn check(&self, blocks: &Blocks) {
        match self {
            Selector::Greedy(lists) => lists.check(blocks),
            Selector::Fifo(queue) => {
                assert_eq!(queue.len(), blocks.full().len(), "the queue holds the full blocks");
                assert!(queue.iter().all(|&block| blocks.is_full(block)), "the queue holds only full blocks");
                let ordered = queue.iter().zip(queue.iter().skip(1));
                assert!(
                    ordered.into_iter().all(|(&a, &b)| blocks.filled_at(a) < blocks.filled_at(b)),
                    "oldest first"
                );
            }
            Selector::DChoices(_) | Selector::CostBenefit { .. } => {}
        }
    }

    /// Forgets everything, as an erased drive does.
    pub(super) fn clear(&mut self) {
        match self {
            Selector::Greedy(lists) => lists.clear(),
            Selector::Fifo(queue) => queue.clear(),
            Selector::DChoices(_) | Selector::CostBenefit { .. } => {}
        }
    }
}

/// Doubly linked lists of the full blocks whose count is below `threshold`, one list per count.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CountLists {
    threshold: u32,
    block_units: u32,
    heads: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// No list below this one has an entry.
    lowest: u32,
}

impl CountLists {
    fn new(blocks: u32, block_units: u32) -> Self {
        CountLists {
            threshold: 0,
            block_units,
            heads: vec![NONE; block_units as usize + 1],
            next: vec![NONE; blocks as usize],
            previous: vec![NONE; blocks as usize],
            lowest: 0,
        }
    }

    fn enter(&mut self, block: u32, count: u32) {
        if count < self.threshold {
            self.link(block, count);
        }
    }

    fn leave(&mut self, block: u32, count: u32) {
        if count < self.threshold {
            self.unlink(block, count);
        }
    }

    /// `count` is the new, lower count.
    fn lower(&mut self, block: u32, count: u32) {
        self.leave(block, count + 1);
        self.link(block, count);
    }

    fn link(&mut self, block: u32, count: u32) {
        let head = self.heads[count as usize];
        self.next[block as usize] = head;
        self.previous[block as usize] = NONE;
        if head != NONE {
            self.previous[head as usize] = block;
        }
        self.heads[count as usize] = block;
        self.lowest = self.lowest.min(count);
    }

    fn unlink(&mut self, block: u32, count: u32) {
        let (next, previous) = (self.next[block as usize], self.previous[block as usize]);
        if previous == NONE {
            self.heads[count as usize] = next;
        } else {
            self.next[previous as usize] = next;
        }
        if next != NONE {
            self.previous[next as usize] = previous;
        }
    }

    fn lowest(&mut self, blocks: &Blocks) -> Option<u32> {
        loop {
            while self.lowest < self.threshold {
                let head = self.heads[self.lowest as usize];
                if head != NONE {
                    return Some(head);
                }
                self.lowest += 1;
            }
            self.raise(blocks)?;
        }
    }

    /// Lists every full block up to a little above the lowest count; `None` where nothing is full.
    fn raise(&mut self, blocks: &Blocks) -> Option<()> {
        let lowest = blocks.full().iter().map(|&block| blocks.count(block)).min()?;
        self.heads.fill(NONE);
        self.threshold = (lowest + 1 + (self.block_units / 64).max(2)).min(self.block_units + 1);
        self.lowest = lowest;
        for &block in blocks.full() {
            let count = blocks.count(block);
            debug_assert_eq!(count & NOT_FULL, 0, "counts of full blocks carry no flag");
            if count < self.threshold {
                self.link(block, count);
            }
        }
        Some(())
    }

    fn clear(&mut self) {
        self.heads.fill(NONE);
        self.threshold = 0;
        self.lowest = 0;
    }

    /// Every full block below the threshold is in the list of its count, and nothing else is listed.
    fn check(&self, blocks: &Blocks) {
        let mut listed = 0;
        for (count, &head) in self.heads.iter().enumerate() {
            let (mut block, mut previous) = (head, NONE);
            while block != NONE {
                assert!(count >= self.lowest as usize, "nothing is listed below the lowest");
                assert_eq!(blocks.count(block) as usize, count, "block {block} is in the list of its count");
                assert!(blocks.is_full(block), "block {block} is listed, so it is full");
                assert_eq!(self.previous[block as usize], previous, "block {block} is linked both ways");
                (previous, block) = (block, self.next[block as usize]);
                listed += 1;
                assert!(listed <= blocks.full().len(), "no block is listed twice");
            }
        }
        let below = blocks.full().iter().filter(|&&block| blocks.count(block) < self.threshold).count();
        assert_eq!(listed, below, "every full block below the threshold is listed");
    }
}
