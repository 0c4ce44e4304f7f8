//! Emptying segments: what is live in one is moved behind the cleaner's stream, in pieces that take about as long each.
//!
//! A segment that was gone through and still counts something as live has slots that are not what the map means: they are spoiled.
//! Which blocks those were is told by the summary of the segment, and where that is not enough, by the whole map. What could not be
//! read for an error of the medium's is left where it is: such errors pass. Leaves out which segment is next (`log::segments`).

use super::Disk;
use crate::error::LogError;
use crate::format::checkpoint::Use;
use crate::format::geometry::{PAGE_ENTRIES, SLOTS_PER_FRAME};
use crate::format::slot::{HEADER, SLOT};
use crate::format::{BLOCK, Geometry, Header, Kind, Lba, Seq, Slot};
use crate::log::Entry;
use crate::reader::load_pages;
use crate::scan;
use crate::{Aligned, Medium};

/// Slots that the cleaner reads at a time, so that a read of the host's never waits for more.
const CLEANED_AT_ONCE: u32 = 32;

/// Slots that are looked at for such a piece, live or not, so that one of a segment that is nearly empty does not take long either.
const LOOKED_AT_ONCE: u32 = 2 * CLEANED_AT_ONCE;

/// Such pieces that are told to the medium ahead.
const READ_AHEAD: usize = 8;

/// A segment that is being cleaned.
#[derive(Debug)]
pub(super) struct Cleaning {
    segment: u32,
    /// When it was written last; where it is not the same any more, what was read of it is of the past.
    newest: Option<Seq>,
    /// The slot that comes next.
    number: u32,
    /// Slots that were read.
    slots: std::ops::Range<u32>,
    bytes: Aligned,
    /// Where in them the first of those begins.
    skip: usize,
    /// The medium did not give a slot that is live, or the page of the map that says so.
    refused: bool,
}

/// What the medium did not give since the log was opened.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// A segment was left that was emptied in part: that takes room and frees none. None is begun any more that is not given as a whole.
    any: bool,
    /// From here on a segment is looked for that was left alone and is given now.
    next: u32,
}

impl<M: Medium> Disk<M> {
    /// Cleans a piece of what is owed: how many slots are paid for by it.
    pub(super) fn clean_a_piece(&mut self, owed: u32) -> Result<u32, LogError> {
        let piece = owed.min(CLEANED_AT_ONCE);
        Ok(piece - self.clean(piece, LOOKED_AT_ONCE)?)
    }

    /// Cleans what is left of a segment.
    pub(super) fn clean_a_segment(&mut self) -> Result<(), LogError> {
        self.clean(u32::MAX, u32::MAX).map(|_| ())
    }

    /// Goes through up to `slots` live slots, and up to `looks` of any kind, of one segment: how many of the live ones are left to do.
    /// A segment that was gone through pays for all.
    fn clean(&mut self, slots: u32, looks: u32) -> Result<u32, LogError> {
        let Some(mut cleaning) =
            self.cleaning.take().map_or_else(|| self.begin_cleaning(), |it| Ok(Some(it)))?
        else {
            return Ok(0);
        };
        let (mut left, mut looks) = (slots, looks);
        let end = self.geometry().data_range().end;
        while cleaning.number < end && self.is_still(&cleaning) {
            if left == 0 || looks == 0 {
                self.cleaning = Some(cleaning);
                return Ok(left);
            }
            let moved = self.log.counters().moved_blocks;
            self.clean_slot(&mut cleaning)?;
            left = left.saturating_sub((self.log.counters().moved_blocks - moved) as u32);
            looks -= 1;
            cleaning.number += 1;
        }
        if self.is_still(&cleaning) {
            self.find_the_rest(&cleaning)?;
        } else {
            self.log.emptied();
        }
        Ok(0)
    }

    /// Whether it is full of what it was full of when its cleaning began.
    fn is_still(&self, cleaning: &Cleaning) -> bool {
        self.log.segments().full_since(cleaning.segment) == cleaning.newest
    }

