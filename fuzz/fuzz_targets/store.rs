//! Fuzzes the reader of stores. It must accept the store or reject it with a message, and never panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/cli/tests/fuzz/entries.rs"]
mod entries;

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let input = folder.path().join("f.db");
    std::fs::write(&input, data).expect("the folder can be written");
    entries::stored(&input);
});
