//! The loop that serves drives to clients ([`Server`]): one thread, which no request leaves.
//!
//! ```text
//!   answer what is due ─► send ─► wait (for bytes, or for the next due instant) ─► take requests ─┐
//!         ▲                                                                                        │
//!         └────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! One thread, because a drive takes requests in order of time, and because a request that changes hands between threads
//! pays for two more of the scheduler's decisions, which is as long as a fast drive takes to answer. What clients send together is taken
//! together, and what is due together is sent together. Not here: negotiation, which other threads do.

mod budget;
mod buffer;
mod client;
mod handle;
mod long;
mod status;
mod waiting;

pub use budget::{Buffers, Usage};
pub use handle::{Handle, Ring};

use super::drive::{Drive, Ticket};
use super::port::Done;
use super::wait::{Awake, Clock, Waiter, precise_wakeups};
use crate::nbd::answer;
use crate::nbd::request::{Command, Header};
use crate::nbd::wire::{MAX_PAYLOAD, command};
use budget::{Budget, SharedUsage};
use client::{Client, Next};
use handle::{Bell, Message};
use lowtide_core::{Op, Request};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use slab::Slab;
use status::status;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use waiting::{For, Then, Waiting};

/// The most extents in the answers that one client gets before others have their turn.
const MOST_EXTENTS_IN_TURN: usize = 4096;

/// How long nothing is in flight before the processors may sleep again.
const BEFORE_SLEEP: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Steps of long requests before others have their turn.
const MOST_STEPS: usize = 8;

/// The loop and what it serves.
pub struct Server<D> {
    drives: Vec<D>,
    clients: Slab<Client>,
    /// Requests in flight, by ticket.
    waiting: Slab<Waiting>,
    clients_ever: u64,
    /// Bytes in flight, for each drive, also of clients that have left.
    loads: Vec<u64>,
    budget: Budget,
    usage: Arc<SharedUsage>,
    from: mpsc::Receiver<Message<D>>,
    bell: Arc<Bell>,
    lives: Arc<[AtomicU64]>,
    clock: Clock,
    /// While something is in flight that has to be answered in time, and a little longer.
    awake: Option<Awake>,
    waiter: Waiter,
    /// It was refused once.
    may_sleep: bool,
    /// It ends when its last client has left.
    ends_alone: bool,
    stopped: bool,
    /// Dropped at the end.
    watched: Vec<mpsc::SyncSender<()>>,
}

impl<D: Drive> Server<D> {
    /// A loop that serves these drives on this clock.
    ///
    /// # Errors
    /// Where the system has no more file descriptors.
    pub fn new(mut drives: Vec<D>, clock: Clock) -> io::Result<(Server<D>, Handle<D>)> {
        let (to, from) = mpsc::channel();
        let bell = Arc::new(Bell::new()?);
        drives.iter_mut().for_each(|drive| drive.ring_by(Ring(Arc::clone(&bell))));
        let lives: Arc<[AtomicU64]> = drives.iter().map(|drive| AtomicU64::new(drive.life())).collect();
        let usage = Arc::<SharedUsage>::default();
        let handle =
            Handle { to, bell: Arc::clone(&bell), lives: Arc::clone(&lives), usage: Arc::clone(&usage) };
        let server = Server {
            loads: vec![0; drives.len()],
            budget: Budget::new(Buffers::default()),
            usage,
            drives,
            clients: Slab::new(),
            waiting: Slab::new(),
            clients_ever: 0,
            from,
            bell,
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

    /// The loop ends when its last client has left, instead of when it is told.
    pub fn ending_alone(mut self) -> Self {
        self.ends_alone = true;
        self
    }

    /// Clients have other memory than by default.
    pub fn with_buffers(mut self, buffers: Buffers) -> Self {
        self.budget = Budget::new(buffers);
        self
    }

    /// Serves until the end; gives the drives back. What is in flight then is not answered.
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
            waiting.give_up();
        }
        self.drives
    }

    /// Answers what is due.
    fn answer(&mut self) {
        let mut now_ns = None;
        for drive in 0..self.drives.len() {
            if self.drives[drive].next_due().is_none() {
                continue;
            }
            let now_ns = *now_ns.get_or_insert_with(|| self.clock.now_ns());
            // Others have their turn between the steps of a long request.
            let mut steps = 0;
            while steps < MOST_STEPS
                && let Some((ticket, result)) = self.drives[drive].due(now_ns)
            {
                steps += usize::from(self.complete(ticket, result, now_ns));
            }
        }
    }

