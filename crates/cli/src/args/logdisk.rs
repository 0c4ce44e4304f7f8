//! What `lowtide logdisk` is told.

use super::{BenchFormat, size};
use clap::{Args, Subcommand};
use lowtide_core::Bytes;
use std::path::PathBuf;

/// Arguments of `logdisk`.
#[derive(Debug, Args)]
pub struct LogdiskArguments {
    /// What to do
    #[command(subcommand)]
    pub verb: LogdiskVerb,
}

/// What to do with a log disk.
#[derive(Debug, Subcommand)]
pub enum LogdiskVerb {
    /// Make a log disk in a file
    Format {
        /// The file
        file: PathBuf,
        /// Make the file this large [default: as large as it is]
        #[arg(long, value_parser = size)]
        size: Option<Bytes>,
        /// Bytes that are written in one sequence: 1MiB to 64MiB, what the drive erases or merges at once
        #[arg(long, default_value = "4MiB", value_parser = size)]
        segment: Bytes,
        /// The share that is not offered: more makes random writes faster on a full disk
        #[arg(long, default_value_t = 0.1, value_name = "SHARE")]
        reserve: f64,
        /// Although the file holds something: all of that is lost
        #[arg(long)]
        overwrite: bool,
    },
    /// Serve a log disk to NBD clients
    Serve {
        /// The file
        file: PathBuf,
        /// Listen at a unix socket
        #[arg(long, value_name = "PATH")]
        unix: Option<PathBuf>,
        /// Listen at ADDRESS:PORT [default: 127.0.0.1:10809]
        #[arg(long, value_name = "ADDRESS")]
        tcp: Option<String>,
        /// What clients call it [default: the name of the file]
        #[arg(long)]
        name: Option<String>,
        /// Let nothing be changed
        #[arg(long)]
        read_only: bool,
        /// Memory for the map [default: as much as it takes]
        #[arg(long, value_parser = size)]
        map_memory: Option<Bytes>,
    },
    /// Tell how full a log disk is, and how it was left
    Stat {
        /// The file
        file: PathBuf,
        /// How to print it
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
    /// Look whether a log disk contradicts itself; nothing is written
    Check {
        /// The file
        file: PathBuf,
        /// How to print it
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
    /// The same, and read every block to see that its checksum fits
    Scrub {
        /// The file
        file: PathBuf,
        /// How to print it
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
    /// Tell how full a log disk may be for which gain
    Advise {
        /// Random writes a second of the drive by itself
        #[arg(long, value_name = "IOPS")]
        bare: f64,
        /// What it writes in sequence, in a second
        #[arg(long, value_name = "SIZE", value_parser = size)]
        sequential: Bytes,
        /// How to print it
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
}
