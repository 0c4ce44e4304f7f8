//! A served log disk ([`LogDrive`]).
//!
//! ```text
//!   write ─► (room?) ─► log in memory ─► answered            (Queue: writer threads)
//!   flush ─► log sealed ─► flush and mark ─► answered        (IoThreads: flusher)
//!   read  ─► lookup ─► read ─► answered                      (IoThreads: readers)
//! ```
//!
//! The thread that owns the log disk rarely waits for the medium. A write that needs room waits in a queue while
//! cleaning proceeds in steps, and the server handles other requests between two steps. Concurrent flushes are
//! merged. Answers are sent as soon as they are ready, without simulated timing.

use super::io_threads::{BlockRead, Completed, IoThreads, Read};
use super::{FileMedium, Queue};
use lowtide_core::{Op, Request};
use lowtide_host::Event;
use lowtide_host::live::contents::Run;
use lowtide_host::live::{Drive, Ticket};
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

/// Maximum number of blocks to write before the server handles other requests. A step of cleaning counts as all of
/// them.
const BLOCKS_PER_STEP: usize = 128;

/// The longest read that returns data, in bytes.
const LONGEST_READ: u64 = 32 << 20;

/// A log disk whose medium is written by background threads.
pub type QueuedDisk = Disk<Arc<Queue>>;

/// A log disk that is served.
#[derive(Debug)]
pub struct LogDrive {
    disk: RefCell<QueuedDisk>,
    export: Export,
    io: IoThreads,
    /// Writes that wait for room, and later changes, in order of arrival.
    waiting: VecDeque<Waiting>,
    answers: VecDeque<Answer>,
    /// The bytes of the last answered read.
    bytes: Vec<u8>,
    /// Requests that wait for the next flush.
    flushes: Vec<Ticket>,
    flushing: Option<Flushing>,
    /// Whether a step is complete and some of its answers have not been taken yet.
    stepped: bool,
    /// The first error, reported when the drive closes.
    first_error: Option<LogError>,
}

/// A request that waits for room.
#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    request: Request,
    data: Vec<u8>,
    /// Number of its blocks written so far.
    blocks: usize,
}

/// The outcome of a request.
#[derive(Debug)]
struct Answer {
    ticket: Ticket,
    result: Result<(), i32>,
    /// The bytes of a read.
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Flushing {
    /// All slots up to this one are durable once the flush completes.
    seq: Option<Seq>,
    tickets: Vec<Ticket>,
    checkpoint: Option<Stage>,
}

/// A checkpoint that the flush in progress advances.
#[derive(Debug)]
enum Stage {
    /// The flush makes the pages durable that the checkpoint refers to.
    Begun(Box<Checkpoint>),
    /// The flush makes the checkpoint itself durable.
    Written(Box<Checkpoint>),
}

impl LogDrive {
    /// A drive for an open log disk; `name` and `description` are those of the export.
    ///
    /// # Errors
    /// No more threads can be started.
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
        let io = IoThreads::new(Arc::clone(disk.medium()), disk.reader())?;
        Ok(LogDrive {
            disk: RefCell::new(disk),
            export,
            io,
            waiting: VecDeque::new(),
            answers: VecDeque::new(),
            bytes: Vec::new(),
            flushes: Vec::new(),
            flushing: None,
            stepped: false,
            first_error: None,
        })
    }

    /// Opens the log disk of a medium for serving.
    pub fn open(medium: FileMedium, running: Running) -> Result<QueuedDisk, LogError> {
        let queue =
            Queue::new(medium).map_err(|source| LogError::Medium { what: "starting threads", source })?;
        Disk::open(Arc::new(queue), running)
    }

    /// Returns the log disk after serving, and the first error.
    pub fn into_parts(mut self) -> (QueuedDisk, Option<LogError>) {
        // Completes the flush in progress: if it failed, closing must not report a successful one.
        while self.flushing.is_some()
            && let Some(completed) = self.io.wait()
        {
            self.take(completed);
        }
        let LogDrive { disk, io, first_error, .. } = self;
        drop(io);
        (disk.into_inner(), first_error)
    }

    /// The log disk.
    pub fn disk(&mut self) -> &mut QueuedDisk {
        self.disk.get_mut()
    }

    /// Waits until an answer is due, for callers without a server.
    pub fn wait(&mut self) {
        while self.next_due().is_none() {
            match self.io.wait() {
                Some(completed) => self.take(completed),
                None => return,
            }
        }
    }

