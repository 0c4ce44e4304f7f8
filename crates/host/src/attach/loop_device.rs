//! [`LoopDevice`]: the block device of the kernel over a file.
//!
//! Set up by `LOOP_CONFIGURE` (Linux 5.8) rather than by losetup(8): file, block size and direct I/O in one step, and the
//! number of the device is known, and can be written down, before anything is changed. `unsafe` stands here because the
//! kernel takes this as an `ioctl`. Not here: partitions.
#![allow(unsafe_code)]

use crate::block::scheduler;
use crate::error::{HostError, Operation};
use lowtide_core::Bytes;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// <linux/loop.h>
const LOOP_CLR_FD: libc::Ioctl = 0x4c01;
const LOOP_CONFIGURE: libc::Ioctl = 0x4c0a;
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4c82;
const LO_FLAGS_DIRECT_IO: u32 = 16;
const CONTROL: &str = "/dev/loop-control";

/// `struct loop_config` with the `struct loop_info64` in it, of <linux/loop.h>.
#[repr(C)]
struct Config {
    file: u32,
    block: u32,
    /// Device, inode, number of the device, offset, limit: all filled in by the kernel, or none.
    unused: [u64; 5],
    /// Number, encryption, its key's size: none.
    unused_too: [u32; 3],
    flags: u32,
    name: [u8; 64],
    unused_at_last: [u8; 64 + 32 + 16 + 64],
}

// What the kernel copies, whatever is declared here.
const _: () = assert!(size_of::<Config>() == 304);

/// A loop device, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LoopDevice {
    number: u32,
}

/// What the kernel keeps of a loop device when its file is taken away: the next one would have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Queue {
    /// The I/O scheduler.
    scheduler: Option<String>,
    /// Requests that may wait in it; without one, requests that reach the device at a time.
    requests: Option<u64>,
    /// KiB of the largest request.
    largest_kib: Option<u64>,
    /// Whether the kernel takes it for a disk that turns: 0 or 1. Not noted by older versions.
    #[serde(default)]
    turns: Option<u64>,
}

impl LoopDevice {
    pub(super) fn new(number: u32) -> LoopDevice {
        LoopDevice { number }
    }

    /// One that nothing uses, at this moment.
    ///
    /// # Errors
    /// [`HostError::Io`] where there are no loop devices.
    pub(super) fn free() -> Result<LoopDevice, HostError> {
        let path = Path::new(CONTROL);
        let control = OpenOptions::new().read(true).write(true).open(path);
        let control = control.map_err(HostError::io(Operation::Open, path))?;
        // SAFETY: the request takes nothing and gives a number.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
        let number = u32::try_from(number).map_err(|_| last_error(path))?;
        Ok(LoopDevice { number })
    }

    pub(super) fn number(self) -> u32 {
        self.number
    }

    /// Its node: `/dev/loop0`.
    pub(super) fn node(self) -> PathBuf {
        PathBuf::from(format!("/dev/loop{}", self.number))
    }

    /// What the kernel tells of it.
    pub(super) fn folder(self) -> PathBuf {
        PathBuf::from(format!("/sys/block/loop{}", self.number))
    }

    /// Its file, as the kernel names it; `None` where it has none.
    pub(super) fn file(self) -> Option<PathBuf> {
        let text = fs::read_to_string(self.folder().join("loop/backing_file")).ok()?;
        Some(PathBuf::from(text.trim_end_matches('\n')))
    }

    /// Puts it over a file, with direct I/O: what it is asked reaches the file at once, and nothing is kept between.
    /// Whether it was free still.
    ///
    /// # Errors
    /// [`HostError::Io`] where the kernel refuses; [`HostError::Invalid`] where it would cache after all.
    pub(super) fn configure(self, path: &Path, block: u32) -> Result<bool, HostError> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(HostError::io(Operation::Open, path))?;
        let node = self.open()?;
        let config = Config {
            file: file.as_raw_fd().cast_unsigned(),
            block,
            unused: [0; 5],
            unused_too: [0; 3],
            flags: LO_FLAGS_DIRECT_IO,
            name: [0; 64],
            unused_at_last: [0; 176],
        };
        // SAFETY: the request reads a `struct loop_config` at the address, which `config` is until the call is over.
        let result = unsafe { libc::ioctl(node.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
        if result < 0 {
            return match last_error(&self.node()) {
                HostError::Io { source, .. } if is(&source, Errno::BUSY) => Ok(false),
                error => Err(error),
            };
        }
        drop(node);
        let limited = self.limit().and_then(|()| self.check(block));
        limited.inspect_err(|_| drop(self.clear()))?;
        Ok(true)
    }

    /// Makes every request fit into one of FUSE, which has at most 256 pages of memory: one that did not would be cut, and
    /// not where a block ends if its memory does not begin with a page. 128 parts of 512 KiB touch at most 256 pages.
    fn limit(self) -> Result<(), HostError> {
        let path = self.folder().join("queue/max_sectors_kb");
        fs::write(&path, "512").map_err(HostError::io(Operation::Write, &path))
    }

    /// Whether the kernel does what was asked for: it takes some wishes without a word.
    fn check(self, block: u32) -> Result<(), HostError> {
        let wrong = |what: &'static str, value: String, accepted: &str| {
            let accepted = format!("{} {accepted}", self.node().display());
            Err(HostError::Invalid { what, value, accepted })
        };
        let direct = self.told("loop/dio");
        if direct != Some(1) {
            return wrong("direct I/O", format!("{direct:?}"), "must not cache, and this kernel makes it");
        }
        let blocks = self.told("queue/logical_block_size");
        if blocks != Some(u64::from(block)) {
            return wrong(
                "the logical block",
                format!("{blocks:?}"),
                &format!("must have blocks of {block} bytes"),
            );
        }
        if self.told("queue/discard_max_bytes").is_none_or(|most| most == 0) {
            return wrong("discard", "missing".to_owned(), "must pass on what is trimmed");
        }
        Ok(())
    }

