//! The server thread, which serves drives to clients ([`Server`]).
//!
//! ```text
//!   answer due requests ─► send ─► wait (for bytes, or for the next due instant) ─► take requests ─┐
//!         ▲                                                                                         │
//!         └─────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! One thread serves all drives, because a drive takes requests in order of time, and because handing a request to
//! another thread costs two scheduling decisions, about the latency of a fast drive. Requests that arrive together
//! are taken in one batch, and answers that are due together are sent in one. Negotiations have their own threads.

mod budget;
mod buffer;
mod client;
mod handle;
mod long;
mod status;
mod waiting;

pub use budget::{Buffers, Usage};
pub use handle::Handle;

use super::drive::{Drive, Ticket};
use super::port::OnComplete;
use super::wait::{Awake, Clock, Waiter, precise_wakeups};
use crate::event::Event;
use crate::nbd::answer;
use crate::nbd::request::{Command, Header};
use crate::nbd::wire::{MAX_PAYLOAD, command};
use budget::Budget;
use client::{Client, Next};
use handle::Message;
use lowtide_core::{Op, Request};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use slab::Slab;
use status::status;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use waiting::{NextStep, Requester, Waiting};

/// The most extents that one client gets in a pass of the server.
const MOST_EXTENTS_PER_PASS: usize = 4096;

/// Idle time after which the processors may sleep again.
const BEFORE_SLEEP: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The most steps of multi-step requests per drive in a pass of the server.
const MOST_STEPS: usize = 8;

/// A server of drives.
pub struct Server<D> {
    drives: Vec<D>,
    clients: Slab<Client>,
    /// Requests in flight, by ticket.
    waiting: Slab<Waiting>,
    clients_ever: u64,
    /// Bytes in flight for each drive, including those of clients that have left.
    loads: Vec<u64>,
    budget: Budget,
    usage: Arc<Mutex<Usage>>,
    from: mpsc::Receiver<Message<D>>,
    waker: Event,
    lives: Arc<[AtomicU64]>,
    clock: Clock,
    /// Held while a timed answer is in flight, and for [`BEFORE_SLEEP`] after it.
    awake: Option<Awake>,
    waiter: Waiter,
    /// Whether the system refused [`Awake`].
    may_sleep: bool,
    /// Whether the server ends when its last client has left.
    ends_alone: bool,
    stopped: bool,
    /// Senders to the waiters for the end, which notice the end when their sender is dropped.
    watched: Vec<mpsc::SyncSender<()>>,
}

impl<D: Drive> Server<D> {
    /// A server of `drives` on `clock`, and a handle to it.
    ///
    /// # Errors
    /// If the process has no more file descriptors.
    pub fn new(mut drives: Vec<D>, clock: Clock) -> io::Result<(Server<D>, Handle<D>)> {
        let (to, from) = mpsc::channel();
        let waker = Event::new()?;
        drives.iter_mut().for_each(|drive| drive.set_waker(waker.clone()));
        let lives: Arc<[AtomicU64]> = drives.iter().map(|drive| AtomicU64::new(drive.life())).collect();
        let usage = Arc::<Mutex<Usage>>::default();
        let (shared_lives, shared_usage) = (Arc::clone(&lives), Arc::clone(&usage));
        let handle = Handle { to, waker: waker.clone(), lives: shared_lives, usage: shared_usage };
        let server = Server {
            loads: vec![0; drives.len()],
            budget: Budget::new(Buffers::default()),
            usage,
            drives,
            clients: Slab::new(),
            waiting: Slab::new(),
            clients_ever: 0,
            from,
            waker,
            lives,
            clock,
            awake: None,
            waiter: Waiter::default(),
            may_sleep: false,
            ends_alone: false,
            stopped: false,
            watched: Vec::new(),
        };
        Ok((server, handle))
    }

    /// Makes the server end when its last client has left.
    pub fn ending_alone(mut self) -> Self {
        self.ends_alone = true;
        self
    }

    /// Sets the memory for clients.
    pub fn with_buffers(mut self, buffers: Buffers) -> Self {
        self.budget = Budget::new(buffers);
        self
    }

