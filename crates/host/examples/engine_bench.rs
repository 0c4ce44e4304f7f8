//! Measures the processor time of the engine per request and prints one JSON object; `compare_with_fio.py` beside
//! it runs it in turn with fio on the same file.
//!
//! `engine_bench PATH [SECONDS] [ENGINE] [DEPTH] [BLOCK] [SIZE] [SHARE_OF_READS]`
#![allow(clippy::print_stdout)]

use lowtide_core::{Bytes, Seed};
use lowtide_host::bench::{DEFAULT_SIZE, Requests, engine_bench};
use lowtide_host::engine::EngineChoice;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |n: usize| arguments.get(n).map(String::as_str);
    let path = argument(0)
        .ok_or("usage: engine_bench PATH [SECONDS] [ENGINE] [DEPTH] [BLOCK] [SIZE] [SHARE_OF_READS]")?;
    let seconds = argument(1).map_or(Ok(5), str::parse)?;
    let engine: EngineChoice = argument(2).unwrap_or("auto").parse()?;
    let depth = argument(3).map_or(Ok(64), str::parse)?;
    let block: Bytes = argument(4).unwrap_or("4KiB").parse()?;
    let size = argument(5).map_or(Ok(DEFAULT_SIZE), str::parse)?;
    let read_share = argument(6).map_or(Ok(1.0), str::parse)?;
    let requests = Requests { block, depth, read_share };
    let figures = engine_bench(Path::new(path), size, requests, seconds, engine, Seed::new(1))?;
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}
