//! Fuzzes the parser of fio's JSON output. It must accept the output or reject it with a message, and never panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/cli/tests/fuzz/entries.rs"]
mod entries;

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let input = folder.path().join("f.json");
    std::fs::write(&input, data).expect("the folder can be written");
    entries::imported(&input, &folder.path().join("out.db"));
});
