//! Arguments of `lowtide logdisk`.

use super::live::ClientsArguments;
use super::oltp::named;
use super::{PlainFormat, size};
use clap::{Args, Subcommand};
use lowtide_core::{Bytes, Filesystem};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct LogdiskArguments {
    #[command(subcommand)]
    pub verb: LogdiskVerb,
}

#[derive(Debug, Subcommand)]
pub enum LogdiskVerb {
    /// Create a log disk in a file or on a block device
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
        /// Export name [default: the name of the file]
        #[arg(long)]
        name: Option<String>,
        /// Serve read-only
        #[arg(long)]
        read_only: bool,
        /// Memory for the map [default: as much as it needs]
        #[arg(long, value_parser = size)]
        map_memory: Option<Bytes>,
        #[command(flatten)]
        clients: ClientsArguments,
    },
    /// Attach a log disk as a block device of this machine, optionally with a filesystem
    Attach(LogdiskAttachArguments),
    /// Show the fill of a log disk and whether it was closed cleanly; while it is served or attached, also its
    /// activity since it was opened
    Stat(TargetArguments),
    /// Check the consistency of a log disk without writing to it
    Check(TargetArguments),
    /// Check the consistency of a log disk and the checksum of every block, without writing to it
    Scrub(TargetArguments),
    /// Repair a log disk with damage in the flushed part of its log, and report the number of lost blocks
    #[command(
        after_help = "Reads of a block that is known to be lost fail until the block is written again. \
        If it is unknown which blocks are lost, any block may read as older data after the repair: check the \
        filesystem or the database on the log disk."
    )]
    Repair {
        /// The file or block device
        target: PathBuf,
        /// Repair even if it is unknown which blocks are lost, so that any block may read as older data. Without this option,
        /// such a log disk is not changed
        #[arg(long)]
        accept_old_data: bool,
    },
    /// Enlarge a log disk that is neither served nor attached, and keep its contents
    Resize {
        /// The file or block device
        target: PathBuf,
        /// Grow the file to this size first [default: the current size of the file or block device]
        #[arg(long, value_parser = size)]
        size: Option<Bytes>,
        /// New share of the capacity to hold back [default: unchanged]
        #[arg(long, value_name = "SHARE")]
        reserve: Option<f64>,
    },
    /// Estimate the gain in random writes at each fill level
    Advise {
        /// Random writes per second of the drive without a log disk
        #[arg(long, value_name = "IOPS")]
        bare: f64,
        /// Sequentially written bytes per second of the drive, such as 80MB
        #[arg(long, value_name = "SIZE", value_parser = size)]
        sequential: Bytes,
        /// Output format
        #[arg(long, default_value = "table")]
        format: PlainFormat,
    },
}

#[derive(Debug, Args)]
pub struct TargetArguments {
    /// The file or block device; for `stat`, also the name of an attached log disk
    pub target: PathBuf,
    /// Output format
    #[arg(long, default_value = "table")]
    pub format: PlainFormat,
}

#[derive(Debug, Args)]
pub struct LogdiskFormatArguments {
    /// The file or block device
    pub target: PathBuf,
    /// Size of the file [default: its current size]
    #[arg(long, value_parser = size)]
    pub size: Option<Bytes>,
    /// Segment size, from 1MiB to 64MiB: a multiple of the unit that the drive erases or merges
    #[arg(long, default_value = "4MiB", value_parser = size)]
    pub segment: Bytes,
    /// Share of the capacity to hold back; a larger share makes random writes to a full disk faster
    #[arg(long, default_value_t = 0.1, value_name = "SHARE")]
    pub reserve: f64,
    /// Overwrite the contents of the file; a lowtide store is never overwritten
    #[arg(long)]
    pub overwrite: bool,
    /// Allow overwriting the block device, whose serial number must be this. Without this option, the error shows the number
    #[arg(long, value_name = "SERIAL")]
    pub destroy: Option<String>,
    /// With --destroy: overwrite even a device with partitions, a filesystem, a RAID, LVM, LUKS or ZFS label, or a
    /// log disk
    #[arg(long, requires = "destroy")]
    pub force_signature: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Needs root, FUSE and loop devices, as `lowtide drive attach` does. `lowtide drive attach \
    --list` includes attached log disks; `lowtide drive detach NAME` detaches one and closes it cleanly."
)]
pub struct LogdiskAttachArguments {
    /// The file or block device
    pub target: PathBuf,
    /// Name of the attached log disk [default: the name of the file]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Make a filesystem on the log disk, which must be empty
    #[arg(long, value_name = "KIND", value_parser = named(Filesystem::NAMES))]
    pub mkfs: Option<Filesystem>,
    /// Mount the filesystem at this folder, created if missing
    #[arg(long, value_name = "DIR")]
    pub mount: Option<PathBuf>,
    /// Mount options, such as noatime
    #[arg(short = 'o', long = "options", value_name = "OPTIONS", requires = "mount", default_value = "")]
    pub options: String,
    /// Memory for the map [default: as much as it needs]
    #[arg(long, value_parser = size)]
    pub map_memory: Option<Bytes>,
    /// Output format
    #[arg(long, default_value = "table")]
    pub format: PlainFormat,
    /// Run as the server of the log disk
    #[arg(long, hide = true, value_name = "NAME")]
    pub server: Option<String>,
}
