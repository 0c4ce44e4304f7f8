//! Fuzzes the input of `lowtide fit`: a table of levels whose first line may hold options. The parser must accept the
//! input or reject it with a message, and never panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/cli/tests/fuzz/entries.rs"]
mod entries;
use entries::Options;

fuzz_target!(|data: &[u8]| {
    let mut options = Options { budget: 1000, ..Options::default() };
    let mut table = data;
    // An example of the first line: `#! capacity=1GiB block=1MiB fix=policy=greedy`.
    if let Some(rest) = data.strip_prefix(b"#!") {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        for word in String::from_utf8_lossy(&rest[..end]).split_whitespace() {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let value = value.to_owned();
            match key {
                "capacity" => options.capacity = Some(value),
                "block" => options.block = Some(value),
                "data" => options.data = Some(value),
                "like" => options.like = Some(value),
                "threads" => options.threads = value.parse().ok(),
                "predict" => options.predict.push(value),
                "fix" => options.fix.push(value),
                _ => {}
            }
        }
        table = &rest[end..];
    }
    entries::fitted(table, &options);
});
