//! A medium in memory that records every write and returns the state that a power cut after any write would leave.
//! Also helpers of the tests.

#![allow(dead_code, reason = "each test uses a part")]

use lowtide_core::Seed;
use lowtide_core::rng::{Rng, below};
use lowtide_logdisk::check::{Checked, check};
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::format::Checkpoint;
use lowtide_logdisk::{BLOCK, Disk, LogError, Medium, Options};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Size of the medium of most tests, in bytes.
pub const BYTES: u64 = 36 << 20;

/// The options of most tests.
pub const OPTIONS: Options = Options { segment: 1 << 20, reserve: 0.1 };

/// The unit in which a power cut tears writes, in bytes.
const SECTOR: usize = 512;

/// The written blocks; all others are zeroes.
pub type Blocks = HashMap<u64, Rc<[u8; BLOCK]>>;

#[derive(Debug, Clone)]
enum Event {
    Write(u64, Rc<Vec<u8>>),
    /// All earlier events up to this number are durable.
    Flushed(usize),
    /// The event of this number is durable.
    Forced(usize),
}

/// A medium in memory.
#[derive(Debug)]
pub struct Memory {
    bytes: u64,
    blocks: RefCell<Blocks>,
    /// The blocks before the first event.
    base: Blocks,
    events: RefCell<Vec<Event>>,
    /// The number of writes and flushes before the one that fails.
    failing: Cell<Option<usize>>,
    /// Blocks that cannot be read.
    unreadable: RefCell<HashSet<u64>>,
}

impl Memory {
    /// Makes one write or flush fail, after `events` successful ones.
    pub fn fail_after(&self, events: usize) {
        self.failing.set(Some(events));
    }
    /// Makes a block unreadable.
    pub fn lose(&self, offset: u64) {
        self.unreadable.borrow_mut().insert(offset / BLOCK as u64);
    }
    /// Makes all blocks readable.
    pub fn find_again(&self) {
        self.unreadable.borrow_mut().clear();
    }
    fn may_fail(&self) -> io::Result<()> {
        match self.failing.get() {
            Some(0) => {
                self.failing.set(None);
                Err(io::Error::other("the test makes this fail"))
            }
            left => {
                self.failing.set(left.map(|left| left - 1));
                Ok(())
            }
        }
    }
    pub fn new(bytes: u64) -> Memory {
        Memory::of(bytes, Blocks::new())
    }
    pub fn of(bytes: u64, blocks: Blocks) -> Memory {
        Memory {
            bytes,
            base: blocks.clone(),
            blocks: RefCell::new(blocks),
            events: RefCell::default(),
            failing: Cell::default(),
            unreadable: RefCell::default(),
        }
    }
    /// The present blocks.
    pub fn blocks(&self) -> Blocks {
        self.blocks.borrow().clone()
    }
    /// Completes a flush that began after `begun` events.
    pub fn flushed(&self, begun: usize) {
        self.events.borrow_mut().push(Event::Flushed(begun));
    }
    /// Number of events.
    pub fn events(&self) -> usize {
        self.events.borrow().len()
    }
    /// Numbers of writes, flushes and forced writes.
    pub fn counts(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for event in self.events.borrow().iter() {
            match event {
                Event::Write(..) => counts[0] += 1,
                Event::Flushed(_) => counts[1] += 1,
                Event::Forced(_) => counts[2] += 1,
            }
        }
        counts
    }
    /// The blocks of the last `writes` writes, the newest first.
    pub fn written_last(&self, writes: usize) -> Vec<u64> {
        let all = self.events.borrow();
        let written = all.iter().rev().filter_map(|event| match event {
            Event::Write(offset, data) => Some((offset / BLOCK as u64, data.len() / BLOCK)),
            _ => None,
        });
        written.take(writes).flat_map(|(first, count)| (first..first + count as u64).rev()).collect()
    }
    /// Flips a bit.
    pub fn rot(&self, offset: u64, bit: u8) {
        let mut blocks = self.blocks.borrow_mut();
        let block = blocks.entry(offset / BLOCK as u64).or_insert_with(|| Rc::new([0; BLOCK]));
        Rc::make_mut(block)[(offset % BLOCK as u64) as usize] ^= 1 << (bit % 8);
    }

