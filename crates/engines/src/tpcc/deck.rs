//! The mix of transactions (clause 5.2.4), as a deck of cards. The deck is shuffled, dealt to its end, and shuffled
//! again.
//!
//! The mix is exact after every hundred transactions of a terminal, so runs differ only in the order of transactions.

use crate::tpcc::Kind;
use crate::tpcc::random::Random;

/// Cards of each kind in a deck, in the order of [`Kind::ALL`]: the minimum of each kind by clause 5.2.3. New-Orders
/// fill the deck to a hundred cards.
pub const CARDS: [u32; Kind::ALL.len()] = [45, 43, 4, 4, 4];

/// A terminal's deck.
#[derive(Debug, Clone)]
pub struct Deck {
    cards: Vec<Kind>,
    dealt: usize,
    random: Random,
}

impl Deck {
    /// Creates a deck that is shuffled with `random`.
    pub fn new(random: Random) -> Self {
        let cards: Vec<Kind> = Kind::ALL
            .into_iter()
            .zip(CARDS)
            .flat_map(|(kind, cards)| std::iter::repeat_n(kind, cards as usize))
            .collect();
        Deck { dealt: cards.len(), cards, random }
    }
    /// Deals the next card.
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
    fn every_deck_has_the_exact_mix_in_a_new_order() {
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