    /// Serves until the end, and returns the drives. Requests in flight at the end are not answered.
    pub fn run(mut self) -> Vec<D> {
        precise_wakeups();
        loop {
            self.answer();
            self.send();
            if self.stopped || self.ends_alone && self.clients_ever > 0 && self.clients.is_empty() {
                break;
            }
            self.wait_and_take();
        }
        for (_, waiting) in std::mem::take(&mut self.waiting) {
            waiting.fail();
        }
        self.drives
    }

    /// Answers due requests.
    fn answer(&mut self) {
        let mut now_ns = None;
        for drive in 0..self.drives.len() {
            if self.drives[drive].next_due().is_none() {
                continue;
            }
            let now_ns = *now_ns.get_or_insert_with(|| self.clock.now_ns());
            let mut steps = 0;
            while steps < MOST_STEPS
                && let Some((ticket, result)) = self.drives[drive].due(now_ns)
            {
                steps += usize::from(self.complete(ticket, result, now_ns));
            }
        }
    }

    /// Handles the completion of a request or of one of its steps. Returns whether another step follows.
    fn complete(&mut self, ticket: Ticket, result: Result<(), i32>, now_ns: u64) -> bool {
        let Some(waiting) = self.waiting.get_mut(ticket as usize) else { return false };
        let drive = &mut self.drives[waiting.drive];
        if result.is_ok()
            && let Some((request, data)) = waiting.step()
        {
            drive.submit(now_ns, ticket, request, data);
            return true;
        }
        let Waiting { requester, read, bytes, drive: number, .. } = self.waiting.remove(ticket as usize);
        self.loads[number] -= bytes;
        match requester {
            Requester::Port(done) => done(result.and_then(|()| {
                let (offset, length) = read.unwrap_or((0, 0));
                let mut bytes = vec![0; length as usize];
                drive.read(offset, &mut bytes)?;
                Ok(bytes)
            })),
            Requester::Client { key, id, header, piece } => {
                let Some(client) = self.clients.get_mut(key).filter(|client| client.id == id) else {
                    return false;
                };
                client.requests -= 1;
                client.bytes -= bytes;
                if piece {
                    reply_piece(drive, client, &header, result);
                } else {
                    reply(drive, client, &header, result);
                }
            }
        }
        false
    }

    /// Sends as many replies as clients take, and removes finished clients.
    fn send(&mut self) {
        let mut finished = false;
        for (_, client) in &mut self.clients {
            let sends = client.wants_output() && client.output.may_send();
            if sends && client.output.send(&mut client.transport, self.budget.kept()).is_err() {
                client.gone = true;
            }
            finished |= client.is_finished();
        }
        if finished {
            self.clients.retain(|_, client| !client.is_finished());
        }
    }

    /// Waits for input, messages or the next due instant, and handles them.
    fn wait_and_take(&mut self) {
        self.count_memory();
        let here: Vec<usize> =
            self.clients.iter().filter(|(_, client)| client.has_input()).map(|(key, _)| key).collect();
        let due_ns =
            if here.is_empty() { self.drives.iter().filter_map(Drive::next_due).min() } else { Some(0) };
        self.keep_awake(due_ns);
        let (messages, ready) = self.wait(due_ns);
        if messages {
            self.waker.clear();
            self.take_messages();
        }
        for Ready { key, readable, writable, gone } in ready {
            let Some(client) = self.clients.get_mut(key) else { continue };
            if writable {
                client.output.unstick();
            }
            client.gone |= gone;
            if readable {
                self.take(key, true);
            }
        }
        here.into_iter().for_each(|key| self.take(key, false));
    }

