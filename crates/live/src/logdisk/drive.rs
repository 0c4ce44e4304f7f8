//! A log disk as a drive that is served ([`LogDrive`]).
//!
//! ```text
//!   write ─► (room?) ─► log in memory ─► answered          ┌─► threads that write
//!   flush ─► log handed out ─► flushed and marked beside ─► answered ──┤
//!   read  ─► looked up ─► read beside ─► answered           └─► a thread that flushes, threads that read
//! ```
//!
//! The thread that owns it never waits for the drive as long as it can be helped: writes that need room wait in a line while the cleaner
//! goes on in pieces, and between two of them others have their turn. Flushes that come together are one. Not here: time; answers come as
//! soon as they can.

use super::beside::{Beside, Done, Part, Read};
use super::{FileMedium, Queue};
use lowtide_core::{Op, Request};
use lowtide_host::live::contents::Run;
use lowtide_host::live::{Drive, Ring, Ticket};
use lowtide_host::nbd::Export;
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::format::Checkpoint;
use lowtide_logdisk::format::Seq;
use lowtide_logdisk::log::Entry;
use lowtide_logdisk::{BLOCK, Disk, Lba, LogError};
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

const BLOCK_BYTES: u64 = BLOCK as u64;

/// Blocks that are written before others have their turn; a piece of cleaning counts as all of them.
const BLOCKS_IN_TURN: usize = 128;

/// The longest read that clients may ask for.
const LONGEST_READ: u64 = 32 << 20;

/// A log disk whose medium is written by threads.
pub type QueuedDisk = Disk<Arc<Queue>>;

/// A log disk that is served.
#[derive(Debug)]
pub struct LogDrive {
    disk: RefCell<QueuedDisk>,
    export: Export,
    beside: Beside,
    /// Writes that wait for room, and what came after them.
    line: VecDeque<Waiting>,
    done: VecDeque<Answer>,
    /// The bytes of the read that was answered last.
    bytes: Vec<u8>,
    /// Who waits for the next flush.
    flushes: Vec<Ticket>,
    flushing: Option<Flushing>,
    /// Others have had no turn since the last one.
    had_turn: bool,
    /// What went wrong first, for whoever looks after the disk.
    first_error: Option<LogError>,
}

/// A request that waits for room.
#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    request: Request,
    data: Vec<u8>,
    /// Pieces of it that are done.
    pieces: usize,
}

/// What a request came to.
#[derive(Debug)]
struct Answer {
    ticket: Ticket,
    result: Result<(), i32>,
    /// The bytes of a read.
    bytes: Vec<u8>,
}

/// A flush that is under way.
#[derive(Debug)]
struct Flushing {
    /// Everything up to here is durable after it.
    seq: Option<Seq>,
    /// Who waits for it.
    tickets: Vec<Ticket>,
    checkpoint: Option<Stage>,
}

/// A checkpoint.
#[derive(Debug)]
enum Stage {
    /// All it names is being made durable.
    Begun(Box<Checkpoint>),
    /// It is being made durable itself.
    Written(Box<Checkpoint>),
}

impl LogDrive {
    /// Serves a disk by this name.
    pub fn new(
        disk: QueuedDisk,
        name: &str,
        description: &str,
        read_only: bool,
    ) -> std::io::Result<LogDrive> {
        let export = Export {
            name: name.to_owned(),
            description: description.to_owned(),
            size: disk.geometry().capacity(),
            minimum_block: 512,
            preferred_block: BLOCK as u32,
            read_only,
            rotational: false,
        };
        let beside = Beside::new(Arc::clone(disk.medium()), disk.reader())?;
        Ok(LogDrive {
            disk: RefCell::new(disk),
            export,
            beside,
            line: VecDeque::new(),
            done: VecDeque::new(),
            bytes: Vec::new(),
            flushes: Vec::new(),
            flushing: None,
            had_turn: false,
            first_error: None,
        })
    }

