//! [`LoopDevice`]: a block device of the kernel over a file.
//!
//! `LOOP_CONFIGURE` (Linux 5.8) replaces losetup(8): it sets file, block size and direct I/O in one step, and the
//! number of the device can be recorded before the device is changed. `unsafe` because it is an `ioctl`. Partitions
//! are not supported.
#![allow(unsafe_code)]

use crate::block::{line, numbers, scheduler};
use crate::error::{HostError, Operation};
use crate::mountinfo::Mount;
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

/// `struct loop_config` of <linux/loop.h>, with its `struct loop_info64`.
#[repr(C)]
struct Config {
    file: u32,
    block: u32,
    /// Device, inode, device number, offset, limit: set by the kernel, or unlimited.
    unused: [u64; 5],
    /// Number, type of encryption, size of its key: none.
    no_encryption: [u32; 3],
    flags: u32,
    name: [u8; 64],
    no_names: [u8; 64 + 32 + 16 + 64],
}

// The kernel copies this many bytes.
const _: () = assert!(size_of::<Config>() == 304);

/// A loop device, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LoopDevice {
    number: u32,
}

/// The queue settings of a loop device, which the kernel keeps when the device is detached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Queue {
    /// The I/O scheduler.
    scheduler: Option<String>,
    /// Maximum number of requests in the scheduler, or in flight to the device if it has no scheduler.
    requests: Option<u64>,
    /// Maximum size of a request, in KiB.
    largest_kib: Option<u64>,
    /// Whether the kernel treats the device as a spinning disk: 0 or 1. Older versions did not record it.
    #[serde(default, rename = "turns")]
    rotational: Option<u64>,
}

impl LoopDevice {
    pub(super) fn new(number: u32) -> LoopDevice {
        LoopDevice { number }
    }

    /// Finds an unused loop device. Another process may take it before it is configured.
    ///
    /// # Errors
    /// [`HostError::Io`] if there are no loop devices.
    pub(super) fn free() -> Result<LoopDevice, HostError> {
        let path = Path::new(CONTROL);
        let control = OpenOptions::new().read(true).write(true).open(path);
        let control = control.map_err(HostError::io(Operation::Open, path))?;
        // SAFETY: the request has no argument and returns a number.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
        let number = u32::try_from(number).map_err(|_| last_error(path))?;
        Ok(LoopDevice { number })
    }

    pub(super) fn number(self) -> u32 {
        self.number
    }

    /// The device node: `/dev/loop0`.
    pub(super) fn node(self) -> PathBuf {
        PathBuf::from(format!("/dev/loop{}", self.number))
    }

    /// The folder in sysfs.
    pub(super) fn folder(self) -> PathBuf {
        PathBuf::from(format!("/sys/block/loop{}", self.number))
    }

    /// The path by which the kernel names the backing file; `None` if there is none.
    pub(super) fn file(self) -> Option<PathBuf> {
        let text = fs::read_to_string(self.folder().join("loop/backing_file")).ok()?;
        Some(PathBuf::from(text.trim_end_matches('\n')))
    }

    /// Attaches the device to a file with direct I/O, so that no cache is between them. Returns false if another
    /// process has taken the device.
    ///
    /// # Errors
    /// [`HostError::Io`] if the kernel rejects a setting; [`HostError::Invalid`] if it ignores one.
    pub(super) fn configure(self, path: &Path, block: u32) -> Result<bool, HostError> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(HostError::io(Operation::Open, path))?;
        let node = self.open()?;
        let config = Config {
            file: file.as_raw_fd().cast_unsigned(),
            block,
            unused: [0; 5],
            no_encryption: [0; 3],
            flags: LO_FLAGS_DIRECT_IO,
            name: [0; 64],
            no_names: [0; 176],
        };
        // SAFETY: the request reads a `struct loop_config`, which `config` is.
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

    /// Limits requests to the size of a FUSE request, at most 256 pages of memory. The kernel would split a
    /// larger one, and not at a block boundary if its memory does not begin at a page. 128 segments of 512
    /// KiB touch at most 256 pages.
    fn limit(self) -> Result<(), HostError> {
        let path = self.folder().join("queue/max_sectors_kb");
        fs::write(&path, "512").map_err(HostError::io(Operation::Write, &path))
    }

    /// Checks that the kernel applied the settings, because it ignores some silently.
    fn check(self, block: u32) -> Result<(), HostError> {
        let node = self.node();
        let check = |what, value: Option<u64>, is_right: bool, accepted: &str| match is_right {
            true => Ok(()),
            false => Err(HostError::invalid(
                what,
                value.map_or_else(|| "missing".to_owned(), |value| value.to_string()),
                format!("{} {accepted}", node.display()),
            )),
        };
        let direct = self.attribute("loop/dio");
        check("direct I/O", direct, direct == Some(1), "must not use the page cache, but this kernel does")?;
        let size = self.attribute("queue/logical_block_size");
        let accepted = format!("must have blocks of {block} bytes");
        check("the logical block", size, size == Some(u64::from(block)), &accepted)?;
        let discard = self.attribute("queue/discard_max_bytes");
        check("discard", discard, discard.is_some_and(|most| most > 0), "must support discards")
    }

