//! A live drive ([`LiveDrive`]): a model for the timing, contents for the bytes, and a record of the writes that a
//! power cut may undo.
//!
//! ```text
//!   request ──► model ──► instant of completion ──► in flight ──► due ──► answered
//!           └─► contents (newest bytes) ◄── pending (undo data of volatile writes)
//! ```
//!
//! A write changes the contents when it is submitted, and a read returns the contents at the time of its answer. A
//! real drive may order concurrent requests in the same way.
//!
//! The model handles whole blocks only. A request may begin or end within a block. The model then reads the blocks
//! around it and, for a write, writes them afterwards, as a host would do with a real drive. The contents change only
//! in the requested bytes, so concurrent writes to other bytes of a block are never lost.
//!
//! Clients are in `lowtide_host::live`.

mod served;

use super::counts::{Counts, Kind};
use super::record::Recorder;
use super::request_log::{Event, RequestLog};
use super::stat::{Power, Stat};
use super::state::OpenMarker;
use super::time::{Pace, Time};
use lowtide_core::{
    BlockDevice, Completion, Counters, DeviceError, Nanos, Op, Request, Seed, Tag, VirtualTime, rest,
};
use lowtide_device::AnyDevice;
use lowtide_device::fault::{Fault, FaultError, Faults};
use lowtide_device::power::{Cache, Loss, Number, Part, Pending, Tear};
use lowtide_host::live::contents::Run;
use lowtide_host::live::{Contents, Drive, Ticket};
use lowtide_host::nbd::Export;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The bits of a tag that hold the ticket.
const TICKET: Tag = 0xffff_ffff;

/// The maximum duration of slow requests, which avoids an overflow.
const LONGEST: Nanos = Nanos::from_secs(100 * 365 * 24 * 3600);

/// The maximum time to wait for background work, because a drive may clean for hours.
const LONGEST_REST: Nanos = Nanos::from_secs(600);

/// The bytes that a write replaced.
type Undo = Box<[u8]>;

#[derive(Debug, Clone, Copy)]
struct InFlight {
    /// The request's unique number, never reused.
    id: u64,
    kind: Kind,
    /// Arrival, on the drive's clock.
    came_ns: u64,
    /// Arrival, on the model's clock.
    asked: VirtualTime,
    /// The number of the write in `pending`, if a power cut may undo it.
    number: Option<Number>,
    result: Result<(), i32>,
    /// The write that follows after the blocks around it are read.
    then: Option<Request>,
}

/// The components of a live drive.
pub struct Parts {
    /// The export that clients see.
    pub export: Export,
    /// The model, with its history.
    pub model: Fault<AnyDevice>,
    /// The current time of the model's clock.
    pub began: VirtualTime,
    /// The write cache.
    pub cache: Cache,
    /// Size of a logical block in bytes. A power cut never tears one.
    pub block: u32,
    /// The stored bytes.
    pub contents: Contents,
    /// The timing of answers.
    pub pace: Pace,
    /// The seed for the effects of power cuts.
    pub seed: Seed,
    /// The marker of the open state file.
    pub marker: Option<OpenMarker>,
}

/// A live drive.
pub struct LiveDrive {
    export: Export,
    model: Fault<AnyDevice>,
    contents: Contents,
    pending: Pending<Undo>,
    block: u32,
    /// Whether replaced bytes are kept for a power cut. Not needed without delay and with a protected cache, because
    /// every answered write is durable then.
    keeps_undo: bool,
    time: Time,
    /// Transport time that is subtracted from the latency, in nanoseconds.
    transport_ns: u64,
    /// The requests in flight, by ticket.
    in_flight: Vec<Option<InFlight>>,
    /// Number of requests in flight.
    flying: usize,
    /// Answers, by due time and then by order of completion.
    due: BinaryHeap<Reverse<(u64, u64, Ticket)>>,
    sequence: u64,
    /// Without delay: the time at which the model completes all requests in flight.
    later: VirtualTime,
    life: u64,
    powered: bool,
    seed: Seed,
    counts: Counts,
    /// The model's counters when the drive was opened.
    before: Counters,
    recorder: Option<Recorder>,
    log: Option<RequestLog>,
    /// Number of requests so far.
    asked: u64,
    /// The last answered request, and the time of its answer.
    last_due: (u64, u64),
    marker: Option<OpenMarker>,
}

