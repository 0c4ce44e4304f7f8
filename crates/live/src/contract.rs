//! Checks that a drive keeps its contract ([`Contract`]), from a log of its requests.
//!
//! The contract for each sector of 512 bytes:
//!
//! * A read returns the newest write that was answered before the read was submitted, or a write that was in flight
//!   together with the read.
//! * A write is durable after a flush that was submitted after the write was answered. A write with forced unit
//!   access is durable when it is answered.
//! * After a power cut, a sector holds its newest durable write or any write that was still unanswered when this
//!   durable write was submitted. The first read decides which one, and later reads return the same.
//!
//! The check is independent of the drive's implementation: it has no model, no undo data, and no order among writes
//! in flight. The contents from before the log are unknown, so the first read of them is accepted.
//!
//! # Not checked
//! - Atomicity of 4 KiB pages in a power cut.
//! - The contents of trimmed ranges longer than [`MOST_TRIMMED`].

use super::request_log::{Event, Requests, SECTOR, zeroes};
use lowtide_core::{Op, Request};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;

/// The longest trimmed range whose zeroes are checked, in bytes.
pub const MOST_TRIMMED: u64 = 16 << 20;

/// The maximum number of breaches that are kept. All are counted.
const MOST_BREACHES: usize = 20;

/// The number of an event in the log, in order.
type Moment = u64;

/// The moment of an event that has not happened.
const NEVER: Moment = Moment::MAX;

/// A read that returned contents against the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// Time of the answer, in nanoseconds of the log's clock.
    pub at_ns: u64,
    /// The number of the read.
    pub id: u64,
    /// First byte of the sector.
    pub offset: u64,
    /// Checksum of the contents read.
    pub found: u32,
    /// Checksums of the allowed contents.
    pub allowed: Vec<u32>,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Breach { at_ns, id, offset, found, allowed } = self;
        let allowed: Vec<String> = allowed.iter().map(|sum| format!("{sum:08x}")).collect();
        let allowed = allowed.join(" or ");
        write!(f, "at {at_ns} ns read {id} found {found:08x} at byte {offset}, which may hold {allowed}")
    }
}

/// The result of checking a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings {
    /// Number of requests.
    pub requests: u64,
    /// Successful flushes.
    pub flushes: u64,
    /// Number of sectors that were read and whose allowed contents were known.
    pub checked: u64,
    /// The first [`MOST_BREACHES`] breaches.
    pub breaches: Vec<Breach>,
    /// Number of breaches.
    pub broken: u64,
    /// Requests that failed while the power was on: time in nanoseconds, request, and Linux error number.
    pub failed: Vec<(u64, Request, i32)>,
    /// Times of submission and answer of each flush, in nanoseconds of `CLOCK_MONOTONIC`.
    pub flushed: Vec<(u64, u64)>,
    /// Whether the log is incomplete because it was full.
    pub full: bool,
}

#[derive(Debug, Clone)]
struct Written {
    id: u64,
    sum: u32,
    asked: Moment,
    answered: Moment,
    durable: bool,
}

#[derive(Debug, Clone, Default)]
struct Sector {
    /// The possible contents before `writes`; `None` if unknown.
    before: Option<Vec<u32>>,
    /// Writes in order of submission.
    writes: Vec<Written>,
}

impl Sector {
    /// The contents that a read may return if it was submitted at `asked`; `None` if unknown.
    fn readable(&self, asked: Moment) -> Option<Vec<u32>> {
        let over = |newer: &Written| newer.answered < asked;
        let hidden = |it: &Written| self.writes.iter().any(|newer| it.answered < newer.asked && over(newer));
        let mut may: Vec<u32> = self.writes.iter().filter(|it| !hidden(it)).map(|it| it.sum).collect();
        if !self.writes.iter().any(over) {
            may.extend(self.before.as_ref()?);
        }
        Some(may)
    }

    /// Removes writes that a durable write has superseded.
    fn settle(&mut self) {
        let newest = self.writes.iter().filter(|it| it.durable).map(|it| it.asked).max();
        let Some(newest) = newest else { return };
        self.writes.retain(|it| it.answered >= newest);
        self.before = Some(Vec::new());
        if let [only] = &self.writes[..] {
            self.before = Some(vec![only.sum]);
            self.writes.clear();
        }
    }

    /// Restricts the contents to those allowed after a power cut.
    fn cut(&mut self) {
        let writes = std::mem::take(&mut self.writes);
        if let Some(before) = &mut self.before {
            before.extend(writes.iter().map(|it| it.sum));
            before.sort_unstable();
            before.dedup();
        }
    }
}

/// A request in flight.
#[derive(Debug, Clone, Copy)]
struct Flying {
    request: Request,
    at_ns: u64,
    asked: Moment,
}

