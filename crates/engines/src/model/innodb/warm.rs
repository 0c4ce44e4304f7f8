//! What a pool holds after the engine was at work for a while, without the time that takes.
//!
//! Transactions run without a device, a processor or changes, until as many pages were evicted as there are frames. Leaves out which
//! pages are changed: none is, as after a start of the server.

use super::pool::{Found, Pool};
use super::session::Session;
use super::work::{Act, Contents};

/// Transactions at most.
const MOST: u64 = 4_000_000;
/// Transactions at least, so that the mean number of steps is known.
const LEAST: u64 = 20_000;

/// Warms a pool; steps of a transaction on average.
pub(super) fn warm(pool: &mut Pool, contents: &mut Contents, terminals: &mut [Session]) -> f64 {
    fill(pool, contents.loaded());
    let (mut transactions, mut steps, mut evictions) = (0, 0, 0);
    let all_fits = pool.free() > 0;
    while transactions < LEAST || (!all_fits && transactions < MOST && evictions < u64::from(pool.size())) {
        // A millisecond for each.
        let now_ms = transactions as u32;
        let number = (transactions % terminals.len() as u64) as usize;
        let terminal = &mut terminals[number];
        terminal.next_transaction(contents, 0);
        for step in &terminal.work.steps {
            evictions += u64::from(use_page(pool, step.page, step.act, now_ms));
        }
        transactions += 1;
        steps += terminal.work.steps.len() as u64;
    }
    steps as f64 / transactions as f64
}

/// Pages from all over the file, as many as there is room for.
fn fill(pool: &mut Pool, pages: u32) {
    let count = pool.size().min(pages);
    for n in 0..u64::from(count) {
        let page = (n * u64::from(pages) / u64::from(count)) as u32;
        if let Some(frame) = pool.take(page, true) {
            pool.arrived(frame, 0);
        }
    }
}

/// Uses a page; whether another was evicted for it.
fn use_page(pool: &mut Pool, page: u32, act: Act, now_ms: u32) -> bool {
    match pool.find(page) {
        Found::Here(frame) | Found::Coming(frame) => {
            pool.touch(frame, now_ms);
            false
        }
        Found::Missing if act == Act::Add => false,
        Found::Missing => {
            let full = pool.free() == 0;
            if full && let Some(last) = pool.least_used() {
                pool.evict(last);
            }
            let frame = pool.take(page, act != Act::Make).expect("one is free, or was freed");
            if act != Act::Make {
                pool.arrived(frame, now_ms);
            }
            full
        }
    }
}
