//! Where each block lies: pages of 1024 entries of four bytes, loaded when they are first needed, and let go when memory is short.
//!
//! A page costs 4096 bytes and 29 for keeping it, so a map that is in memory as a whole takes 4.03 bytes a block, 0.99 GB for a TB.
//! A page that was changed stays until it is in the log. Leaves out reading and writing pages (`disk`).

use crate::format::checkpoint::NOWHERE;
use crate::format::geometry::PAGE_ENTRIES;
use crate::format::{BLOCK, Geometry, Lba, Slot};
use std::sync::Arc;

/// What the map says of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// It holds nothing: zeroes.
    Hole,
    /// It held something that could not be read when it was to be moved.
    Lost,
    /// It lies there.
    At(Slot),
}

impl Entry {
    const fn word(self) -> u32 {
        match self {
            Entry::Hole => 0,
            Entry::Lost => 1,
            Entry::At(slot) => slot.get() + 2,
        }
    }
    const fn of_word(word: u32) -> Entry {
        match word {
            0 => Entry::Hole,
            1 => Entry::Lost,
            word => Entry::At(Slot::new(word - 2)),
        }
    }
}

/// A page of the map that is needed and not in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing(pub u32);

/// The entries of a page.
pub type Page = [u32; PAGE_ENTRIES as usize];

/// Bytes that a page takes: two counts before it, and what the allocator adds.
const PAGE_BYTES: usize = size_of::<Page>() + 32;

#[derive(Debug, Clone, Default)]
struct Held {
    /// `None`: not in memory.
    entries: Option<Arc<Page>>,
    changed: bool,
    /// Used since the hand of the clock went by.
    used: bool,
}

/// The map.
#[derive(Debug)]
pub struct Map {
    held: Vec<Held>,
    /// Where each page lies in the log.
    places: Vec<u32>,
    /// Slots of the log: no entry is past them.
    slots: u32,
    resident: usize,
    changed: usize,
    hand: usize,
}

impl Map {
    /// A map whose pages lie where `places` says, in a log of so many slots.
    pub fn new(places: Vec<u32>, slots: u32) -> Map {
        Map { held: vec![Held::default(); places.len()], places, slots, resident: 0, changed: 0, hand: 0 }
    }

    /// What a block is.
    pub fn get(&mut self, lba: Lba) -> Result<Entry, Missing> {
        let (page, at) = Geometry::page_of(lba);
        let entries = self.page(page)?;
        Ok(entries.map_or(Entry::Hole, |entries| Entry::of_word(entries[at])))
    }

    /// Says what a block is from now on; what it was.
    pub fn set(&mut self, lba: Lba, entry: Entry) -> Result<Entry, Missing> {
        let (page, at) = Geometry::page_of(lba);
        let known = self.page(page)?.is_some();
        if !known && entry == Entry::Hole {
            return Ok(Entry::Hole);
        }
        let held = &mut self.held[page as usize];
        if !known {
            held.entries = Some(Arc::new([0; PAGE_ENTRIES as usize]));
            self.resident += 1;
        }
        let entries = held.entries.as_mut().expect("made just now, or here");
        if entries[at] == entry.word() {
            return Ok(entry);
        }
        let old = std::mem::replace(&mut Arc::make_mut(entries)[at], entry.word());
        if !std::mem::replace(&mut held.changed, true) {
            self.changed += 1;
        }
        Ok(Entry::of_word(old))
    }

    /// The entries of a page; `None` where it was never written, and all its blocks hold nothing.
    fn page(&mut self, page: u32) -> Result<Option<&Page>, Missing> {
        let held = &mut self.held[page as usize];
        held.used = true;
        match &held.entries {
            Some(entries) => Ok(Some(entries)),
            None if self.places[page as usize] == NOWHERE => Ok(None),
            None => Err(Missing(page)),
        }
    }

    /// Whether a page is here, or is nowhere else.
    pub fn has(&self, page: u32) -> bool {
        self.held[page as usize].entries.is_some() || self.places[page as usize] == NOWHERE
    }

    /// Takes a page that was read; `None` where it could not be: whatever it had is lost.
    pub fn load(&mut self, page: u32, payload: Option<&[u8]>) {
        let mut entries = [Entry::Lost.word(); PAGE_ENTRIES as usize];
        if let Some(payload) = payload {
            for (entry, bytes) in entries.iter_mut().zip(payload.chunks_exact(4)) {
                let word = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
                let past = matches!(Entry::of_word(word), Entry::At(slot) if slot.get() >= self.slots);
                *entry = if past { Entry::Lost.word() } else { word };
            }
        }
        let held = &mut self.held[page as usize];
        if held.entries.is_none() {
            held.entries = Some(Arc::new(entries));
            held.used = true;
            self.resident += 1;
            if payload.is_none() {
                held.changed = true;
                self.changed += 1;
            }
        }
    }

    /// Where a page lies in the log, if anywhere.
    pub fn place(&self, page: u32) -> Option<Slot> {
        let place = self.places[page as usize];
        (place != NOWHERE).then(|| Slot::new(place))
    }

    /// Says that a page as it is lies at `slot`; where it lay before.
    pub fn placed(&mut self, page: u32, slot: Slot) -> Option<Slot> {
        let old = self.place(page);
        self.places[page as usize] = slot.get();
        if std::mem::take(&mut self.held[page as usize].changed) {
            self.changed -= 1;
        }
        old
    }

    /// Marks a page as changed, so that it is written anew; it is in memory.
    pub fn touch(&mut self, page: u32) {
        let held = &mut self.held[page as usize];
        debug_assert!(held.entries.is_some());
        if !std::mem::replace(&mut held.changed, true) {
            self.changed += 1;
        }
    }

    /// The pages that are changed, in order.
    pub fn changed_pages(&self) -> Vec<u32> {
        (0..self.held.len() as u32).filter(|&page| self.held[page as usize].changed).collect()
    }

    /// The bytes of a page that is in memory.
    pub fn payload(&self, page: u32) -> [u8; BLOCK] {
        let mut payload = [0; BLOCK];
        let entries = self.held[page as usize].entries.as_ref().expect("a page in memory");
        for (bytes, entry) in payload.chunks_exact_mut(4).zip(entries.iter()) {
            bytes.copy_from_slice(&entry.to_le_bytes());
        }
        payload
    }

    /// Lets go of pages that are not changed until `most` are in memory, or only changed ones are; those used least lately first.
    pub fn shrink(&mut self, most: usize) {
        let mut looked = 0;
        while self.resident > most && self.resident > self.changed && looked < 2 * self.held.len() {
            let held = &mut self.held[self.hand];
            if held.entries.is_some() && !held.changed && !std::mem::take(&mut held.used) {
                held.entries = None;
                self.resident -= 1;
            }
            self.hand = (self.hand + 1) % self.held.len();
            looked += 1;
        }
    }

    /// Pages that so many bytes of memory hold, beside what is kept of all pages.
    pub fn pages_in(&self, bytes: usize) -> usize {
        bytes.saturating_sub(self.kept()) / PAGE_BYTES
    }
    fn kept(&self) -> usize {
        self.held.len() * (size_of::<Held>() + 4)
    }

    /// Pages in memory.
    pub fn resident(&self) -> usize {
        self.resident
    }
    /// Pages that are changed.
    pub fn changed(&self) -> usize {
        self.changed
    }
    /// Where all pages lie.
    pub fn places(&self) -> &[u32] {
        &self.places
    }
    /// Bytes of memory that the map takes.
    pub fn memory(&self) -> usize {
        self.resident * PAGE_BYTES + self.kept()
    }
}
