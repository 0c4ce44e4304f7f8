//! The log of a live drive ([`RequestLog`]): requests, answers, power cuts, and checksums of all data.
//!
//! The log has one line for each event, in the order in which the drive saw the events. A line begins with the time
//! in nanoseconds of the server's clock. The first line of the log holds the `CLOCK_MONOTONIC` time at which that
//! clock showed 0. Each sector of 512 bytes has a CRC-32C.
//!
//! ```text
//! lowtide requests 1 81234567890
//! 1000 ask 7 write 4096 1024 0a1b2c3d99887766
//! 81000 end 7 0
//! 81500 ask 8 flush 0 0
//! 90125 end 8 0
//! 91000 cut 512
//! 91000 risk 8192 4096 acknowledged 8192-8704
//! 95000 on
//! 96000 ask 9 read 4096 512
//! 97000 end 9 0
//! 97000 data 9 4096 0a1b2c3d
//! ```
//!
//! `end` has the Linux error number, 0 for none. `risk` is a write that was not durable at the power cut, with the
//! byte ranges of it that survived. The log is kept in memory, up to [`MOST_BYTES`]; a log that reaches this limit
//! ends with `full`. The log has no data, only checksums. [`super::contract`] checks it.

use lowtide_core::{Op, Request};
use lowtide_device::power::{CutWrite, Tear};
use lowtide_files::output::{self, CommandFiles, Role};
use lowtide_files::trace::native;
use rustix::time::ClockId;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Size of a sector, in bytes.
pub const SECTOR: u64 = 512;

/// The maximum length of a log, in bytes.
pub const MOST_BYTES: usize = 256 << 20;

const HEAD: &str = "lowtide requests 1";

const LOG: Role = Role::new("the log of requests", "--keep DIRECTORY");

/// An event of a drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A request was submitted.
    Ask {
        /// The unique number of the request.
        id: u64,
        /// The request.
        request: Request,
        /// Checksums of the sectors of a write.
        sectors: Vec<u32>,
    },
    /// A request was answered, with the Linux error number if it failed.
    End {
        /// The number of the request.
        id: u64,
        /// The outcome.
        result: Result<(), i32>,
    },
    /// The data that a read returned.
    Data {
        /// The number of the read.
        id: u64,
        /// Offset of the first byte.
        offset: u64,
        /// Checksums of the sectors.
        sectors: Vec<u32>,
    },
    /// The power was cut. Writes tear at multiples of this many bytes.
    Cut(u64),
    /// A write that was not durable at the cut.
    Risk {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
        /// Whether it had been acknowledged.
        acknowledged: bool,
        /// The byte ranges that survived: first byte, and one past the last.
        survived: Vec<(u64, u64)>,
    },
    /// The power was restored.
    On,
    /// The log is full. Later events are missing.
    Full,
}

/// A log in memory.
#[derive(Debug)]
pub struct RequestLog {
    text: String,
    most: usize,
    full: bool,
}

impl RequestLog {
    /// Starts a log at an instant of the server's clock.
    pub(super) fn new(now_ns: u64) -> RequestLog {
        RequestLog::with_origin(monotonic_ns().saturating_sub(now_ns), MOST_BYTES)
    }

    fn with_origin(origin_ns: u64, most: usize) -> RequestLog {
        RequestLog { text: format!("{HEAD} {origin_ns}\n"), most, full: false }
    }

    /// Logs an event.
    pub(super) fn push(&mut self, at_ns: u64, event: &Event) {
        if self.full {
            return;
        }
        self.full = self.text.len() >= self.most;
        let event = if self.full { &Event::Full } else { event };
        // Writing to a string does not fail.
        let _ = line(&mut self.text, at_ns, event);
    }

    /// Logs a request, with the checksums of a write's data.
    pub(super) fn ask(&mut self, at_ns: u64, id: u64, request: Request, data: &[u8]) {
        self.push(at_ns, &Event::Ask { id, request, sectors: sectors(data) });
    }

    /// Logs the checksums of a read's data.
    pub(super) fn data(&mut self, at_ns: u64, id: u64, offset: u64, data: &[u8]) {
        self.push(at_ns, &Event::Data { id, offset, sectors: sectors(data) });
    }

    /// Logs a power cut.
    pub(super) fn cut(&mut self, at_ns: u64, tear: Tear, writes: Vec<CutWrite>) {
        self.push(at_ns, &Event::Cut(tear.granule()));
        for CutWrite { offset, length, acknowledged, survived, .. } in writes {
            self.push(at_ns, &Event::Risk { offset, length, acknowledged, survived });
        }
    }

    /// The text of the log.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Writes the log to a new file.
    ///
    /// # Errors
    /// The file exists or cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let file = output::create_new(LOG, path, &CommandFiles::default())?;
        let mut file = BufWriter::new(file);
        file.write_all(self.text.as_bytes())?;
        file.flush()
    }
}

/// The time of `CLOCK_MONOTONIC`, which all processes share, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    lowtide_host::clock::ns(ClockId::Monotonic)
}

/// The checksum of each sector of `data`.
fn sectors(data: &[u8]) -> Vec<u32> {
    data.chunks(SECTOR as usize).map(crc32c::crc32c).collect()
}

/// The checksum of a sector of zeroes.
pub(super) fn zeroes() -> u32 {
    crc32c::crc32c(&[0; SECTOR as usize])
}

