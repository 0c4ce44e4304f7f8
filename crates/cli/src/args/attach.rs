//! Arguments of `attach` and `detach`.

use super::oltp::named;
use super::{DriveArguments, PlainFormat};
use clap::Args;
use lowtide_core::Filesystem;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "Needs root, FUSE and loop devices. The drive is the file /run/lowtide/attached/NAME/disk, \
    behind a loop device with direct I/O. The model decides when requests complete.\n\
    `lowtide drive detach NAME` removes the drive, its mounts, and remains of a killed server."
)]
pub struct AttachArguments {
    /// A simulated device: a name (see `lowtide devices`) or the path of a file
    #[arg(required_unless_present_any = ["list", "again"], conflicts_with_all = ["list", "again"])]
    pub device: Option<String>,
    /// Name of the attached drive [default: the device's name]
    #[arg(long, value_name = "NAME", requires = "device")]
    pub name: Option<String>,
    /// Make a filesystem on the drive
    #[arg(long, value_name = "KIND", requires = "device", value_parser = named(Filesystem::NAMES))]
    pub mkfs: Option<Filesystem>,
    /// Mount the filesystem at this folder, created if missing
    #[arg(long, value_name = "DIR", requires = "device")]
    pub mount: Option<PathBuf>,
    /// Mount options, such as noatime
    #[arg(short = 'o', long = "options", value_name = "OPTIONS", requires = "mount", default_value = "")]
    pub options: String,
    /// Reattach a drive after a power cut: recreate its block device and mount it again. Files that were open before
    /// the cut stay unusable
    #[arg(long, value_name = "NAME", conflicts_with = "list")]
    pub again: Option<String>,
    /// With --again: reattach even if programs use the drive
    #[arg(long, requires = "again")]
    pub force: bool,
    /// Logical block size of the block device in bytes: 512 or 4096
    #[arg(long, default_value = "4096", value_name = "BYTES", value_parser = block)]
    pub block: u32,
    /// Where to store the data: a sparse file (created if missing), or a folder for a temporary file
    /// [default: in memory]
    #[arg(long, value_name = "FILE", requires = "device")]
    pub data: Option<PathBuf>,
    /// Keep the drive's map, wear and history in a file
    #[arg(long, value_name = "FILE", requires = "device")]
    pub state: Option<PathBuf>,
    #[command(flatten)]
    pub drive: DriveArguments,
    /// List attached drives
    #[arg(long)]
    pub list: bool,
    /// Output format
    #[arg(long, default_value = "table")]
    pub format: PlainFormat,
    /// As the server: complete requests at once until the first order
    #[arg(long, hide = true, requires = "server")]
    pub at_once_first: bool,
    /// Run as the server of the drive
    #[arg(long, hide = true, value_name = "NAME", requires = "device")]
    pub server: Option<String>,
}

#[derive(Debug, Args)]
pub struct DetachArguments {
    /// The drive: its name, block device or mount point
    #[arg(value_name = "NAME|DIR|/dev/loopN", required_unless_present = "all", conflicts_with = "all")]
    pub which: Option<String>,
    /// Detach every attached drive
    #[arg(long)]
    pub all: bool,
    /// Detach even if programs use the drive; their requests fail
    #[arg(long)]
    pub force: bool,
}

fn block(text: &str) -> Result<u32, String> {
    match text {
        "512" => Ok(512),
        "4096" => Ok(4096),
        _ => Err("a logical block has 512 or 4096 bytes".to_owned()),
    }
}