    /// Chooses the segment that is to be cleaned next.
    fn begin_cleaning(&mut self) -> Result<Option<Cleaning>, LogError> {
        let Some(segment) = self.log.victim() else { return Ok(None) };
        if self.log.segments().used(segment) == Use::Map {
            self.clean_map(segment)?;
            return Ok(None);
        }
        if self.refusals.any && !self.is_given(segment)? {
            self.log.stuck(segment);
            return Ok(None);
        }
        let newest = self.log.segments().full_since(segment);
        let bytes = Aligned::zeroes(0);
        Ok(Some(Cleaning { segment, newest, number: 1, slots: 0..0, bytes, skip: 0, refused: false }))
    }

    /// Has the pages of the map that are in a segment written anew.
    fn clean_map(&mut self, segment: u32) -> Result<(), LogError> {
        let before = self.log.segments().live(segment);
        match self.retry(false, |log| log.move_pages(segment)) {
            // They are written with a checkpoint, and it is free after that.
            Ok(()) => self.checkpoint(false)?,
            Err(LogError::Medium { .. }) if !self.broken => {}
            Err(error) => return Err(error),
        }
        if self.log.segments().live(segment) == before {
            self.log.stuck(segment);
        } else {
            self.log.emptied();
        }
        Ok(())
    }

