//! Compares the InnoDB model with analytical laws, on a device with a constant service time.

use super::{PAGE, cleaning, layout};
use crate::model::testing::{SEED, assert_near, assert_repeats_with_the_mix_of_the_decks, options, run_on};
use crate::tpcc::Kind;
use crate::{Durability, Engine, Settings};
use lowtide_core::{Bytes, Nanos};

fn settings(pool: Bytes, given: &[(&str, &str)]) -> Settings {
    Settings {
        engine: Engine::InnodbModel,
        buffer_pool: Some(pool),
        durability: Some(Durability::None),
        log_size: Some(Bytes::gib(4)),
        options: options(given),
        ..Settings::default()
    }
}

#[test]
fn in_memory_the_rate_follows_the_processors_and_the_law_of_contention() {
    let took = Nanos::from_micros(1);
    let at = |cores: &str, contention: &str, terminals| {
        let options = [("cores", cores), ("cpu", "500us"), ("contention", contention)];
        run_on(took, &settings(Bytes::gib(2), &options), 40, terminals, 8).rate()
    };
    assert_near("one of four", at("4", "0", 1), 2_000.0, 0.03);
    assert_near("sixteen on four", at("4", "0", 16), 8_000.0, 0.03);
    // N / (t (1 + s (N − 1))): Gunther's law, with a serial share only.
    assert_near("eight that contend", at("16", "0.05", 8), 8.0 / (500e-6 * 1.35), 0.05);
}

#[test]
fn the_pool_latch_bounds_the_rate_whatever_the_number_of_processors() {
    let took = Nanos::from_micros(50);
    let at = |pool, lock: &str, look: &str| {
        let options = [
            ("cores", "64"),
            ("cpu", "500us"),
            ("io-cpu", "0s"),
            ("pool-lock", lock),
            ("look", look),
            ("cleaner", "master"),
        ];
        let mut settings = settings(pool, &options);
        settings.flush_neighbours = Some(false);
        settings.io_capacity = Some(100_000);
        run_on(took, &settings, 40, 64, 8)
    };
    // With all pages in memory, the latch is the only bottleneck.
    assert_near("the lock alone", at(Bytes::gib(8), "400us", "0s").rate(), 2_500.0, 0.03);
    // Each read adds a scan of 133 frames. LRU flushes add further scans.
    let reads = at(Bytes::mib(512), "400us", "1us");
    let scanned = reads.done.reads as f64 / reads.transactions() * 133.0;
    let bound = 1e6 / (400.0 + scanned);
    assert!(scanned > 133.0, "seed {SEED}: {scanned} scanned");
    let rate = reads.rate();
    assert!(rate < bound * 1.03 && rate > bound * 0.5, "seed {SEED}: {rate}, at most {bound}");
}

#[test]
fn durable_commits_wait_for_the_log_and_share_its_writes() {
    let took = Nanos::from_millis(2);
    let with = |journal| {
        let options = [("cores", "16"), ("cpu", "100us"), ("journal", journal)];
        Settings { durability: Some(Durability::Full), ..settings(Bytes::gib(4), &options) }
    };
    let durable = with("off");
    let alone = run_on(took, &durable, 40, 1, 20);
    // One write and one flush per transaction, except for the 8 % read-only transactions and the rollbacks.
    let writers = 0.92 * (1.0 - 0.45 * 0.01 / 0.92);
    assert_near("alone", alone.rate(), 1.0 / (writers * 4e-3 + 100e-6), 0.05);
    // A journal commit adds two writes.
    let journaled = run_on(took, &with("on"), 40, 1, 20);
    assert_near("journaled", journaled.rate(), 1.0 / (writers * 8e-3 + 100e-6), 0.05);
    let many = run_on(took, &durable, 40, 64, 20);
    // Commits that arrive during a write and a flush share the next write. Each commit waits for at most two writes
    // and flushes.
    assert!(many.rate() > 64.0 / 9.2e-3 && many.rate() < 64.0 / 3.4e-3, "seed {SEED}: {}", many.rate());
    let flushes = many.flushes as f64 / many.seconds;
    // At most 250 flushes per second for the log, plus flushes for pages.
    assert!(flushes < 450.0, "seed {SEED}: {flushes} flushes a second for {} transactions", many.rate());
}

