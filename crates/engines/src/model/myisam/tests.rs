//! Compares the MyISAM model with analytical laws, on a device with a constant service time.

use crate::model::testing::{
    Came, SEED, assert_near, assert_repeats_with_the_mix_of_the_decks, options, run_on,
};
use crate::{Engine, Settings};
use lowtide_core::{Bytes, Nanos};

fn settings(key_cache: Bytes, given: &[(&str, &str)]) -> Settings {
    let (engine, options) = (Engine::MyisamModel, options(given));
    Settings { engine, buffer_pool: Some(key_cache), options, ..Settings::default() }
}

/// Runs with enough memory for all pages.
fn in_memory(took: Nanos, terminals: u32, seconds: usize, given: &[(&str, &str)]) -> Came {
    let given: Vec<_> = [("page-cache", "2GiB"), ("io-cpu", "0s")].iter().chain(given).copied().collect();
    run_on(took, &settings(Bytes::mib(256), &given), 10, terminals, seconds)
}

#[test]
fn in_memory_it_is_as_fast_as_its_processors_and_reads_nothing() {
    let took = Nanos::from_micros(1);
    let at = |cores: &str, terminals| {
        let came = in_memory(took, terminals, 8, &[("cores", cores), ("cpu", "2ms")]);
        assert_eq!(came.done.reads, 0, "seed {SEED}");
        came.rate()
    };
    assert_near("one of four", at("4", 1), 500.0, 0.03);
    assert_near("sixteen on one", at("1", 16), 500.0, 0.03);
    // Updates of a table are serialised, so additional processors stay idle.
    let (two, many) = (at("2", 16), at("32", 64));
    assert!(two > 1000.0 * 0.8 && two < 1000.0 * 1.03, "seed {SEED}: {two}");
    assert!(many < 16_000.0 * 0.2 && many > two, "seed {SEED}: {many}");
}

#[test]
fn no_statement_waits_for_a_slow_device_below_the_dirty_limit() {
    let slow = Nanos::from_millis(200);
    let few = in_memory(slow, 1, 60, &[("cpu", "10ms")]);
    assert_near("without a device", few.rate(), 100.0, 0.05);
    // A file is written once it has been dirty for 30 s. The kernel checks every 5 s.
    let first = few.first_write.expect("the run lasts a minute");
    assert!((30.0..=35.1).contains(&first), "seed {SEED}: {first} s");
    let alone = in_memory(slow, 1, 29, &[("cpu", "10ms")]);
    assert_eq!((alone.done.writes, alone.flushes), (0, 0), "seed {SEED}");
    // With a dirty limit of 1 % of memory, the device writes at most 4 requests of 512 KiB in 200 ms.
    let little = [("cpu", "1ms"), ("dirty-ratio", "0.01"), ("dirty-background-ratio", "0.005")];
    let full = in_memory(slow, 1, 60, &little);
    let free = in_memory(Nanos::from_micros(1), 1, 60, &little);
    assert!(full.rate() < free.rate() / 10.0, "seed {SEED}: {} and {}", full.rate(), free.rate());
    assert!(full.done.writes as f64 <= 4.0 * full.seconds / 0.2 + 4.0, "seed {SEED}: {}", full.done.writes);
}

#[test]
fn less_memory_reads_more_and_contiguous_dirty_pages_share_requests() {
    let took = Nanos::from_micros(100);
    let with = |key_cache, page_cache| {
        let given = [("cores", "4"), ("cpu", "2ms"), ("page-cache", page_cache)];
        run_on(took, &settings(key_cache, &given), 10, 8, 60)
    };
    let reads = |came: &Came| came.done.reads as f64 / came.transactions();
    let (much, some, little) =
        (with(Bytes::mib(256), "2GiB"), with(Bytes::mib(256), "300MiB"), with(Bytes::mib(256), "100MiB"));
    assert_eq!(reads(&much), 0.0, "seed {SEED}");
    assert!(
        reads(&some) > 0.5 && reads(&little) > 1.5 * reads(&some),
        "seed {SEED}: {} {}",
        reads(&some),
        reads(&little)
    );
    // Index blocks that do not fit in the key cache must be read too.
    let keys = with(Bytes::mib(4), "300MiB");
    assert!(reads(&keys) > 1.2 * reads(&some), "seed {SEED}: {} and {}", reads(&keys), reads(&some));
    // Added rows are contiguous and share requests.
    let pages = much.done.write_bytes as f64 / much.done.writes as f64 / 4096.0;
    assert!(pages > 1.2, "seed {SEED}: {pages} pages of a request");
}

#[test]
fn a_statement_that_waits_for_a_slow_device_blocks_others_from_the_table() {
    let at = |terminals| {
        let given = [("cores", "16"), ("cpu", "2ms"), ("page-cache", "100MiB")];
        run_on(Nanos::from_millis(5), &settings(Bytes::mib(64), &given), 10, terminals, 60).rate()
    };
    let (one, some, many) = (at(1), at(16), at(64));
    // The device has no limit of concurrency, so table locks are the only limit.
    assert!(some < 8.0 * one && many < 1.5 * some, "seed {SEED}: {one}, {some}, {many}");
}

#[test]
fn the_same_seed_gives_the_same_intervals_and_the_mix_is_that_of_the_decks() {
    let given = [("cores", "4"), ("cpu", "1ms"), ("page-cache", "100MiB")];
    let settings = settings(Bytes::mib(16), &given);
    let came = || run_on(Nanos::from_micros(80), &settings, 5, 20, 40);
    assert_repeats_with_the_mix_of_the_decks(&came);
}
