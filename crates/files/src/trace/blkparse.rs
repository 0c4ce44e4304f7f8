//! The default output of blkparse: `8,0 3 11 0.009507758 697 Q W 223490 + 56 [kjournald]` (sections "Default output"
//! and "RWBS description" of its manual).
//!
//! Each request counts once, at its queueing event (`Q`). If there are no queueing events, the events of issue to the
//! driver (`D`) are used. `F` before the direction is a preflush, read as a separate flush; `F` after the direction
//! is forced unit access. All other events and the final summary are ignored.
//!
//! # Not handled
//! Other output formats (`-f`), and output of more than one device.

use super::{Requests, TraceFileError};
use lowtide_core::trace::SECTOR;
use lowtide_core::{Op, Request};

/// Whether a line is an event.
pub(super) fn is_event(line: &str) -> bool {
    event(line).is_some()
}

/// Splits an event into device, time in seconds, action, kind, and the remaining words.
fn event(line: &str) -> Option<(&str, &str, &str, &str, Vec<&str>)> {
    let mut words = line.split_whitespace();
    let device = words.next()?;
    let (major, minor) = device.split_once(',')?;
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (cpu, sequence, time) = (words.next()?, words.next()?, words.next()?);
    let numbers = number(major) && number(minor) && number(cpu) && number(sequence) && time.contains('.');
    let (_pid, action, kind) = (words.next()?, words.next()?, words.next()?);
    numbers.then(|| (device, time, action, kind, words.collect()))
}

/// Reads the requests line by line.
#[derive(Debug, Default)]
pub(super) struct Reader {
    device: Option<String>,
    queued: Requests,
    issued: Requests,
}

impl Reader {
    pub(super) fn line(&mut self, number: usize, line: &str) -> Result<(), TraceFileError> {
        let Some((device, time, action, kind, rest)) = event(line) else { return Ok(()) };
        let requests = match action {
            "Q" => &mut self.queued,
            "D" => &mut self.issued,
            _ => return Ok(()),
        };
        match &self.device {
            None => self.device = Some(device.to_owned()),
            Some(known) if known == device => {}
            Some(known) => {
                let message =
                    format!("requests of two devices, {known} and {device}: print one with `blkparse -i`");
                return Err(TraceFileError::at(number, message));
            }
        }
        let at_ns = nanos(time).ok_or_else(|| {
            TraceFileError::at(number, format!("the time is `{time}`, not seconds with nanoseconds"))
        })?;
        let direction = kind.find(['R', 'W', 'D']);
        let (before, after) = kind.split_at(direction.unwrap_or(kind.len()));
        if before.contains('F') {
            requests.push(number, at_ns, Request::flush())?;
        }
        let op = match after.bytes().next() {
            Some(b'R') => Op::Read,
            Some(b'W') => Op::Write { fua: after.contains('F') },
            Some(_) => Op::Trim,
            None => return Ok(()),
        };
        // A flush without data has no sector range.
        let [sector, "+", count, ..] = rest[..] else { return Ok(()) };
        let bytes = |text: &str| text.parse::<u64>().ok().and_then(|sectors| sectors.checked_mul(SECTOR));
        let (Some(offset), Some(length)) = (bytes(sector), bytes(count)) else {
            return Err(TraceFileError::at(number, format!("`{sector} + {count}` are no sectors")));
        };
        if length == 0 {
            return Ok(());
        }
        requests.push(number, at_ns, Request { op, offset, length })
    }

    pub(super) fn finish(self) -> Requests {
        if self.queued.requests.is_empty() { self.issued } else { self.queued }
    }
}

/// Converts `12.000000345` to nanoseconds, exactly.
fn nanos(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = fraction.len();
    if digits == 0 || digits > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction = fraction.parse::<u64>().ok()? * 10u64.pow(9 - digits as u32);
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}
