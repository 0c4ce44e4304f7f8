//! Applies the slots after a checkpoint to the map, in order of their numbers ([`Replay`]).
//!
//! A missing slot was durable, since the log would otherwise have ended before it. The next slot of its stream, or
//! the newest mark that lists the slot, names its block. Module `recover` finds the end of the log.

use super::{DATA, Later, Recovery, StreamTail};
use crate::error::LogError;
use crate::format::mark::SlotContents;
use crate::format::slot::{HEADER, SLOT};
use crate::format::{FormatError, Geometry, Header, Kind, Lba, Mark, Seq, Superblock, unmaps};
use crate::log::{Entry, Log, Recent};
use crate::scan::{Record, read_around};
use crate::{Medium, reader};
use std::collections::BTreeSet;
use std::ops::Range;

pub(super) struct Replay<'a, M> {
    medium: &'a M,
    superblock: &'a Superblock,
    streams: &'a [StreamTail],
    marks: &'a [Mark],
    replayed: u64,
    spoiled: u64,
    /// Blocks of damaged slots.
    lost: BTreeSet<Lba>,
    /// Damaged slots whose blocks are unknown.
    unknown: u64,
    recent: Recent,
}

impl<'a, M: Medium> Replay<'a, M> {
    pub(super) fn new(
        medium: &'a M,
        superblock: &'a Superblock,
        streams: &'a [StreamTail],
        marks: &'a [Mark],
    ) -> Replay<'a, M> {
        let (lost, recent) = (BTreeSet::new(), Recent::default());
        Replay { medium, superblock, streams, marks, replayed: 0, spoiled: 0, lost, unknown: 0, recent }
    }

    /// Applies the slots in `range`.
    pub(super) fn run(&mut self, log: &mut Log, later: &[Later], range: Range<Seq>) -> Result<(), LogError> {
        let counted: Vec<&Later> = later.iter().filter(|it| it.record.seq < range.end).collect();
        self.load_pages(log, &counted)?;
        let mut expected = range.start;
        for it in counted {
            self.missing(log, expected..it.record.seq)?;
            self.apply(log, it)?;
            self.replayed += 1;
            expected = it.record.seq + 1;
        }
        self.missing(log, expected..range.end)
    }

    /// Completes the report, and returns the newest slots.
    pub(super) fn finish(self, log: &mut Log, recovery: &mut Recovery) -> Result<Recent, LogError> {
        (recovery.replayed, recovery.spoiled, recovery.unknown) = (self.replayed, self.spoiled, self.unknown);
        for &lba in &self.lost {
            // Later writes replace lost blocks.
            recovery.lost += u64::from(self.get(log, lba)? == Entry::Lost);
        }
        Ok(self.recent)
    }

    /// Loads the pages of the map that will change.
    fn load_pages(&self, log: &mut Log, later: &[&Later]) -> Result<(), LogError> {
        let blocks = self.superblock.geometry.blocks;
        let data = later
            .iter()
            .filter(|it| matches!(it.record.kind, Kind::Data | Kind::Lost) && it.record.lba < blocks);
        let pages: BTreeSet<u32> = data.map(|it| Geometry::page_of(it.record.lba).0).collect();
        reader::load_pages(self.medium, log, pages.into_iter().collect())
    }

    fn apply(&mut self, log: &mut Log, it: &Later) -> Result<(), LogError> {
        let Record { lba, seq, kind, .. } = it.record;
        let blocks = self.superblock.geometry.blocks;
        let mut held = SlotContents { kind, lba, count: 0 };
        match kind {
            Kind::Data | Kind::Lost if lba >= blocks => {
                let why = "past the end of the disk";
                return Err(FormatError::Value { what: "slot", name: "block", value: lba.into(), why }.into());
            }
            Kind::Data => self.set(log, lba, Entry::At(it.slot))?,
            Kind::Lost => self.set(log, lba, Entry::Lost)?,
            Kind::Unmap => {
                let (bytes, skip) = read_around(self.medium, self.superblock.geometry.offset(it.slot), SLOT)?;
                let slot = &bytes[skip..][..SLOT];
                if Header::open(self.superblock.salt, slot).is_none_or(|header| header.seq != seq) {
                    return self.spoiled(log, seq);
                }
                let ranges = unmaps::read(&slot[HEADER..], blocks)?;
                for &(first, count) in &ranges {
                    self.unmap(log, first, count)?;
                }
                if let [(first, count)] = ranges[..] {
                    (held.lba, held.count) = (first, count);
                }
            }
            Kind::Segment | Kind::Summary | Kind::Map => {}
        }
        self.recent.push(DATA.iter().position(|&stream| stream == it.stream), seq, held);
        Ok(())
    }

    /// Handles missing durable slots.
    fn missing(&mut self, log: &mut Log, numbers: Range<Seq>) -> Result<(), LogError> {
        let geometry = &self.superblock.geometry;
        // No slot is written twice between two checkpoints, so recovery from the older checkpoint sees at most two
        // writes of a slot.
        let most = 2 * Seq::from(geometry.segments) * Seq::from(geometry.segment_slots());
        let from = if numbers.end.saturating_sub(numbers.start) > most {
            // Numbers leap at each opening, so the number of slots before the leap is unknown.
            self.unknown += 1;
            numbers.end - (numbers.end & ((1 << super::GAP) - 1)).min(most)
        } else {
            numbers.start
        };
        (from..numbers.end).try_for_each(|seq| self.spoiled(log, seq))
    }

    /// Handles a damaged durable slot.
    fn spoiled(&mut self, log: &mut Log, seq: Seq) -> Result<(), LogError> {
        let blocks = self.superblock.geometry.blocks;
        self.spoiled += 1;
        match self.held(seq) {
            Some(SlotContents { kind: Kind::Data | Kind::Lost, lba, .. }) if lba < blocks => {
                self.set(log, lba, Entry::Lost)?;
                self.lost.insert(lba);
                self.recent.push(None, seq, SlotContents { kind: Kind::Lost, lba, count: 0 });
            }
            Some(SlotContents { kind: Kind::Unmap, lba, count })
                if count > 0 && u64::from(lba) + u64::from(count) <= blocks.into() =>
            {
                self.unmap(log, lba, count)?;
                self.recent.push(None, seq, SlotContents { kind: Kind::Unmap, lba, count });
            }
            Some(SlotContents { kind: kind @ (Kind::Segment | Kind::Summary), lba, .. }) => {
                self.recent.push(None, seq, SlotContents { kind, lba, count: 0 });
            }
            _ => self.unknown += 1,
        }
        Ok(())
    }

    /// The contents of a missing slot, if a mark or its successor lists them.
    fn held(&self, seq: Seq) -> Option<SlotContents> {
        let marked = self.marks.iter().find_map(|mark| mark.held(seq));
        let by_successor = || {
            self.streams.iter().find_map(|stream| {
                let after = stream.records.partition_point(|(record, _)| record.seq <= seq);
                // A summary lists all slots of its segment, so no slot of the stream is missing before a listed slot.
                let before = stream.records.get(after)?.0.before??;
                before.is(seq).then_some(SlotContents { kind: before.kind, lba: before.lba, count: 0 })
            })
        };
        marked.or_else(by_successor)
    }

    fn unmap(&self, log: &mut Log, first: Lba, count: u32) -> Result<(), LogError> {
        (first..first + count).try_for_each(|lba| self.set(log, lba, Entry::Hole))
    }

    fn set(&self, log: &mut Log, lba: Lba, entry: Entry) -> Result<(), LogError> {
        while let Err(missing) = log.replay(lba, entry) {
            reader::load_pages(self.medium, log, vec![missing.0])?;
        }
        Ok(())
    }

    fn get(&self, log: &mut Log, lba: Lba) -> Result<Entry, LogError> {
        loop {
            match log.map().get(lba) {
                Ok(entry) => return Ok(entry),
                Err(missing) => reader::load_pages(self.medium, log, vec![missing.0])?,
            }
        }
    }
}
