//! Cleaning of segments: live slots are moved to the moved stream, in steps of similar duration.
//!
//! Slots that are still live after all slots of a segment were visited are damaged. The summary of the segment names
//! their blocks, or else the complete map does. Slots that cannot be read because of an error of the medium stay in
//! place, since such errors may pass. The segment is chosen in `log::segments`.

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

/// Slots per read of cleaning. Limits the delay of the host's reads.
const CLEANED_AT_ONCE: u32 = 32;

/// Slots, live or dead, visited per step. Limits the duration of a step in a nearly empty segment.
const SCANNED_AT_ONCE: u32 = 2 * CLEANED_AT_ONCE;

/// Reads that are announced to the medium in advance.
const READ_AHEAD: usize = 8;

/// A segment that is being cleaned.
#[derive(Debug)]
pub(super) struct Cleaning {
    segment: u32,
    /// The newest slot when cleaning began. If it differs later, the segment was rewritten.
    newest: Option<Seq>,
    /// The next slot.
    number: u32,
    slots: std::ops::Range<u32>,
    bytes: Aligned,
    /// The offset of the first slot in `bytes`.
    skip: usize,
    /// Whether a live slot, or the page of the map that refers to it, could not be read.
    refused: bool,
}

/// Read errors since the log was opened.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Whether a partly cleaned segment was excluded, which took room and freed none. From then on, only completely
    /// readable segments are cleaned.
    any: bool,
    /// The excluded segment to try next.
    next: u32,
}

impl<M: Medium> Disk<M> {
    /// Does one step of cleaning. Returns the number of slots by which it reduces `owed`.
    pub(super) fn clean_step(&mut self, owed: u32) -> Result<u32, LogError> {
        let piece = owed.min(CLEANED_AT_ONCE);
        Ok(piece - self.clean(piece, SCANNED_AT_ONCE)?)
    }

    /// Cleans a segment to its end.
    pub(super) fn clean_a_segment(&mut self) -> Result<(), LogError> {
        self.clean(u32::MAX, u32::MAX).map(|_| ())
    }

