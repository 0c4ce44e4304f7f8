//! `[repeat]`: the number of repetitions of each cell, their order, and the condition that ends them early.
//!
//! Module `plan` orders the cells.

use super::read::{Entry, Table};
use super::schema;
use super::track::{self, Track};
use super::words::words;
use serde::{Deserialize, Serialize};

words! {
    /// The order of the cells.
    Order, "order";
    /// All repetitions of a cell, then the next cell.
    AsWritten = "as-written",
    /// All cells and repetitions in an order drawn from the seed.
    Shuffled = "shuffled",
    /// Every cell once, then every cell again.
    Interleaved = "interleaved",
}

/// The most repetitions. A larger number is probably a typing error.
const MOST_TIMES: u32 = 10_000;

/// The repetitions of the cells of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// Measurements of each cell, at least one; the maximum if a value is tracked.
    pub times: u32,
    /// The order of the cells of a step.
    pub order: Order,
    /// The seed of every random choice of a campaign, unless the command line gives a seed.
    pub seed: u64,
    /// The value that ends the repetitions, which are then rounds, as soon as it is steady.
    pub track: Option<Track>,
}

impl Default for Repeat {
    fn default() -> Self {
        Repeat { times: 1, order: Order::AsWritten, seed: 1, track: None }
    }
}

/// Reads `[repeat]`, or the `repeat` of a step. Its keys replace the fields of `repeat`.
pub(super) fn read(table: &Table<'_>, mut repeat: Repeat) -> Repeat {
    table.only(&schema::REPEAT);
    table.update("times", &mut repeat.times, |entry| entry.count_up_to(MOST_TIMES, "repetitions"));
    if let Some(track) = table.get("track").and_then(|entry| track::read(&entry)) {
        repeat.track = Some(track);
        repeat.order = Order::Interleaved;
    }
    table.update("order", &mut repeat.order, Entry::word);
    table.update("seed", &mut repeat.seed, |entry| {
        let seed = u64::try_from(entry.integer()?);
        seed.ok().or_else(|| entry.refuse("a seed below 0", "a whole number from 0"))
    });
    repeat
}
