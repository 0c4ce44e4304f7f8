//! Warm-up of the key cache and the page cache, to the state after the engine has run for a while.
//!
//! Transactions run until each cache has evicted as many pages as it has frames. Afterwards no page is dirty, as
//! after `sync`.

use super::cache::Cache;
use super::contents::Contents;
use super::engine::Session;
use super::layout::BLOCKS_PER_PAGE;
use super::statement::{Act, Step};
use crate::model::frames::Lookup;
use crate::model::warm::warm_up;

/// Warms both caches. Returns the mean number of steps of a transaction.
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
    let is_warm = |cache: &Cache, all: bool| all || cache.evictions() >= u64::from(cache.size());
    warm_up(sessions, |session, _| {
        session.next_transaction(contents, 0);
        for step in &session.work.steps {
            if step.act == Act::Write {
                contents.write(step.place);
            }
            take(keys, pages, *step);
        }
        (session.work.steps.len(), is_warm(keys, all_keys) && is_warm(pages, all_pages))
    })
}

/// Fills a cache with evenly spaced pages. Returns true if all pages fit.
fn fill(cache: &mut Cache, count: u64, all: impl Iterator<Item = u32>) -> bool {
    let room = u64::from(cache.size());
    for (n, page) in (0..count).zip(all) {
        if count <= room || n * room / count != (n + 1) * room / count {
            cache.take(page, false);
        }
    }
    count < room
}

/// Runs a step. Absent pages are read immediately.
fn take(keys: &mut Cache, pages: &mut Cache, step: Step) {
    match step.act {
        Act::Key | Act::NewKey => {
            if !touch(keys, step.place) {
                touch(pages, step.place / BLOCKS_PER_PAGE);
            }
        }
        Act::Read | Act::Write => (step.place..step.place + u32::from(step.count)).for_each(|page| {
            touch(pages, page);
        }),
    }
}

/// Uses a page. Returns true if the page was in memory.
fn touch(cache: &mut Cache, page: u32) -> bool {
    let absent = cache.find(page) == Lookup::Absent;
    if absent {
        cache.take(page, false);
    }
    if let Lookup::Resident(frame) = cache.find(page) {
        cache.touch(frame);
    }
    !absent
}
