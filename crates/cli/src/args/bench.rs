//! Arguments of `lowtide bench`.
//!
//! Not here: the benchmarks themselves (`lowtide_studies::bench`, and those of crates `oltp` and `host`).

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
    /// Measure the simulator: host writes per processor second on a drive of 160 GiB (uniform 4 KiB
    /// overwrites at 90 % utilisation)
    Simulate {
        /// Output format
        #[arg(long, default_value = "table")]
        format: BenchFormat,
        /// The seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Compare steady-state rules, lowtide's and others, with runs ten times longer
    Steady {
        /// Runs per file size
        #[arg(long, default_value_t = 20)]
        seeds: u64,
        /// Divide sizes and durations, such as 1/16
        #[arg(long, default_value = "1/16", value_parser = scale)]
        scale: u64,
        /// Output format
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
    /// Measure lowtide's own cost per request, with requests that complete at once
    EngineNull {
        /// Duration in seconds
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// Share of requests that are reads
        #[arg(long, default_value_t = 0.5, value_name = "SHARE")]
        mix: f64,
        /// Output format
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
    /// Measure the NBD server: its cost per 4 KiB read, and how closely it keeps to a model's latencies
    Nbd {
        /// Duration of each measurement in seconds
        #[arg(long, default_value_t = 3.0)]
        seconds: f64,
        /// Output format
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
    /// Measure the log layer: its gain on a drive with slow random writes and on a file, and its cost
    Logdisk {
        /// The file to create, use and remove
        #[arg(long, default_value = "lowtide-logdisk-bench.dat", value_name = "PATH")]
        file: PathBuf,
        /// Its size
        #[arg(long, default_value = "4GiB", value_parser = size)]
        size: Bytes,
        /// Output format
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
    /// Measure TPC-C on a new database: new orders per minute, load rate, and the client's cost
    Oltp(OltpBenchArguments),
    /// Measure the I/O engine's cost per 4 KiB random request
    Engine {
        /// The file to read, created if missing
        #[arg(long, value_name = "PATH")]
        file: PathBuf,
        /// Its size if it is created
        #[arg(long, default_value = "4GiB", value_parser = size)]
        size: Bytes,
        /// Requests in flight
        #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
        depth: u32,
        /// Share of requests that are reads; writes need a file that lowtide created
        #[arg(long, default_value_t = 1.0, value_name = "SHARE")]
        mix: f64,
        /// Duration in seconds
        #[arg(long, default_value_t = 10)]
        seconds: u64,
        /// The I/O engine
        #[arg(long, default_value = "auto", value_parser = io_engine())]
        engine: EngineChoice,
        /// Output format
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
}

/// How to print a figure of merit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchFormat {
    /// One name and value per line
    Table,
    /// One JSON object per line
    Json,
}

fn io_engine() -> impl TypedValueParser<Value = EngineChoice> {
    let values = EngineChoice::NAMES.map(|(name, _, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(|name| name.parse())
}
