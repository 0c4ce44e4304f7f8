//! The arguments of `lowtide fit`. `lowtide_studies::fit` checks that the data have the arguments they need.

use super::{PlainFormat, size};
use clap::Args;
use lowtide_core::Bytes;
use lowtide_studies::fit;
use std::path::PathBuf;

/// Arguments of `fit`: the measurements, and known parameters of the device.
#[derive(Debug, Args)]
#[command(after_help = "lowtide fit sizes.csv --capacity 160GB -o my-drive.toml\n\
    lowtide fit timeline.csv --capacity 1TB --data 800GB --block 4KiB -o my-drive.toml\n\
    lowtide fit 3 -o my-drive.toml            # campaign 3 of lowtide.db\n\
    Columns of a table: data or utilisation; throughput (MiB/s) or iops; deviation; for a timeline, time (s).\n\
    Keys of --fix: raw=SIZE, write-cost=TIME and gc-cost=TIME per 4 KiB, policy=NAME, map-reach=SIZE.")]
pub struct FitArguments {
    /// A table of comma-separated values, or a campaign: NUMBER or NAME in the store, FILE:NUMBER in another store, or
    /// FILE for the last campaign of another store
    #[arg(value_name = "MEASUREMENTS|RUN")]
    pub source: String,
    /// The store of the campaign
    #[arg(long, default_value = "lowtide.db", value_name = "FILE")]
    pub store: PathBuf,
    /// Capacity of the drive [default: as the campaign says]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub capacity: Option<Bytes>,
    /// Request size, a multiple of 512B up to 16MiB [default: as the campaign says, or 16KiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub block: Option<Bytes>,
    /// Requests in flight [default: as the campaign says, or 16]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
    /// For a timeline: size of the data under test
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub data: Option<Bytes>,
    /// Copy the parameters that are not fitted from this device: a name (see `lowtide devices`) or the path of a file
    #[arg(long, value_name = "DEVICE")]
    pub like: Option<String>,
    /// Fix a parameter at a known value, such as raw=512GiB (may be given more than once)
    #[arg(long = "fix", value_name = "KEY=VALUE")]
    pub fix: Vec<String>,
    /// Predict the fitted drive's level at these data sizes, such as 50GiB,100GiB
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = size)]
    pub predict: Vec<Bytes>,
    /// Name of the device [default: the name of the output, or `fitted`]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Where to write the device file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Maximum number of simulated requests; with a smaller number, the fit ends sooner but may find no drive
    #[arg(long, default_value_t = fit::BUDGET, value_name = "REQUESTS")]
    pub budget: u64,
    /// Output format
    #[arg(long, default_value = "table")]
    pub format: PlainFormat,
}
