//! Contents in memory: one mapping of the drive's size, whose pages are allocated by the first write ([`Memory`]).

#![allow(unsafe_code)]

use super::Run;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::io;
use std::ptr::NonNull;

/// Bytes of a page, the unit of allocation.
const PAGE: u64 = 4096;

/// Ranges of at least this many bytes are unmapped. Filling shorter ranges with zeroes is faster.
const GIVEN_BACK: u64 = 64 << 10;

/// Bytes in memory.
#[derive(Debug)]
pub struct Memory {
    base: NonNull<u8>,
    length: usize,
    /// A bit per page, set when the page is written.
    written: Vec<u64>,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// Reserves `length` zero bytes, none of them allocated.
    ///
    /// # Errors
    /// If the address space is exhausted.
    pub fn new(length: u64) -> io::Result<Memory> {
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?.max(1);
        let (protection, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new mapping at an address that the kernel chooses overlaps no other memory.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), length, protection, flags)? };
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut memory = Memory { base, length, written: Vec::new() };
        memory.written = vec![0; memory.pages().div_ceil(64) as usize];
        // SAFETY: the advice changes how the mapping is backed, not its contents. The kernel may refuse it.
        let _ = unsafe { madvise(memory.base.as_ptr().cast(), length, Advice::LinuxNoHugepage) };
        Ok(memory)
    }

    fn pages(&self) -> u64 {
        (self.length as u64).div_ceil(PAGE)
    }

    /// The address of a range.
    ///
    /// # Panics
    /// If the range exceeds the contents. The drive checks requests first.
    fn range(&self, offset: u64, length: u64) -> *mut u8 {
        let end = offset.checked_add(length).expect("the drive checked the range");
        assert!(end <= self.length as u64, "bytes {offset}..{end} of {}", self.length);
        // SAFETY: `offset` is at most `length`, so the pointer is in the mapping or at its end.
        unsafe { self.base.as_ptr().add(offset as usize) }
    }

    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let from = self.range(offset, into.len() as u64);
        // SAFETY: the range was checked and is initialised (new pages are zero). It does not overlap `into`. Writes
        // need this value mutably.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let to = self.range(offset, bytes.len() as u64);
        // SAFETY: the range was checked and is borrowed mutably with this value.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        for page in offset / PAGE..(offset + bytes.len() as u64).div_ceil(PAGE) {
            self.written[(page / 64) as usize] |= 1 << (page % 64);
        }
        Ok(())
    }

    /// Zeroes a range and frees its complete pages.
    pub(super) fn clear(&mut self, offset: u64, length: u64) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        let end = offset + length;
        self.range(offset, length);
        let whole_end =
            if end == self.length as u64 { end.next_multiple_of(PAGE) } else { end / PAGE * PAGE };
        let whole = offset.next_multiple_of(PAGE)..whole_end;
        if length >= GIVEN_BACK && whole.start < whole.end.min(end) {
            self.fill_with_zeroes(offset, whole.start);
            let pages = self.range(whole.start, 0);
            let bytes = (whole.end.min(end) - whole.start) as usize;
            // SAFETY: complete pages of the mapping, which is private and anonymous: they read as zeroes afterwards.
            let given_back = unsafe { madvise(pages.cast(), bytes, Advice::LinuxDontNeed) };
            if given_back.is_err() {
                self.fill_with_zeroes(whole.start, whole.end.min(end));
            }
            self.fill_with_zeroes(whole.end.min(end), end);
        } else {
            self.fill_with_zeroes(offset, end);
        }
        self.clear_written(whole.start / PAGE, whole.end / PAGE);
        Ok(())
    }

    /// Zeroes the written pages of a range, so that no page is allocated.
    fn fill_with_zeroes(&mut self, from: u64, to: u64) {
        let mut at = from;
        while at < to {
            let run = self.run(at, to - at);
            if run.allocated {
                let start = self.range(at, run.length);
                // SAFETY: the range was checked and is borrowed mutably with this value.
                unsafe { std::ptr::write_bytes(start, 0, run.length as usize) };
            }
            at += run.length;
        }
    }

    /// Clears the bits of pages.
    fn clear_written(&mut self, first: u64, end: u64) {
        let mut page = first;
        while page < end {
            let bit = page % 64;
            let bits = (64 - bit).min(end - page);
            let mask = if bits == 64 { u64::MAX } else { ((1 << bits) - 1) << bit };
            self.written[(page / 64) as usize] &= !mask;
            page += bits;
        }
    }

    pub(super) fn run(&self, offset: u64, length: u64) -> Run {
        let (first, end) = (offset / PAGE, (offset + length).div_ceil(PAGE));
        let allocated = self.written[(first / 64) as usize] >> (first % 64) & 1 == 1;
        let like_all = if allocated { u64::MAX } else { 0 };
        let mut page = first + 1;
        while page < end {
            let word = self.written[(page / 64) as usize];
            if page.is_multiple_of(64) && word == like_all {
                page += 64;
            } else if (word >> (page % 64) & 1 == 1) == allocated {
                page += 1;
            } else {
                break;
            }
        }
        Run { length: (page * PAGE).min(offset + length) - offset, allocated }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length; all borrows have ended.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}