    /// Whether the medium gives all that counts as live in a segment. Where it gives every piece, what is spoiled is not its refusal.
    fn is_given(&mut self, segment: u32) -> Result<bool, LogError> {
        let geometry = *self.geometry();
        let (mut refused, mut live) = (false, 0);
        let oldest = self.log.segments().begun(segment);
        for piece in (Pieces { geometry, number: 1 }) {
            let (place, length) = (geometry.offset(geometry.slot(segment, piece.start)), piece.len() * SLOT);
            refused |= scan::read_around(&self.medium, place, length).is_err();
        }
        if !refused {
            return Ok(true);
        }
        for piece in (Pieces { geometry, number: 1 }) {
            let (place, length) = (geometry.offset(geometry.slot(segment, piece.start)), piece.len() * SLOT);
            let (bytes, skip) = scan::read_what_can_be(&self.medium, place, length);
            for (at, number) in (skip..).step_by(SLOT).zip(piece) {
                let salt = self.log.superblock().salt;
                let header = Header::open_since(salt, &bytes[at..][..SLOT], oldest);
                let Some(header) = header.filter(|it| it.kind == Kind::Data && it.lba < geometry.blocks)
                else {
                    continue;
                };
                match self.entry(header.lba) {
                    Ok(entry) => live += u32::from(entry == Entry::At(geometry.slot(segment, number))),
                    Err(LogError::Medium { .. }) => return Ok(false),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(live == self.log.segments().live(segment))
    }

    /// Whether the medium gives a segment that was left alone; then all of them are tried again. One is looked at each time.
    pub(super) fn one_more_is_given(&mut self) -> Result<bool, LogError> {
        let Some(segment) = self.log.segments().next_stuck(self.refusals.next) else { return Ok(false) };
        self.refusals.next = segment + 1;
        let given = self.is_given(segment)?;
        if given {
            self.log.try_stuck();
        }
        Ok(given)
    }

    fn clean_slot(&mut self, cleaning: &mut Cleaning) -> Result<(), LogError> {
        let geometry = *self.geometry();
        let number = cleaning.number;
        if !cleaning.slots.contains(&number) {
            self.read_piece(cleaning);
        }
        let begin = cleaning.skip + (number - cleaning.slots.start) as usize * SLOT;
        let (salt, oldest) = (self.log.superblock().salt, self.log.segments().begun(cleaning.segment));
        let Some(header) = Header::open_since(salt, &cleaning.bytes[begin..][..SLOT], oldest) else {
            return Ok(());
        };
        if header.kind != Kind::Data || header.lba >= geometry.blocks {
            return Ok(());
        }
        let payload = &cleaning.bytes[begin + HEADER..][..BLOCK];
        let moved = self.move_block(geometry.slot(cleaning.segment, number), header.lba, Some(payload))?;
        cleaning.refused |= !moved;
        Ok(())
    }

    /// Moves a block, if it is where it is said to be; `false` where the medium does not give the page of the map that knows.
    fn move_block(&mut self, slot: Slot, lba: Lba, payload: Option<&[u8]>) -> Result<bool, LogError> {
        match self.retry(false, |log| log.move_block(slot, lba, payload)) {
            Ok(()) => self.run_jobs().map(|()| true),
            Err(LogError::Medium { .. }) if !self.broken => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads the slots from the next one on, and tells the medium which come after.
    fn read_piece(&self, cleaning: &mut Cleaning) {
        let geometry = *self.geometry();
        let mut ahead = Pieces { geometry, number: cleaning.number };
        let piece = ahead.next().expect("there is a slot more");
        let place = |first| geometry.offset(geometry.slot(cleaning.segment, first));
        (cleaning.bytes, cleaning.skip) =
            scan::read_what_can_be(&self.medium, place(piece.start), piece.len() * SLOT);
        // All at the beginning, then one after the other.
        let told = if cleaning.slots.is_empty() { 0 } else { READ_AHEAD - 1 };
        for piece in ahead.take(READ_AHEAD).skip(told) {
            scan::will_read(&self.medium, place(piece.start), piece.len() * SLOT);
        }
        cleaning.slots = piece;
    }

    /// Finds the blocks of a segment that was gone through and is not empty. Those that are spoiled are marked as lost; after that it is
    /// empty, unless the medium does not give something.
    fn find_the_rest(&mut self, cleaning: &Cleaning) -> Result<(), LogError> {
        let geometry = *self.geometry();
        let listed = scan::by_summary(&self.medium, self.log.superblock(), cleaning.segment);
        let data = listed.into_iter().flat_map(|found| found.records).filter(|it| it.kind == Kind::Data);
        let listed: Vec<(Slot, Lba)> =
            data.map(|it| (geometry.slot(cleaning.segment, it.number), it.lba)).collect();
        let mut refused = cleaning.refused;
        for (slot, lba) in listed {
            if self.is_still(cleaning) && lba < geometry.blocks {
                refused |= !self.mark_as_lost(slot, lba)?;
            }
        }
        for page in 0..geometry.pages() {
            if refused || !self.is_still(cleaning) {
                break;
            }
            refused |= !self.look_in_page(cleaning.segment, page)?;
        }
        if !self.is_still(cleaning) {
            self.log.emptied();
        } else if refused {
            self.refusals.any = true;
            self.log.stuck(cleaning.segment);
        } else {
            self.log.abandon(cleaning.segment);
        }
        Ok(())
    }

    /// Marks the blocks as lost that a page of the map says are in a segment; `false` where the medium does not give something.
    fn look_in_page(&mut self, segment: u32, page: u32) -> Result<bool, LogError> {
        let geometry = *self.geometry();
        match load_pages(&self.medium, &mut self.log, vec![page]) {
            Ok(()) => {}
            Err(LogError::Medium { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
        let first = page * PAGE_ENTRIES;
        let mut within = Vec::new();
        for lba in first..(first + PAGE_ENTRIES).min(geometry.blocks) {
            match self.log.map().get(lba) {
                Ok(Entry::At(slot)) if geometry.place(slot).0 == segment => within.push((slot, lba)),
                _ => {}
            }
        }
        self.shrink();
        for (slot, lba) in within {
            if !self.mark_as_lost(slot, lba)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Marks a block of a slot as lost that cannot be what it should be; `false` where the medium does not give it.
    fn mark_as_lost(&mut self, slot: Slot, lba: Lba) -> Result<bool, LogError> {
        if self.entry(lba).is_ok_and(|entry| entry != Entry::At(slot)) {
            return Ok(true);
        }
        let mut payload = [0; BLOCK];
        let expected = self.log.expected(slot);
        match self.reader().read_slot(&self.medium, expected, Kind::Data, lba, &mut payload) {
            // It came back.
            Ok(true) => self.move_block(slot, lba, Some(&payload)),
            Ok(false) => self.move_block(slot, lba, None),
            Err(_) => Ok(false),
        }
    }
}

/// The pieces in which a segment is read from a slot on; none goes over the end of a frame.
struct Pieces {
    geometry: Geometry,
    number: u32,
}

impl Iterator for Pieces {
    type Item = std::ops::Range<u32>;
    fn next(&mut self) -> Option<Self::Item> {
        let (begin, last) = (self.number, self.geometry.data_range().end);
        let frame_end = (begin / SLOTS_PER_FRAME + 1) * SLOTS_PER_FRAME;
        self.number = (begin + CLEANED_AT_ONCE).min(frame_end).min(last);
        (begin < last).then_some(begin..self.number)
    }
}
