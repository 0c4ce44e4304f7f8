//! Fuzzes the reader of campaign parts with two parts in sequence. It must accept each part or reject it with a
//! message, and never panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/cli/tests/fuzz/entries.rs"]
mod entries;

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let (first, second) = data.split_at(data.len() / 2);
    let parts = [("f.db", first), ("g.db", second)].map(|(name, bytes)| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("the folder can be written");
        path
    });
    entries::merged(&parts, &folder.path().join("out.db"));
});