    /// Visits up to `slots` live slots and up to `looks` slots of any kind in one segment. Returns the part of
    /// `slots` that was not used; 0 at the end of a segment.
    fn clean(&mut self, slots: u32, looks: u32) -> Result<u32, LogError> {
        let Some(mut cleaning) =
            self.cleaning.take().map_or_else(|| self.begin_cleaning(), |it| Ok(Some(it)))?
        else {
            return Ok(0);
        };
        let (mut left, mut looks) = (slots, looks);
        let end = self.geometry().data_range().end;
        while cleaning.number < end && self.is_unchanged(&cleaning) {
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
        if self.is_unchanged(&cleaning) {
            self.resolve_remaining(&cleaning)?;
        } else {
            self.log.emptied();
        }
        Ok(0)
    }

    /// Returns whether the segment was not rewritten since cleaning began.
    fn is_unchanged(&self, cleaning: &Cleaning) -> bool {
        self.log.segments().full_since(cleaning.segment) == cleaning.newest
    }

    /// Chooses the next segment.
    fn begin_cleaning(&mut self) -> Result<Option<Cleaning>, LogError> {
        let Some(segment) = self.log.victim() else { return Ok(None) };
        if self.log.segments().used(segment) == Use::Map {
            self.clean_map(segment)?;
            return Ok(None);
        }
        if self.refusals.any && !self.is_readable(segment)? {
            self.log.segments_mut().stuck(segment);
            return Ok(None);
        }
        let newest = self.log.segments().full_since(segment);
        let bytes = Aligned::zeroes(0);
        Ok(Some(Cleaning { segment, newest, number: 1, slots: 0..0, bytes, skip: 0, refused: false }))
    }

    /// Moves the pages of the map in a segment.
    fn clean_map(&mut self, segment: u32) -> Result<(), LogError> {
        let before = self.log.segments().live(segment);
        match self.retry(false, |log| log.move_pages(segment)) {
            // A checkpoint writes the pages and frees the segment.
            Ok(()) => self.checkpoint(false)?,
            Err(LogError::Medium { .. }) if !self.broken => {}
            Err(error) => return Err(error),
        }
        if self.log.segments().live(segment) == before {
            self.log.segments_mut().stuck(segment);
        } else {
            self.log.emptied();
        }
        Ok(())
    }

    /// Returns whether the medium can read all live slots of a segment. Damaged slots count as readable.
    fn is_readable(&mut self, segment: u32) -> Result<bool, LogError> {
        let geometry = *self.geometry();
        let (mut refused, mut live) = (false, 0);
        let oldest = self.log.segments().begun(segment);
        for piece in (Pieces { geometry, number: 1 }) {
            let (offset, length) = (geometry.offset(geometry.slot(segment, piece.start)), piece.len() * SLOT);
            refused |= scan::read_around(&self.medium, offset, length).is_err();
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

    /// Checks one excluded segment. If it is readable, includes all excluded segments again, and returns true.
    pub(super) fn retry_stuck(&mut self) -> Result<bool, LogError> {
        let Some(segment) = self.log.segments().next_stuck(self.refusals.next) else { return Ok(false) };
        self.refusals.next = segment + 1;
        let given = self.is_readable(segment)?;
        if given {
            self.log.segments_mut().try_stuck();
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

    /// Moves a block if the map refers to `slot`. Returns false if the page of the map cannot be read.
    fn move_block(&mut self, slot: Slot, lba: Lba, payload: Option<&[u8]>) -> Result<bool, LogError> {
        match self.retry(false, |log| log.move_block(slot, lba, payload)) {
            Ok(()) => self.run_jobs().map(|()| true),
            Err(LogError::Medium { .. }) if !self.broken => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads the next slots, and announces the following reads.
    fn read_piece(&self, cleaning: &mut Cleaning) {
        let geometry = *self.geometry();
        let mut ahead = Pieces { geometry, number: cleaning.number };
        let piece = ahead.next().expect("slots remain");
        let place = |first| geometry.offset(geometry.slot(cleaning.segment, first));
        (cleaning.bytes, cleaning.skip) =
            scan::read_what_can_be(&self.medium, place(piece.start), piece.len() * SLOT);
        // At the start of a segment, all reads up to the limit are announced; later, one for each read.
        let announced = if cleaning.slots.is_empty() { 0 } else { READ_AHEAD - 1 };
        for piece in ahead.take(READ_AHEAD).skip(announced) {
            scan::will_read(&self.medium, place(piece.start), piece.len() * SLOT);
        }
        cleaning.slots = piece;
    }

    /// Resolves the live slots that remain after a segment was visited: blocks of damaged slots become lost.
    /// Afterwards the segment is empty, unless the medium has read errors.
    fn resolve_remaining(&mut self, cleaning: &Cleaning) -> Result<(), LogError> {
        let geometry = *self.geometry();
        let listed = scan::by_summary(&self.medium, self.log.superblock(), cleaning.segment);
        let data = listed.into_iter().flat_map(|found| found.records).filter(|it| it.kind == Kind::Data);
        let listed: Vec<(Slot, Lba)> =
            data.map(|it| (geometry.slot(cleaning.segment, it.number), it.lba)).collect();
        let mut refused = cleaning.refused;
        for (slot, lba) in listed {
            if self.is_unchanged(cleaning) && lba < geometry.blocks {
                refused |= !self.resolve_block(slot, lba)?;
            }
        }
        for page in 0..geometry.pages() {
            if refused || !self.is_unchanged(cleaning) {
                break;
            }
            refused |= !self.resolve_page(cleaning.segment, page)?;
        }
        if !self.is_unchanged(cleaning) {
            self.log.emptied();
        } else if refused {
            self.refusals.any = true;
            self.log.segments_mut().stuck(cleaning.segment);
        } else {
            self.log.abandon(cleaning.segment);
        }
        Ok(())
    }

    /// Resolves the blocks of a page of the map that are in a segment. Returns false after a read error.
    fn resolve_page(&mut self, segment: u32, page: u32) -> Result<bool, LogError> {
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
            if !self.resolve_block(slot, lba)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves a block, or marks it as lost if its slot is damaged. Returns false after a read error.
    fn resolve_block(&mut self, slot: Slot, lba: Lba) -> Result<bool, LogError> {
        if self.entry(lba).is_ok_and(|entry| entry != Entry::At(slot)) {
            return Ok(true);
        }
        let mut payload = [0; BLOCK];
        let expected = self.log.expected(slot);
        match self.reader().read_slot(&self.medium, expected, Kind::Data, lba, &mut payload) {
            // The slot is readable again.
            Ok(true) => self.move_block(slot, lba, Some(&payload)),
            Ok(false) => self.move_block(slot, lba, None),
            Err(_) => Ok(false),
        }
    }
}

/// The reads of a segment from a slot on. A read does not cross the end of a frame.
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