    /// The state after a power cut after `events` events: flushed writes are complete; of each later write all, none
    /// or some of its sectors are present, as `fate` and `rng` decide.
    pub fn after_cut(&self, events: usize, fate: Fate, rng: &mut Rng) -> Blocks {
        let all = self.events.borrow();
        let flushed = all[..events].iter().map(|event| match event {
            Event::Flushed(count) => *count,
            Event::Write(..) | Event::Forced(_) => 0,
        });
        let flushed = flushed.max().unwrap_or(0);
        let forced: HashSet<usize> = all[..events]
            .iter()
            .filter_map(|event| if let Event::Forced(at) = event { Some(*at) } else { None })
            .collect();
        let mut blocks = self.base.clone();
        for (at, event) in all[..events].iter().enumerate() {
            let Event::Write(offset, data) = event else { continue };
            let fate = if at < flushed || forced.contains(&at) { Fate::Kept } else { fate };
            let whole = match fate {
                Fate::Kept => true,
                Fate::Lost => false,
                Fate::Mixed => below(rng, 3) == 0,
            };
            let torn = fate == Fate::Mixed && !whole && below(rng, 2) == 0;
            for (n, sector) in data.chunks(SECTOR).enumerate() {
                if whole || (torn && below(rng, 2) == 0) {
                    put(&mut blocks, offset + (n * SECTOR) as u64, sector);
                }
            }
        }
        blocks
    }
}

/// The fate of writes that were not flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Kept,
    Lost,
    Mixed,
}

fn put(blocks: &mut Blocks, offset: u64, data: &[u8]) {
    let block = blocks.entry(offset / BLOCK as u64).or_insert_with(|| Rc::new([0; BLOCK]));
    Rc::make_mut(block)[(offset % BLOCK as u64) as usize..][..data.len()].copy_from_slice(data);
}

impl Medium for Memory {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        assert!(
            offset.is_multiple_of(BLOCK as u64)
                && into.len().is_multiple_of(BLOCK)
                && offset + into.len() as u64 <= self.bytes
        );
        let blocks = self.blocks.borrow();
        for (at, chunk) in into.chunks_mut(BLOCK).enumerate() {
            if self.unreadable.borrow().contains(&(offset / BLOCK as u64 + at as u64)) {
                return Err(io::Error::other("the test makes this unreadable"));
            }
            match blocks.get(&(offset / BLOCK as u64 + at as u64)) {
                Some(block) => chunk.copy_from_slice(&block[..]),
                None => chunk.fill(0),
            }
        }
        Ok(())
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        assert!(
            offset.is_multiple_of(BLOCK as u64)
                && data.len().is_multiple_of(BLOCK)
                && offset + data.len() as u64 <= self.bytes
        );
        self.may_fail()?;
        for (at, chunk) in data.chunks(BLOCK).enumerate() {
            // A drive remaps the block.
            self.unreadable.borrow_mut().remove(&(offset / BLOCK as u64 + at as u64));
            put(&mut self.blocks.borrow_mut(), offset + (at * BLOCK) as u64, chunk);
        }
        self.events.borrow_mut().push(Event::Write(offset, Rc::new(data.to_vec())));
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        self.may_fail()?;
        let all = self.events();
        self.flushed(all);
        Ok(())
    }
    fn write_durably(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write(offset, data)?;
        self.may_fail()?;
        let written = self.events() - 1;
        self.events.borrow_mut().push(Event::Forced(written));
        Ok(())
    }
}

/// Formats a log disk, closes it, and opens it again.
pub fn formatted(medium: &Memory) -> Disk<&Memory> {
    Disk::format(medium, OPTIONS, [9; 16]).expect("formatted").close().expect("closed");
    opened(medium)
}

/// Opens a log disk.
pub fn opened(medium: &Memory) -> Disk<&Memory> {
    Disk::open(medium, Running::default()).expect("opened")
}

/// Checks a log disk and its data.
pub fn scrub(medium: &Memory) -> Result<Checked, LogError> {
    check(medium, true, &mut |_, _| ControlFlow::Continue(()))
}

/// The newest checkpoint of a log disk, and its offset.
pub fn newest_checkpoint(disk: &Disk<&Memory>) -> (Checkpoint, u64) {
    let geometry = disk.geometry();
    let read = |which| {
        let offset = geometry.checkpoint(which).start;
        let mut bytes = vec![0; (geometry.needs() as usize).next_multiple_of(BLOCK)];
        disk.medium().read(offset, &mut bytes).expect("read");
        Checkpoint::read(&bytes, disk.log().superblock().salt, geometry).ok().map(|it| (it, offset))
    };
    (0..2).filter_map(read).max_by_key(|(it, _)| it.generation).expect("there is a checkpoint")
}

/// A random stream of a test.
pub fn stream(name: &str, number: u64) -> Rng {
    Seed::new(1).part(name, number).stream()
}

/// The contents of a block with a value; 0 is a block of zeroes.
pub fn block_of(lba: u32, value: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    if value > 0 {
        for (at, word) in block.chunks_exact_mut(16).enumerate() {
            word[..8].copy_from_slice(&value.to_le_bytes());
            word[8..12].copy_from_slice(&lba.to_le_bytes());
            word[12..].copy_from_slice(&(at as u32).to_le_bytes());
        }
    }
    block
}

/// The value of a block. Panics if the contents were never written to this block.
pub fn value_of(lba: u32, block: &[u8]) -> u64 {
    let value = u64::from_le_bytes(block[..8].try_into().expect("eight bytes"));
    assert!(block == block_of(lba, value), "block {lba} holds something that was never written there");
    value
}
