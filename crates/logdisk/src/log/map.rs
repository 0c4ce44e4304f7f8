//! The map from blocks to slots ([`Map`]): pages of 1024 entries of four bytes, loaded on demand, and evicted when
//! memory is short.
//!
//! A page in memory takes 4096 bytes, and each page has 29 bytes of bookkeeping, so a complete map takes 4.03 bytes
//! per block, or 0.99 GB per TB. A changed page stays in memory until it is written to the log. Module `disk` reads
//! and writes pages.

use crate::format::checkpoint::UNWRITTEN;
use crate::format::geometry::PAGE_ENTRIES;
use crate::format::{BLOCK, Geometry, Lba, Slot};
use std::sync::Arc;

/// The location of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Unallocated; reads as zeroes.
    Hole,
    /// The data was unreadable when cleaning had to move it.
    Lost,
    /// The block is in this slot.
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

/// A page that must be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing(pub u32);

/// The entries of a page.
pub type Page = [u32; PAGE_ENTRIES as usize];

/// Bytes of a page in memory, with reference counts and allocator overhead.
const PAGE_BYTES: usize = size_of::<Page>() + 32;

#[derive(Debug, Clone, Default)]
struct CachedPage {
    /// The entries; `None` if the page is not in memory.
    entries: Option<Arc<Page>>,
    changed: bool,
    /// Whether the page was used since the clock hand last passed it.
    used: bool,
}

/// The map.
#[derive(Debug)]
pub struct Map {
    held: Vec<CachedPage>,
    /// The slot of each page.
    places: Vec<u32>,
    /// Number of slots, for validation.
    slots: u32,
    resident: usize,
    changed: usize,
    hand: usize,
}

impl Map {
    /// A map whose pages are in the slots `places`, in a log of `slots` slots.
    pub fn new(places: Vec<u32>, slots: u32) -> Map {
        Map {
            held: vec![CachedPage::default(); places.len()],
            places,
            slots,
            resident: 0,
            changed: 0,
            hand: 0,
        }
    }

    /// Looks up a block.
    pub fn get(&mut self, lba: Lba) -> Result<Entry, Missing> {
        let (page, at) = Geometry::page_of(lba);
        let entries = self.page(page)?;
        Ok(entries.map_or(Entry::Hole, |entries| Entry::of_word(entries[at])))
    }

    /// Sets the entry of a block, and returns the old one.
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
        let entries = held.entries.as_mut().expect("in memory");
        if entries[at] == entry.word() {
            return Ok(entry);
        }
        let old = std::mem::replace(&mut Arc::make_mut(entries)[at], entry.word());
        if !std::mem::replace(&mut held.changed, true) {
            self.changed += 1;
        }
        Ok(Entry::of_word(old))
    }

    /// The entries of a page; `None` if it was never written and all its blocks are holes.
    fn page(&mut self, page: u32) -> Result<Option<&Page>, Missing> {
        let held = &mut self.held[page as usize];
        held.used = true;
        match &held.entries {
            Some(entries) => Ok(Some(entries)),
            None if self.places[page as usize] == UNWRITTEN => Ok(None),
            None => Err(Missing(page)),
        }
    }

    /// Returns whether a page is in memory, or was never written.
    pub fn has(&self, page: u32) -> bool {
        self.held[page as usize].entries.is_some() || self.places[page as usize] == UNWRITTEN
    }

    /// Adds a page that was read; `None` if it is unreadable, which makes its blocks lost.
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

    /// The slot of a page.
    pub fn place(&self, page: u32) -> Option<Slot> {
        let place = self.places[page as usize];
        (place != UNWRITTEN).then(|| Slot::new(place))
    }

    /// Notes that a page was written to `slot`. Returns its old slot.
    pub fn placed(&mut self, page: u32, slot: Slot) -> Option<Slot> {
        let old = self.place(page);
        self.places[page as usize] = slot.get();
        if std::mem::take(&mut self.held[page as usize].changed) {
            self.changed -= 1;
        }
        old
    }

    /// Marks a page in memory as changed, so that it is rewritten.
    pub fn touch(&mut self, page: u32) {
        let held = &mut self.held[page as usize];
        debug_assert!(held.entries.is_some());
        if !std::mem::replace(&mut held.changed, true) {
            self.changed += 1;
        }
    }

    /// The changed pages, in order.
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

    /// Evicts unchanged pages, approximately the least recently used first, until `most` pages are in memory or all
    /// pages in memory are changed.
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

    /// Number of pages that fit in `bytes` of memory, after the bookkeeping.
    pub fn pages_in(&self, bytes: usize) -> usize {
        bytes.saturating_sub(self.bookkeeping()) / PAGE_BYTES
    }
    fn bookkeeping(&self) -> usize {
        self.held.len() * (size_of::<CachedPage>() + 4)
    }

    /// Pages in memory.
    pub fn resident(&self) -> usize {
        self.resident
    }
    /// Number of changed pages.
    pub fn changed(&self) -> usize {
        self.changed
    }
    /// The slots of all pages.
    pub fn places(&self) -> &[u32] {
        &self.places
    }
    /// Bytes of memory of the map.
    pub fn memory(&self) -> usize {
        self.resident * PAGE_BYTES + self.bookkeeping()
    }
}
