//! Fuzzes the parser of traces. It must accept the trace or reject it with a message, and never panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/cli/tests/fuzz/entries.rs"]
mod entries;

fuzz_target!(|data: &[u8]| {
    entries::traced(data);
});