    /// Opens the log disk of a medium, to be served.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn open(medium: FileMedium, running: Running) -> Result<QueuedDisk, LogError> {
        let queue =
            Queue::new(medium).map_err(|source| LogError::Medium { what: "starting threads", source })?;
        Disk::open(Arc::new(queue), running)
    }

    /// The disk, when nobody is served any more, and what went wrong first.
    pub fn into_parts(mut self) -> (QueuedDisk, Option<LogError>) {
        // What is under way comes to its end; a flush that failed must not be followed by one that does not.
        while self.flushing.is_some()
            && let Some(done) = self.beside.wait()
        {
            self.take(done);
        }
        let LogDrive { disk, beside, first_error, .. } = self;
        drop(beside);
        (disk.into_inner(), first_error)
    }

    /// The disk.
    pub fn disk(&mut self) -> &mut QueuedDisk {
        self.disk.get_mut()
    }

    /// Waits until something is due: for those that have no loop.
    pub fn wait(&mut self) {
        while self.next_due().is_none() {
            match self.beside.wait() {
                Some(done) => self.take(done),
                None => return,
            }
        }
    }

    /// Does a part of a request: all of its pieces, or those that there is room for.
    ///
    /// Whether that was all of it.
    fn carry_out(
        &mut self,
        waiting: &mut Waiting,
        data: &[u8],
        blocks: &mut usize,
    ) -> Result<bool, LogError> {
        let Request { op, offset, length } = waiting.request;
        let disk = self.disk.get_mut();
        match op {
            Op::Read | Op::Flush => Ok(true),
            Op::Write { .. } => {
                for (lba, within, part) in pieces(offset, length).skip(waiting.pieces) {
                    if *blocks == 0 || !make_room(disk, blocks)? {
                        return Ok(false);
                    }
                    let from = &data[part];
                    if from.len() == BLOCK {
                        disk.append(lba, from)?;
                    } else {
                        change(disk, lba, |block| block[within..within + from.len()].copy_from_slice(from))?;
                    }
                    *blocks -= 1;
                    waiting.pieces += 1;
                }
                Ok(true)
            }
            Op::Trim | Op::WriteZeroes => {
                if !make_room(disk, blocks)? {
                    return Ok(false);
                }
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
                Ok(true)
            }
        }
    }

    /// A request that changes something is done, or failed.
    fn changed(&mut self, ticket: Ticket, request: Request, result: Result<(), LogError>) {
        match request.op {
            Op::Write { fua: true } if result.is_ok() => self.flushes.push(ticket),
            _ => self.answer(ticket, result, Vec::new()),
        }
    }

    fn answer(&mut self, ticket: Ticket, result: Result<(), LogError>, bytes: Vec<u8>) {
        let result = result.map_err(|error| note(&mut self.first_error, error));
        self.done.push_back(Answer { ticket, result, bytes });
    }

    /// Goes on with what waits for room, a little.
    fn advance(&mut self) {
        let mut blocks = BLOCKS_IN_TURN;
        while blocks > 0
            && let Some(mut waiting) = self.line.pop_front()
        {
            let data = std::mem::take(&mut waiting.data);
            match self.carry_out(&mut waiting, &data, &mut blocks) {
                Ok(false) => {
                    self.line.push_front(Waiting { data, ..waiting });
                    break;
                }
                done => self.changed(waiting.ticket, waiting.request, done.map(|_| ())),
            }
        }
    }

    /// Begins the next flush, if somebody waits for one, and none is under way.
    fn begin_flush(&mut self) {
        if self.flushing.is_some() {
            return;
        }
        let disk = self.disk.get_mut();
        let wants_checkpoint = disk.wants_checkpoint();
        if self.flushes.is_empty() && !wants_checkpoint && !disk.wants_flush() {
            return;
        }
        let begun = if wants_checkpoint {
            match disk.begin_checkpoint(false) {
                // Nobody who waits for a flush has to do with that.
                Err(error @ LogError::Exhausted { .. }) => {
                    note(&mut self.first_error, error);
                    disk.seal().map(|seq| (seq, None))
                }
                begun => begun.map(|it| (Some(it.next_seq - 1), Some(Stage::Begun(Box::new(it))))),
            }
        } else {
            disk.seal().map(|seq| (seq, None))
        };
        self.under_way(begun);
    }

    /// Has a flush under way for all who wait, or answers them: all is durable already, or never will be.
    fn under_way(&mut self, begun: Result<(Option<Seq>, Option<Stage>), LogError>) {
        let tickets = std::mem::take(&mut self.flushes);
        match begun {
            Ok((None, None)) => self.answer_all(tickets, Ok(())),
            Ok((seq, checkpoint)) => {
                // Nothing was written since it was sealed.
                let mark = seq.and_then(|_| self.disk.get_mut().mark());
                self.beside.flush(mark);
                self.flushing = Some(Flushing { seq, tickets, checkpoint });
            }
            Err(error) => {
                let number = note(&mut self.first_error, error);
                self.answer_all(tickets, Err(number));
            }
        }
    }

    fn answer_all(&mut self, tickets: Vec<Ticket>, result: Result<(), i32>) {
        let answer = |ticket| Answer { ticket, result, bytes: Vec::new() };
        self.done.extend(tickets.into_iter().map(answer));
    }

    /// Hears of something that was done beside.
    fn take(&mut self, done: Done) {
        match done {
            Done::Flushed(result) => self.flushed(result),
            Done::Read(Read { ticket, mut data, parts }, result) => {
                // A block that is not there any more has been written elsewhere since.
                let read = result.and_then(|()| {
                    let disk = self.disk.get_mut();
                    let mut block = [0; BLOCK];
                    parts.iter().try_for_each(|Part { lba, to, within, .. }| {
                        disk.read(*lba, &mut block)?;
                        data[to.clone()].copy_from_slice(&block[*within..][..to.len()]);
                        Ok(())
                    })
                });
                self.answer(ticket, read, data);
            }
        }
    }

    fn flushed(&mut self, result: std::io::Result<()>) {
        let Some(Flushing { seq, tickets, checkpoint }) = self.flushing.take() else { return };
        let disk = self.disk.get_mut();
        let flushed = result.map_err(|source| {
            disk.give_up();
            LogError::Medium { what: "flushing", source }
        });
        // A flush beside this one may have been told of what was lost.
        if let Err(error) = flushed.and_then(|()| disk.is_whole()) {
            let number = note(&mut self.first_error, error);
            return self.answer_all(tickets, Err(number));
        }
        if let Some(seq) = seq {
            disk.durable(seq);
        }
        self.answer_all(tickets, Ok(()));
        let disk = self.disk.get_mut();
        match checkpoint {
            Some(Stage::Begun(checkpoint)) => match disk.write_checkpoint(&checkpoint) {
                // Who waits for a flush by now has this one.
                Ok(true) => {
                    let sealed = disk.seal();
                    self.under_way(sealed.map(|seq| (seq, Some(Stage::Written(checkpoint)))));
                }
                Ok(false) => {}
                Err(error) => {
                    note(&mut self.first_error, error);
                }
            },
            Some(Stage::Written(checkpoint)) => disk.end_checkpoint(&checkpoint),
            None => {}
        }
    }

    /// Looks up the blocks of a read, and has those read that are not in memory.
    fn begin_read(&mut self, ticket: Ticket, request: Request) {
        if request.length > LONGEST_READ {
            // Only the hint that something will be read is so long, and one that nobody takes is no error.
            return self.answer(ticket, Ok(()), Vec::new());
        }
        let mut data = vec![0; request.length as usize];
        let mut parts = Vec::new();
        let disk = self.disk.get_mut();
        let mut block = [0; BLOCK];
        let found = pieces(request.offset, request.length).try_for_each(|(lba, within, to)| {
            match disk.find(lba, &mut block)? {
                Some(expected) => parts.push(Part { expected, lba, to, within }),
                None => data[to.clone()].copy_from_slice(&block[within..][..to.len()]),
            }
            Ok(())
        });
        if found.is_ok() && !parts.is_empty() {
            return self.beside.read(Read { ticket, data, parts });
        }
        self.answer(ticket, found, data);
    }
}

