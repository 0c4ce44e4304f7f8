//! Read-ahead memory ([`Segments`]), which serves streams of reads at the rate of the surface.
//!
//! After a read the head follows the spiral until another command needs the head or the segment is full. A full
//! segment resumes when a read has made room and the disk has turned back to the position at which read-ahead
//! stopped.
//!
//! # Not modelled
//! * Stream detection: read-ahead follows every read.
//! * Reads of which only the middle or the end is in memory: they are served from the surface.

use super::mechanism::Mechanism;
use super::spec::ReadAhead;
use serde::{Deserialize, Serialize};

/// A range of bytes in memory.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Segment {
    first: u64,
    end: u64,
}

/// The segment that the head is filling.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Live {
    segment: usize,
    /// Time at which the head was at `place`. The head has followed the spiral since.
    since_ns: u64,
    place: u64,
    /// The byte at which read-ahead will stop.
    limit: u64,
    limit_place: u64,
    /// True if read-ahead has stopped and resumed, so that `place` is no longer the end of the last transfer.
    moved: bool,
}

/// Result of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The whole read is or will be in memory at this time (ns). The head follows the spiral until then.
    Whole(u64),
    /// The surface must be read from this byte on.
    From(u64),
}

/// The segments of the read-ahead memory.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Segments {
    size: u64,
    capacity: u64,
    segments: Vec<Segment>,
    live: Option<Live>,
    next_victim: usize,
}

impl Segments {
    pub(super) fn new(spec: Option<ReadAhead>, capacity: u64) -> Self {
        let (count, size) = spec.map_or((0, 0), |spec| (spec.segments as usize, spec.size.get()));
        Segments { size, capacity, segments: vec![Segment::default(); count], live: None, next_victim: 0 }
    }

    /// Looks up a read of the bytes from `first` to `end`. With `wait`, the head may continue to read ahead for it.
    #[inline]
    pub(super) fn find(
        &mut self,
        now_ns: u64,
        first: u64,
        end: u64,
        wait: bool,
        mechanism: &mut Mechanism,
    ) -> Found {
        if let Some(live) = self.live {
            let segment = self.segments[live.segment];
            let full_ns = live.since_ns + (live.limit_place - live.place);
            let reachable = end <= live.limit || (wait && full_ns >= now_ns);
            if first >= segment.first && first <= live.limit && reachable {
                let place = mechanism.surface.place(end);
                let ready_ns = match place.checked_sub(live.place) {
                    Some(ahead) => live.since_ns + ahead,
                    // The bytes were read before read-ahead stopped and resumed.
                    None if live.moved => now_ns,
                    None => live.since_ns,
                };
                if wait || ready_ns <= now_ns {
                    self.go_on(now_ns, end, live, mechanism);
                    return Found::Whole(ready_ns);
                }
            }
        }
        for (index, segment) in self.segments.iter().enumerate() {
            if first >= segment.first
                && first < segment.end
                && self.live.is_none_or(|live| live.segment != index)
            {
                return if end <= segment.end { Found::Whole(now_ns) } else { Found::From(segment.end) };
            }
        }
        Found::From(first)
    }

    /// Extends read-ahead after a stream has read up to `end` from memory: the limit rises to `end` plus the segment
    /// size.
    #[inline]
    fn go_on(&mut self, now_ns: u64, end: u64, mut live: Live, mechanism: &mut Mechanism) {
        let limit = (end + self.size).min(self.capacity);
        if limit > live.limit {
            let full_ns = live.since_ns + (live.limit_place - live.place);
            if full_ns < now_ns {
                // The head had stopped. It resumes when `limit_place` is below the head again.
                live.since_ns = mechanism.turn_to(live.limit_place, now_ns);
                live.place = live.limit_place;
                live.moved = true;
            }
            live.limit = limit;
            live.limit_place = mechanism.surface.place(limit);
            self.live = Some(live);
        }
        let segment = &mut self.segments[live.segment];
        segment.first = segment.first.max(end.saturating_sub(self.size));
    }

    /// Starts read-ahead at `end`, after the surface was read from `first` to `end` until `at_ns`.
    #[inline]
    pub(super) fn follow(&mut self, first: u64, end: u64, at_ns: u64, mechanism: &Mechanism) {
        if self.segments.is_empty() {
            return;
        }
        let grown =
            self.segments.iter().position(|it| it.first < it.end && (it.first..=it.end).contains(&first));
        let segment = grown.unwrap_or_else(|| {
            let victim = self.next_victim;
            self.next_victim = if victim + 1 == self.segments.len() { 0 } else { victim + 1 };
            self.segments[victim] = Segment { first, end };
            victim
        });
        let kept = self.segments[segment].first.max(end.saturating_sub(self.size));
        self.segments[segment] = Segment { first: kept, end };
        let limit = (end + self.size).min(self.capacity);
        let surface = &mechanism.surface;
        let (place, limit_place) = (surface.place(end), surface.place(limit));
        self.live = Some(Live { segment, since_ns: at_ns, place, limit, limit_place, moved: false });
    }

    /// Stops read-ahead at `at_ns`. The sectors read so far stay in memory.
    #[inline]
    pub(super) fn stop(&mut self, at_ns: u64, mechanism: &mut Mechanism) {
        let Some(live) = self.live.take() else { return };
        let segment = &mut self.segments[live.segment];
        let passed = at_ns.saturating_sub(live.since_ns).min(live.limit_place - live.place);
        if passed == 0 && !live.moved {
            return;
        }
        let end = mechanism.surface.sector(live.place + passed).clamp(segment.end, live.limit);
        segment.end = end;
        segment.first = segment.first.max(end.saturating_sub(2 * self.size));
        mechanism.follow(end, live.place + passed);
    }

    /// Discards all segments that overlap a write of the bytes from `first` to `end`.
    #[inline]
    pub(super) fn invalidate(&mut self, now_ns: u64, first: u64, end: u64, mechanism: &mut Mechanism) {
        if self.live.is_some_and(|live| first < live.limit && end > self.segments[live.segment].first) {
            self.stop(now_ns, mechanism);
        }
        for segment in &mut self.segments {
            if first < segment.end && end > segment.first {
                *segment = Segment::default();
            }
        }
    }

    /// Discards all segments.
    pub(super) fn clear(&mut self) {
        self.segments.fill(Segment::default());
        self.live = None;
    }
}