    /// A request is complete, or a step of it.
    ///
    /// Whether it was a step of one that goes on.
    fn complete(&mut self, ticket: Ticket, result: Result<(), i32>, now_ns: u64) -> bool {
        let Some(waiting) = self.waiting.get_mut(ticket as usize) else { return false };
        let drive = &mut self.drives[waiting.drive];
        if result.is_ok()
            && let Some((request, data)) = waiting.step()
        {
            drive.submit(now_ns, ticket, request, data);
            return true;
        }
        let Waiting { asked, read, bytes, drive: number, .. } = self.waiting.remove(ticket as usize);
        self.loads[number] -= bytes;
        match asked {
            For::Port(done) => done(result.and_then(|()| {
                let (offset, length) = read.unwrap_or((0, 0));
                let mut bytes = vec![0; length as usize];
                drive.read(offset, &mut bytes)?;
                Ok(bytes)
            })),
            For::Client { key, id, header, piece } => {
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

    /// Sends what clients can take; takes leave of those that are finished.
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

    /// Waits until something is to be done, and takes what has come.
    fn wait_and_take(&mut self) {
        self.count_memory();
        let here: Vec<usize> =
            self.clients.iter().filter(|(_, client)| client.has_input()).map(|(key, _)| key).collect();
        let due_ns =
            if here.is_empty() { self.drives.iter().filter_map(Drive::next_due).min() } else { Some(0) };
        self.keep_awake(due_ns);
        let (rung, ready) = self.wait(due_ns);
        if rung {
            self.bell.hush();
            self.take_messages();
        }
        for Ready { key, readable, writable, gone } in ready {
            let Some(client) = self.clients.get_mut(key) else { continue };
            if writable {
                client.output.unstick();
            }
            // Who has gone would not hear an answer.
            client.gone |= gone;
            if readable {
                self.take(key, true);
            }
        }
        here.into_iter().for_each(|key| self.take(key, false));
    }

    /// Counts what clients hold, and looks whether those that wait for room have it.
    fn count_memory(&mut self) {
        // What clients that have left still have in flight.
        let all: u64 = self.loads.iter().sum();
        let left = all.saturating_sub(self.clients.iter().map(|(_, client)| client.bytes).sum());
        self.budget.count(self.clients.iter().map(|(_, client)| client.holds()), left);
        let mut usage = Usage { clients: 0, waiting: 0, used: left, bytes: self.budget.bytes() };
        for (_, client) in &mut self.clients {
            client.blocked = self.loads[client.agreed.export] >= self.budget.bytes();
            client.look_for_room(&self.budget);
            usage.clients += 1;
            usage.waiting += u64::from(client.is_waiting());
            usage.used += client.holds();
        }
        self.usage.set(usage);
    }

    /// Keeps the processors awake where answers have to be in time.
    fn keep_awake(&mut self, due_ns: Option<u64>) {
        if due_ns.is_some() && self.awake.is_none() && !self.may_sleep {
            let timed = self.drives.iter().any(|drive| drive.keeps_time() && drive.next_due().is_some());
            if timed {
                self.awake = Awake::new().ok();
                self.may_sleep = self.awake.is_none();
            }
        }
    }

    /// Takes what a client has sent: what is here, and, where its descriptor says so, what is there.
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

    /// Waits for bytes, messages, or an instant: whether there are messages, and which clients have something.
    fn wait(&mut self, due_ns: Option<u64>) -> (bool, Vec<Ready>) {
        let mut fds = vec![PollFd::new(&self.bell.fd, PollFlags::IN)];
        let mut whose = Vec::with_capacity(self.clients.len() + 1);
        for (key, client) in &self.clients {
            let (input, output) = (client.wants_input(), client.wants_output());
            let (read, write) = (client.transport.read_fd(), client.transport.write_fd());
            let one = read.as_raw_fd() == write.as_raw_fd();
            if input {
                // The kernel takes no more entries than descriptors are allowed.
                let also = if one && output { PollFlags::OUT } else { PollFlags::empty() };
                fds.push(PollFd::from_borrowed_fd(read, PollFlags::IN | also));
                whose.push((key, true));
            }
            // Also to hear that the other end has gone.
            if !input || output && !one {
                let flags = if output { PollFlags::OUT } else { PollFlags::empty() };
                fds.push(PollFd::from_borrowed_fd(write, flags));
                whose.push((key, false));
            }
        }
        let idle = self.awake.is_some().then_some(BEFORE_SLEEP);
        match self.waiter.wait(&self.clock, &mut fds, due_ns, idle) {
            Err(error) if error != Errno::INTR => {
                // Out of memory, say: others may make room.
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

    /// Takes every request of a client that is there in full.
    fn take_requests(&mut self, key: usize, now_ns: u64) {
        let mut extents = 0;
        loop {
            let client = &mut self.clients[key];
            if client.long.is_some() {
                return self.go_on(key, now_ns);
            }
            let drive = &mut self.drives[client.agreed.export];
            client.blocked = self.loads[client.agreed.export] >= self.budget.bytes();
            client.held = client.blocked || client.is_full() || extents >= MOST_EXTENTS_IN_TURN;
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

    /// Asks the drive for what a client wants.
    fn begin(&mut self, key: usize, now_ns: u64, header: &Header, command: Command) {
        let client = &mut self.clients[key];
        let number = client.agreed.export;
        let (offset, length) = (header.offset, u64::from(header.length));
        let range = |op| Request { op, offset, length };
        let durable = |fua| if fua { Then::Flush } else { Then::Nothing };
        let (mut read, mut bytes, mut then) = (None, 0, Then::Nothing);
        let request = match command {
            Command::Read => {
                (read, bytes) = (Some((offset, header.length)), length);
                range(Op::Read)
            }
            Command::Cache => {
                // A drive that takes longer ones keeps nothing for them.
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
                    // No block of it is trimmed as a whole, and the rest of a block may be in use.
                    return answer::done(client.reply(0), header.cookie);
                }
                Request { op: Op::Trim, offset: first, length: end - first }
            }
            Command::WriteZeroes { fua, hole: true, .. } => {
                then = durable(fua);
                range(Op::WriteZeroes)
            }
            Command::WriteZeroes { fua, hole: false, .. } => {
                then = Then::Zeroes { at: offset, end: offset + length, fua };
                Request::flush()
            }
            Command::Disconnect | Command::BlockStatus { .. } => unreachable!("answered elsewhere"),
        };
        let asked = For::Client { key, id: client.id, header: *header, piece: false };
        let waiting = Waiting { drive: number, asked, read, bytes, then };
        self.submit(key, now_ns, waiting, request, header.payload() as usize);
    }

    /// Begins the next piece of a client's long request, where it can.
    fn go_on(&mut self, key: usize, now_ns: u64) {
        let client = &mut self.clients[key];
        let Some(mut long) = client.long.filter(|long| long.is_ready(client)) else { return };
        let (request, header) = long.begin();
        client.long = Some(long);
        let asked = For::Client { key, id: client.id, header, piece: true };
        let (drive, bytes) = (client.agreed.export, request.length);
        let waiting = Waiting { drive, asked, read: None, bytes, then: Then::Nothing };
        self.submit(key, now_ns, waiting, request, header.payload() as usize);
    }

    /// Hands a client's request to its drive, with a payload that lies at the front of the input.
    fn submit(&mut self, key: usize, now_ns: u64, waiting: Waiting, request: Request, payload: usize) {
        let client = &mut self.clients[key];
        let drive = &mut self.drives[waiting.drive];
        client.requests += 1;
        client.bytes += waiting.bytes;
        self.loads[waiting.drive] += waiting.bytes;
        let ticket = self.waiting.insert(waiting);
        // Zeroes that take room are all steps, of which the first is now.
        match self.waiting[ticket].first_step() {
            Some((request, data)) => drive.submit(now_ns, ticket as Ticket, request, data),
            None => {
                drive.submit(now_ns, ticket as Ticket, request, &client.input.bytes()[..payload]);
                client.consume(payload, &self.budget);
            }
        }
    }

    /// Does what other threads want.
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
                    self.take_from_thread(drive, life, (request, &data), done, now_ns);
                }
                Message::Call(what) => {
                    what(&mut self.drives, now_ns);
                    self.notice_cuts();
                }
                Message::Watch(who) => self.watched.push(who),
                Message::Stop => self.stopped = true,
            }
        }
    }

    /// Takes a request that came from another thread.
    fn take_from_thread(
        &mut self,
        number: usize,
        life: u64,
        (request, data): (Request, &[u8]),
        done: Done,
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
            asked: For::Port(done),
            read,
            bytes: 0,
            then: Then::Nothing,
        });
        drive.submit(now_ns, ticket as Ticket, request, data);
    }

    /// After a power cut nobody hears of what was in flight, and clients have lost their connection.
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
                waiting.give_up();
            }
        }
    }
}

/// A client of which there is something to know: that bytes came, that it takes bytes, or that it has gone.
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

/// Goes on with the answer to a long request of a client.
fn reply_piece<D: Drive>(drive: &mut D, client: &mut Client, piece: &Header, result: Result<(), i32>) {
    let reads = piece.kind == command::READ;
    let hole = result.and_then(|()| Ok(reads && client.agreed.structured && is_hole(drive, piece)?));
    let result = hole.map(drop);
    long::complete(client, piece, result, hole == Ok(true), |bytes| drive.read(piece.offset, bytes));
}

/// Whether nothing of a read's range is allocated.
fn is_hole<D: Drive>(drive: &D, header: &Header) -> Result<bool, i32> {
    let run = drive.run(header.offset, u64::from(header.length))?;
    Ok(!run.allocated && run.length == u64::from(header.length))
}
