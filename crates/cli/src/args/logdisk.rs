//! What `lowtide logdisk` is told.

use super::live::ClientsArguments;
use super::{BenchFormat, FilesystemName, PlainFormat, size};
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
    /// Make a log disk in a file or on a block device
    Format(LogdiskFormatArguments),
    /// Serve a log disk to NBD clients
    Serve {
        /// The file or block device
        target: PathBuf,
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
        /// How many clients there may be
        #[command(flatten)]
        clients: ClientsArguments,
    },
    /// Make a block device of this machine of a log disk, with a filesystem if wanted
    Attach(LogdiskAttachArguments),
    /// Tell how full a log disk is, and how it was left; while it is served or attached, what has happened since
    Stat {
        /// The file or block device, or the name of an attached log disk
        target: PathBuf,
        /// How to print it
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
    /// Look whether a log disk contradicts itself; nothing is written
    Check {
        /// The file or block device
        target: PathBuf,
        /// How to print it
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
    /// The same, and read every block to see that its checksum fits
    Scrub {
        /// The file or block device
        target: PathBuf,
        /// How to print it
        #[arg(long, default_value = "table")]
        format: BenchFormat,
    },
    /// Make a log disk usable whose flushed end was spoiled, and say how many blocks are lost
    #[command(
        after_help = "Blocks that are known to be lost are errors until they are written again. Where nothing says which blocks the\n\
        spoiled part held, any block may read as older data afterwards: a filesystem or a database on it must be checked."
    )]
    Repair {
        /// The file or block device
        target: PathBuf,
        /// Take what may be older data for what cannot be read; without it, nothing is changed
        #[arg(long)]
        accept_old_data: bool,
    },
    /// Make a log disk larger, with all that is on it; it is not served meanwhile
    Resize {
        /// The file or block device
        target: PathBuf,
        /// Make the file this large first [default: as large as it is, or as the block device has become]
        #[arg(long, value_parser = size)]
        size: Option<Bytes>,
        /// The share that is not offered from now on [default: as it was]
        #[arg(long, value_name = "SHARE")]
        reserve: Option<f64>,
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

/// Arguments of `logdisk format`.
#[derive(Debug, Args)]
pub struct LogdiskFormatArguments {
    /// The file, or the block device
    pub target: PathBuf,
    /// Make the file this large [default: as large as it is]
    #[arg(long, value_parser = size)]
    pub size: Option<Bytes>,
    /// Bytes that are written in one sequence: 1MiB to 64MiB, what the drive erases or merges at once
    #[arg(long, default_value = "4MiB", value_parser = size)]
    pub segment: Bytes,
    /// The share that is not offered: more makes random writes faster on a full disk
    #[arg(long, default_value_t = 0.1, value_name = "SHARE")]
    pub reserve: f64,
    /// Although the file holds something, but for a store: all of that is lost
    #[arg(long)]
    pub overwrite: bool,
    /// Overwrite the block device with this serial number; without it, the refusal says which it is
    #[arg(long, value_name = "SERIAL")]
    pub destroy: Option<String>,
    /// With --destroy: although it has partitions or carries a filesystem, RAID, LVM, LUKS or ZFS label, or a log disk
    #[arg(long, requires = "destroy")]
    pub force_signature: bool,
}

/// Arguments of `logdisk attach`.
#[derive(Debug, Args)]
#[command(
    after_help = "Needs root, FUSE and loop devices, as `lowtide drive attach` does. `lowtide drive attach --list` lists it too, and\n\
    `lowtide drive detach NAME` takes it away and closes the log disk in order."
)]
pub struct LogdiskAttachArguments {
    /// The file or block device
    pub target: PathBuf,
    /// What to call it [default: the name of the file]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Make a filesystem on it; the log disk must be empty
    #[arg(long, value_name = "KIND")]
    pub mkfs: Option<FilesystemName>,
    /// Mount it at a folder, which is made where it is not there
    #[arg(long, value_name = "DIR")]
    pub mount: Option<PathBuf>,
    /// Mount options, such as noatime
    #[arg(short = 'o', long = "options", value_name = "OPTIONS", requires = "mount", default_value = "")]
    pub options: String,
    /// Memory for the map [default: as much as it takes]
    #[arg(long, value_parser = size)]
    pub map_memory: Option<Bytes>,
    /// How to print it
    #[arg(long, default_value = "table")]
    pub format: PlainFormat,
    /// Be the server of the log disk
    #[arg(long, hide = true, value_name = "NAME")]
    pub server: Option<String>,
}
