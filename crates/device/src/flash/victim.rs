//! Victim selection: the next full block to clean.
//!
//! Greedy finds the block with the fewest valid units exactly. It lists only blocks below a threshold, which it raises when
//! the lists are empty. Under random writes most blocks are far above the threshold, so most overwrites change a count only.
//!
//! # Not modelled
//! Static wear levelling.

use super::blocks::{Blocks, NOT_FULL};
use super::spec::Policy;
use lowtide_core::rng::{Rng, below};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Selector {
    Greedy(CountLists),
    DChoices(u32),
    Fifo(VecDeque<u32>),
    CostBenefit { block_units: u32 },
}

impl Selector {
    pub(super) fn new(policy: Policy, block_units: u32) -> Self {
        match policy {
            Policy::Greedy => Selector::Greedy(CountLists::new(block_units)),
            Policy::DChoices(d) => Selector::DChoices(d),
            Policy::Random => Selector::DChoices(1),
            Policy::Fifo => Selector::Fifo(VecDeque::new()),
            Policy::CostBenefit => Selector::CostBenefit { block_units },
        }
    }

    /// Adds a block that has become full.
    pub(super) fn filled(&mut self, block: u32, count: u32) {
        match self {
            Selector::Greedy(lists) => lists.reached(block, count),
            Selector::Fifo(queue) => queue.push_back(block),
            Selector::DChoices(_) | Selector::CostBenefit { .. } => {}
        }
    }

    /// Updates a block of which a unit became invalid. `count` is the result of [`Blocks::remove`].
    #[inline]
    pub(super) fn lowered(&mut self, block: u32, count: u32) {
        if let Selector::Greedy(lists) = self {
            lists.reached(block, count);
        }
    }

    /// Removes the next block to clean from the full blocks; `None` if no block is full.
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

    /// Clears everything, for a secure erase.
    pub(super) fn clear(&mut self) {
        match self {
            Selector::Greedy(lists) => lists.clear(),
            Selector::Fifo(queue) => queue.clear(),
            Selector::DChoices(_) | Selector::CostBenefit { .. } => {}
        }
    }
}

/// The full blocks with counts below `threshold`: a list for each count, in the order in which blocks reached it.
///
/// The victim is the block that reached the lowest count last. An entry stays in its list when its block reaches a lower
/// count or is cleaned. An entry is void if its block has another count. A block that reaches a count again gets a newer
/// entry above the void one, so that the newest entry of a block is the valid one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CountLists {
    threshold: u32,
    block_units: u32,
    lists: Vec<Vec<u32>>,
    /// Lists below this one have no valid entries.
    lowest: u32,
}

impl CountLists {
    fn new(block_units: u32) -> Self {
        CountLists { threshold: 0, block_units, lists: vec![Vec::new(); block_units as usize + 1], lowest: 0 }
    }

    /// Adds an entry for `block`, which now has `count` valid units.
    #[inline]
    fn reached(&mut self, block: u32, count: u32) {
        if count < self.threshold {
            self.lists[count as usize].push(block);
            self.lowest = self.lowest.min(count);
        }
    }

    fn lowest(&mut self, blocks: &Blocks) -> Option<u32> {
        loop {
            while self.lowest < self.threshold {
                let list = &mut self.lists[self.lowest as usize];
                while let Some(&block) = list.last() {
                    if blocks.is_full_with(block, self.lowest) {
                        self.forget_void(blocks);
                        return Some(block);
                    }
                    list.pop();
                }
                self.lowest += 1;
            }
            self.raise(blocks)?;
        }
    }

    /// Drops the void entries of lists that have become long.
    fn forget_void(&mut self, blocks: &Blocks) {
        let long = 2 * blocks.len() as usize + 64;
        for count in self.lowest..self.threshold {
            let list = &mut self.lists[count as usize];
            if list.len() > long {
                let mut seen = vec![false; blocks.len() as usize];
                list.reverse();
                list.retain(|&block| {
                    blocks.is_full_with(block, count) && !std::mem::replace(&mut seen[block as usize], true)
                });
                list.reverse();
            }
        }
    }

    /// Lists every full block up to a little above the lowest count; `None` if no block is full.
    fn raise(&mut self, blocks: &Blocks) -> Option<()> {
        let lowest = blocks.full().iter().map(|&block| blocks.count(block)).min()?;
        self.clear();
        self.threshold = (lowest + 1 + (self.block_units / 64).max(2)).min(self.block_units + 1);
        self.lowest = lowest;
        for &block in blocks.full() {
            let count = blocks.count(block);
            debug_assert_eq!(count & NOT_FULL, 0, "counts of full blocks carry no flag");
            self.reached(block, count);
        }
        Some(())
    }

    fn clear(&mut self) {
        self.lists.iter_mut().for_each(Vec::clear);
        self.threshold = 0;
        self.lowest = 0;
    }

    /// Checks that every full block below the threshold has an entry in the list of its count.
    fn check(&self, blocks: &Blocks) {
        for (count, list) in self.lists.iter().enumerate() {
            let holds = list.iter().any(|&block| blocks.is_full_with(block, count as u32));
            assert!(!holds || count >= self.lowest as usize, "nothing is listed below the lowest");
        }
        for &block in blocks.full() {
            let count = blocks.count(block);
            let listed = count >= self.threshold || self.lists[count as usize].contains(&block);
            assert!(listed, "block {block} is in the list of its count");
        }
    }
}
