//! The arguments of `lowtide powercut oltp`. `lowtide_powercut` checks combinations of options.

use super::oltp::{engine, named};
use clap::{Args, Subcommand, ValueEnum};
use lowtide_core::Filesystem;
use lowtide_device::power::CacheKind;
use lowtide_engines::{Durability, Engine};
use lowtide_powercut::{FILESYSTEMS, Journal};
use lowtide_studies::ask::scale;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum PowercutVerb {
    /// Run databases through power cuts, and count lost transactions
    Oltp(PowercutOltpArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Each combination of the comma-separated values is one row.\n\
    SQLite on the simulated filesystem runs in virtual time inside this process. It needs no root, and the \
    same seed gives the same result.\n\
    All other combinations run on an attached drive, which needs root, FUSE and loop devices.\n\
    Exits with code 1 if a database loses a transaction that its settings promise to keep.")]
pub struct PowercutOltpArguments {
    /// Databases; servers are started and stopped automatically
    #[arg(long, default_value = "sqlite", value_delimiter = ',', value_parser = engine())]
    pub engine: Vec<Engine>,
    /// What a commit waits for: full, second or none
    #[arg(long, default_value = "full", value_delimiter = ',', value_parser = named(Durability::NAMES))]
    pub durability: Vec<Durability>,
    /// SQLite's journal mode
    #[arg(long, default_value = "wal", value_delimiter = ',', value_parser = named(Journal::NAMES))]
    pub journal: Vec<Journal>,
    /// Filesystem below the database [default: simulated for SQLite, xfs for servers]
    #[arg(long, value_delimiter = ',', value_parser = named(FILESYSTEMS))]
    pub filesystem: Vec<Option<Filesystem>>,
    /// Whether the filesystem flushes the drive (XFS always does)
    #[arg(long, default_value = "on", value_delimiter = ',')]
    pub barrier: Vec<OnOff>,
    /// The drive's write cache [default: as its file says]
    #[arg(long, value_delimiter = ',', value_name = "protected|volatile|lying")]
    pub cache: Vec<CacheKind>,
    /// Run all combinations of durability, barrier and cache, instead of these options
    #[arg(long, conflicts_with_all = ["durability", "barrier", "cache"])]
    pub all: bool,
    /// The simulated drive: a name (see `lowtide devices`) or the path of a file
    #[arg(long, default_value = "intel-320-160gb", value_name = "DEVICE")]
    pub device: String,
    /// Scale the drive down
    #[arg(long, default_value = "1/16", value_parser = scale)]
    pub scale: u64,
    /// Power cuts per row [default: 1000 in virtual time, else 10]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub cuts: Option<u64>,
    /// The seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Keep evidence of damage on attached drives in this directory: the files after the power cut, the drive's
    /// request log, and the cause
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Output format
    #[arg(long, default_value = "table")]
    pub format: RowsFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RowsFormat {
    /// Text for a terminal
    Table,
    /// A JSON object for one row, a list of objects for several
    Json,
    /// Comma-separated values
    Csv,
}