    /// Counts the memory of clients, and lets clients that waited for room continue.
    fn count_memory(&mut self) {
        // Bytes in flight of clients that have left.
        let all: u64 = self.loads.iter().sum();
        let left = all.saturating_sub(self.clients.iter().map(|(_, client)| client.bytes).sum());
        self.budget.count(self.clients.iter().map(|(_, client)| client.holds()), left);
        let (buffers_used_bytes, buffers_bytes) = (left, self.budget.bytes());
        let mut usage = Usage { connected: 0, waiting: 0, buffers_used_bytes, buffers_bytes };
        for (_, client) in &mut self.clients {
            client.blocked = self.loads[client.agreed.export] >= self.budget.bytes();
            client.look_for_room(&self.budget);
            usage.connected += 1;
            usage.waiting += u64::from(client.is_waiting());
            usage.buffers_used_bytes += client.holds();
        }
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner) = usage;
    }

    /// Keeps the processors awake while a timed answer is in flight.
    fn keep_awake(&mut self, due_ns: Option<u64>) {
        if due_ns.is_some() && self.awake.is_none() && !self.may_sleep {
            let timed = self.drives.iter().any(|drive| drive.keeps_time() && drive.next_due().is_some());
            if timed {
                self.awake = Awake::new().ok();
                self.may_sleep = self.awake.is_none();
            }
        }
    }

    /// Takes requests from the input buffer of a client, and reads more if its descriptor is readable.
    fn take(&mut self, key: usize, readable: bool) {
        let now_ns = self.clock.now_ns();
        self.take_requests(key, now_ns);
        let mut more = readable || self.clients[key].transport.has_buffered();
        while more && self.clients[key].wants_input() {
            more = self.clients[key].receive();
            let now_ns = self.clock.now_ns();
            self.take_requests(key, now_ns);
        }
    }

    /// Waits for bytes, messages, or an instant. Returns whether there are messages, and the clients with events.
    fn wait(&mut self, due_ns: Option<u64>) -> (bool, Vec<Ready>) {
        let mut fds = vec![PollFd::new(&self.waker, PollFlags::IN)];
        let mut whose = Vec::with_capacity(self.clients.len() + 1);
        for (key, client) in &self.clients {
            let (input, output) = (client.wants_input(), client.wants_output());
            let (read, write) = (client.transport.read_fd(), client.transport.write_fd());
            let one = read.as_raw_fd() == write.as_raw_fd();
            if input {
                // One entry per descriptor: poll(2) takes at most RLIMIT_NOFILE entries.
                let also = if one && output { PollFlags::OUT } else { PollFlags::empty() };
                fds.push(PollFd::from_borrowed_fd(read, PollFlags::IN | also));
                whose.push((key, true));
            }
            // Also polled without events, to notice that the client has gone.
            if !input || output && !one {
                let flags = if output { PollFlags::OUT } else { PollFlags::empty() };
                fds.push(PollFd::from_borrowed_fd(write, flags));
                whose.push((key, false));
            }
        }
        let idle = self.awake.is_some().then_some(BEFORE_SLEEP);
        match self.waiter.wait(&self.clock, &mut fds, due_ns, idle) {
            Err(error) if error != Errno::INTR => {
                // The system is probably out of memory, possibly for a short time.
                std::thread::sleep(Duration::from_millis(10));
                return (true, Vec::new());
            }
            Ok(0) if due_ns.is_none() => {
                self.awake = None;
                return (false, Vec::new());
            }
            Ok(0) | Err(_) => return (false, Vec::new()),
            Ok(_) => {}
        }
        let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        let ready = whose.into_iter().zip(&fds[1..]).filter_map(|((key, readable), fd)| {
            let flags = fd.revents();
            let ready = Ready {
                key,
                readable: readable && flags.intersects(PollFlags::IN | gone),
                writable: flags.intersects(PollFlags::OUT),
                gone: !readable && flags.intersects(gone),
            };
            (!flags.is_empty()).then_some(ready)
        });
        (!fds[0].revents().is_empty(), ready.collect())
    }

    /// Takes every complete request of a client.
    fn take_requests(&mut self, key: usize, now_ns: u64) {
        let mut extents = 0;
        loop {
            let client = &mut self.clients[key];
            if client.long.is_some() {
                return self.begin_piece(key, now_ns);
            }
            let drive = &mut self.drives[client.agreed.export];
            client.blocked = self.loads[client.agreed.export] >= self.budget.bytes();
            client.held = client.blocked || client.is_full() || extents >= MOST_EXTENTS_PER_PASS;
            if client.held || client.gone {
                return;
            }
            match client.next(drive.export(), &mut self.budget) {
                Next::Nothing => return,
                Next::Full => {
                    client.held = true;
                    return;
                }
                Next::Broken => client.gone = true,
                Next::Refused(header, error) => {
                    let chunked = client.chunked(header.kind);
                    answer::failed(client.reply(0), chunked, header.cookie, error);
                }
                Next::Long(long) => client.long = Some(long),
                Next::Request(_, Command::Disconnect) => {
                    client.leaving = true;
                    return;
                }
                Next::Request(header, Command::BlockStatus { one }) => {
                    extents += status(drive, client, &header, one);
                }
                Next::Request(header, command) => self.begin(key, now_ns, &header, command),
            }
        }
    }

    /// Submits the request of a client to its drive.
    fn begin(&mut self, key: usize, now_ns: u64, header: &Header, command: Command) {
        let client = &mut self.clients[key];
        let number = client.agreed.export;
        let (offset, length) = (header.offset, u64::from(header.length));
        let range = |op| Request { op, offset, length };
        let durable = |fua| if fua { NextStep::Flush } else { NextStep::None };
        let (mut read, mut bytes, mut then) = (None, 0, NextStep::None);
        let request = match command {
            Command::Read => {
                (read, bytes) = (Some((offset, header.length)), length);
                range(Op::Read)
            }
            Command::Cache => {
                // Drives ignore prefetches of more than MAX_PAYLOAD bytes, which therefore take no memory.
                bytes = if header.length <= MAX_PAYLOAD { length } else { 0 };
                range(Op::Read)
            }
            Command::Write { fua } => {
                bytes = length;
                range(Op::Write { fua })
            }
            Command::Flush => Request::flush(),
            Command::Trim { fua } => {
                then = durable(fua);
                let block = u64::from(self.drives[number].export().minimum_block);
                let (first, end) = (offset.next_multiple_of(block), (offset + length) / block * block);
                if first >= end {
                    // The range contains no complete block, and partial blocks may be in use.
                    return answer::done(client.reply(0), header.cookie);
                }
                Request { op: Op::Trim, offset: first, length: end - first }
            }
            Command::WriteZeroes { fua, hole: true, .. } => {
                then = durable(fua);
                range(Op::WriteZeroes)
            }
            Command::WriteZeroes { fua, hole: false, .. } => {
                then = NextStep::Zeroes { at: offset, end: offset + length, fua };
                Request::flush()
            }
            Command::Disconnect | Command::BlockStatus { .. } => unreachable!("answered by the caller"),
        };
        let requester = Requester::Client { key, id: client.id, header: *header, piece: false };
        let waiting = Waiting { drive: number, requester, read, bytes, then };
        self.submit(key, now_ns, waiting, request, header.payload() as usize);
    }

    /// Begins the next piece of a client's long request, if the client is ready for it.
    fn begin_piece(&mut self, key: usize, now_ns: u64) {
        let client = &mut self.clients[key];
        let Some(mut long) = client.long.filter(|long| long.is_ready(client)) else { return };
        let (request, header) = long.begin();
        client.long = Some(long);
        let requester = Requester::Client { key, id: client.id, header, piece: true };
        let (drive, bytes) = (client.agreed.export, request.length);
        let waiting = Waiting { drive, requester, read: None, bytes, then: NextStep::None };
        self.submit(key, now_ns, waiting, request, header.payload() as usize);
    }

    /// Submits a client's request to its drive; the payload is at the front of the input buffer.
    fn submit(&mut self, key: usize, now_ns: u64, waiting: Waiting, request: Request, payload: usize) {
        let client = &mut self.clients[key];
        let drive = &mut self.drives[waiting.drive];
        client.requests += 1;
        client.bytes += waiting.bytes;
        self.loads[waiting.drive] += waiting.bytes;
        let ticket = self.waiting.insert(waiting);
        // Allocated zeroes consist of steps only.
        match self.waiting[ticket].first_step() {
            Some((request, data)) => drive.submit(now_ns, ticket as Ticket, request, data),
            None => {
                drive.submit(now_ns, ticket as Ticket, request, &client.input.bytes()[..payload]);
                client.consume(payload, &self.budget);
            }
        }
    }

    /// Handles the messages of other threads.
    fn take_messages(&mut self) {
        while let Ok(message) = self.from.try_recv() {
            let now_ns = self.clock.now_ns();
            match message {
                Message::Client(transport, agreed) => {
                    self.clients_ever += 1;
                    let client = Client::new(self.clients_ever, transport, agreed);
                    self.clients.insert(client);
                }
                Message::Request { drive, life, request, data, done } => {
                    self.submit_from_port(drive, life, (request, &data), done, now_ns);
                }
                Message::Call(what) => {
                    what(&mut self.drives, now_ns);
                    self.notice_cuts();
                }
                Message::Watch(waiter) => self.watched.push(waiter),
                Message::Stop => self.stopped = true,
            }
        }
    }

    /// Submits a request from a [`Port`](super::Port).
    fn submit_from_port(
        &mut self,
        number: usize,
        life: u64,
        (request, data): (Request, &[u8]),
        done: OnComplete,
        now_ns: u64,
    ) {
        let drive = &mut self.drives[number];
        let export = drive.export();
        let Request { op, offset, length } = request;
        let inside = offset.checked_add(length).is_some_and(|end| end <= export.size);
        let block = u64::from(export.minimum_block);
        let whole = offset.is_multiple_of(block) && length.is_multiple_of(block);
        let refused = if life != drive.life() {
            Some(libc::EIO)
        } else if export.read_only && !matches!(op, Op::Read | Op::Flush) {
            Some(libc::EROFS)
        } else if op != Op::Flush && !(inside && whole && length > 0) {
            Some(libc::EINVAL)
        } else {
            None
        };
        if let Some(error) = refused {
            return done(Err(error));
        }
        let read = (op == Op::Read).then_some((offset, length as u32));
        let ticket = self.waiting.insert(Waiting {
            drive: number,
            requester: Requester::Port(done),
            read,
            bytes: 0,
            then: NextStep::None,
        });
        drive.submit(now_ns, ticket as Ticket, request, data);
    }

    /// Drops the requests in flight of drives whose power was cut, and disconnects their clients.
    fn notice_cuts(&mut self) {
        for number in 0..self.drives.len() {
            let life = self.drives[number].life();
            if self.lives[number].swap(life, Ordering::AcqRel) == life {
                continue;
            }
            for (_, client) in &mut self.clients {
                client.gone |= client.agreed.export == number;
            }
            let lost = self.waiting.iter().filter(|(_, waiting)| waiting.drive == number);
            for ticket in lost.map(|(ticket, _)| ticket).collect::<Vec<_>>() {
                let waiting = self.waiting.remove(ticket);
                self.loads[number] -= waiting.bytes;
                waiting.fail();
            }
        }
    }
}

