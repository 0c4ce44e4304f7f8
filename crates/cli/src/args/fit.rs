//! The arguments of `lowtide fit`.
//!
//! Leaves out which of them the data need: the lab says.

use super::{Format, size};
use clap::Args;
use lowtide_core::Bytes;
use lowtide_core::suggest::nearest;
use lowtide_device::flash::spec::Policy;
use lowtide_lab::fit::Fixed;
use std::path::PathBuf;

const KEYS: [&str; 5] = ["raw", "write-cost", "gc-cost", "policy", "map-reach"];
const POLICIES: &str = "greedy, fifo, random, d-choices=N";
/// Bytes that costs are of.
const UNIT: f64 = 4096.0;

/// What was measured, and what is known beside.
#[derive(Debug, Args)]
#[command(after_help = "lowtide fit sizes.csv --capacity 160GB -o my-drive.toml\n\
    lowtide fit timeline.csv --capacity 1TB --data 800GB --block 4KiB -o my-drive.toml\n\
    lowtide fit 3 -o my-drive.toml            # campaign 3 of lowtide.db\n\
    Columns of a table: data or utilisation; throughput (MiB/s) or iops; deviation; time (s) of a timeline.\n\
    Keys of --fix: raw=SIZE, write-cost=TIME and gc-cost=TIME of 4 KiB, policy=NAME, map-reach=SIZE.")]
pub struct FitArguments {
    /// A table of comma-separated values, or a campaign: NUMBER or NAME in the store, FILE:NUMBER, or FILE for its last one
    #[arg(value_name = "MEASUREMENTS|RUN")]
    pub source: String,
    /// The store that a campaign is in
    #[arg(long, default_value = "lowtide.db", value_name = "FILE")]
    pub store: PathBuf,
    /// What the host may address [default: what the campaign says]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub capacity: Option<Bytes>,
    /// Bytes of a request [default: what the campaign says, or 16KiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub block: Option<Bytes>,
    /// Requests in flight [default: what the campaign says, or 16]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
    /// Data under test, of a timeline
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub data: Option<Bytes>,
    /// A device that is like it in everything that is not fitted: a name (see `lowtide devices`) or the path of a file
    #[arg(long, value_name = "DEVICE")]
    pub like: Option<String>,
    /// Take a parameter as known, such as raw=512GiB (may be given more than once)
    #[arg(long = "fix", value_name = "KEY=VALUE")]
    pub fix: Vec<String>,
    /// Sizes of data to tell the fitted drive's level at, such as 50GiB,100GiB
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = size)]
    pub predict: Vec<Bytes>,
    /// What to call the device [default: the name of the output, or `fitted`]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Where to write the device file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How to print it: table or json
    #[arg(long, default_value = "table")]
    pub format: Format,
}

impl FitArguments {
    /// What `--fix` says.
    ///
    /// # Errors
    /// What is accepted.
    pub fn fixed(&self) -> Result<Fixed, String> {
        let mut fixed = Fixed::default();
        for pair in &self.fix {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let bytes = || {
                value.parse::<Bytes>().map(|it| it.get() as f64).map_err(|why| format!("--fix {pair}: {why}"))
            };
            let cost = || {
                let time =
                    value.parse::<lowtide_core::Nanos>().map_err(|why| format!("--fix {pair}: {why}"))?;
                Ok::<f64, String>(time.as_secs_f64() / UNIT)
            };
            match key {
                "raw" => fixed.raw = Some(bytes()?),
                "write-cost" => fixed.write = Some(cost()?),
                "gc-cost" => fixed.moved = Some(cost()?),
                "map-reach" => fixed.reach = Some(bytes()?),
                "policy" => {
                    fixed.policy =
                        Some(policy(value).ok_or_else(|| format!("--fix {pair}: policies are {POLICIES}"))?)
                }
                _ => {
                    let near = nearest(key, KEYS)
                        .map(|near| format!("; did you mean `{near}`?"))
                        .unwrap_or_default();
                    return Err(format!(
                        "--fix {pair}: there is no key `{key}`{near} Keys are {}",
                        KEYS.join(", ")
                    ));
                }
            }
        }
        Ok(fixed)
    }
}

fn policy(text: &str) -> Option<Policy> {
    match text {
        "greedy" => Some(Policy::Greedy),
        "fifo" => Some(Policy::Fifo),
        "random" => Some(Policy::Random),
        _ => {
            let choices = text.strip_prefix("d-choices=")?.parse().ok()?;
            (1..=64).contains(&choices).then_some(Policy::DChoices(choices))
        }
    }
}
