//! A terminal of a model: which transaction it asks for next.
//!
//! Decks and inputs are those of terminals in wall time. Leaves out keys and thoughts, and what an engine does for a transaction.

use super::ModelLoad;
use crate::tpcc::random::{Random, RunConstants};
use crate::tpcc::{DISTRICTS, Deck, Inputs, Kind, Scale, Transaction};

/// A terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    deck: Deck,
    inputs: Inputs,
    /// Where there are fewer terminals than warehouses, each speaks for all of them.
    homes: Option<Random>,
    warehouses: u32,
    /// What it asks for, and since when.
    pub(super) kind: Kind,
    pub(super) began_ns: u64,
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
            began_ns: 0,
        }
    }

    /// Draws the next transaction.
    pub(super) fn next_transaction(&mut self, now_ns: u64) -> Transaction {
        if let Some(homes) = &mut self.homes {
            self.inputs.speak_for(homes.between(1, self.warehouses));
        }
        self.kind = self.deck.deal();
        self.began_ns = now_ns;
        self.inputs.next(self.kind)
    }
}
