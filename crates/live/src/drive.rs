//! A drive that is served live ([`LiveDrive`]): a model for the time, contents for the bytes, and between them what a power
//! cut takes back.
//!
//! ```text
//!   request ──► model ──► instant of completion ──► in flight ──► due ──► answered
//!           └─► contents (newest bytes) ◄── pending (undo of what is not durable)
//! ```
//!
//! A write is in the contents as soon as it is asked for, and a read takes what is there when it is answered; both
//! are within what a drive may do with requests that are in flight together. A drive has whole blocks only, so for
//! bytes that begin or end within one, the model reads the blocks around them, and for a write then writes them: the
//! host does that to a real drive. The contents change by those bytes alone, so writes to other bytes of a block are
//! never lost. Not here: who asks; see `lowtide_host::live`.

mod served;

use super::counts::{Counts, Kind};
use super::record::Recorder;
use super::request_log::{Event, RequestLog};
use super::stat::{Power, Stat};
use super::state::Mark;
use super::time::{Pace, Time};
use lowtide_core::{
    BlockDevice, Completion, Counters, DeviceError, Nanos, Op, Request, Seed, Tag, VirtualTime, rest,
};
use lowtide_device::AnyDevice;
use lowtide_device::fault::Fault;
use lowtide_device::fault::{FaultError, Faults};
use lowtide_device::power::{Cache, Loss, Number, Part, Pending, Tear};
use lowtide_host::live::contents::Run;
use lowtide_host::live::{Contents, Drive, Ticket};
use lowtide_host::nbd::Export;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The bits of a tag that are the ticket: tickets count requests in flight.
const TICKET: Tag = 0xffff_ffff;

/// Requests are slow for a hundred years at most.
const LONGEST: Nanos = Nanos::from_secs(100 * 365 * 24 * 3600);

/// A model that goes on by itself for longer than this is not waited for: a drive may clean for hours.
const LONGEST_REST: Nanos = Nanos::from_secs(600);

/// Bytes that a write replaced.
type Undo = Box<[u8]>;

/// A request that is not answered.
#[derive(Debug, Clone, Copy)]
struct InFlight {
    /// No other request of the drive has it.
    id: u64,
    kind: Kind,
    /// When it came, on the drive's clock and on the model's.
    came_ns: u64,
    asked: VirtualTime,
    /// The write, where a power cut may take it back.
    number: Option<Number>,
    result: Result<(), i32>,
    /// What the model is asked for once the blocks around a write of bytes have been read.
    then: Option<Request>,
}

/// What a live drive is made of.
pub struct Parts {
    /// What clients are told.
    pub export: Export,
    /// The model, with its history.
    pub model: Fault<AnyDevice>,
    /// The instant on the model's clock at which it goes on.
    pub began: VirtualTime,
    /// What it keeps acknowledged writes in.
    pub cache: Cache,
    /// Bytes of a logical block: a power cut leaves each whole.
    pub block: u32,
    /// Where the bytes lie.
    pub contents: Contents,
    /// When requests are answered.
    pub pace: Pace,
    /// What power cuts take follows from it.
    pub seed: Seed,
    /// Where its state is kept.
    pub mark: Option<Mark>,
}

/// A live drive that was shut down in order.
pub struct Closed {
    /// The model, with its history.
    pub model: AnyDevice,
    /// The instant on its clock.
    pub now: VirtualTime,
    /// Where its state is kept.
    pub mark: Option<Mark>,
}

/// A drive that is served live.
pub struct LiveDrive {
    export: Export,
    model: Fault<AnyDevice>,
    contents: Contents,
    pending: Pending<Undo>,
    block: u32,
    /// Where an answered write is durable and every write is answered at once, a power cut takes nothing back.
    keeps_undo: bool,
    time: Time,
    /// What is taken off for the way, in nanoseconds, whenever it answers in time.
    transport_ns: u64,
    /// By ticket.
    in_flight: Vec<Option<InFlight>>,
    /// How many there are.
    flying: usize,
    /// By instant, and then by arrival.
    due: BinaryHeap<Reverse<(u64, u64, Ticket)>>,
    sequence: u64,
    /// Without delay: the instant at which all that the model was asked for is complete.
    later: VirtualTime,
    life: u64,
    powered: bool,
    seed: Seed,
    counts: Counts,
    /// The model's counters when it was opened.
    before: Counters,
    recorder: Option<Recorder>,
    log: Option<RequestLog>,
    /// Requests so far.
    asked: u64,
    /// The request that was due last, and when it was answered.
    last_due: (u64, u64),
    mark: Option<Mark>,
}