#[test]
fn a_log_that_no_commit_waits_for_is_flushed_once_a_second() {
    // Only the log is written: all pages fit in memory, and the log has free space.
    let options = [("cores", "16"), ("cpu", "5ms"), ("cleaner", "master")];
    for durability in [Durability::Second, Durability::None] {
        let relaxed = Settings {
            durability: Some(durability),
            io_capacity: Some(0),
            ..settings(Bytes::gib(2), &options)
        };
        let came = run_on(Nanos::from_micros(100), &relaxed, 5, 4, 20);
        assert!((18..=20).contains(&came.flushes), "seed {SEED}, {durability}: {} flushes", came.flushes);
    }
}

#[test]
fn less_memory_reads_more_and_every_dirty_page_is_written_twice() {
    let took = Nanos::from_micros(100);
    let options = [("cores", "16"), ("cpu", "1ms")];
    let reads = |pool| {
        let came = run_on(took, &settings(pool, &options), 10, 16, 20);
        came.done.reads as f64 / came.transactions()
    };
    let (none, some, many) = (reads(Bytes::gib(2)), reads(Bytes::mib(400)), reads(Bytes::mib(64)));
    assert!(none < 0.01 && some > 0.3 && many > 2.0 * some, "seed {SEED}: {none}, {some}, {many}");
    let with = |doublewrite| {
        let settings = Settings { doublewrite: Some(doublewrite), ..settings(Bytes::mib(64), &options) };
        run_on(took, &settings, 10, 16, 20)
    };
    // Bytes written to the doublewrite buffer, and bytes written to pages.
    let written = |doublewrite| {
        let came = with(doublewrite);
        let bytes = |is: &dyn Fn(u32) -> bool| -> u64 {
            let of = |&&(place, _): &&(u64, u64)| is((place / PAGE) as layout::Page);
            came.written.iter().filter(of).map(|(_, bytes)| bytes).sum()
        };
        (bytes(&|page| page < layout::DOUBLEWRITE), bytes(&|page| page >= layout::DOUBLEWRITE))
    };
    let ((twice, pages), (once, _)) = (written(true), written(false));
    // The two are equal, except that the pages of the last batch may not have been written.
    let batch = cleaning::BATCH as u64 * PAGE;
    assert!(pages > 100 * batch, "seed {SEED}: hardly anything was written");
    assert!(
        (pages..=pages + batch).contains(&twice),
        "seed {SEED}: {pages} bytes of pages, {twice} of them twice"
    );
    assert_eq!(once, 0, "seed {SEED}");
}

#[test]
fn a_full_log_stalls_transactions_until_pages_are_flushed() {
    let options = [("cores", "16"), ("cpu", "100us"), ("write-threads", "1")];
    let small = Settings { log_size: Some(Bytes::mib(16)), ..settings(Bytes::gib(2), &options) };
    let took = Nanos::from_millis(5);
    let came = run_on(took, &small, 10, 16, 60);
    let ample = run_on(took, &settings(Bytes::gib(2), &options), 10, 16, 60);
    assert!(came.rate() < ample.rate() / 3.0, "seed {SEED}: {} and {}", came.rate(), ample.rate());
    assert!(came.intervals.iter().all(|it| it.kinds[Kind::NewOrder as usize].committed < 100_000));
}

#[test]
fn the_same_seed_gives_the_same_intervals_and_the_mix_is_that_of_the_decks() {
    let options = [("cores", "4"), ("cpu", "300us")];
    let settings = settings(Bytes::mib(64), &options);
    let came = || run_on(Nanos::from_micros(80), &settings, 5, 20, 10);
    assert_repeats_with_the_mix_of_the_decks(&came);
}