    /// Takes its file away. Where it is in use, the kernel does that once it is not; see [`LoopDevice::file`].
    ///
    /// # Errors
    /// [`HostError::Io`] where the kernel refuses.
    pub(super) fn clear(self) -> Result<(), HostError> {
        let node = self.open()?;
        // SAFETY: the request takes nothing.
        let result = unsafe { libc::ioctl(node.as_raw_fd(), LOOP_CLR_FD, 0) };
        match last_error(&self.node()) {
            _ if result == 0 => Ok(()),
            // It has none any more.
            HostError::Io { source, .. } if is(&source, Errno::NXIO) => Ok(()),
            error => Err(error),
        }
    }

    /// How many requests it has completed.
    pub(super) fn completed(self) -> u64 {
        // Documentation/block/stat.rst: reads, writes, discards, flushes.
        [0, 4, 11, 15].map(|field| self.counted(field)).into_iter().sum()
    }

    /// How many requests are under way.
    pub(super) fn in_flight(self) -> u64 {
        self.counted(8)
    }

    pub(super) fn size(self) -> Bytes {
        // Sectors of 512 bytes, whatever its block.
        Bytes::new(self.told("size").unwrap_or(0) * 512)
    }

    /// How its requests are queued now.
    pub(super) fn queue(self) -> Queue {
        Queue {
            scheduler: scheduler::choices(&format!("loop{}", self.number)).1,
            requests: self.told("queue/nr_requests"),
            largest_kib: self.told("queue/max_sectors_kb"),
            turns: self.told("queue/rotational"),
        }
    }

    /// Makes its requests queue as they did before it was used; it may wait for those that are under way. What the kernel does
    /// not take stays: it keeps nothing from being taken apart.
    pub(super) fn restore(self, before: &Queue) {
        let set = |what: &str, value: &str| drop(fs::write(self.folder().join("queue").join(what), value));
        if let Some(name) = &before.scheduler {
            // Without a scheduler the number is of the device, and the kernel shows what it was made with, whatever it is. It
            // takes none that it shows already.
            set("scheduler", "none");
            let whole = self.told("queue/nr_requests");
            let other = whole.map(|whole| whole.saturating_sub(1));
            for number in other.into_iter().chain(whole) {
                set("nr_requests", &number.to_string());
            }
            set("scheduler", name);
        }
        if let Some(number) = before.requests.filter(|number| self.told("queue/nr_requests") != Some(*number))
        {
            set("nr_requests", &number.to_string());
        }
        if let Some(kib) = before.largest_kib {
            set("max_sectors_kb", &kib.to_string());
        }
        if let Some(turns) = before.turns {
            set("rotational", &turns.to_string());
        }
    }

    /// Its number among all devices.
    pub(super) fn major_and_minor(self) -> (u32, u32) {
        let text = fs::read_to_string(self.folder().join("dev")).unwrap_or_default();
        let numbers = text.trim().split_once(':').map(|(major, minor)| (major.parse(), minor.parse()));
        match numbers {
            Some((Ok(major), Ok(minor))) => (major, minor),
            // As <linux/major.h> has it.
            _ => (7, self.number),
        }
    }

    fn counted(self, field: usize) -> u64 {
        let text = fs::read_to_string(self.folder().join("stat")).unwrap_or_default();
        text.split_whitespace().nth(field).and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    fn open(self) -> Result<File, HostError> {
        let path = self.node();
        OpenOptions::new().read(true).write(true).open(&path).map_err(HostError::io(Operation::Open, &path))
    }

    fn told(self, what: &str) -> Option<u64> {
        fs::read_to_string(self.folder().join(what)).ok()?.trim().parse().ok()
    }
}

/// Those whose file is `path`.
pub(super) fn over(path: &Path) -> Vec<LoopDevice> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("loop")?.parse().ok());
    let mut all: Vec<LoopDevice> = numbers.map(LoopDevice::new).collect();
    all.retain(|device| device.file().is_some_and(|file| file == path));
    all.sort_by_key(|device| device.number);
    all
}

fn last_error(path: &Path) -> HostError {
    HostError::io(Operation::Configure, path)(std::io::Error::last_os_error())
}

fn is(error: &std::io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}
