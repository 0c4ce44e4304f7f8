//! The arguments of `lowtide powercut oltp`.
//!
//! Leaves out which of them go together: `lowtide_powercut` checks that.

use super::oltp::{durability, engine, named};
use clap::{Args, Subcommand, ValueEnum};
use lowtide_device::power::CacheKind;
use lowtide_engines::{Durability, Engine};
use lowtide_powercut::{Filesystem, Journal};
use lowtide_studies::ask::scale;
use std::path::PathBuf;

/// What is taken through power cuts.
#[derive(Debug, Subcommand)]
pub enum PowercutVerb {
    /// Take databases through power cuts, and count lost transactions
    Oltp(PowercutOltpArguments),
}

/// Which databases to take through power cuts, and how.
#[derive(Debug, Args)]
#[command(
    after_help = "Several values with commas between them are a row each, and so are all combinations of several such.\n\
    SQLite runs in virtual time, on a filesystem and a drive in this process: no root, and the same from the same seed.\n\
    Everything else runs on an attached drive, which needs root, FUSE and loop devices.\n\
    Exit code 1 where a row loses what its settings promise to keep."
)]
pub struct PowercutOltpArguments {
    /// Databases; servers are started for them and ended
    #[arg(long, default_value = "sqlite", value_delimiter = ',', value_parser = engine())]
    pub engine: Vec<Engine>,
    /// What a commit waits for
    #[arg(long, default_value = "full", value_delimiter = ',', value_parser = durability())]
    pub durability: Vec<Durability>,
    /// How SQLite keeps what a transaction may take back
    #[arg(long, default_value = "wal", value_delimiter = ',', value_parser = named(Journal::NAMES))]
    pub journal: Vec<Journal>,
    /// What they lie on [default: simulated for SQLite, xfs for servers]
    #[arg(long, value_delimiter = ',', value_parser = named(Filesystem::NAMES))]
    pub filesystem: Vec<Filesystem>,
    /// Whether the filesystem flushes the drive; XFS always does
    #[arg(long, default_value = "on", value_delimiter = ',')]
    pub barrier: Vec<OnOff>,
    /// What the drive keeps acknowledged writes in [default: as its file says]
    #[arg(long, value_delimiter = ',', value_name = "protected|volatile|lying")]
    pub cache: Vec<CacheKind>,
    /// A row for every durability, barrier and cache, in place of those options
    #[arg(long, conflicts_with_all = ["durability", "barrier", "cache"])]
    pub all: bool,
    /// The simulated drive: a name (see `lowtide devices`) or the path of a file
    #[arg(long, default_value = "intel-320-160gb", value_name = "DEVICE")]
    pub device: String,
    /// A smaller drive
    #[arg(long, default_value = "1/16", value_parser = scale)]
    pub scale: u64,
    /// Power cuts of each row [default: 1000 in virtual time, else 10]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub cuts: Option<u64>,
    /// The seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Keep what is known of damage on attached drives: the files as the power cut left them, what the drive was asked, and
    /// whose fault it is
    #[arg(long, value_name = "DIRECTORY")]
    pub keep: Option<PathBuf>,
    /// How to print it
    #[arg(long, default_value = "table")]
    pub format: RowsFormat,
}

/// Whether something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    /// It is
    On,
    /// It is not
    Off,
}

/// Formats of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RowsFormat {
    /// A table for a terminal
    Table,
    /// One JSON object for one row, a list for several
    Json,
    /// Comma-separated values
    Csv,
}
