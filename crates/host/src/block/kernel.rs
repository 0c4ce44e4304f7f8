//! Questions to the kernel that rustix has no types for: the file of a loop device, locks of open files, and whether two
//! threads share their descriptors.
//!
//! `unsafe` stands here because the kernel takes these as `ioctl`, `fcntl` and a plain system call. Leaves
//! out what the answers mean.
#![allow(unsafe_code)]

use super::disk::Number;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// <linux/loop.h>
const LOOP_GET_STATUS64: libc::Ioctl = 0x4c05;
/// <linux/kcmp.h>
const KCMP_FILES: libc::c_int = 2;

/// The beginning of `struct loop_info64` of <linux/loop.h>, and the rest of it.
#[repr(C)]
#[derive(Default)]
struct LoopInfo {
    device: u64,
    inode: u64,
    node: u64,
    rest: [[u64; 13]; 2],
}

// What the kernel copies, whatever is declared here.
const _: () = assert!(size_of::<LoopInfo>() == 232);

/// The file of a loop device, as the kernel knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LoopStatus {
    /// The filesystem of the file.
    pub device: Number,
    /// Its inode there.
    pub inode: u64,
    /// The device that it is a node of; `0:0` where it is a file.
    pub node: Number,
}

/// The file of an open loop device.
pub(super) fn loop_status(node: &File) -> io::Result<LoopStatus> {
    let mut info = LoopInfo::default();
    // SAFETY: the request writes a `struct loop_info64` to the address, which `info` has the size of.
    let result = unsafe { libc::ioctl(node.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(LoopStatus { device: decode(info.device), inode: info.inode, node: decode(info.node) })
}

/// `huge_encode_dev` of <linux/kdev_t.h>, backwards: twelve bits of the major number between those of the minor.
fn decode(device: u64) -> Number {
    (((device >> 8) & 0xfff) as u32, ((device & 0xff) | ((device >> 12) & 0xfff00)) as u32)
}

/// Locks a whole file against the record locks of all others, for as long as it is open. It must be open for writing.
pub(super) fn lock_records(file: &File) -> io::Result<()> {
    // SAFETY: `struct flock` is plain numbers, of which all may be zero: from the first byte to the end.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: the call reads a `struct flock` at the address, which `lock` is.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether two threads share their descriptors; `None` where the kernel does not say.
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
        // A kernel that was built without it does not say.
        assert_ne!(share_descriptors(this, this), Some(false));
    }
}