fn line(to: &mut String, at_ns: u64, event: &Event) -> std::fmt::Result {
    let hex = |to: &mut String, sectors: &[u32]| sectors.iter().try_for_each(|sum| write!(to, "{sum:08x}"));
    match event {
        Event::Ask { id, request: Request { op, offset, length }, sectors } => {
            write!(to, "{at_ns} ask {id} {} {offset} {length} ", native::name(*op))?;
            hex(to, sectors)?;
        }
        Event::End { id, result } => write!(to, "{at_ns} end {id} {}", result.err().unwrap_or(0))?,
        Event::Data { id, offset, sectors } => {
            write!(to, "{at_ns} data {id} {offset} ")?;
            hex(to, sectors)?;
        }
        Event::Cut(granule) => write!(to, "{at_ns} cut {granule}")?,
        Event::Risk { offset, length, acknowledged, survived } => {
            let state = if *acknowledged { "acknowledged" } else { "in-flight" };
            write!(to, "{at_ns} risk {offset} {length} {state}")?;
            survived.iter().try_for_each(|(from, end)| write!(to, " {from}-{end}"))?;
        }
        Event::On => write!(to, "{at_ns} on")?,
        Event::Full => write!(to, "{at_ns} full")?,
    }
    to.push('\n');
    Ok(())
}

/// A parsed log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requests {
    /// The `CLOCK_MONOTONIC` time at which the server's clock showed 0, in nanoseconds.
    pub origin_ns: u64,
    /// The events, each with its time in nanoseconds of the server's clock.
    pub events: Vec<(u64, Event)>,
}

/// Parses a log.
///
/// # Errors
/// A message with the number of the invalid line.
pub fn read(text: &str) -> Result<Requests, String> {
    let mut lines = text.lines().zip(1..);
    let origin = lines.next().and_then(|(line, _)| line.strip_prefix(HEAD)?.trim().parse().ok());
    let origin_ns = origin.ok_or("the first line is not that of a log of requests")?;
    let events = lines.map(|(line, number)| {
        event(line)
            .ok_or_else(|| format!("line {number} is not an event: `{}`", line.get(..60).unwrap_or(line)))
    });
    Ok(Requests { origin_ns, events: events.collect::<Result<_, _>>()? })
}

fn event(line: &str) -> Option<(u64, Event)> {
    let mut words = line.split_ascii_whitespace();
    let number = |words: &mut std::str::SplitAsciiWhitespace<'_>| words.next()?.parse::<u64>().ok();
    let at_ns = number(&mut words)?;
    let event = match words.next()? {
        "ask" => {
            let id = number(&mut words)?;
            let op: Op = native::op(words.next()?)?;
            let request = Request { op, offset: number(&mut words)?, length: number(&mut words)? };
            Event::Ask { id, request, sectors: checksums(words.next())? }
        }
        "end" => {
            let id = number(&mut words)?;
            let result = match words.next()?.parse().ok()? {
                0 => Ok(()),
                errno => Err(errno),
            };
            Event::End { id, result }
        }
        "data" => {
            let (id, offset) = (number(&mut words)?, number(&mut words)?);
            Event::Data { id, offset, sectors: checksums(words.next())? }
        }
        "cut" => Event::Cut(number(&mut words)?),
        "risk" => {
            let (offset, length) = (number(&mut words)?, number(&mut words)?);
            let acknowledged = match words.next()? {
                "acknowledged" => true,
                "in-flight" => false,
                _ => return None,
            };
            let run = |word: &str| {
                let (from, end) = word.split_once('-')?;
                Some((from.parse().ok()?, end.parse().ok()?))
            };
            let survived = words.map(run).collect::<Option<_>>()?;
            Event::Risk { offset, length, acknowledged, survived }
        }
        "on" => Event::On,
        "full" => Event::Full,
        _ => return None,
    };
    Some((at_ns, event))
}

fn checksums(word: Option<&str>) -> Option<Vec<u32>> {
    let Some(word) = word else { return Some(Vec::new()) };
    let sum = |hex: &[u8]| u32::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok();
    word.as_bytes().chunks(8).map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_event() -> Vec<(u64, Event)> {
        let write = Request { op: Op::Write { fua: true }, offset: 4096, length: 1024 };
        vec![
            (1, Event::Ask { id: 7, request: write, sectors: vec![0x0a1b_2c3d, 9] }),
            (2, Event::Ask { id: 8, request: Request::flush(), sectors: vec![] }),
            (3, Event::End { id: 7, result: Ok(()) }),
            (3, Event::End { id: 8, result: Err(5) }),
            (4, Event::Cut(512)),
            (4, Event::Risk { offset: 0, length: 1024, acknowledged: true, survived: vec![(0, 512)] }),
            (4, Event::Risk { offset: 0, length: 1024, acknowledged: false, survived: vec![] }),
            (5, Event::On),
            (6, Event::Data { id: 9, offset: 512, sectors: vec![zeroes()] }),
        ]
    }

    #[test]
    fn a_log_reads_back_as_it_was_written() {
        let mut log = RequestLog::with_origin(77, MOST_BYTES);
        every_event().iter().for_each(|(at_ns, event)| log.push(*at_ns, event));
        let found = read(&log.text).expect("a log");
        assert_eq!(found, Requests { origin_ns: 77, events: every_event() });
    }

    #[test]
    fn a_full_log_ends_with_full() {
        let mut log = RequestLog::with_origin(0, 200);
        (0..100).for_each(|id| log.push(id, &Event::End { id, result: Ok(()) }));
        let events = read(&log.text).expect("a log").events;
        assert!(events.len() < 30, "{}", events.len());
        assert_eq!(events.last().map(|(_, event)| event), Some(&Event::Full));
    }

    #[test]
    fn invalid_logs_are_refused_with_the_line() {
        assert!(read("hello\n").unwrap_err().contains("first line"));
        let error = read("lowtide requests 1 0\n1 on\n2 off\n").unwrap_err();
        assert!(error.contains("line 3") && error.contains("2 off"), "{error}");
    }
}
