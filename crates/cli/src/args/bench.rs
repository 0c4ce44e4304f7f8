//! Arguments of `lowtide bench`.
//!
//! The benchmarks are in `lowtide_studies::bench` and in the crates `oltp` and `host`.

use super::{OltpBenchArguments, PlainFormat, size};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use lowtide_core::Bytes;
use lowtide_host::engine::EngineChoice;
use lowtide_studies::ask::scale;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct BenchArguments {
    #[command(subcommand)]
    pub verb: BenchVerb,
    /// Output format
    #[arg(long, default_value = "table", global = true)]
    pub format: PlainFormat,
}

#[derive(Debug, Subcommand)]
pub enum BenchVerb {
    /// Measure the simulator: simulated host writes per second of processor time (uniform 4 KiB overwrites of a 160
    /// GiB drive at 90 % utilisation)
    Simulate {
        /// The seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Compare the levels of lowtide's and other steady-state rules with runs ten times longer
    Steady {
        /// Runs per file size
        #[arg(long, default_value_t = 20)]
        seeds: u64,
        /// Scale sizes and durations down, such as 1/16
        #[arg(long, default_value = "1/16", value_parser = scale)]
        scale: u64,
    },
    /// Measure lowtide's cost per request, with requests that complete at once
    EngineNull {
        /// Duration in seconds
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// Share of requests that are reads
        #[arg(long, default_value_t = 0.5, value_name = "SHARE")]
        mix: f64,
    },
    /// Measure the NBD server: its cost per 4 KiB read, and its deviation from the model's latencies
    Nbd {
        /// Duration of each measurement in seconds
        #[arg(long, default_value_t = 3.0)]
        seconds: f64,
    },
    /// Measure the log layer: its gain on a drive with slow random writes and on a file, and its overhead
    Logdisk {
        /// The file to create, use and remove
        #[arg(long, default_value = "lowtide-logdisk-bench.dat", value_name = "PATH")]
        file: PathBuf,
        /// Size of the file
        #[arg(long, default_value = "4GiB", value_parser = size)]
        size: Bytes,
    },
    /// Measure TPC-C on a new database: new orders per minute, load rate, and the client's cost
    Oltp(OltpBenchArguments),
    /// Measure an I/O engine's cost per random request of 4 KiB
    Engine {
        /// The file to read, created if missing
        #[arg(long, value_name = "PATH")]
        file: PathBuf,
        /// Size of the file if it is created
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
    },
}

fn io_engine() -> impl TypedValueParser<Value = EngineChoice> {
    let values = EngineChoice::NAMES.map(|(name, _, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(|name| name.parse())
}
