//! Which transaction comes next (clause 5.2.4): a deck of cards, shuffled, dealt to its end, and shuffled again.
//!
//! After every hundred transactions of a terminal the mix is exact, so runs differ by nothing but the order. Leaves out
//! their inputs.

use crate::tpcc::Kind;
use crate::tpcc::random::Random;

/// Cards of each kind in a deck, in the order of [`Kind::ALL`]: the least of each that clause 5.2.3 allows, and the rest
/// New-Orders.
pub const CARDS: [u32; Kind::ALL.len()] = [45, 43, 4, 4, 4];

/// A terminal's deck.
#[derive(Debug, Clone)]
pub struct Deck {
    cards: Vec<Kind>,
    dealt: usize,
    random: Random,
}

impl Deck {
    /// A new deck, which `random` shuffles.
    pub fn new(random: Random) -> Self {
        let cards: Vec<Kind> = Kind::ALL
            .into_iter()
            .zip(CARDS)
            .flat_map(|(kind, cards)| std::iter::repeat_n(kind, cards as usize))
            .collect();
        Deck { dealt: cards.len(), cards, random }
    }
    /// The next card.
    pub fn deal(&mut self) -> Kind {
        if self.dealt == self.cards.len() {
            self.random.shuffle(&mut self.cards);
            self.dealt = 0;
        }
        self.dealt += 1;
        self.cards[self.dealt - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;

    #[test]
    fn every_deck_has_the_mix_and_an_order_of_its_own() {
        let seed = 3;
        let mut deck = Deck::new(Random::new(Seed::new(seed)));
        let mut hands: Vec<Vec<Kind>> = Vec::new();
        for _ in 0..20 {
            let hand: Vec<Kind> = (0..100).map(|_| deck.deal()).collect();
            let counts = Kind::ALL.map(|kind| hand.iter().filter(|card| **card == kind).count());
            assert_eq!(counts, [45, 43, 4, 4, 4], "seed {seed}");
            assert!(!hands.contains(&hand), "seed {seed}: a hand came twice");
            hands.push(hand);
        }
    }
}
