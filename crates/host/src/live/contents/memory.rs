//! Contents in memory: one mapping as long as the drive, whose pages come with the first write ([`Memory`]).

#![allow(unsafe_code)]

use super::Run;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::io;
use std::ptr::NonNull;

/// Bytes of what is allocated at once.
const PAGE: u64 = 4096;

/// Ranges from this length on are given back to the system; shorter ones are filled with zeroes, which is faster.
const GIVEN_BACK: u64 = 64 << 10;

/// Bytes in memory.
#[derive(Debug)]
pub struct Memory {
    base: NonNull<u8>,
    length: usize,
    /// A bit for each page that was written.
    written: Vec<u64>,
}

// SAFETY: the mapping belongs to this value alone; nothing about it is tied to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// `length` zero bytes, none of them allocated.
    ///
    /// # Errors
    /// Where there are no addresses for so many.
    pub fn new(length: u64) -> io::Result<Memory> {
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?.max(1);
        let (protection, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that exists.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), length, protection, flags)? };
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut memory = Memory { base, length, written: Vec::new() };
        memory.written = vec![0; memory.pages().div_ceil(64) as usize];
        // SAFETY: the mapping is ours; the advice changes how it is backed, not what it holds. It may be refused.
        let _ = unsafe { madvise(memory.base.as_ptr().cast(), length, Advice::LinuxNoHugepage) };
        Ok(memory)
    }

    fn pages(&self) -> u64 {
        (self.length as u64).div_ceil(PAGE)
    }

    /// Where a range begins in memory.
    ///
    /// # Panics
    /// Where it does not lie inside: whoever holds the contents checks requests first.
    fn range(&self, offset: u64, length: u64) -> *mut u8 {
        let end = offset.checked_add(length).expect("the drive checked the range");
        assert!(end <= self.length as u64, "bytes {offset}..{end} of {}", self.length);
        // SAFETY: `offset` is at most `length`, so the pointer stays inside the mapping or at its end.
        unsafe { self.base.as_ptr().add(offset as usize) }
    }

    /// Reads.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        let from = self.range(offset, into.len() as u64);
        // SAFETY: the range was checked, is initialised (a fresh page is zero) and does not overlap a slice of others;
        // nobody writes meanwhile, because that needs this value mutably.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
    }

    /// Writes.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let to = self.range(offset, bytes.len() as u64);
        // SAFETY: the range was checked and is borrowed mutably with this value.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        for page in offset / PAGE..(offset + bytes.len() as u64).div_ceil(PAGE) {
            self.written[(page / 64) as usize] |= 1 << (page % 64);
        }
    }

    /// Makes zeroes of a range and gives its whole pages back.
    pub fn clear(&mut self, offset: u64, length: u64) {
        if length == 0 {
            return;
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
            // SAFETY: whole pages inside the mapping, which is private and anonymous: they read as zeroes afterwards.
            let given_back = unsafe { madvise(pages.cast(), bytes, Advice::LinuxDontNeed) };
            if given_back.is_err() {
                self.fill_with_zeroes(whole.start, whole.end.min(end));
            }
            self.fill_with_zeroes(whole.end.min(end), end);
        } else {
            self.fill_with_zeroes(offset, end);
        }
        self.forget(whole.start / PAGE, whole.end / PAGE);
    }

    /// Zeroes what of a range is in written pages, so that no page is allocated for it.
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

    /// Pages are no longer written.
    fn forget(&mut self, first: u64, end: u64) {
        let mut page = first;
        while page < end {
            let bit = page % 64;
            let bits = (64 - bit).min(end - page);
            let mask = if bits == 64 { u64::MAX } else { ((1 << bits) - 1) << bit };
            self.written[(page / 64) as usize] &= !mask;
            page += bits;
        }
    }

    /// The first run of a range.
    pub fn run(&self, offset: u64, length: u64) -> Run {
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
        // SAFETY: mapped in `new` with this length, and nobody borrows it any more.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}
