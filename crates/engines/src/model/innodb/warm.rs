//! Warm-up of the buffer pool, to the state after the engine has run for a while.
//!
//! Transactions run until as many pages have been evicted as the pool has frames. Afterwards no page is dirty, as
//! after a start of the server.

use super::pool::Pool;
use super::session::Session;
use super::work::{Act, Contents};
use crate::model::frames::Lookup;
use crate::model::warm::warm_up;

/// Warms the pool. Returns the mean number of steps of a transaction.
pub(super) fn warm(pool: &mut Pool, contents: &mut Contents, terminals: &mut [Session]) -> f64 {
    fill(pool, contents.loaded());
    let all_fits = pool.free() > 0;
    let mut evictions = 0;
    warm_up(terminals, |terminal, number| {
        terminal.next_transaction(contents, 0);
        for step in &terminal.work.steps {
            // For the LRU times, assume that a transaction takes a millisecond.
            evictions += u64::from(use_page(pool, step.page, step.act, number as u32));
        }
        (terminal.work.steps.len(), all_fits || evictions >= u64::from(pool.size()))
    })
}

/// Fills the pool with evenly spaced pages of the file.
fn fill(pool: &mut Pool, pages: u32) {
    let count = pool.size().min(pages);
    for n in 0..u64::from(count) {
        let page = (n * u64::from(pages) / u64::from(count)) as u32;
        if let Some(frame) = pool.take(page, true) {
            pool.arrived(frame, 0);
        }
    }
}

/// Uses a page. Returns true if the use evicted another page.
fn use_page(pool: &mut Pool, page: u32, act: Act, now_ms: u32) -> bool {
    match pool.find(page) {
        Lookup::Resident(frame) | Lookup::Reading(frame) => {
            pool.touch(frame, now_ms);
            false
        }
        Lookup::Absent if act == Act::Add => false,
        Lookup::Absent => {
            let full = pool.free() == 0;
            if full && let Some(tail) = pool.lru_tail() {
                pool.evict(tail);
            }
            let frame = pool.take(page, act != Act::Create).expect("a frame is free or was freed");
            if act != Act::Create {
                pool.arrived(frame, now_ms);
            }
            full
        }
    }
}
