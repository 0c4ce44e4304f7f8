//! `track` in `[repeat]`: the value that ends the rounds of a step when it is steady.
//!
//! A round is one repetition of all points of a step. The rule is `analysis::Snia`; module `rounds` applies it.

use super::error::Problems;
use super::finding::Of;
use super::read::Entry;
use super::repeat::Order;
use super::schema;
use super::selection::{self, Selection};
use super::step::Step;
use lowtide_core::Nanos;
use lowtide_record::analysis::Snia;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The value that is tracked from round to round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Track {
    /// The tracked quantity.
    pub of: Of,
    /// The tracked points. Every tracked point must be steady.
    pub cells: Selection,
    /// Only the beginning of each cell counts, of this length; `None` for the entire cell.
    pub first: Option<Nanos>,
}

/// Reads `track`.
pub(super) fn read(entry: &Entry<'_>) -> Option<Track> {
    let table = entry.table()?;
    table.only(&schema::TRACK);
    let of = table.require("of", "\"iops\"").and_then(|entry| {
        let of: Of = entry.word()?;
        if of.percentile().is_some() || matches!(of, Of::WriteAmplification | Of::LayerAmplification) {
            let fault = format!("`{of}` is not tracked from round to round");
            return entry.refuse(fault, "`throughput`, `iops` or `mean-latency`");
        }
        Some(of)
    });
    let first = table.get("first").and_then(|entry| entry.some_time());
    let cells = selection::read(table.get("where"), Some(None));
    Some(Track { of: of?, cells: cells?, first })
}

/// Records settings with which rounds cannot work: a tracked point that the step does not have, too few rounds, an
/// order without rounds, and a preparation that would erase the history of earlier rounds.
pub(super) fn check(problems: &Problems<'_>, steps: &[Step]) {
    for (index, step) in steps.iter().enumerate() {
        let Some(track) = &step.repeat.track else { continue };
        let place = |key: &str| -> Range<usize> {
            [format!("step.{index}.repeat.{key}"), format!("repeat.{key}")]
                .iter()
                .find_map(|path| problems.document.place(path))
                .map_or(0..0, |place| place.value.clone())
        };
        let rounds = Snia::default().rounds;
        if (step.repeat.times as usize) < rounds {
            let message = format!("`track` with {} rounds", step.repeat.times);
            let help = format!("`times` of at least {rounds}: the rule looks at so many rounds");
            problems.add(place("track"), message, "could never be steady", help);
        }
        if step.repeat.order != Order::Interleaved {
            let message = format!("`track` with the order `{}`, which has no rounds", step.repeat.order);
            problems.add(place("order"), message, "here", "write `order = \"interleaved\"`, or remove it");
        }
        if !step.points().any(|point| track.cells.includes(step, &point, 1)) {
            let message = "`track` selects no point of the sweep";
            let help = "the levels of one point, such as `where = { mix = 0.0, block = \"4KiB\" }`";
            problems.add(place("track"), message, "here", help);
        }
        if step.preparation.forgets_history() {
            let at =
                problems.document.place("before-each-cell.purge").map_or(0..0, |place| place.value.clone());
            let message = "each cell is purged, but rounds need the history of earlier rounds";
            problems.add(at, message, "here", "remove it; purge once with `purge-before` in a [[step]]");
        }
    }
}
