//! The least filesystem that a database needs, on a simulated drive, with the memory of its host ([`FileSystem`]).
//!
//! ```text
//!   write ─► page cache: dirty pages ─┬─ fsync: all of the file ─┐
//!                                     └─ now and then: any one ──┴─► drive ─► [flush] ─► metadata ─► [flush]
//! ```
//!
//! It does what ext4 (`data=ordered`, delayed allocation) and XFS promise, and no more. Metadata (names, lengths, which blocks)
//! is one journal: a sync of any file commits all of it as it is by then, after the data that it refers to, and whole or not
//! at all. A block is given to a file when its page is written back, and a file is as long on the drive as the pages that
//! were. What is overwritten is overwritten in place, at once. Blocks that were freed are not used again before their freeing
//! is committed. With barriers, the drive is flushed before metadata is written, which is written with forced unit access,
//! and at the end of a sync that had none to write; without, a sync waits for writes alone.
//!
//! The host writes any dirty page back, and commits metadata, at any time, seeded: a kernel does the one within half a minute, in an
//! order of its own, the other every few seconds (`commit=5` of ext4, `xfssyncd_centisecs`), whoever syncs. All of its memory is lost with the power. Not here: folders, locks, permissions, and how long the host's processors take, but for
//! two microseconds of every system call that is no read.

use super::drive::{BLOCK, Drive};
use super::metadata::{self, Extents, Metadata};
use lowtide_core::rng::{Rng, below};
use lowtide_core::{Nanos, Seed, VirtualTime};
use lowtide_device::power::Tear;
use lowtide_host::sqlite_vfs::{FileError, FileNumber, Files};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a system call takes.
const SYSTEM_CALL: Nanos = Nanos::from_micros(2);
/// Of so many writes, one is followed by a dirty page's being written back.
const WRITE_BACK: u64 = 16;
/// Of so many writes, one is followed by the metadata's being committed, where it has changed.
const COMMIT: u64 = 64;
/// Milliseconds from the beginning of 1970 to that of virtual time: when the load says that it was made.
const BEGAN_MS: i64 = lowtide_engines::tpcc::LOADED_AT_SECONDS * 1_000;

type Page = Box<[u8]>;

/// A file.
#[derive(Default)]
struct File {
    /// Its length, as the host sees it.
    size: u64,
    /// Its length, as far as pages were written back.
    written: u64,
    /// The block of each page; 0 where it has none.
    blocks: Vec<u32>,
    dirty: BTreeMap<u32, Page>,
    /// Whether the host has a page in its memory.
    seen: Vec<bool>,
    opened: u32,
    /// It has a name.
    linked: bool,
}

/// Files on a drive whose power can be cut.
pub(super) struct FileSystem {
    drive: Drive,
    barrier: bool,
    rng: Rng,
    names: BTreeMap<String, FileNumber>,
    files: Vec<File>,
    free: Vec<u32>,
    /// Freed, and not committed.
    freed: Vec<u32>,
    /// Metadata has changed since it was committed.
    changed: bool,
    sequence: u64,
    /// Events until the power is cut, where it will be.
    left: Option<u64>,
    powered: bool,
    /// Syncs are answered, and nothing is done.
    #[cfg(test)]
    pub(super) forgets_syncs: bool,
}

impl FileSystem {
    /// An empty filesystem on a drive, mounted, its power on for good.
    pub(super) fn make(drive: Drive, barrier: bool, seed: Seed) -> FileSystem {
        let mut made = FileSystem {
            drive,
            barrier,
            rng: seed.part("filesystem", 0).stream(),
            names: BTreeMap::new(),
            files: Vec::new(),
            free: Vec::new(),
            freed: Vec::new(),
            changed: true,
            sequence: 0,
            left: None,
            powered: true,
            #[cfg(test)]
            forgets_syncs: false,
        };
        made.free = made.unused(&[]);
        made.commit().expect("nobody cuts the power");
        made
    }

    /// The instant.
    pub(super) fn now(&self) -> VirtualTime {
        self.drive.now()
    }

    /// Whether the power is on.
    pub(super) fn is_powered(&self) -> bool {
        self.powered
    }

