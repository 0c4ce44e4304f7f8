//! Arguments of `attach` and `detach`.

use super::DriveArguments;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `attach`.
#[derive(Debug, Args)]
#[command(
    after_help = "Needs root, FUSE and loop devices: the drive is the file /run/lowtide/attached/NAME/disk, and a loop\n\
    device with direct I/O makes a block device of it. Requests are answered when the model says so.\n\
    `lowtide drive detach NAME` takes everything away again, also what was mounted by hand, and after a kill."
)]
pub struct AttachArguments {
    /// A simulated device: a name (see `lowtide devices`) or the path of a file
    #[arg(required_unless_present_any = ["list", "again"], conflicts_with_all = ["list", "again"])]
    pub device: Option<String>,
    /// What to call it [default: the device's name]
    #[arg(long, value_name = "NAME", requires = "device")]
    pub name: Option<String>,
    /// Make a filesystem on it
    #[arg(long, value_name = "KIND", requires = "device")]
    pub mkfs: Option<FilesystemName>,
    /// Mount it at a folder, which is made where it is not there
    #[arg(long, value_name = "DIR", requires = "device")]
    pub mount: Option<PathBuf>,
    /// Mount options, such as noatime
    #[arg(short = 'o', long = "options", value_name = "OPTIONS", requires = "mount", default_value = "")]
    pub options: String,
    /// Take filesystem and block device of NAME off and put them on again: after a power cut, all that was open is dead
    #[arg(long, value_name = "NAME", conflicts_with = "list")]
    pub again: Option<String>,
    /// With --again: although programs use it
    #[arg(long, requires = "again")]
    pub force: bool,
    /// Bytes of a logical block of the block device: 512 or 4096
    #[arg(long, default_value = "4096", value_name = "BYTES", value_parser = block)]
    pub block: u32,
    /// Where the bytes lie: a sparse file, made where there is none; in a folder, one that goes with the drive
    /// [default: in memory]
    #[arg(long, value_name = "FILE", requires = "device")]
    pub data: Option<PathBuf>,
    /// Keep map, wear and history of the drive in a file
    #[arg(long, value_name = "FILE", requires = "device")]
    pub state: Option<PathBuf>,
    /// What the drive is like
    #[command(flatten)]
    pub drive: DriveArguments,
    /// List attached drives
    #[arg(long)]
    pub list: bool,
    /// How to print it
    #[arg(long, default_value = "table")]
    pub format: PlainFormat,
    /// As the server: answer at once until told otherwise
    #[arg(long, hide = true, requires = "server")]
    pub at_once_first: bool,
    /// Be the server of the drive
    #[arg(long, hide = true, value_name = "NAME", requires = "device")]
    pub server: Option<String>,
}

/// Arguments of `detach`.
#[derive(Debug, Args)]
pub struct DetachArguments {
    /// Which: its name, its block device, or where it is mounted
    #[arg(value_name = "NAME|DIR|/dev/loopN", required_unless_present = "all", conflicts_with = "all")]
    pub which: Option<String>,
    /// Every attached drive
    #[arg(long)]
    pub all: bool,
    /// Although programs use it: they get errors
    #[arg(long)]
    pub force: bool,
}

/// A filesystem to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FilesystemName {
    /// ext4
    Ext4,
    /// XFS
    Xfs,
    /// Btrfs
    Btrfs,
}

/// How to print a plain answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlainFormat {
    /// For a terminal
    Table,
    /// JSON: an object for each drive, a line each
    Json,
}

fn block(text: &str) -> Result<u32, String> {
    match text {
        "512" => Ok(512),
        "4096" => Ok(4096),
        _ => Err("a logical block has 512 or 4096 bytes".to_owned()),
    }
}