/// The error number for what a model says.
fn error_number(error: &DeviceError) -> i32 {
    match error {
        DeviceError::OutOfRange { .. } => libc::ENOSPC,
        DeviceError::Unaligned { .. } => libc::EINVAL,
        DeviceError::ReadFailed { .. } | DeviceError::WriteFailed { .. } => libc::EIO,
        DeviceError::WornOut => libc::EROFS,
    }
}

/// The error number for what the contents' file says.
fn io_error(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

impl LiveDrive {
    /// A drive with its power on and nothing in flight.
    pub fn new(parts: Parts) -> LiveDrive {
        let Parts { export, model, began, cache, block, contents, pace, seed, mark } = parts;
        LiveDrive {
            export,
            before: model.counters(),
            model,
            contents,
            pending: Pending::new(cache),
            block,
            keeps_undo: pace != Pace::NoDelay || cache != Cache::Protected,
            time: Time::new(pace, began),
            transport_ns: match pace {
                Pace::RealTime { transport_ns } => transport_ns,
                Pace::NoDelay => 0,
            },
            in_flight: Vec::new(),
            flying: 0,
            due: BinaryHeap::new(),
            sequence: 0,
            later: VirtualTime::START,
            life: 0,
            powered: true,
            seed,
            counts: Counts::default(),
            recorder: None,
            log: None,
            asked: 0,
            last_due: (0, 0),
            mark,
        }
    }

    /// The export's name.
    pub fn name(&self) -> &str {
        &self.export.name
    }

    /// What the model and the drive have counted.
    pub fn stat(&self, now_ns: u64) -> Stat {
        let counters = self.model.counters();
        Stat {
            name: self.export.name.clone(),
            title: self.export.description.clone(),
            capacity_bytes: self.export.size,
            power: match (self.powered, self.time.is_paused()) {
                (false, _) => Power::Off,
                (true, true) => Power::Paused,
                (true, false) => Power::On,
            },
            open_s: now_ns as f64 / 1e9,
            model_s: self.time.model().as_nanos() as f64 / 1e9,
            since_open: Stat::between(&self.before, &counters),
            since_new: counters,
            free_blocks: counters.free_blocks,
            reads: self.counts.requests(Kind::Read),
            writes: self.counts.requests(Kind::Write),
            flushes: self.counts.requests(Kind::Flush),
            trims: self.counts.requests(Kind::Trim),
            in_flight: self.flying as u64,
            most_in_flight: self.counts.most_in_flight as u64,
            volatile_bytes: self.pending.bytes(),
            lateness: self.time.is_real().then(|| self.counts.lateness()),
            power_cuts: self.counts.power_cuts,
            lost_writes: self.counts.lost_writes,
            torn_writes: self.counts.torn_writes,
            recording: self.recorder.as_ref().map(Recorder::count),
            clients: None,
        }
    }

    /// Cuts the power: what is in flight is never answered, and of what was not durable each write is kept, dropped or
    /// torn. The power stays off until [`LiveDrive::power_on`]; a pause ends.
    ///
    /// # Errors
    /// Where the contents' file fails: what it holds is not what survived, and the power should stay off.
    pub fn power_cut(&mut self, now_ns: u64, tear: Tear) -> std::io::Result<Loss> {
        self.time.resume(now_ns);
        let now = self.time.of_model(now_ns);
        self.model.power_cut(now);
        // What a part of it had completed before the cut, nobody will hear.
        while self.model.next_done().is_some() {
            self.model.finish();
        }
        let contents = &mut self.contents;
        let mut failed = None;
        let mut swap = |part: Part, undo: &mut Undo| {
            if failed.is_none() {
                failed = exchange(contents, part, undo).err();
            }
        };
        let loss = match &mut self.log {
            None => self.pending.cut(self.seed, tear, &mut swap),
            Some(log) => {
                let mut writes = Vec::new();
                let mut report = |write| writes.push(write);
                let loss = self.pending.cut_reporting(self.seed, tear, &mut swap, &mut report);
                log.cut(now_ns, tear, writes);
                loss
            }
        };
        self.in_flight.clear();
        self.flying = 0;
        self.due.clear();
        self.life += 1;
        self.powered = false;
        self.counts.power_cuts += 1;
        self.counts.lost_writes += loss.dropped.writes;
        self.counts.torn_writes += loss.torn.writes;
        failed.map_or(Ok(loss), Err)
    }

    /// Bytes of a logical block: filesystems count on it that a power cut leaves each whole.
    pub fn block(&self) -> u32 {
        self.block
    }

    /// Whether it has power.
    pub fn is_powered(&self) -> bool {
        self.powered
    }

    /// Gives the power back.
    pub fn power_on(&mut self, now_ns: u64) {
        self.powered = true;
        if let Some(log) = &mut self.log {
            log.push(now_ns, &Event::On);
        }
    }

    /// Stops answering, as a drive does whose firmware thinks; its time stands still.
    pub fn pause(&mut self, now_ns: u64) {
        self.time.pause(now_ns);
    }

    /// Goes on answering.
    pub fn resume(&mut self, now_ns: u64) {
        self.time.resume(now_ns);
    }

    /// Answers at once from now on, also what is in flight. The model takes its time for everything, in a time of its own.
    pub fn at_once(&mut self, now_ns: u64) {
        if !self.time.is_real() {
            return;
        }
        self.step(u64::MAX);
        let drive_ns = self.time.at(now_ns);
        let due = std::mem::take(&mut self.due).into_sorted_vec().into_iter().rev();
        for (number, Reverse((_, _, ticket))) in due.enumerate() {
            self.due.push(Reverse((drive_ns, number as u64, ticket)));
        }
        self.time.take_pace(Pace::NoDelay, now_ns);
    }

    /// Answers when the model says so from now on. What it was asked while it answered at once, it completes first, in its
    /// own time: the next request finds a model at rest, as after a pause of the host.
    pub fn at_its_pace(&mut self, now_ns: u64) {
        if self.time.is_real() {
            return;
        }
        self.keeps_undo = true;
        self.time.went_to(self.later);
        let rested = rest(&mut self.model, self.time.model(), LONGEST_REST);
        self.time.went_to(rested);
        self.time.take_pace(Pace::RealTime { transport_ns: self.transport_ns }, now_ns);
    }

    /// Erases everything; wear stays.
    ///
    /// # Errors
    /// Where nothing may be changed, and what the contents' file says; nothing is erased then.
    pub fn secure_erase(&mut self) -> std::io::Result<()> {
        if self.export.read_only {
            return Err(std::io::Error::other("the drive is served read-only"));
        }
        self.contents.clear(0, self.export.size)?;
        self.pending.clear();
        self.model.secure_erase();
        if let Some(mark) = &mut self.mark {
            mark.served();
        }
        Ok(())
    }

    /// What should be known of the state it went on with.
    pub fn warning(&self) -> Option<&'static str> {
        let in_order = self.mark.as_ref().is_none_or(Mark::in_order);
        (!in_order).then_some(
            "the last server with this state did not end in order: map and wear are those from before it began",
        )
    }

    /// Gives it faults, in place of those it has; `slow` ones end after a span of the drive's time.
    ///
    /// # Errors
    /// [`FaultError`] where no drive can have them.
    pub fn fail(&mut self, now_ns: u64, mut faults: Faults, span: Option<Nanos>) -> Result<(), FaultError> {
        let now = self.time.of_model(now_ns);
        if let (Some(slow), Some(span)) = (&mut faults.slow, span) {
            // No overflow, and longer than anybody waits.
            slow.until = Some(now + span.min(LONGEST));
        }
        self.model.set(faults)
    }

    /// Records every request from now on; gives back what recorded until now.
    pub fn record(&mut self, recorder: Option<Recorder>) -> Option<Recorder> {
        std::mem::replace(&mut self.recorder, recorder)
    }

    /// Logs what happens from now on, in memory; gives back the log until now.
    pub fn log_requests(&mut self, now_ns: u64) -> Option<RequestLog> {
        self.log.replace(RequestLog::new(now_ns))
    }

    /// Shuts down in order: everything is durable, and the model is as it is at rest, at the given instant.
    ///
    /// # Errors
    /// What the contents' file says.
    pub fn close(mut self) -> std::io::Result<Closed> {
        while self.model.next_done().is_some() {
            if let Some((_, completion)) = self.model.finish() {
                self.time.went_to(completion.at);
            }
        }
        let completion = self.model.submit(self.time.model(), &Request::flush());
        self.contents.sync()?;
        let now = completion.at.max(self.time.model());
        Ok(Closed { model: self.model.into_inner(), now, mark: self.mark })
    }

    /// The request for the whole blocks around a range.
    fn around(&self, request: Request) -> Request {
        let block = u64::from(self.export.minimum_block);
        let first = request.offset / block * block;
        let end = (request.offset + request.length).next_multiple_of(block);
        Request { offset: first, length: end - first, ..request }
    }

    /// Keeps what a write replaces, and writes.
    fn store(&mut self, request: &Request, fua: bool, data: &[u8]) -> Result<Option<Number>, i32> {
        // A power cut takes back whole blocks.
        let Request { offset, length, .. } = self.around(*request);
        let undo = if self.keeps_undo {
            let mut undo = vec![0; length as usize].into_boxed_slice();
            self.contents.read(offset, &mut undo).map_err(|error| io_error(&error))?;
            Some(undo)
        } else {
            None
        };
        self.contents.write(request.offset, data).map_err(|error| io_error(&error))?;
        Ok(undo.map(|undo| self.pending.write(offset, length, fua, undo)))
    }

    /// Asks the model for what a request in flight needs now.
    fn ask_model(&mut self, asked: VirtualTime, ticket: Ticket, request: &Request) -> Option<Completion> {
        if self.time.is_real() {
            self.model.begin(asked, request, self.tag(ticket))
        } else {
            Some(self.model.submit(asked, request))
        }
    }

    /// The model knows when a request that it was just asked for is complete, where it is not queued.
    fn begun(&mut self, ticket: Ticket, completion: Option<Completion>) {
        let Some(completion) = completion else { return };
        if self.time.is_real() {
            self.completed(ticket, &completion);
        } else {
            // Requests that came together are taken together: time goes on when all are answered.
            self.later = self.later.max(completion.at);
            self.completed(ticket, &Completion { at: VirtualTime::START, ..completion });
        }
    }

    /// The blocks around a write of bytes have been read: the model writes them now.
    fn go_on(&mut self, now_ns: u64, ticket: Ticket, request: &Request) {
        let asked = self.time.of_model(now_ns);
        let completion = self.ask_model(asked, ticket, request);
        self.begun(ticket, completion);
    }

    /// Does what a request does to the contents; the number of a write that may be taken back.
    fn apply(&mut self, request: &Request, data: &[u8]) -> Result<Option<Number>, i32> {
        match request.op {
            Op::Write { fua } => self.store(request, fua, data),
            Op::Trim | Op::WriteZeroes => {
                self.pending.overwrite(request.offset, request.length);
                let cleared = self.contents.clear(request.offset, request.length);
                cleared.map(|()| None).map_err(|error| io_error(&error))
            }
            Op::Read | Op::Flush => Ok(None),
        }
    }

    /// The model has completed a request.
    fn completed(&mut self, ticket: Ticket, completion: &Completion) {
        let release_ns = self.time.release(completion.at);
        let Some(Some(flying)) = self.in_flight.get_mut(ticket as usize) else { return };
        // Only the answer goes back to the client.
        let on = flying.then.is_some() && self.time.is_real();
        let release_ns = if on { release_ns + self.transport_ns } else { release_ns };
        let release_ns = release_ns.max(flying.came_ns);
        if let Err(error) = &completion.status {
            flying.result = Err(error_number(error));
        }
        self.answer_at(release_ns, ticket);
    }

    /// A request is to be answered at an instant of the drive.
    fn answer_at(&mut self, release_ns: u64, ticket: Ticket) {
        self.sequence += 1;
        self.due.push(Reverse((release_ns, self.sequence, ticket)));
    }

    /// Takes the steps that the model has to do until an instant of the drive.
    fn step(&mut self, drive_ns: u64) {
        while let Some(at) = self.model.next_done().filter(|at| self.time.release(*at) <= drive_ns) {
            self.time.went_to(at);
            if let Some((tag, completion)) = self.model.finish()
                && tag == self.tag(tag & TICKET)
            {
                self.completed(tag & TICKET, &completion);
            }
        }
    }

    /// What the model calls a request: no life has a tag of another.
    fn tag(&self, ticket: Ticket) -> Tag {
        (self.life & 0x7fff_ffff) << 32 | ticket
    }
}

/// Exchanges bytes of the contents with bytes of an undo.
fn exchange(contents: &mut Contents, part: Part, undo: &mut Undo) -> std::io::Result<()> {
    let Part { offset, length, skip } = part;
    let bytes = &mut undo[skip as usize..(skip + length) as usize];
    let mut newest = vec![0; bytes.len()];
    contents.read(offset, &mut newest)?;
    contents.write(offset, bytes)?;
    bytes.copy_from_slice(&newest);
    Ok(())
}
