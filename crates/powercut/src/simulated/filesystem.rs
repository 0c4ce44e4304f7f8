//! A minimal filesystem with a page cache ([`FileSystem`]), for a database on a simulated drive.
//!
//! ```text
//!   write ─► page cache: dirty pages ─┬─ fsync: all of the file ─┐
//!                                     └─ at random: any page ────┴─► drive ─► [flush] ─► metadata ─► [flush]
//! ```
//!
//! The filesystem gives only the guarantees of ext4 (`data=ordered`, delayed allocation) and XFS. All metadata
//! (names, lengths, blocks) shares one journal: a sync of any file commits all current metadata atomically, after the
//! pages that have been written back. A page gets a block at its first write-back, and the file's length on the drive
//! covers only written pages. Later write-backs overwrite the block in place. A freed block is reused only after its
//! release is committed. With barriers, a sync flushes the drive and then writes changed metadata with forced unit
//! access. Without barriers, a sync only waits for its writes.
//!
//! The host also writes back dirty pages and commits metadata at random times. A kernel does so without a sync: it
//! writes back pages within half a minute and commits metadata every few seconds (`commit=5` of ext4,
//! `xfssyncd_centisecs`). A power cut loses the page cache.
//!
//! # Not modelled
//! Directories, locks and permissions are absent. Processor time is ignored, except for two microseconds per system
//! call other than a read.

use super::drive::{BLOCK, Drive};
use super::metadata::{self, Extents, Metadata};
use lowtide_core::rng::{Rng, below};
use lowtide_core::{Nanos, Seed, VirtualTime};
use lowtide_device::power::Tear;
use lowtide_host::sqlite_vfs::{FileError, FileNumber, Files};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The duration of a system call.
const SYSTEM_CALL: Nanos = Nanos::from_micros(2);
/// One write in this many is followed by the write-back of a dirty page.
const WRITE_BACK: u64 = 16;
/// One write in this many is followed by a commit of changed metadata.
const COMMIT: u64 = 64;
/// The Unix time in milliseconds at which virtual time starts: the load time in the loaded rows.
const BEGAN_MS: i64 = lowtide_engines::tpcc::LOADED_AT_SECONDS * 1_000;

type Page = Box<[u8]>;

/// A file.
#[derive(Default)]
struct File {
    /// Length in bytes that the host sees.
    size: u64,
    /// Length in bytes on the drive. Covers only written pages.
    written: u64,
    /// The block of each page; 0 if the page has no block.
    blocks: Vec<u32>,
    dirty: BTreeMap<u32, Page>,
    /// For each page, `true` if the page cache holds it.
    seen: Vec<bool>,
    opened: u32,
    /// `true` while the file has a name.
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
    /// Freed blocks whose release is not yet committed.
    freed: Vec<u32>,
    /// `true` if metadata has changed since its last commit.
    changed: bool,
    sequence: u64,
    /// Events until the power cut; `None` without a cut.
    left: Option<u64>,
    powered: bool,
    /// Makes syncs ineffective, as a deliberate fault.
    #[cfg(test)]
    pub(super) forgets_syncs: bool,
}