    /// Everything that is on the drive and in memory, written and durable: the place to go back to.
    pub(super) fn image(&mut self) -> Vec<u8> {
        for file in 0..self.files.len() {
            self.write_all_back(file as FileNumber).expect("nobody cuts the power");
        }
        self.commit().expect("nobody cuts the power");
        self.drive.image()
    }

    /// Cuts the power, and goes back to what there was. It is mounted by [`FileSystem::power_on`].
    pub(super) fn restore(&mut self, image: &[u8]) {
        self.power_cut();
        self.drive.restore(image);
    }

    /// Gives the power back and mounts what is on the drive; the power is cut again at the event of that number, counted
    /// from 1. An event is a change that the host asks for, a write to the drive, or a flush.
    ///
    /// # Errors
    /// [`FileError::Device`] where no metadata is whole.
    pub(super) fn power_on(&mut self, cut_at: Option<u64>) -> Result<(), FileError> {
        (self.powered, self.left) = (true, cut_at);
        let found = metadata::find(&mut self.drive).ok_or(FileError::Device)?;
        self.sequence = found.sequence;
        let mut used = Vec::new();
        for (name, extents) in found.files {
            let blocks = extents.blocks();
            used.extend(blocks.iter().copied().filter(|block| *block != 0));
            let seen = vec![false; blocks.len()];
            let (size, linked) = (extents.size, true);
            self.names.insert(name, self.files.len() as FileNumber);
            self.files.push(File { size, written: size, blocks, seen, linked, ..File::default() });
        }
        self.free = self.unused(&used);
        Ok(())
    }

    /// Cuts the power: what the host has in memory is gone.
    pub(super) fn power_cut(&mut self) {
        let tear = if below(&mut self.rng, 2) == 0 { Tear::Sector } else { Tear::Page };
        self.drive.power_cut(tear);
        self.names.clear();
        self.files.clear();
        (self.free, self.freed) = (Vec::new(), Vec::new());
        (self.powered, self.changed, self.left) = (false, false, None);
    }

    /// Blocks for data that nobody has; the first is taken last.
    fn unused(&self, used: &[u32]) -> Vec<u32> {
        let blocks = (self.drive.room() / BLOCK) as u32;
        let mut taken = vec![false; blocks as usize];
        used.iter().for_each(|block| taken[*block as usize] = true);
        (metadata::BLOCKS..blocks).rev().filter(|block| !taken[*block as usize]).collect()
    }