/// The Linux error number for an error of the model.
fn error_number(error: &DeviceError) -> i32 {
    match error {
        DeviceError::OutOfRange { .. } => libc::ENOSPC,
        DeviceError::Unaligned { .. } => libc::EINVAL,
        DeviceError::ReadFailed { .. } | DeviceError::WriteFailed { .. } => libc::EIO,
        DeviceError::WornOut => libc::EROFS,
    }
}

/// The Linux error number for an error of the contents' file.
fn io_error(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

impl LiveDrive {
    /// A drive that is powered on and idle.
    pub fn new(parts: Parts) -> LiveDrive {
        let Parts { export, model, began, cache, block, contents, pace, seed, marker } = parts;
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
            marker,
        }
    }

    /// The export's name.
    pub fn name(&self) -> &str {
        &self.export.name
    }

    /// Statistics of the drive and its model.
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
            since_open: counters.since(&self.before),
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

    /// Cuts the power and ends a pause. Requests in flight are lost, and each write that is not durable is kept,
    /// dropped or torn. The power stays off until [`LiveDrive::power_on`].
    ///
    /// # Errors
    /// The contents' file fails. The contents are then not the surviving ones, and the power should stay off.
    pub fn power_cut(&mut self, now_ns: u64, tear: Tear) -> std::io::Result<Loss> {
        self.time.resume(now_ns);
        let now = self.time.model_at(now_ns);
        self.model.power_cut(now);
        // Nobody waits for these completions any more.
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

    /// Size of a logical block in bytes.
    pub fn block(&self) -> u32 {
        self.block
    }

    /// Whether the power is on.
    pub fn is_powered(&self) -> bool {
        self.powered
    }

    /// Restores the power.
    pub fn power_on(&mut self, now_ns: u64) {
        self.powered = true;
        if let Some(log) = &mut self.log {
            log.push(now_ns, &Event::On);
        }
    }

    /// Stops answering and stops the drive's clock, like a drive whose firmware is busy.
    pub fn pause(&mut self, now_ns: u64) {
        self.time.pause(now_ns);
    }

    /// Ends a pause.
    pub fn resume(&mut self, now_ns: u64) {
        self.time.resume(now_ns);
    }

    /// Switches to answers without delay, also for requests in flight. The model runs on its own clock.
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

    /// Switches to answers at the model's pace. The model first completes all requests on its own clock, so that the
    /// next request finds it idle.
    pub fn at_its_pace(&mut self, now_ns: u64) {
        if self.time.is_real() {
            return;
        }
        self.keeps_undo = true;
        self.time.advance_to(self.later);
        let rested = rest(&mut self.model, self.time.model(), LONGEST_REST);
        self.time.advance_to(rested);
        self.time.take_pace(Pace::RealTime { transport_ns: self.transport_ns }, now_ns);
    }

    /// Erases all data. The wear remains.
    ///
    /// # Errors
    /// The drive is read-only, or the contents' file fails. Nothing is erased then.
    pub fn secure_erase(&mut self) -> std::io::Result<()> {
        if self.export.read_only {
            return Err(std::io::Error::other("the drive is served read-only"));
        }
        self.contents.clear(0, self.export.size)?;
        self.pending.clear();
        self.model.secure_erase();
        if let Some(marker) = &mut self.marker {
            marker.served();
        }
        Ok(())
    }

    /// A warning if the saved state is older than the contents.
    pub fn warning(&self) -> Option<&'static str> {
        let clean = self.marker.as_ref().is_none_or(OpenMarker::is_clean);
        (!clean).then_some(
            "the last server with this state did not shut down cleanly: map and wear are from before it started",
        )
    }

    /// Replaces the injected faults. Slow requests end after `span` of the drive's time.
    ///
    /// # Errors
    /// [`FaultError`] for invalid faults.
    pub fn fail(&mut self, now_ns: u64, mut faults: Faults, span: Option<Nanos>) -> Result<(), FaultError> {
        let now = self.time.model_at(now_ns);
        if let (Some(slow), Some(span)) = (&mut faults.slow, span) {
            slow.until = Some(now + span.min(LONGEST));
        }
        self.model.set(faults)
    }

    /// Sets the recorder of requests, and returns the previous one.
    pub fn record(&mut self, recorder: Option<Recorder>) -> Option<Recorder> {
        std::mem::replace(&mut self.recorder, recorder)
    }

    /// Starts a new log of all events in memory, and returns the previous log.
    pub fn log_requests(&mut self, now_ns: u64) -> Option<RequestLog> {
        self.log.replace(RequestLog::new(now_ns))
    }

    /// Shuts down cleanly: flushes, and returns the idle model, the time of its clock, and the marker of the state
    /// file.
    ///
    /// # Errors
    /// The contents' file fails.
    pub fn close(mut self) -> std::io::Result<(AnyDevice, VirtualTime, Option<OpenMarker>)> {
        while self.model.next_done().is_some() {
            if let Some((_, completion)) = self.model.finish() {
                self.time.advance_to(completion.at);
            }
        }
        let completion = self.model.submit(self.time.model(), &Request::flush());
        self.contents.sync()?;
        let now = completion.at.max(self.time.model());
        Ok((self.model.into_inner(), now, self.marker))
    }

    /// Extends a request to whole blocks.
    fn around(&self, request: Request) -> Request {
        let block = u64::from(self.export.minimum_block);
        let first = request.offset / block * block;
        let end = (request.offset + request.length).next_multiple_of(block);
        Request { offset: first, length: end - first, ..request }
    }

    /// Writes to the contents, and keeps the replaced bytes in case of a power cut.
    fn store(&mut self, request: &Request, fua: bool, data: &[u8]) -> Result<Option<Number>, i32> {
        // A power cut undoes whole blocks.
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

    /// Submits a request to the model. Returns its completion, or `None` if the model completes it later.
    fn submit_to_model(
        &mut self,
        asked: VirtualTime,
        ticket: Ticket,
        request: &Request,
    ) -> Option<Completion> {
        if self.time.is_real() {
            self.model.begin(asked, request, self.tag(ticket))
        } else {
            Some(self.model.submit(asked, request))
        }
    }

    /// Handles the completion of a request that the model completed on submission.
    fn begun(&mut self, ticket: Ticket, completion: Option<Completion>) {
        let Some(completion) = completion else { return };
        if self.time.is_real() {
            self.completed(ticket, &completion);
        } else {
            // Without delay, concurrent requests begin at the same time: the clock advances only when all are
            // answered.
            self.later = self.later.max(completion.at);
            self.completed(ticket, &Completion { at: VirtualTime::START, ..completion });
        }
    }

    /// Submits the write after the blocks around it have been read.
    fn submit_write(&mut self, now_ns: u64, ticket: Ticket, request: &Request) {
        let asked = self.time.model_at(now_ns);
        let completion = self.submit_to_model(asked, ticket, request);
        self.begun(ticket, completion);
    }

    /// Applies a request to the contents. Returns the number of a write that a power cut may undo.
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

    /// Schedules the answer to a request that the model has completed.
    fn completed(&mut self, ticket: Ticket, completion: &Completion) {
        let release_ns = self.time.release(completion.at);
        let Some(Some(flying)) = self.in_flight.get_mut(ticket as usize) else { return };
        // The transport time counts once, in the last step.
        let followed = flying.then.is_some() && self.time.is_real();
        let release_ns = if followed { release_ns + self.transport_ns } else { release_ns };
        let release_ns = release_ns.max(flying.came_ns);
        if let Err(error) = &completion.status {
            flying.result = Err(error_number(error));
        }
        self.answer_at(release_ns, ticket);
    }

    /// Schedules the answer to a request.
    fn answer_at(&mut self, release_ns: u64, ticket: Ticket) {
        self.sequence += 1;
        self.due.push(Reverse((release_ns, self.sequence, ticket)));
    }

    /// Runs the model up to a time of the drive's clock.
    fn step(&mut self, drive_ns: u64) {
        while let Some(at) = self.model.next_done().filter(|at| self.time.release(*at) <= drive_ns) {
            self.time.advance_to(at);
            if let Some((tag, completion)) = self.model.finish()
                && tag == self.tag(tag & TICKET)
            {
                self.completed(tag & TICKET, &completion);
            }
        }
    }

    /// The model's tag of a request. The tag contains the number of power cuts, so that completions from before a cut
    /// are recognised.
    fn tag(&self, ticket: Ticket) -> Tag {
        (self.life & 0x7fff_ffff) << 32 | ticket
    }
}

/// Exchanges bytes of the contents with the bytes that a write replaced.
fn exchange(contents: &mut Contents, part: Part, undo: &mut Undo) -> std::io::Result<()> {
    let Part { offset, length, skip } = part;
    let bytes = &mut undo[skip as usize..(skip + length) as usize];
    let mut newest = vec![0; bytes.len()];
    contents.read(offset, &mut newest)?;
    contents.write(offset, bytes)?;
    bytes.copy_from_slice(&newest);
    Ok(())
}