impl FileSystem {
    /// Makes and mounts an empty filesystem on a drive. The power stays on.
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
        made.commit().expect("no power cut");
        made
    }

    /// The virtual time.
    pub(super) fn now(&self) -> VirtualTime {
        self.drive.now()
    }

    /// Returns whether the power is on.
    pub(super) fn is_powered(&self) -> bool {
        self.powered
    }

    /// Makes all files durable. Returns the contents of the drive for [`FileSystem::restore`].
    pub(super) fn image(&mut self) -> Vec<u8> {
        for file in 0..self.files.len() {
            self.write_all_back(file as FileNumber).expect("no power cut");
        }
        self.commit().expect("no power cut");
        self.drive.image()
    }

    /// Cuts the power and replaces the contents of the drive. [`FileSystem::power_on`] then mounts the filesystem.
    pub(super) fn restore(&mut self, image: &[u8]) {
        self.power_cut();
        self.drive.restore(image);
    }

    /// Restores the power and mounts the filesystem. The power is cut again at event number `cut_at`, counted from 1.
    /// An event is a change by the host, a write to the drive, or a flush.
    ///
    /// # Errors
    /// [`FileError::Device`] if the drive has no valid metadata.
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

    /// Cuts the power and drops the page cache.
    pub(super) fn power_cut(&mut self) {
        let tear = if below(&mut self.rng, 2) == 0 { Tear::Sector } else { Tear::Page };
        self.drive.power_cut(tear);
        self.names.clear();
        self.files.clear();
        (self.free, self.freed) = (Vec::new(), Vec::new());
        (self.powered, self.changed, self.left) = (false, false, None);
    }

    /// The unused data blocks, in descending order.
    fn unused(&self, used: &[u32]) -> Vec<u32> {
        let blocks = (self.drive.room() / BLOCK) as u32;
        let mut taken = vec![false; blocks as usize];
        used.iter().for_each(|block| taken[*block as usize] = true);
        (metadata::BLOCKS..blocks).rev().filter(|block| !taken[*block as usize]).collect()
    }

    /// Counts an event. Cuts the power if the count is reached.
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

    fn file(&mut self, number: FileNumber) -> &mut File {
        &mut self.files[number as usize]
    }

    /// Copies bytes of a page from the page cache or the drive.
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

    /// Changes bytes of a page and marks it dirty.
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

    /// Writes a dirty page to the drive without waiting.
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

    /// Commits changed metadata at random.
    fn perhaps_commit(&mut self) -> Result<(), FileError> {
        if self.changed && below(&mut self.rng, COMMIT) == 0 { self.commit() } else { Ok(()) }
    }

    /// Writes back a dirty page at random.
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

    /// Waits for all writes and commits changed metadata. With barriers, both are durable on a drive that honours
    /// flushes.
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

    /// Zeroes the last page beyond the end of the file before a change at `offset` extends the file. The page may
    /// hold bytes that were written back before a cut without a commit of the new length.
    fn clear_gap(&mut self, number: FileNumber, offset: u64) {
        let size = self.file(number).size;
        let (page, within) = ((size / BLOCK) as u32, (size % BLOCK) as usize);
        if offset > size && within > 0 {
            self.change(number, page, |page| page[within..].fill(0));
        }
    }

    /// Frees the blocks of a file from page `first` on.
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

/// A filesystem that SQLite shares with the code that cuts the power.
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
    /// Begins a system call.
    fn call(&self) -> Result<MutexGuard<'_, FileSystem>, FileError> {
        let mut its = self.lock();
        its.power()?;
        its.drive.pass(SYSTEM_CALL);
        Ok(its)
    }
}

impl Files for Host {
    fn open(&mut self, name: &str, create: bool) -> Result<FileNumber, FileError> {
        let mut its = self.call()?;
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
        // A power cut has closed all files.
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
        let mut its = self.call()?;
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
        Ok(self.call()?.names.contains_key(name))
    }

    fn read(&mut self, file: FileNumber, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        let mut its = self.lock();
        // Reads from the page cache take no time, because their number is not deterministic: all threads share
        // SQLite's cache.
        its.power()?;
        let size = its.file(file).size;
        let there = size.saturating_sub(offset).min(into.len() as u64);
        each_page(offset, there, |page, within, range| its.copy(file, page, within, &mut into[range]));
        Ok(there as usize)
    }

    fn write(&mut self, file: FileNumber, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        let mut its = self.call()?;
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
        let mut its = self.call()?;
        its.clear_gap(file, length);
        its.cut_off(file, length.div_ceil(BLOCK) as u32);
        let (within, size) = ((length % BLOCK) as usize, its.file(file).size);
        if within > 0 && length < size {
            // Bytes beyond the end must read as zeroes if the file is extended again.
            its.change(file, (length / BLOCK) as u32, |page| page[within..].fill(0));
        }
        // An extension changes the length on the drive at once. Before a truncation, the length on the drive may
        // already be shorter.
        let written = if length > size { length } else { its.file(file).written.min(length) };
        its.changed |= written != its.file(file).written;
        (its.file(file).size, its.file(file).written) = (length, written);
        its.event()
    }

    fn sync(&mut self, file: FileNumber) -> Result<(), FileError> {
        let mut its = self.call()?;
        #[cfg(test)]
        if its.forgets_syncs {
            return Ok(());
        }
        its.write_all_back(file)?;
        its.commit()
    }

    fn size(&mut self, file: FileNumber) -> Result<u64, FileError> {
        Ok(self.call()?.file(file).size)
    }

    fn now_ms(&self) -> i64 {
        BEGAN_MS + (self.lock().now().as_nanos() / 1_000_000) as i64
    }
}

/// Calls `each` for each page of a range: the page number, the offset in the page, and the part of the range.
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