    /// Carries out as much of a request as `blocks` and the room in the log allow. Returns whether the request is
    /// complete.
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
                for (lba, within, part) in pieces(offset, length).skip(waiting.blocks) {
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
                    waiting.blocks += 1;
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

    /// Answers a completed change, or queues it for the next flush if it has FUA.
    fn changed(&mut self, ticket: Ticket, request: Request, result: Result<(), LogError>) {
        match request.op {
            Op::Write { fua: true } if result.is_ok() => self.flushes.push(ticket),
            _ => self.answer(ticket, result, Vec::new()),
        }
    }

    fn answer(&mut self, ticket: Ticket, result: Result<(), LogError>, bytes: Vec<u8>) {
        let result = result.map_err(|error| note(&mut self.first_error, error));
        self.answers.push_back(Answer { ticket, result, bytes });
    }

    /// Carries out waiting changes, up to [`BLOCKS_PER_STEP`] blocks.
    fn advance(&mut self) {
        let mut blocks = BLOCKS_PER_STEP;
        while blocks > 0
            && let Some(mut waiting) = self.waiting.pop_front()
        {
            let data = std::mem::take(&mut waiting.data);
            match self.carry_out(&mut waiting, &data, &mut blocks) {
                Ok(false) => {
                    self.waiting.push_front(Waiting { data, ..waiting });
                    break;
                }
                result => self.changed(waiting.ticket, waiting.request, result.map(drop)),
            }
        }
    }

    /// Begins the next flush, if one is due and none is in progress.
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
                // The flush does not need the checkpoint, so a full log does not fail the flush.
                Err(error @ LogError::Exhausted { .. }) => {
                    note(&mut self.first_error, error);
                    disk.seal().map(|seq| (seq, None))
                }
                begun => begun.map(|it| (Some(it.next_seq - 1), Some(Stage::Begun(Box::new(it))))),
            }
        } else {
            disk.seal().map(|seq| (seq, None))
        };
        self.start_flush(begun);
    }

    /// Starts a flush for all waiting requests. Answers them at once if there is nothing to flush or sealing failed.
    fn start_flush(&mut self, begun: Result<(Option<Seq>, Option<Stage>), LogError>) {
        let tickets = std::mem::take(&mut self.flushes);
        match begun {
            Ok((None, None)) => self.answer_all(tickets, Ok(())),
            Ok((seq, checkpoint)) => {
                let mark = seq.and_then(|_| self.disk.get_mut().mark());
                self.io.flush(mark);
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
        self.answers.extend(tickets.into_iter().map(answer));
    }

    /// Handles a completion of the I/O threads.
    fn take(&mut self, completed: Completed) {
        match completed {
            Completed::Flush(result) => self.flushed(result),
            Completed::Read(Read { ticket, mut data, blocks }, result) => {
                // A block that failed its checksum may have been moved during the read, so it is looked up again.
                let read = result.and_then(|()| {
                    let disk = self.disk.get_mut();
                    let mut block = [0; BLOCK];
                    blocks.iter().try_for_each(|BlockRead { lba, to, within, .. }| {
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
            disk.mark_broken();
            LogError::Medium { what: "flushing", source }
        });
        // The kernel may have reported the error of a lost write to another flush.
        if let Err(error) = flushed.and_then(|()| disk.ensure_intact()) {
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
                // Requests that arrived in the meantime share the next flush.
                Ok(true) => {
                    let sealed = disk.seal();
                    self.start_flush(sealed.map(|seq| (seq, Some(Stage::Written(checkpoint)))));
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

    /// Looks up the blocks of a read, and starts reading those that are not in memory.
    fn begin_read(&mut self, ticket: Ticket, request: Request) {
        if request.length > LONGEST_READ {
            // Only a prefetch hint (NBD's CACHE) is this long, and hints may be ignored.
            return self.answer(ticket, Ok(()), Vec::new());
        }
        let mut data = vec![0; request.length as usize];
        let mut blocks = Vec::new();
        let disk = self.disk.get_mut();
        let mut block = [0; BLOCK];
        let found = pieces(request.offset, request.length).try_for_each(|(lba, within, to)| {
            match disk.find(lba, &mut block)? {
                Some(expected) => blocks.push(BlockRead { expected, lba, to, within }),
                None => data[to.clone()].copy_from_slice(&block[within..][..to.len()]),
            }
            Ok(())
        });
        if found.is_ok() && !blocks.is_empty() {
            return self.io.read(Read { ticket, data, blocks });
        }
        self.answer(ticket, found, data);
    }
}

/// Does one step of cleaning if the next write needs room. Returns whether there is room afterwards.
fn make_room(disk: &mut QueuedDisk, blocks: &mut usize) -> Result<bool, LogError> {
    if disk.wants_room() {
        // Cleaning reads from the medium, so this step ends here.
        *blocks = 1;
    }
    disk.make_room()
}

/// Reads a block, changes it, and appends it.
fn change(disk: &mut QueuedDisk, lba: Lba, change: impl FnOnce(&mut [u8; BLOCK])) -> Result<(), LogError> {
    let mut block = [0; BLOCK];
    disk.read(lba, &mut block)?;
    change(&mut block);
    disk.append(lba, &block)
}

/// Splits a range into blocks: the block, the offset in it, and its range in the request's data.
fn pieces(offset: u64, length: u64) -> impl Iterator<Item = (Lba, usize, std::ops::Range<usize>)> {
    let end = offset + length;
    let first = offset / BLOCK_BYTES;
    (first..end.div_ceil(BLOCK_BYTES)).map(move |lba| {
        let (from, to) = (offset.max(lba * BLOCK_BYTES), end.min((lba + 1) * BLOCK_BYTES));
        (lba as Lba, (from - lba * BLOCK_BYTES) as usize, (from - offset) as usize..(to - offset) as usize)
    })
}

/// Returns the Linux error number of an error, and stores the error in `first` if it is the first one.
fn note(first: &mut Option<LogError>, error: LogError) -> i32 {
    let number = errno(&error);
    first.get_or_insert(error);
    number
}

fn errno(error: &LogError) -> i32 {
    match error {
        // If segments are unreadable and cannot be cleaned, the cause is an I/O error rather than a full disk.
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
    fn set_waker(&mut self, waker: Event) {
        self.io.set_waker(waker);
    }
    fn submit(&mut self, _: u64, ticket: Ticket, request: Request, data: &[u8]) {
        match request.op {
            Op::Read => self.begin_read(ticket, request),
            // A read-only log disk has nothing to flush and writes no mark.
            Op::Flush if self.export.read_only => self.answer(ticket, Ok(()), Vec::new()),
            Op::Flush => {
                self.flushes.push(ticket);
                // Sealed now, so that later writes can proceed during the current flush.
                if self.flushing.is_some()
                    && let Err(error) = self.disk.get_mut().seal()
                {
                    // The next flush reports the same error.
                    note(&mut self.first_error, error);
                }
            }
            Op::Write { .. } | Op::Trim | Op::WriteZeroes => {
                let mut waiting = Waiting { ticket, request, data: Vec::new(), blocks: 0 };
                let mut blocks = BLOCKS_PER_STEP;
                let now = self.waiting.is_empty() && !self.disk.get_mut().wants_room();
                match now.then(|| self.carry_out(&mut waiting, data, &mut blocks)) {
                    Some(Ok(true)) => self.changed(ticket, request, Ok(())),
                    Some(Err(error)) => self.changed(ticket, request, Err(error)),
                    Some(Ok(false)) | None => {
                        waiting.data = data.to_vec();
                        self.waiting.push_back(waiting);
                    }
                }
            }
        }
    }
    fn next_due(&self) -> Option<u64> {
        let flush = self.flushing.is_none() && !self.flushes.is_empty();
        let any = !self.answers.is_empty() || !self.waiting.is_empty() || flush || self.io.has_completed();
        any.then_some(0)
    }
    fn due(&mut self, _: u64) -> Option<(Ticket, Result<(), i32>)> {
        if self.answers.is_empty() && !std::mem::replace(&mut self.stepped, true) {
            if self.io.has_completed() {
                let all: Vec<Completed> = self.io.completed().collect();
                all.into_iter().for_each(|completed| self.take(completed));
            }
            self.advance();
            self.begin_flush();
        }
        let Some(Answer { ticket, result, bytes }) = self.answers.pop_front() else {
            self.stepped = false;
            return None;
        };
        self.bytes = bytes;
        Some((ticket, result))
    }
    fn read(&mut self, _: u64, into: &mut [u8]) -> Result<(), i32> {
        // Takes the buffer, which frees its memory.
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
