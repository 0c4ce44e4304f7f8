//! Finds slots replaced by an older slot of the same block from the segment's current generation ([`find`]).
//!
//! Reading accepts such a slot: its checksum and block fit, and its sequence number is one of the segment's. The
//! summary of a segment lists the number of each slot. In a segment without a summary, numbers grow from slot to
//! slot, and each slot names the number of its predecessor.
//!
//! A segment is not read again if the sum of the sequence numbers of its live slots equals the sum in its summary.
//! Slots of earlier generations are not searched for, because no read accepts them.

use super::{Checked, LiveSlots};
use crate::Medium;
use crate::format::checkpoint::Use;
use crate::format::{Geometry, Header, Kind, Seq, Slot};
use crate::log::{Entry, Log};
use crate::reader::load_pages;
use crate::scan::{self, SegmentRecords};
use std::ops::ControlFlow;

/// Compares the live slots of all segments with the summaries.
pub(super) fn find(
    medium: &impl Medium,
    log: &mut Log,
    seen: &LiveSlots,
    checked: &mut Checked,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) {
    let geometry = *log.geometry();
    for segment in (0..geometry.segments).filter(|&segment| seen.live[segment as usize] > 0) {
        let summary = scan::by_summary(medium, log.superblock(), segment)
            .filter(|found| found.records.last().is_some_and(|it| it.seq == log.segments().newest(segment)));
        if log.segments().used(segment) != Use::Data
            || summary.as_ref().is_none_or(|it| sum(log, seen, segment, it) != seen.sums[segment as usize])
        {
            compare(medium, log, seen, segment, summary.as_ref(), checked);
        }
        if progress(geometry.capacity(), geometry.capacity()).is_break() {
            return;
        }
    }
}

/// The sum of the sequence numbers that a summary lists for live slots of data.
fn sum(log: &Log, seen: &LiveSlots, segment: u32, summary: &SegmentRecords) -> Seq {
    let live = summary
        .records
        .iter()
        .filter(|it| it.kind == Kind::Data && seen.has(log.geometry().slot(segment, it.number)));
    live.fold(0, |sum: Seq, it| sum.wrapping_add(it.seq))
}

/// Reads a segment and compares its slots with its summary, and with their neighbours if the summary does not list
/// them.
fn compare(
    medium: &impl Medium,
    log: &mut Log,
    seen: &LiveSlots,
    segment: u32,
    summary: Option<&SegmentRecords>,
    checked: &mut Checked,
) {
    let (geometry, salt) = (*log.geometry(), log.superblock().salt);
    let image = scan::image(medium, &geometry, segment);
    let oldest = log.segments().begun(segment);
    let mut listed = vec![None; geometry.segment_slots() as usize];
    for record in summary.iter().flat_map(|found| &found.records) {
        listed[record.number as usize] = Some(record);
    }
    // The previous slot, and whether it is in order.
    let mut before: Option<(u32, Header, bool)> = None;
    for number in geometry.data_range() {
        let Some(header) = Header::open_since(salt, scan::slot(&image, number), oldest) else { continue };
        let live = |number| seen.has(geometry.slot(segment, number));
        if !live(number) && before.is_some_and(|(_, it, _)| header.seq < it.seq) {
            // The slot is past the end of the written part, or a copy that the map does not name.
            continue;
        }
        // The predecessor's number, as this slot records it.
        if let (Some((at, it, true)), Some(said)) = (before, header.before)
            && listed[at as usize].is_none()
            && live(at)
            && (said.kind, said.lba) == (it.kind, it.lba)
            && !said.is(it.seq)
        {
            report(medium, log, geometry.slot(segment, at), &it, checked);
        }
        let in_order = match listed[number as usize] {
            Some(record) => {
                (record.kind, record.lba) != (header.kind, header.lba) || record.seq == header.seq
            }
            // Pages of the map that are written with one checkpoint share a number.
            None => before.is_none_or(|(_, it, _)| {
                header.seq > it.seq
                    || header.kind == Kind::Map && header.seq == it.seq && header.lba != it.lba
            }),
        };
        if !in_order && live(number) {
            report(medium, log, geometry.slot(segment, number), &header, checked);
        }
        before = Some((number, header, in_order));
    }
}

/// Reports a slot that is older than its record, if the map names it for this block or page. Other slots are already
/// counted as bad.
fn report(medium: &impl Medium, log: &mut Log, slot: Slot, header: &Header, checked: &mut Checked) {
    let (lba, geometry) = (header.lba, *log.geometry());
    match header.kind {
        Kind::Data if lba < geometry.blocks => {
            let loaded = load_pages(medium, log, vec![Geometry::page_of(lba).0]);
            if loaded.is_ok() && log.map().get(lba) == Ok(Entry::At(slot)) {
                checked.stale(lba);
            }
            log.map().shrink(1);
        }
        Kind::Map if lba < geometry.pages() && log.map().place(lba) == Some(slot) => {
            checked.contradiction(|| {
                format!("page {lba} of the map is older than the one that was written in its place")
            })
        }
        _ => {}
    }
}
