//! Arguments of `lowtide bench`.
//!
//! Leaves out the benchmarks themselves (`lowtide_studies::bench`, and those of crates `oltp` and `host`).

use super::{OltpBenchArguments, size};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use lowtide_core::Bytes;
use lowtide_host::engine::EngineChoice;
use lowtide_studies::ask::scale;
use std::path::PathBuf;

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub struct BenchArguments {
    /// What to measure
    #[command(subcommand)]
    pub verb: BenchVerb,
}

/// What to measure of lowtide itself.
#[derive(Debug, Subcommand)]
pub enum BenchVerb {
    /// Host writes a simulated drive of 160 GiB serves per processor second (uniform 4 KiB overwrites at 90 %)
    Simulate {
        /// How to print it
        #[arg(long, default_value = "table")]
        format: BenchFormat,
        /// The seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// How near the steady-state rule comes to a run ten times longer, beside the rules of others
    Steady {
        /// Runs per file size
        #[arg(long, default_value_t = 20)]
        seeds: u64,
        /// Divide sizes and durations, such as 1/16
        #[arg(long, default_value = "1/16", value_parser = scale)]
        scale: u64,
        /// How to print it
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
    /// What lowtide itself costs per request, with requests that complete at once
    EngineNull {
        /// How long
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// The share of requests that read
        #[arg(long, default_value_t = 0.5, value_name = "SHARE")]
        mix: f64,
        /// How to print it
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
    /// What the NBD server costs per 4 KiB read, and how well it keeps to a model's time
    Nbd {
        /// How long, for each figure
        #[arg(long, default_value_t = 3.0)]
        seconds: f64,
        /// How to print it
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
    /// What the log layer gives a drive that is bad at random writes, and a file, and what it costs
    Logdisk {
        /// The file to make, use and remove
        #[arg(long, default_value = "lowtide-logdisk-bench.dat", value_name = "PATH")]
        file: PathBuf,
        /// Its size
        #[arg(long, default_value = "4GiB", value_parser = size)]
        size: Bytes,
        /// How to print it
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
    /// New orders per minute of TPC-C on a database of its own, how fast it loads, and what the client costs
    Oltp(OltpBenchArguments),
    /// What the I/O engine costs per 4 KiB random request
    Engine {
        /// The file to read; made where there is none
        #[arg(long, value_name = "PATH")]
        file: PathBuf,
        /// Its size where it is made
        #[arg(long, default_value = "4GiB", value_parser = size)]
        size: Bytes,
        /// Requests in flight
        #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
        depth: u32,
        /// The share of requests that read; the others write, to a file that lowtide made
        #[arg(long, default_value_t = 1.0, value_name = "SHARE")]
        mix: f64,
        /// How long
        #[arg(long, default_value_t = 10)]
        seconds: u64,
        /// Which engine
        #[arg(long, default_value = "auto", value_parser = io_engine())]
        engine: EngineChoice,
        /// How to print it
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
}

/// How to print a figure of merit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchFormat {
    /// Name and value, a line each
    Table,
    /// One JSON object per line
    Json,
}

fn io_engine() -> impl TypedValueParser<Value = EngineChoice> {
    let values = EngineChoice::NAMES.map(|(name, _, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(|name| name.parse())
}