/// Does a piece of the cleaning that has to come before the next write: whether that may come now.
fn make_room(disk: &mut QueuedDisk, blocks: &mut usize) -> Result<bool, LogError> {
    if disk.wants_room() {
        // It reads from the medium: others have their turn after it.
        *blocks = 1;
    }
    disk.make_room()
}

/// Changes a part of a block.
fn change(disk: &mut QueuedDisk, lba: Lba, change: impl FnOnce(&mut [u8; BLOCK])) -> Result<(), LogError> {
    let mut block = [0; BLOCK];
    disk.read(lba, &mut block)?;
    change(&mut block);
    disk.append(lba, &block)
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
        // Where segments are left alone, what is wanting is not room but what the medium does not give.
        LogError::Exhausted { stuck: 0, .. } => Errno::NOSPC.raw_os_error(),
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
    fn ring_by(&mut self, ring: Ring) {
        self.beside.ring_by(ring);
    }
    fn submit(&mut self, _: u64, ticket: Ticket, request: Request, data: &[u8]) {
        match request.op {
            Op::Read => self.begin_read(ticket, request),
            // What was found is not marked as durable where nothing may be written.
            Op::Flush if self.export.read_only => self.answer(ticket, Ok(()), Vec::new()),
            Op::Flush => {
                self.flushes.push(ticket);
                // On its way while the flush before it is under way.
                if self.flushing.is_some()
                    && let Err(error) = self.disk.get_mut().seal()
                {
                    // The next flush is told.
                    note(&mut self.first_error, error);
                }
            }
            Op::Write { .. } | Op::Trim | Op::WriteZeroes => {
                let mut waiting = Waiting { ticket, request, data: Vec::new(), pieces: 0 };
                let mut blocks = BLOCKS_IN_TURN;
                let now = self.line.is_empty() && !self.disk.get_mut().wants_room();
                match now.then(|| self.carry_out(&mut waiting, data, &mut blocks)) {
                    Some(Ok(true)) => self.changed(ticket, request, Ok(())),
                    Some(Err(error)) => self.changed(ticket, request, Err(error)),
                    Some(Ok(false)) | None => {
                        waiting.data = data.to_vec();
                        self.line.push_back(waiting);
                    }
                }
            }
        }
    }
    fn next_due(&self) -> Option<u64> {
        let flush = self.flushing.is_none() && !self.flushes.is_empty();
        let any = !self.done.is_empty() || !self.line.is_empty() || flush || self.beside.is_done();
        any.then_some(0)
    }
    fn due(&mut self, _: u64) -> Option<(Ticket, Result<(), i32>)> {
        if self.done.is_empty() && !std::mem::replace(&mut self.had_turn, true) {
            if self.beside.is_done() {
                let all: Vec<Done> = self.beside.done().collect();
                all.into_iter().for_each(|done| self.take(done));
            }
            self.advance();
            self.begin_flush();
        }
        let Some(Answer { ticket, result, bytes }) = self.done.pop_front() else {
            self.had_turn = false;
            return None;
        };
        self.bytes = bytes;
        Some((ticket, result))
    }
    fn read(&mut self, _: u64, into: &mut [u8]) -> Result<(), i32> {
        // What is not asked for again does not stay in memory.
        into.copy_from_slice(&std::mem::take(&mut self.bytes));
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
