//! A terminal of the model: which transaction it runs, and how far it is.
//!
//! Decks and inputs are those of terminals in wall time. Leaves out keys and thoughts.

use super::ModelLoad;
use super::work::{Contents, Step, Work};
use crate::tpcc::random::{Random, RunConstants};
use crate::tpcc::{DISTRICTS, Deck, Inputs, Kind, Scale};

/// What comes when the work under way is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// A page that is not in memory.
    Fetch,
    /// The end.
    Commit,
}

/// A terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    deck: Deck,
    inputs: Inputs,
    /// Where there are fewer terminals than warehouses, each speaks for all of them.
    homes: Option<Random>,
    warehouses: u32,
    pub(super) kind: Kind,
    pub(super) work: Work,
    /// The step it is at, and how many of its locks it has.
    pub(super) at: usize,
    pub(super) locked: usize,
    pub(super) began_ns: u64,
    pub(super) next: Next,
    /// Steps of the work under way.
    pub(super) steps: u64,
}

impl Terminal {
    pub(super) fn new(load: &ModelLoad, number: u32) -> Terminal {
        let part = |name| Random::new(load.seed.part(name, u64::from(number)));
        let constants = RunConstants::of(load.seed);
        let scale = Scale::warehouses(load.warehouses);
        let home = number % load.warehouses + 1;
        let district = number / load.warehouses % DISTRICTS + 1;
        Terminal {
            deck: Deck::new(part("deck")),
            inputs: Inputs::new(&scale, home, district, constants, part("inputs")),
            homes: (load.terminals < load.warehouses).then(|| part("homes")),
            warehouses: load.warehouses,
            kind: Kind::NewOrder,
            work: Work::default(),
            at: 0,
            locked: 0,
            began_ns: 0,
            next: Next::Commit,
            steps: 0,
        }
    }

    /// Draws the next transaction.
    pub(super) fn next_transaction(&mut self, contents: &mut Contents, now_ns: u64) {
        if let Some(homes) = &mut self.homes {
            self.inputs.speak_for(homes.between(1, self.warehouses));
        }
        self.kind = self.deck.deal();
        contents.work(&self.inputs.next(self.kind), &mut self.work);
        (self.at, self.locked, self.began_ns) = (0, 0, now_ns);
    }

    /// The step it is at; `None` at the end.
    #[inline]
    pub(super) fn step(&self) -> Option<Step> {
        self.work.steps.get(self.at).copied()
    }
    /// The lock it needs next.
    pub(super) fn next_lock(&self) -> Option<u32> {
        self.work.locks.get(self.locked).copied().flatten()
    }
}
