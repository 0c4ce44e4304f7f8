//! What both caches hold after the engine was at work for a while, without the time that takes.
//!
//! Transactions run without a device or a processor until as many pages left each cache as it holds. Leaves out what is dirty:
//! nothing is, as after a `sync`.

use super::cache::{Cache, Found};
use super::contents::Contents;
use super::engine::Session;
use super::layout::BLOCKS_PER_PAGE;
use super::statement::{Act, Step};

/// Transactions at most.
const MOST: u64 = 4_000_000;
/// Transactions at least, so that the mean number of steps is known.
const LEAST: u64 = 20_000;

/// Warms both caches; steps of a transaction on average.
pub(super) fn warm(
    keys: &mut Cache,
    pages: &mut Cache,
    contents: &mut Contents,
    sessions: &mut [Session],
) -> f64 {
    let layout = contents.layout();
    let blocks = layout.blocks();
    let all_keys = fill(keys, blocks.clone().count() as u64, blocks);
    let all_pages = fill(pages, u64::from(layout.pages()), 0..layout.pages());
    let (mut transactions, mut steps) = (0, 0);
    let is_new = |cache: &Cache, all: bool| !all && cache.evictions() < u64::from(cache.size());
    while transactions < LEAST
        || (transactions < MOST && (is_new(keys, all_keys) || is_new(pages, all_pages)))
    {
        let number = (transactions % sessions.len() as u64) as usize;
        let session = &mut sessions[number];
        session.next_transaction(contents, 0);
        for step in &session.work.steps {
            if step.act == Act::Write {
                contents.write(step.place);
            }
            take(keys, pages, *step);
        }
        transactions += 1;
        steps += session.work.steps.len() as u64;
    }
    steps as f64 / transactions as f64
}

/// Some from all over, as many as there is room for; whether that is all.
fn fill(cache: &mut Cache, count: u64, all: impl Iterator<Item = u32>) -> bool {
    let room = u64::from(cache.size());
    for (n, page) in (0..count).zip(all) {
        // Every so manieth.
        if count <= room || n * room / count != (n + 1) * room / count {
            cache.take(page, false);
        }
    }
    count < room
}

/// Does a step with what is in memory, and what is not.
fn take(keys: &mut Cache, pages: &mut Cache, step: Step) {
    match step.act {
        Act::Key | Act::NewKey => {
            if !touch(keys, step.place) {
                touch(pages, step.place / BLOCKS_PER_PAGE);
            }
        }
        Act::Read => (step.place..step.place + u32::from(step.count)).for_each(|page| {
            touch(pages, page);
        }),
        Act::Write => {
            touch(pages, step.place);
        }
    }
}

/// Uses what is there, or comes; whether it was there.
fn touch(cache: &mut Cache, page: u32) -> bool {
    let here = cache.find(page) != Found::Missing;
    if !here {
        cache.take(page, false);
    }
    if let Found::Here(frame) = cache.find(page) {
        cache.touch(frame);
    }
    here
}
