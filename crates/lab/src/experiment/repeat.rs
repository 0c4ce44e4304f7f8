//! `[repeat]`: how often each cell is measured, in which order, and what ends it earlier.
//!
//! Not here: ordering the cells; the stage `plan` does that.

use super::error::Problems;
use super::read::Table;
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

/// More repetitions than these are a slip of the keyboard.
const MOST_TIMES: u32 = 10_000;

/// How often, and in which order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// Measurements of each cell, at least one; where something is tracked, the most.
    pub times: u32,
    /// The order of the cells of a step.
    pub order: Order,
    /// The seed that every random choice of a campaign comes from, unless the command line gives one.
    pub seed: u64,
    /// What ends the repetitions, which are then rounds, as soon as it is steady.
    pub track: Option<Track>,
}

impl Default for Repeat {
    fn default() -> Self {
        Repeat { times: 1, order: Order::AsWritten, seed: 1, track: None }
    }
}

/// Reads `[repeat]`, or the `repeat` of a step: the keys that it holds take the place of those of `base`.
pub(super) fn read(table: &Table<'_>, base: Repeat, problems: &mut Problems<'_>) -> Repeat {
    table.only(&schema::REPEAT, problems);
    let mut repeat = base;
    if let Some(entry) = table.get("times") {
        match entry.count(problems) {
            Some(times) if times > MOST_TIMES => {
                entry.refuse::<()>(
                    format!("{times} repetitions"),
                    format!("from 1 to {MOST_TIMES}"),
                    problems,
                );
            }
            Some(times) => repeat.times = times,
            None => {}
        }
    }
    if let Some(track) = table.get("track").and_then(|entry| track::read(&entry, problems)) {
        repeat.track = Some(track);
        repeat.order = Order::Interleaved;
    }
    if let Some(order) = table.get("order").and_then(|entry| entry.word(problems)) {
        repeat.order = order;
    }
    if let Some(entry) = table.get("seed") {
        match entry.integer(problems).map(u64::try_from) {
            Some(Ok(seed)) => repeat.seed = seed,
            Some(Err(_)) => {
                entry.refuse::<()>("a seed below 0", "a whole number from 0", problems);
            }
            None => {}
        }
    }
    repeat
}