/// The state of a drive, derived from its logs.
#[derive(Debug, Default)]
pub struct Contract {
    sectors: HashMap<u64, Sector>,
    flying: BTreeMap<u64, Flying>,
    /// The answered read whose data comes next.
    read: Option<(u64, Flying)>,
    /// Answered writes that are not durable, in the order of their answers: moment, number, and request.
    volatile: VecDeque<(Moment, u64, Request)>,
    now: Moment,
    off: bool,
}

impl Contract {
    /// A drive with unknown contents.
    pub fn new() -> Contract {
        Contract::default()
    }

    /// Checks a log. It must continue the previous one.
    pub fn follow(&mut self, log: &Requests) -> Findings {
        let mut findings = Findings::default();
        for (at_ns, event) in &log.events {
            self.now += 1;
            match event {
                Event::Ask { id, request, sectors } => {
                    findings.requests += 1;
                    self.flying.insert(*id, Flying { request: *request, at_ns: *at_ns, asked: self.now });
                    if !self.off {
                        self.ask(*id, *request, sectors);
                    }
                }
                Event::End { id, result } => self.end((*id, *result), (log.origin_ns, *at_ns), &mut findings),
                Event::Data { id, offset, sectors } => {
                    for (sum, place) in sectors.iter().zip((*offset..).step_by(SECTOR as usize)) {
                        self.data((*at_ns, *id), place, *sum, &mut findings);
                    }
                }
                Event::Cut(_) => {
                    self.sectors.values_mut().for_each(Sector::cut);
                    self.flying.clear();
                    self.volatile.clear();
                    self.off = true;
                }
                Event::Risk { .. } => {}
                Event::On => self.off = false,
                Event::Full => findings.full = true,
            }
        }
        findings
    }

    fn ask(&mut self, id: u64, request: Request, sums: &[u32]) {
        let Request { op, offset, length } = request;
        let places = (offset..offset + length).step_by(SECTOR as usize);
        let sums: Vec<u32> = match op {
            Op::Write { .. } => sums.to_vec(),
            Op::Trim | Op::WriteZeroes if length > MOST_TRIMMED => {
                self.sectors.retain(|place, _| !(offset..offset + length).contains(place));
                return;
            }
            Op::Trim | Op::WriteZeroes => vec![zeroes(); places.clone().count()],
            Op::Read | Op::Flush => return,
        };
        for (place, sum) in places.zip(sums) {
            let written = Written { id, sum, asked: self.now, answered: NEVER, durable: false };
            self.sectors.entry(place).or_default().writes.push(written);
        }
    }

    fn end(&mut self, (id, result): (u64, Result<(), i32>), at: (u64, u64), findings: &mut Findings) {
        let (origin_ns, at_ns) = at;
        let Some(flying) = self.flying.remove(&id) else { return };
        let request = flying.request;
        if let Err(errno) = result {
            // A failed write may have been carried out, so it counts as in flight from now on.
            if !self.off {
                findings.failed.push((at_ns, request, errno));
            }
            return;
        }
        match request.op {
            Op::Read => self.read = Some((id, flying)),
            Op::Flush => {
                findings.flushes += 1;
                findings.flushed.push((origin_ns + flying.at_ns, origin_ns + at_ns));
                let covered = |front: &&(Moment, u64, Request)| front.0 < flying.asked;
                while let Some((_, id, write)) = self.volatile.front().filter(covered).copied() {
                    self.volatile.pop_front();
                    self.durable(id, write);
                }
            }
            Op::Write { .. } | Op::Trim | Op::WriteZeroes => {
                let now = self.now;
                self.each(id, request, |written| written.answered = now);
                if request.op == (Op::Write { fua: true }) {
                    self.durable(id, request);
                } else {
                    self.volatile.push_back((now, id, request));
                }
            }
        }
    }

    /// Updates a write in each of its sectors.
    fn each(&mut self, id: u64, request: Request, mut change: impl FnMut(&mut Written)) {
        if !matches!(request.op, Op::Write { .. }) && request.length > MOST_TRIMMED {
            return;
        }
        for place in (request.offset..request.offset + request.length).step_by(SECTOR as usize) {
            let sector = self.sectors.get_mut(&place);
            let written = sector.and_then(|it| it.writes.iter_mut().find(|written| written.id == id));
            written.into_iter().for_each(&mut change);
        }
    }

    fn durable(&mut self, id: u64, request: Request) {
        self.each(id, request, |written| written.durable = true);
        for place in (request.offset..request.offset + request.length).step_by(SECTOR as usize) {
            self.sectors.get_mut(&place).into_iter().for_each(Sector::settle);
        }
    }

