//! [`DriveFile`]: a drive as the one file of a filesystem (FUSE).
//!
//! Each call becomes a request to the drive and returns when the drive has completed it; many calls are in flight at
//! once. Nothing is cached, neither here nor in the kernel. A handle is valid until the next power cut of the drive.
//! Afterwards its requests fail with `EIO`, and the file has to be opened again.
//!
//! | call | request |
//! |---|---|
//! | `read` | read |
//! | `write` | write; with `O_DSYNC`, `O_SYNC` or `RWF_DSYNC` with forced unit access |
//! | `fsync`, `fdatasync` | flush |
//! | `fallocate(PUNCH_HOLE)` | trim |
//! | `fallocate(ZERO_RANGE)` | write zeroes |
//!
//! Writes must consist of whole blocks. The kernel splits a request that exceeds 1 MiB or 256 pages of memory. The
//! pieces end at block boundaries only if the memory begins at a page.
//!
//! Closing a handle does not flush, as with a block device: data that was not synced may be lost.

use crate::live::{Outcome, Port};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyStatfs, ReplyWrite, Request, WriteFlags,
};
use lowtide_core::{Op, Request as DriveRequest};
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// The name of the file.
pub(super) const NAME: &str = "disk";
/// The inode of the file.
const FILE: INodeNo = INodeNo(2);
/// Maximum number of requests in flight, far above the queue depth of a loop device.
const IN_FLIGHT: u16 = 1024;
/// Time for which the kernel may cache attributes.
const NO_CACHE: Duration = Duration::ZERO;

/// The filesystem.
pub(super) struct DriveFile {
    port: Arc<dyn Port>,
}

impl DriveFile {
    pub(super) fn new(port: Arc<dyn Port>) -> DriveFile {
        DriveFile { port }
    }

    /// Rejects requests that are not aligned to blocks or exceed the drive.
    fn check(&self, offset: u64, length: u64) -> Result<(), Errno> {
        let block = u64::from(self.port.block()).max(1);
        if !offset.is_multiple_of(block) || !length.is_multiple_of(block) {
            return Err(Errno::EINVAL);
        }
        match offset.checked_add(length) {
            Some(end) if end <= self.port.size() => Ok(()),
            _ => Err(Errno::ENOSPC),
        }
    }

    /// Submits a request on behalf of a handle; `answer` is called once.
    fn submit(
        &self,
        handle: FileHandle,
        request: DriveRequest,
        data: Vec<u8>,
        answer: impl FnOnce(Result<Vec<u8>, Errno>) + Send + 'static,
    ) {
        let done = move |outcome: Outcome| answer(outcome.map_err(Errno::from_i32));
        self.port.submit(handle.0, request, data, Box::new(done));
    }

    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_file = inode == FILE;
        let size = if is_file { self.port.size() } else { 0 };
        FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o600 } else { 0o500 },
            nlink: if is_file { 1 } else { 2 },
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: self.port.block(),
            flags: 0,
        }
    }
}

impl Filesystem for DriveFile {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without it the kernel would send the parts of a large request one after the other.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_background(IN_FLIGHT);
        let _ = config.set_congestion_threshold(IN_FLIGHT);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == NAME {
            reply.entry(&NO_CACHE, &self.attributes(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&NO_CACHE, &self.attributes(inode));
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if inode != FILE {
            return reply.error(Errno::EISDIR);
        }
        let flags = FopenFlags::FOPEN_DIRECT_IO
            | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
            | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(self.port.life()), flags);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        // A read beyond the end returns nothing. The kernel splits large reads at memory pages rather than
        // blocks, so whole blocks are read.
        let size = self.port.size();
        let end = offset.saturating_add(u64::from(length)).min(size);
        let block = u64::from(self.port.block()).max(1);
        let (from, to) = (offset - offset % block, end.next_multiple_of(block).min(size));
        if offset >= end {
            return reply.data(&[]);
        }
        let wanted = (offset - from) as usize..(end - from) as usize;
        self.submit(handle, DriveRequest::read(from, to - from), Vec::new(), move |answer| match answer {
            Ok(data) => reply.data(data.get(wanted).unwrap_or_default()),
            Err(errno) => reply.error(errno),
        });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let length = data.len() as u64;
        if let Err(errno) = self.check(offset, length) {
            return reply.error(errno);
        }
        // `O_SYNC` includes the bit of `O_DSYNC`.
        let op = Op::Write { fua: flags.0 & libc::O_DSYNC != 0 };
        let answer = move |answer: Result<Vec<u8>, Errno>| match answer {
            Ok(_) => reply.written(length as u32),
            Err(errno) => reply.error(errno),
        };
        self.submit(handle, DriveRequest { op, offset, length }, data.to_vec(), answer);
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        self.submit(handle, DriveRequest::flush(), Vec::new(), move |answer| finish(answer, reply));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let op = match mode & !libc::FALLOC_FL_KEEP_SIZE {
            libc::FALLOC_FL_PUNCH_HOLE => Op::Trim,
            libc::FALLOC_FL_ZERO_RANGE => Op::WriteZeroes,
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        match self.check(offset, length) {
            Err(errno) => reply.error(errno),
            Ok(()) => {
                let request = DriveRequest { op, offset, length };
                self.submit(handle, request, Vec::new(), move |answer| finish(answer, reply));
            }
        }
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // The loop device uses the block size as the granularity of discards.
        let block = self.port.block();
        reply.statfs(self.port.size() / u64::from(block.max(1)), 0, 0, 1, 0, block, 255, block);
    }

    fn readdir(&self, _: &Request, _: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, NAME),
        ];
        let rest = entries.into_iter().enumerate().skip(usize::try_from(offset).unwrap_or(usize::MAX));
        for (at, (inode, kind, name)) in rest {
            if reply.add(inode, at as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

fn finish(answer: Result<Vec<u8>, Errno>, reply: ReplyEmpty) {
    match answer {
        Ok(_) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}