    /// Something happens, and with it perhaps the end.
    fn event(&mut self) -> Result<(), FileError> {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.power_cut();
            }
        }
        self.power()
    }

    fn power(&self) -> Result<(), FileError> {
        if self.powered { Ok(()) } else { Err(FileError::Device) }
    }

    /// A system call comes in.
    fn call(&mut self) -> Result<(), FileError> {
        self.power()?;
        self.drive.pass(SYSTEM_CALL);
        Ok(())
    }

    fn file(&mut self, number: FileNumber) -> &mut File {
        &mut self.files[number as usize]
    }

    /// Copies bytes of a page, from memory or from the drive.
    fn copy(&mut self, number: FileNumber, page: u32, within: usize, into: &mut [u8]) {
        let file = &mut self.files[number as usize];
        let part = within..within + into.len();
        if let Some(bytes) = file.dirty.get(&page) {
            return into.copy_from_slice(&bytes[part]);
        }
        let block = file.blocks.get(page as usize).copied().unwrap_or(0);
        if block == 0 {
            return into.fill(0);
        }
        let (offset, seen) =
            (u64::from(block) * BLOCK, std::mem::replace(&mut file.seen[page as usize], true));
        let bytes = if seen { self.drive.peek(offset, BLOCK) } else { self.drive.read(offset, BLOCK) };
        into.copy_from_slice(&bytes[part]);
    }

    /// Changes bytes of a page, which is dirty afterwards.
    fn change(&mut self, number: FileNumber, page: u32, change: impl FnOnce(&mut [u8])) {
        let mut bytes = match self.file(number).dirty.remove(&page) {
            Some(bytes) => bytes,
            None => {
                let mut bytes = vec![0; BLOCK as usize];
                self.copy(number, page, 0, &mut bytes);
                bytes.into()
            }
        };
        change(&mut bytes);
        self.file(number).dirty.insert(page, bytes);
    }

    /// Writes a dirty page to the drive, and does not wait.
    fn write_back(&mut self, number: FileNumber, page: u32) -> Result<(), FileError> {
        let file = &mut self.files[number as usize];
        let Some(bytes) = file.dirty.remove(&page) else { return Ok(()) };
        if file.blocks.len() <= page as usize {
            file.blocks.resize(page as usize + 1, 0);
            file.seen.resize(page as usize + 1, false);
        }
        if file.blocks[page as usize] == 0 {
            let Some(block) = self.free.pop() else {
                file.dirty.insert(page, bytes);
                return Err(FileError::Full);
            };
            file.blocks[page as usize] = block;
            self.changed = true;
        }
        let written = file.written.max(file.size.min((u64::from(page) + 1) * BLOCK));
        self.changed |= written != file.written;
        file.written = written;
        file.seen[page as usize] = true;
        self.drive.write(u64::from(file.blocks[page as usize]) * BLOCK, &bytes, false);
        self.event()
    }

    fn write_all_back(&mut self, number: FileNumber) -> Result<(), FileError> {
        let pages: Vec<u32> = self.file(number).dirty.keys().copied().collect();
        pages.into_iter().try_for_each(|page| self.write_back(number, page))
    }

    /// Now and then, commits metadata that nobody has synced.
    fn perhaps_commit(&mut self) -> Result<(), FileError> {
        if self.changed && below(&mut self.rng, COMMIT) == 0 { self.commit() } else { Ok(()) }
    }

    /// Now and then, writes any dirty page back.
    fn perhaps_write_back(&mut self) -> Result<(), FileError> {
        if below(&mut self.rng, WRITE_BACK) != 0 {
            return Ok(());
        }
        let dirty: u64 = self.files.iter().map(|file| file.dirty.len() as u64).sum();
        let mut nth = below(&mut self.rng, dirty.max(1)) as usize;
        for number in 0..self.files.len() {
            let file = &self.files[number];
            if let Some(page) = file.dirty.keys().copied().nth(nth) {
                return self.write_back(number as FileNumber, page);
            }
            nth -= file.dirty.len();
        }
        Ok(())
    }

    /// Waits for what was written, and makes it and the metadata durable, as far as the drive does what it is told.
    fn commit(&mut self) -> Result<(), FileError> {
        self.drive.wait();
        if self.barrier {
            self.event()?;
            self.drive.flush();
        }
        if !self.changed {
            return Ok(());
        }
        let extents = |file: &File| Extents::of(file.written, &file.blocks);
        let file =
            |(name, number): (&String, &FileNumber)| (name.clone(), extents(&self.files[*number as usize]));
        self.sequence += 1;
        let all = Metadata { sequence: self.sequence, files: self.names.iter().map(file).collect() };
        let freed = std::mem::take(&mut self.freed);
        self.changed = false;
        metadata::write(&mut self.drive, &all, self.barrier);
        self.event()?;
        self.drive.wait();
        self.free.extend(freed);
        Ok(())
    }

    /// What lies behind the end of a file in its last page reads as zeroes before it becomes longer from `offset` on: the page may
    /// have been written when the file was longer than its metadata knew.
    fn clear_gap(&mut self, number: FileNumber, offset: u64) {
        let size = self.file(number).size;
        let (page, within) = ((size / BLOCK) as u32, (size % BLOCK) as usize);
        if offset > size && within > 0 {
            self.change(number, page, |page| page[within..].fill(0));
        }
    }

    /// Gives the blocks of a file from a page on back.
    fn cut_off(&mut self, number: FileNumber, first: u32) {
        let file = &mut self.files[number as usize];
        file.dirty.split_off(&first);
        if file.blocks.len() > first as usize {
            self.freed.extend(file.blocks.drain(first as usize..).filter(|block| *block != 0));
            file.seen.truncate(first as usize);
            self.changed = true;
        }
    }
}

/// A filesystem that SQLite and whoever cuts its power share.
#[derive(Clone)]
pub(super) struct Host(Arc<Mutex<FileSystem>>);