    /// Checks a sector that was read.
    fn data(&mut self, (at_ns, read): (u64, u64), place: u64, found: u32, findings: &mut Findings) {
        let Some((_, flying)) = self.read.filter(|(id, _)| *id == read) else { return };
        let sector = self.sectors.entry(place).or_default();
        if let Some(allowed) = sector.readable(flying.asked) {
            findings.checked += 1;
            if !allowed.contains(&found) {
                findings.broken += 1;
                if findings.breaches.len() < MOST_BREACHES {
                    findings.breaches.push(Breach { at_ns, id: read, offset: place, found, allowed });
                }
            }
        }
        if sector.writes.is_empty() {
            sector.before = Some(vec![found]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a log in a short notation: `w5:3` submits write 5 of value 3 to sector 0, `W` does so with forced unit
    /// access, and `f6` submits a flush. `e5` answers request 5, `E5` fails it, `r7=3` is a read that returns 3, and
    /// `x` cuts and restores the power.
    fn follow(text: &str) -> Findings {
        let mut events = Vec::new();
        for (word, at_ns) in text.split_whitespace().zip(1..) {
            let (what, rest) = word.split_at(1);
            let mut numbers = rest.split([':', '=']).filter_map(|it| it.parse::<u64>().ok());
            let (id, value) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0) as u32);
            let mut push = |event| events.push((at_ns, event));
            let ask = |op, length, sectors| {
                let request = Request { op, offset: 0, length };
                Event::Ask { id, request, sectors }
            };
            match what {
                "w" => push(ask(Op::Write { fua: false }, SECTOR, vec![value])),
                "W" => push(ask(Op::Write { fua: true }, SECTOR, vec![value])),
                "f" => push(ask(Op::Flush, 0, vec![])),
                "e" => push(Event::End { id, result: Ok(()) }),
                "E" => push(Event::End { id, result: Err(5) }),
                "r" => {
                    push(ask(Op::Read, SECTOR, vec![]));
                    push(Event::End { id, result: Ok(()) });
                    push(Event::Data { id, offset: 0, sectors: vec![value] });
                }
                "x" => {
                    push(Event::Cut(512));
                    push(Event::On);
                }
                other => panic!("{other}"),
            }
        }
        Contract::new().follow(&Requests { origin_ns: 0, events })
    }

    #[test]
    fn breaches_of_the_contract_are_found() {
        let durable = "w1:1 e1 f2 e2 ";
        for (text, broken) in [
            ("r1=9 r2=9", 0),
            // Contents do not change without a write.
            ("r1=9 r2=8", 1),
            ("w1:1 e1 r2=1", 0),
            ("w1:1 e1 w2:2 e2 r3=1", 1),
            // A read may return either of two concurrent writes.
            ("w1:1 w2:2 e1 e2 r3=1", 0),
            ("w1:1 e1 w2:2 r3=1 r4=2 e2", 0),
            // Durable and volatile writes.
            (&format!("{durable} x r3=1"), 0),
            (&format!("{durable} x r3=7"), 1),
            (&format!("r9=7 {durable} x r3=7"), 1),
            ("r9=7 w1:1 e1 x r3=7 r4=7", 0),
            ("r9=7 w1:1 e1 x r3=1 r4=1", 0),
            ("r9=7 w1:1 e1 x r3=1 r4=7", 1),
            // A flush covers the writes that were answered before it was submitted.
            ("r9=7 w1:1 f2 e1 e2 x r3=7", 0),
            ("r9=7 w1:1 e1 f2 x r3=7", 0),
            ("r9=7 W1:1 e1 x r3=7", 1),
            // Later writes may survive; earlier ones must not.
            (&format!("{durable} w3:3 e3 w4:4 x r5=4"), 0),
            (&format!("{durable} w3:3 e3 w4:4 x r5=3"), 0),
            (&format!("w8:8 e8 {durable} w3:3 x r5=8"), 1),
            // A write in flight together with the durable write may take effect after it.
            ("w8:8 w1:1 e1 f2 e2 x r5=8", 0),
            // A failed write may have been carried out.
            ("r9=7 w1:1 E1 f2 e2 x r3=7", 0),
            ("r9=7 w1:1 E1 f2 e2 x r3=1", 0),
            // Contents that survived a power cut are durable.
            (&format!("{durable} w3:3 e3 x r4=3 x r5=3"), 0),
            (&format!("{durable} w3:3 e3 x r4=3 x r5=1"), 1),
        ] {
            let findings = follow(text);
            assert_eq!(findings.broken, broken, "{text}: {:?}", findings.breaches);
        }
    }

    #[test]
    fn failed_requests_and_flushes_are_reported() {
        let findings = follow("w1:1 E1 f2 e2");
        assert_eq!(findings.failed.iter().map(|it| it.2).collect::<Vec<_>>(), [5]);
        assert_eq!((findings.requests, findings.flushes), (2, 1));
        assert_eq!(findings.flushed, [(3, 4)]);
    }
}
