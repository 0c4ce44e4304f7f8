//! A medium in memory that remembers every write, and can be had as a power cut after any of them would have left it.

#![allow(dead_code, reason = "each test uses a part")]

use lowtide_core::Seed;
use lowtide_core::rng::{Rng, below};
use lowtide_logdisk::{BLOCK, Medium};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::io;
use std::rc::Rc;

/// What is cut apart: a sector of the medium is written as a whole or not at all.
const SECTOR: usize = 512;

/// Blocks that were written; all others are zeroes.
pub type Blocks = HashMap<u64, Rc<[u8; BLOCK]>>;

#[derive(Debug, Clone)]
enum Event {
    Write(u64, Rc<Vec<u8>>),
    /// So many events are durable.
    Flushed(usize),
    /// The event of this number is durable, and no other by that.
    Forced(usize),
}

/// A medium in memory.
#[derive(Debug)]
pub struct Memory {
    bytes: u64,
    blocks: RefCell<Blocks>,
    /// As it was when recording began.
    base: Blocks,
    events: RefCell<Vec<Event>>,
    /// The write or flush that fails, counted from now.
    failing: Cell<Option<usize>>,
    /// Blocks that cannot be read.
    unreadable: RefCell<HashSet<u64>>,
}

impl Memory {
    /// One write or flush fails, after so many that do not.
    pub fn fail_after(&self, events: usize) {
        self.failing.set(Some(events));
    }
    /// A block cannot be read any more.
    pub fn lose(&self, offset: u64) {
        self.unreadable.borrow_mut().insert(offset / BLOCK as u64);
    }
    /// All blocks can be read again.
    pub fn find_again(&self) {
        self.unreadable.borrow_mut().clear();
    }
    fn may_fail(&self) -> io::Result<()> {
        match self.failing.get() {
            Some(0) => {
                self.failing.set(None);
                Err(io::Error::other("it failed because it was told to"))
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
    /// What it holds, everything written and durable.
    pub fn blocks(&self) -> Blocks {
        self.blocks.borrow().clone()
    }
    /// A flush that was begun when there were so many events has come to its end.
    pub fn flushed(&self, begun: usize) {
        self.events.borrow_mut().push(Event::Flushed(begun));
    }
    /// Writes and flushes so far.
    pub fn events(&self) -> usize {
        self.events.borrow().len()
    }
    /// How many writes, flushes and forced writes there were so far.
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
    /// The blocks that were written last, by so many writes; the newest first.
    pub fn written_last(&self, writes: usize) -> Vec<u64> {
        let all = self.events.borrow();
        let written = all.iter().rev().filter_map(|event| match event {
            Event::Write(offset, data) => Some((offset / BLOCK as u64, data.len() / BLOCK)),
            _ => None,
        });
        written.take(writes).flat_map(|(first, count)| (first..first + count as u64).rev()).collect()
    }
    /// Changes a bit.
    pub fn rot(&self, offset: u64, bit: u8) {
        let mut blocks = self.blocks.borrow_mut();
        let block = blocks.entry(offset / BLOCK as u64).or_insert_with(|| Rc::new([0; BLOCK]));
        Rc::make_mut(block)[(offset % BLOCK as u64) as usize] ^= 1 << (bit % 8);
    }

    /// What a power cut after `events` writes and flushes leaves: what was flushed, and of every write after that all, nothing or
    /// some of its sectors, as `rng` says.
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

/// What becomes of writes that were not flushed.
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
                return Err(io::Error::other("it cannot be read because it was told so"));
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
            // A drive puts it elsewhere.
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

/// A random stream that a test tells the seed of.
pub fn stream(name: &str, number: u64) -> Rng {
    Seed::new(1).part(name, number).stream()
}

/// A block with a value of its own; 0 is a block of zeroes.
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

/// The value of a block; panics where it is none of this block's.
pub fn value_of(lba: u32, block: &[u8]) -> u64 {
    let value = u64::from_le_bytes(block[..8].try_into().expect("eight bytes"));
    assert!(block == block_of(lba, value), "block {lba} holds something that was never written there");
    value
}
