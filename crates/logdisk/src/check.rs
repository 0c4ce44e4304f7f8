//! Checks the consistency of a log disk, without writing ([`check`]). Nothing is repaired.
//!
//! Every mapped block must be in a slot of data, no two blocks may share a slot, and the live count of each segment
//! must be correct. With `data`, every slot is read, and its checksum and sequence number are verified (`stale`).

mod stale;

use crate::error::LogError;
use crate::format::checkpoint::Use;
use crate::format::slot::SLOT;
use crate::format::{BLOCK, Header, Kind, Lba, Slot};
use crate::log::Entry;
use crate::reader::load_pages;
use crate::recover::{self, Recovery, Unknown};
use crate::scan;
use crate::{Medium, log::Log};
use std::ops::ControlFlow;

/// The maximum number of findings of one kind that are listed; all are counted.
const MAX_LISTED: usize = 20;

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// The report of the recovery.
    pub recovery: Recovery,
    /// Mapped blocks.
    pub mapped: u64,
    /// Lost blocks.
    pub lost: u64,
    /// Blocks that were read.
    pub read: u64,
    /// The first blocks that cannot be read, because the checksum is wrong or the segment holds an earlier
    /// generation.
    pub bad: Vec<Lba>,
    /// Number of blocks that cannot be read.
    pub bad_count: u64,
    /// The first blocks that read as older data: another slot of the same generation is in their place.
    pub stale: Vec<Lba>,
    /// Number of blocks that read as older data.
    pub stale_count: u64,
    /// The first contradictions.
    pub contradictions: Vec<String>,
    /// Number of contradictions.
    pub contradiction_count: u64,
}

impl Checked {
    /// Returns whether there are no findings.
    pub fn is_good(&self) -> bool {
        self.bad_count == 0
            && self.stale_count == 0
            && self.contradiction_count == 0
            && self.lost == 0
            && self.recovery.damage().is_none()
    }

    fn contradiction(&mut self, what: impl FnOnce() -> String) {
        add(&mut self.contradictions, &mut self.contradiction_count, what);
    }
    fn stale(&mut self, lba: Lba) {
        add(&mut self.stale, &mut self.stale_count, || lba);
    }
    fn bad(&mut self, lba: Lba) {
        add(&mut self.bad, &mut self.bad_count, || lba);
    }
}

/// Counts a finding, and lists the first [`MAX_LISTED`].
fn add<T>(listed: &mut Vec<T>, count: &mut u64, finding: impl FnOnce() -> T) {
    *count += 1;
    if listed.len() < MAX_LISTED {
        listed.push(finding());
    }
}

/// Checks the log disk of a medium, including its data if `data` is set. `progress` gets the checked and the total
/// number of bytes, and may end the check.
///
/// # Errors
/// [`LogError`] if the log disk cannot be opened.
pub fn check(
    medium: &impl Medium,
    data: bool,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Checked, LogError> {
    let (mut log, recovery) = recover::open(medium, Unknown::Refused)?;
    let geometry = *log.geometry();
    let mut checked = Checked { recovery, ..Checked::default() };
    let slots = u64::from(geometry.segments) * u64::from(geometry.segment_slots());
    let mut seen = LiveSlots {
        taken: vec![0; slots.div_ceil(64) as usize],
        live: vec![0; geometry.segments as usize],
        sums: vec![0; geometry.segments as usize],
    };
    let pages = geometry.pages();
    for page in 0..pages {
        if let Some(slot) = log.map().place(page) {
            seen.take(&mut checked, slot.get(), || format!("page {page} of the map"));
            seen.live[geometry.place(slot).0 as usize] += 1;
        }
        if !log.map().has(page) {
            load_pages(medium, &mut log, vec![page])?;
        }
        if page_of(medium, &mut log, page, data, (&mut checked, &mut seen), progress)?.is_break() {
            return Ok(checked);
        }
        // Pages that recovery changed stay in memory.
        log.map().shrink(1);
    }
    for (segment, &found) in (0..).zip(&seen.live) {
        let counted = log.segments().live(segment);
        if counted != found {
            let used = log.segments().used(segment);
            let what = if used == Use::Map { "of the map" } else { "of data" };
            checked.contradiction(|| {
                format!("segment {segment} {what} counts {counted} live slots and has {found}")
            });
        }
    }
    if data {
        stale::find(medium, &mut log, &seen, &mut checked, progress);
    }
    Ok(checked)
}

/// The live slots according to the map.
struct LiveSlots {
    /// A bit for each slot.
    taken: Vec<u64>,
    /// Number of live slots of each segment.
    live: Vec<u32>,
    /// Sum of the sequence numbers of the live slots of each segment whose data was read.
    sums: Vec<u64>,
}

impl LiveSlots {
    fn take(&mut self, checked: &mut Checked, slot: u32, whose: impl FnOnce() -> String) {
        let (word, bit) = (slot as usize / 64, 1 << (slot % 64));
        match self.taken.get_mut(word) {
            Some(word) if *word & bit == 0 => *word |= bit,
            Some(_) => checked.contradiction(|| format!("slot {slot} holds {} and something else", whose())),
            None => checked.contradiction(|| format!("slot {slot} of {} is past the last one", whose())),
        }
    }
    fn has(&self, slot: Slot) -> bool {
        self.taken.get(slot.get() as usize / 64).is_some_and(|word| word & 1 << (slot.get() % 64) != 0)
    }
}

fn page_of(
    medium: &impl Medium,
    log: &mut Log,
    page: u32,
    data: bool,
    (checked, seen): (&mut Checked, &mut LiveSlots),
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, LogError> {
    let geometry = *log.geometry();
    let entries = crate::format::geometry::PAGE_ENTRIES;
    let range = page * entries..((page + 1) * entries).min(geometry.blocks);
    for lba in range.clone() {
        let slot = match log.map().get(lba) {
            Ok(Entry::Hole) => continue,
            Ok(Entry::Lost) => {
                checked.lost += 1;
                continue;
            }
            Ok(Entry::At(slot)) => slot,
            Err(_) => unreachable!("the page was loaded"),
        };
        checked.mapped += 1;
        seen.take(checked, slot.get(), || format!("block {lba}"));
        let (segment, number) = geometry.place(slot);
        if segment >= geometry.segments || !geometry.data_range().contains(&number) {
            checked.contradiction(|| {
                format!("the map refers block {lba} to slot {}, which holds no data", slot.get())
            });
            continue;
        }
        seen.live[segment as usize] += 1;
        if data {
            checked.read += 1;
            let (bytes, skip) = scan::read_what_can_be(medium, geometry.offset(slot), SLOT);
            let oldest = log.segments().begun(segment);
            match Header::open_since(log.superblock().salt, &bytes[skip..][..SLOT], oldest) {
                Some(header) if header.kind == Kind::Data && header.lba == lba => {
                    let sum = &mut seen.sums[segment as usize];
                    *sum = sum.wrapping_add(header.seq);
                }
                _ => checked.bad(lba),
            }
        }
    }
    Ok(progress(u64::from(range.end) * BLOCK as u64, geometry.capacity()))
}