impl Host {
    /// Shares a filesystem.
    pub(super) fn new(filesystem: FileSystem) -> Host {
        Host(Arc::new(Mutex::new(filesystem)))
    }
    /// The filesystem.
    pub(super) fn lock(&self) -> MutexGuard<'_, FileSystem> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files for Host {
    fn open(&mut self, name: &str, create: bool) -> Result<FileNumber, FileError> {
        let mut its = self.lock();
        its.call()?;
        if let Some(number) = its.names.get(name).copied() {
            its.file(number).opened += 1;
            return Ok(number);
        }
        if !create {
            return Err(FileError::Missing);
        }
        let number = its.files.len() as FileNumber;
        its.files.push(File { opened: 1, linked: true, ..File::default() });
        its.names.insert(name.to_owned(), number);
        its.changed = true;
        its.event()?;
        Ok(number)
    }

    fn close(&mut self, file: FileNumber) {
        let mut its = self.lock();
        // After a power cut, the file is not known any more.
        if !its.powered {
            return;
        }
        its.file(file).opened -= 1;
        let File { opened, linked, .. } = *its.file(file);
        if opened == 0 && !linked {
            its.cut_off(file, 0);
        }
    }

    fn delete(&mut self, name: &str, sync: bool) -> Result<(), FileError> {
        let mut its = self.lock();
        its.call()?;
        let number = its.names.remove(name).ok_or(FileError::Missing)?;
        its.changed = true;
        its.file(number).linked = false;
        if its.file(number).opened == 0 {
            its.cut_off(number, 0);
        }
        its.event()?;
        if sync { its.commit() } else { Ok(()) }
    }

    fn exists(&mut self, name: &str) -> Result<bool, FileError> {
        let mut its = self.lock();
        its.call()?;
        Ok(its.names.contains_key(name))
    }

    fn read(&mut self, file: FileNumber, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        let mut its = self.lock();
        // How often SQLite asks again for what it had depends on its memory, which the whole process shares: what the host has is free.
        its.power()?;
        let size = its.file(file).size;
        let there = size.saturating_sub(offset).min(into.len() as u64);
        each_page(offset, there, |page, within, range| its.copy(file, page, within, &mut into[range]));
        Ok(there as usize)
    }

    fn write(&mut self, file: FileNumber, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        let mut its = self.lock();
        its.call()?;
        its.clear_gap(file, offset);
        each_page(offset, bytes.len() as u64, |page, within, range| {
            let new = &bytes[range];
            its.change(file, page, |page| page[within..within + new.len()].copy_from_slice(new));
        });
        let its = &mut *its;
        let end = offset + bytes.len() as u64;
        its.file(file).size = its.file(file).size.max(end);
        its.event()?;
        its.perhaps_write_back()?;
        its.perhaps_commit()
    }

    fn truncate(&mut self, file: FileNumber, length: u64) -> Result<(), FileError> {
        let mut its = self.lock();
        its.call()?;
        its.clear_gap(file, length);
        its.cut_off(file, length.div_ceil(BLOCK) as u32);
        let (within, size) = ((length % BLOCK) as usize, its.file(file).size);
        if within > 0 && length < size {
            // What comes after the end reads as zeroes, should the file become longer again.
            its.change(file, (length / BLOCK) as u32, |page| page[within..].fill(0));
        }
        // A file that is made longer is so at once; one that is made shorter may not have been as long on the drive.
        let written = if length > size { length } else { its.file(file).written.min(length) };
        its.changed |= written != its.file(file).written;
        (its.file(file).size, its.file(file).written) = (length, written);
        its.event()
    }

    fn sync(&mut self, file: FileNumber) -> Result<(), FileError> {
        let mut its = self.lock();
        its.call()?;
        #[cfg(test)]
        if its.forgets_syncs {
            return Ok(());
        }
        its.write_all_back(file)?;
        its.commit()
    }

    fn size(&mut self, file: FileNumber) -> Result<u64, FileError> {
        let mut its = self.lock();
        its.call()?;
        Ok(its.file(file).size)
    }

    fn now_ms(&self) -> i64 {
        BEGAN_MS + (self.lock().now().as_nanos() / 1_000_000) as i64
    }
}

/// Each page that a range touches: its number, where the range begins in it, and which bytes of the range these are.
fn each_page(offset: u64, length: u64, mut each: impl FnMut(u32, usize, std::ops::Range<usize>)) {
    let mut done = 0;
    while done < length {
        let at = offset + done;
        let within = at % BLOCK;
        let here = (BLOCK - within).min(length - done);
        each((at / BLOCK) as u32, within as usize, done as usize..(done + here) as usize);
        done += here;
    }
}

#[cfg(test)]
mod tests;
