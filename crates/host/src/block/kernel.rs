//! System calls that rustix does not provide: the backing file of a loop device, locks of open file
//! descriptions, and whether two threads share their descriptors.
//!
//! `unsafe` because they are an `ioctl`, an `fcntl` and a raw system call.
#![allow(unsafe_code)]

use super::disk::Number;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// <linux/loop.h>
const LOOP_GET_STATUS64: libc::Ioctl = 0x4c05;
/// <linux/kcmp.h>
const KCMP_FILES: libc::c_int = 2;

/// `struct loop_info64` of <linux/loop.h>; only the first fields are read.
#[repr(C)]
#[derive(Default)]
struct LoopInfo {
    device: u64,
    inode: u64,
    node: u64,
    rest: [[u64; 13]; 2],
}

// The kernel copies this many bytes.
const _: () = assert!(size_of::<LoopInfo>() == 232);

/// The backing file of a loop device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LoopStatus {
    /// The device number of the file's filesystem.
    pub device: Number,
    /// The inode number of the file.
    pub inode: u64,
    /// If the file is a device node, the number of that device; otherwise `0:0`.
    pub node: Number,
}

/// Reads the backing file of an open loop device.
pub(super) fn loop_status(node: &File) -> io::Result<LoopStatus> {
    let mut info = LoopInfo::default();
    // SAFETY: the request writes a `struct loop_info64`, and `info` has its size.
    let result = unsafe { libc::ioctl(node.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(LoopStatus { device: decode(info.device), inode: info.inode, node: decode(info.node) })
}

/// The inverse of `huge_encode_dev` in <linux/kdev_t.h>: twelve bits of the major number are between those of
/// the minor number.
fn decode(device: u64) -> Number {
    (((device >> 8) & 0xfff) as u32, ((device & 0xff) | ((device >> 12) & 0xfff00)) as u32)
}

/// Takes a write lock on a whole file until it is closed. The file must be open for writing.
pub(super) fn lock_records(file: &File) -> io::Result<()> {
    // SAFETY: `struct flock` consists of numbers, which may be zero. Zeroes mean the range from the first
    // byte to the end.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: the call reads a `struct flock`, which `lock` is.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns whether two threads share their descriptors; `None` if the kernel does not report it.
pub(super) fn share_descriptors(one: u32, other: u32) -> Option<bool> {
    // SAFETY: the call takes five numbers and touches no memory of this process.
    let result = unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_FILES, 0, 0) };
    (result >= 0).then_some(result == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_devices_are_unpacked() {
        assert_eq!(decode(0x0703), (7, 3));
        // glibc packs the lower 32 bits in the same way.
        let (major, minor) = (259, 0x1_2345);
        assert_eq!(decode(rustix::fs::makedev(major, minor)), (major, minor));
    }

    #[test]
    fn a_thread_shares_its_descriptors_with_itself() {
        let this = std::process::id();
        // A kernel without kcmp(2) does not report it.
        assert_ne!(share_descriptors(this, this), Some(false));
    }
}
