//! `lowtide bench`: figures of lowtide itself, that anyone can check.

use crate::args::{BenchArguments, BenchFormat, BenchVerb, EngineName};
use crate::failure::Failure;
use crate::output;
use lowtide_core::{Bytes, Seed};
use lowtide_host::bench::engine_bench;
use lowtide_host::engine::EngineChoice;
use lowtide_lab::bench::simulate;

/// Measures and prints one object.
pub fn run(arguments: &BenchArguments) -> Result<u8, Failure> {
    let (figures, format) = match &arguments.verb {
        BenchVerb::Simulate { format, seed } => (serde_json::to_value(simulate(Seed::new(*seed))), *format),
        BenchVerb::Engine { file, size, seconds, engine, format } => {
            let engine = match engine {
                EngineName::Auto => EngineChoice::Auto,
                EngineName::Uring => EngineChoice::Uring,
                EngineName::Sync => EngineChoice::Sync,
            };
            let figures = engine_bench(file, *size, Bytes::kib(4), 64, *seconds, engine, Seed::new(1))?;
            (serde_json::to_value(figures), *format)
        }
    };
    let figures = figures.expect("figures serialise");
    let text = match format {
        BenchFormat::Json => figures.to_string(),
        BenchFormat::Table => {
            let figures = figures.as_object().expect("figures are an object");
            figures.iter().map(|(key, value)| format!("{key:32} {value}\n")).collect()
        }
    };
    output::print(&text)?;
    Ok(0)
}