    /// Detaches the device from its file. If the device is in use, the kernel detaches it when the last user closes
    /// it; see [`LoopDevice::file`].
    ///
    /// # Errors
    /// [`HostError::Io`] if the kernel rejects the request.
    pub(super) fn clear(self) -> Result<(), HostError> {
        let node = self.open()?;
        // SAFETY: the request has no argument.
        let result = unsafe { libc::ioctl(node.as_raw_fd(), LOOP_CLR_FD, 0) };
        match last_error(&self.node()) {
            _ if result == 0 => Ok(()),
            // The device has no file.
            HostError::Io { source, .. } if is(&source, Errno::NXIO) => Ok(()),
            error => Err(error),
        }
    }

    /// The number of completed requests.
    pub(super) fn completed(self) -> u64 {
        // Documentation/block/stat.rst: reads, writes, discards, flushes.
        [0, 4, 11, 15].map(|field| self.counted(field)).into_iter().sum()
    }

    /// The number of requests in flight.
    pub(super) fn in_flight(self) -> u64 {
        self.counted(8)
    }

    pub(super) fn size(self) -> Bytes {
        // Sectors have 512 bytes, independent of the block size.
        Bytes::new(self.attribute("size").unwrap_or(0) * 512)
    }

    /// The current queue settings.
    pub(super) fn queue(self) -> Queue {
        Queue {
            scheduler: scheduler::choices(&format!("loop{}", self.number)).1,
            requests: self.attribute("queue/nr_requests"),
            largest_kib: self.attribute("queue/max_sectors_kb"),
            rotational: self.attribute("queue/rotational"),
        }
    }

    /// Restores the queue settings; may wait for requests in flight. Ignores values that the kernel rejects, because
    /// they do not prevent detaching.
    pub(super) fn restore(self, before: &Queue) {
        let set = |name: &str, value: &str| drop(fs::write(self.folder().join("queue").join(name), value));
        let set_number = |name: &str, value: Option<u64>| {
            value.into_iter().for_each(|value| set(name, &value.to_string()));
        };
        if let Some(name) = &before.scheduler {
            // Without a scheduler, `nr_requests` is the depth of the device. The kernel shows the initial depth, even
            // if another one is in effect, and ignores a write of the value that it shows. So another value comes
            // first.
            set("scheduler", "none");
            let initial = self.attribute("queue/nr_requests");
            set_number("nr_requests", initial.map(|initial| initial.saturating_sub(1)));
            set_number("nr_requests", initial);
            set("scheduler", name);
        }
        let current = self.attribute("queue/nr_requests");
        set_number("nr_requests", before.requests.filter(|_| before.requests != current));
        set_number("max_sectors_kb", before.largest_kib);
        set_number("rotational", before.rotational);
    }

    /// Major and minor number.
    pub(super) fn major_and_minor(self) -> (u32, u32) {
        let number = line(&self.folder().join("dev")).and_then(|text| numbers(&text));
        // The major number of loop devices is in <linux/major.h>.
        number.unwrap_or((7, self.number))
    }

    /// Returns whether a mount is on this device.
    pub(super) fn is_mounted_at(self, mount: &Mount) -> bool {
        mount.is_of(self.major_and_minor(), &self.node())
    }

    fn counted(self, field: usize) -> u64 {
        let text = line(&self.folder().join("stat")).unwrap_or_default();
        text.split_whitespace().nth(field).and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    fn open(self) -> Result<File, HostError> {
        let path = self.node();
        OpenOptions::new().read(true).write(true).open(&path).map_err(HostError::io(Operation::Open, &path))
    }

    /// A numeric attribute in sysfs.
    fn attribute(self, name: &str) -> Option<u64> {
        line(&self.folder().join(name))?.parse().ok()
    }
}

/// The loop devices whose backing file satisfies `is_wanted`, by number.
pub(super) fn over(is_wanted: impl Fn(&Path) -> bool) -> Vec<LoopDevice> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("loop")?.parse().ok());
    let mut all: Vec<LoopDevice> = numbers.map(LoopDevice::new).collect();
    all.retain(|device| device.file().is_some_and(|file| is_wanted(&file)));
    all.sort_by_key(|device| device.number);
    all
}

fn last_error(path: &Path) -> HostError {
    HostError::io(Operation::Configure, path)(std::io::Error::last_os_error())
}

fn is(error: &std::io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}