/// The poll events of a client.
struct Ready {
    key: usize,
    readable: bool,
    writable: bool,
    gone: bool,
}

/// Answers a request of a client.
fn reply<D: Drive>(drive: &mut D, client: &mut Client, header: &Header, result: Result<(), i32>) {
    let structured = client.agreed.structured;
    let result = result.and_then(|()| {
        if header.kind != command::READ {
            answer::done(client.reply(0), header.cookie);
            return Ok(());
        }
        let (offset, length) = (header.offset, header.length);
        if structured && is_hole(drive, header)? {
            answer::hole(client.reply(0), true, header.cookie, (offset, length));
            return Ok(());
        }
        let out = client.reply(length as usize);
        answer::data(out, structured, header.cookie, (offset, length), |bytes| drive.read(offset, bytes))
    });
    if let Err(errno) = result {
        let chunked = client.chunked(header.kind);
        answer::failed(client.reply(0), chunked, header.cookie, answer::error_number(errno));
    }
}

/// Answers a piece of a long request of a client.
fn reply_piece<D: Drive>(drive: &mut D, client: &mut Client, piece: &Header, result: Result<(), i32>) {
    let reads = piece.kind == command::READ;
    let hole = result.and_then(|()| Ok(reads && client.agreed.structured && is_hole(drive, piece)?));
    let result = hole.map(drop);
    long::complete(client, piece, result, hole == Ok(true), |bytes| drive.read(piece.offset, bytes));
}

/// Returns whether the range of a read is unallocated.
fn is_hole<D: Drive>(drive: &D, header: &Header) -> Result<bool, i32> {
    let run = drive.run(header.offset, u64::from(header.length))?;
    Ok(!run.allocated && run.length == u64::from(header.length))
}
