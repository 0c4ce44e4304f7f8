//! Fuzzes the parser of price lists. It must accept the list or reject it with a message, and never panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/cli/tests/fuzz/entries.rs"]
mod entries;

fuzz_target!(|data: &[u8]| {
    entries::prices(data, data.len() % 2 == 0);
});
