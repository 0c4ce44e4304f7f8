//! A log disk as a drive that is served ([`LogDrive`]).
//!
//! Requests are done as they come, one after the other; flushes that come together are one. Leaves out time: answers come as soon as they
//! can.

use lowtide_core::{Op, Request};
use lowtide_host::live::contents::Run;
use lowtide_host::live::{Drive, Ticket};
use lowtide_host::nbd::Export;
use lowtide_logdisk::log::Entry;
use lowtide_logdisk::{BLOCK, Disk, FileMedium, Lba, LogError};
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::VecDeque;

const BLOCK_BYTES: u64 = BLOCK as u64;

/// A log disk that is served.
#[derive(Debug)]
pub struct LogDrive {
    disk: RefCell<Disk<FileMedium>>,
    export: Export,
    done: VecDeque<(Ticket, Result<(), i32>)>,
    /// Who waits for a flush.
    flushes: Vec<Ticket>,
    /// What went wrong first, for whoever looks after the disk.
    first_error: Option<LogError>,
}

impl LogDrive {
    /// Serves a disk by this name.
    pub fn new(disk: Disk<FileMedium>, name: &str, description: &str, read_only: bool) -> LogDrive {
        let export = Export {
            name: name.to_owned(),
            description: description.to_owned(),
            size: disk.geometry().capacity(),
            minimum_block: 512,
            preferred_block: BLOCK as u32,
            read_only,
            rotational: false,
        };
        LogDrive {
            disk: RefCell::new(disk),
            export,
            done: VecDeque::new(),
            flushes: Vec::new(),
            first_error: None,
        }
    }

    /// The disk, when nobody is served any more, and what went wrong first.
    pub fn into_parts(self) -> (Disk<FileMedium>, Option<LogError>) {
        (self.disk.into_inner(), self.first_error)
    }

    /// Looks at the disk while it is served.
    pub fn with_disk<T>(&mut self, look: impl FnOnce(&mut Disk<FileMedium>) -> T) -> T {
        look(self.disk.get_mut())
    }

    fn carry_out(&mut self, request: Request, data: &[u8]) -> Result<(), LogError> {
        let Request { op, offset, length } = request;
        let disk = self.disk.get_mut();
        match op {
            Op::Read | Op::Flush => Ok(()),
            Op::Write { .. } => {
                for (lba, within, part) in pieces(offset, length) {
                    let from = &data[part.clone()];
                    if from.len() == BLOCK {
                        disk.write(lba, from)?;
                    } else {
                        change(disk, lba, |block| block[within..within + from.len()].copy_from_slice(from))?;
                    }
                }
                Ok(())
            }
            Op::Trim | Op::WriteZeroes => {
                let (begin, end) =
                    (offset.next_multiple_of(BLOCK_BYTES), (offset + length) / BLOCK_BYTES * BLOCK_BYTES);
                if begin < end {
                    disk.unmap((begin / BLOCK_BYTES) as Lba, ((end - begin) / BLOCK_BYTES) as u32)?;
                }
                if op == Op::WriteZeroes {
                    for (lba, within, part) in pieces(offset, length).filter(|(.., part)| part.len() < BLOCK)
                    {
                        change(disk, lba, |block| block[within..within + part.len()].fill(0))?;
                    }
                }
                Ok(())
            }
        }
    }

    fn answer(&mut self, ticket: Ticket, result: Result<(), LogError>) {
        let result = result.map_err(|error| note(&mut self.first_error, error));
        self.done.push_back((ticket, result));
    }
}

/// Changes a part of a block.
fn change(
    disk: &mut Disk<FileMedium>,
    lba: Lba,
    change: impl FnOnce(&mut [u8; BLOCK]),
) -> Result<(), LogError> {
    let mut block = [0; BLOCK];
    disk.read(lba, &mut block)?;
    change(&mut block);
    disk.write(lba, &block)
}

/// The blocks of a range: which, where in it, and which of its bytes.
fn pieces(offset: u64, length: u64) -> impl Iterator<Item = (Lba, usize, std::ops::Range<usize>)> {
    let end = offset + length;
    let first = offset / BLOCK_BYTES;
    (first..end.div_ceil(BLOCK_BYTES)).map(move |lba| {
        let (from, to) = (offset.max(lba * BLOCK_BYTES), end.min((lba + 1) * BLOCK_BYTES));
        (lba as Lba, (from - lba * BLOCK_BYTES) as usize, (from - offset) as usize..(to - offset) as usize)
    })
}

/// The error number of Linux for what went wrong, which is kept where it is the first.
fn note(first: &mut Option<LogError>, error: LogError) -> i32 {
    let number = errno(&error);
    first.get_or_insert(error);
    number
}

fn errno(error: &LogError) -> i32 {
    match error {
        LogError::Exhausted { .. } => Errno::NOSPC.raw_os_error(),
        _ => Errno::IO.raw_os_error(),
    }
}

impl Drive for LogDrive {
    fn export(&self) -> &Export {
        &self.export
    }
    fn life(&self) -> u64 {
        0
    }
    fn submit(&mut self, _: u64, ticket: Ticket, request: Request, data: &[u8]) {
        let result = self.carry_out(request, data);
        match request.op {
            Op::Flush | Op::Write { fua: true } if result.is_ok() => self.flushes.push(ticket),
            _ => self.answer(ticket, result),
        }
    }
    fn next_due(&self) -> Option<u64> {
        (!self.done.is_empty() || !self.flushes.is_empty()).then_some(0)
    }
    fn due(&mut self, _: u64) -> Option<(Ticket, Result<(), i32>)> {
        if !self.flushes.is_empty() {
            // Whoever came while the last one was under way has this one in common.
            let flushed = self.disk.get_mut().flush().map_err(|error| note(&mut self.first_error, error));
            self.done.extend(self.flushes.drain(..).map(|ticket| (ticket, flushed)));
        }
        self.done.pop_front()
    }
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), i32> {
        let disk = self.disk.get_mut();
        for (lba, within, part) in pieces(offset, into.len() as u64) {
            let to = &mut into[part];
            let read = if to.len() == BLOCK {
                disk.read(lba, to)
            } else {
                let mut block = [0; BLOCK];
                let read = disk.read(lba, &mut block);
                to.copy_from_slice(&block[within..within + to.len()]);
                read
            };
            read.map_err(|error| note(&mut self.first_error, error))?;
        }
        Ok(())
    }
    fn run(&self, offset: u64, length: u64) -> Result<Run, i32> {
        let mut disk = self.disk.borrow_mut();
        let mut all = pieces(offset, length).map(|(lba, _, part)| {
            let entry = disk.entry(lba).map_err(|error| errno(&error))?;
            Ok((entry != Entry::Hole, part.len() as u64))
        });
        let (allocated, mut bytes) = all.next().unwrap_or(Err(Errno::INVAL.raw_os_error()))?;
        for next in all {
            let (other, more) = next?;
            if other != allocated {
                break;
            }
            bytes += more;
        }
        Ok(Run { length: bytes, allocated })
    }
}
