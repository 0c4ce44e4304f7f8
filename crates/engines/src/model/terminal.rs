//! A terminal of a model: the sequence of its transactions.
//!
//! Decks and inputs are identical to those of terminals on real databases.
//!
//! # Not modelled
//!
//! Keying and think times.

use super::ModelLoad;
use crate::tpcc::random::{Random, RunConstants};
use crate::tpcc::{Deck, Homes, Inputs, Kind, Scale, Transaction};

/// A terminal, with its current transaction.
#[derive(Debug)]
pub(super) struct Terminal {
    deck: Deck,
    inputs: Inputs,
    homes: Homes,
    speakers: Random,
    /// Kind and start of the current transaction.
    pub(super) kind: Kind,
    pub(super) began_ns: u64,
}

impl Terminal {
    pub(super) fn new(load: &ModelLoad, number: u32) -> Terminal {
        let part = |name| Random::new(load.seed.part(name, u64::from(number)));
        let constants = RunConstants::of(load.seed);
        let scale = Scale::warehouses(load.warehouses);
        let homes = Homes::of(1, load.warehouses, number, load.terminals);
        Terminal {
            deck: Deck::new(part("deck")),
            inputs: Inputs::new(&scale, homes.first(), constants, part("inputs")),
            homes,
            speakers: part("speakers"),
            kind: Kind::NewOrder,
            began_ns: 0,
        }
    }

    /// Draws the next transaction.
    pub(super) fn next_transaction(&mut self, now_ns: u64) -> Transaction {
        self.inputs.speak_for(self.homes.draw(&mut self.speakers));
        self.kind = self.deck.deal();
        self.began_ns = now_ns;
        self.inputs.next(self.kind)
    }
}
