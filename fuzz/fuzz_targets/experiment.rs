//! Fuzzes an experiment: it is read to its end or refused with a message; nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/cli/tests/fuzz/entries.rs"]
mod entries;

fuzz_target!(|data: &[u8]| {
    entries::experiment(data, &[]);
});
