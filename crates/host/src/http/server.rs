//! The thread that polls all connections ([`Server`]), and the limits on all clients together.
//!
//! The thread works in passes: a pass reads once from every client that sent data, and writes at most [`BYTES`] to
//! all clients. It sleeps for [`PAUSE`] after each pass, which bounds its processor time. Requests and answers are in
//! module `connection`.

use super::cache::{PageCache, Site};
use super::connection::{Connection, Handler, PATIENCE, Status};
use super::head;
use super::hosts::Hosts;
use crate::event::Event;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, sockopt};
use rustix::process::Resource;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The maximum number of clients. Including its own descriptors and those of a store from which a page is rendered, a
/// server uses fewer than 64.
pub const CONNECTIONS: usize = 48;

/// Length of the kernel's queue of clients that wait to be accepted.
const QUEUE: i32 = 1024;

/// Sleep after each pass, which limits passes to 50 per second.
const PAUSE: Duration = Duration::from_millis(20);
/// The maximum number of bytes written per pass, to all clients.
const BYTES: usize = 1 << 20;
/// The maximum size of all pages that are being sent, in bytes. A page counts once for all its clients.
const HELD: usize = 32 << 20;

/// Send buffer of a connection; the kernel doubles it.
const SEND_BUFFER: usize = 128 << 10;
/// Receive buffer of a connection; the kernel doubles it.
const RECEIVE_BUFFER: usize = 8 << 10;

/// Time without accepting clients after descriptors ran short.
const RESPITE: Duration = Duration::from_millis(500);

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    waker: Event,
    ended: Arc<AtomicBool>,
    cache: Arc<PageCache>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Serves `site` at `listener` to clients that ask for one of `hosts`.
    ///
    /// # Errors
    /// If the socket cannot be set up, or a thread cannot be started.
    pub fn start(listener: TcpListener, hosts: Hosts, site: impl Site) -> io::Result<Server> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        // Connections inherit these sizes.
        sockopt::set_socket_send_buffer_size(&listener, SEND_BUFFER)?;
        sockopt::set_socket_recv_buffer_size(&listener, RECEIVE_BUFFER)?;
        rustix::net::listen(&listener, QUEUE)?;
        let waker = Event::new()?;
        let cache = Arc::new(PageCache::new(site.pages()));
        let mut server = Server { address, waker, ended: Arc::default(), cache, threads: Vec::new() };
        let (waker, cache) = (server.waker.clone(), Arc::clone(&server.cache));
        let pages = std::thread::Builder::new().name("pages".to_owned());
        server.threads.push(pages.spawn(move || cache.run(site, || waker.set()))?);
        let event_loop = EventLoop {
            listener,
            waker: server.waker.clone(),
            ended: Arc::clone(&server.ended),
            handler: Handler { hosts, cache: Arc::clone(&server.cache) },
            connections: Vec::with_capacity(CONNECTIONS),
            closed_until: None,
            scratch: vec![0; head::LONGEST],
        };
        let http = std::thread::Builder::new().name("http".to_owned());
        server.threads.push(http.spawn(move || event_loop.run())?);
        Ok(server)
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    /// Closes all connections, and waits for the page that is being rendered.
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        self.waker.set();
        self.cache.end();
        for thread in self.threads.drain(..) {
            // A panic of the thread has already been reported.
            let _ = thread.join();
        }
    }
}

/// The listening socket and all connections.
struct EventLoop {
    listener: TcpListener,
    waker: Event,
    ended: Arc<AtomicBool>,
    handler: Handler,
    connections: Vec<Connection>,
    /// No client is accepted before this instant.
    closed_until: Option<Instant>,
    scratch: Vec<u8>,
}

impl EventLoop {
    fn run(mut self) {
        while !self.ended.load(Ordering::Acquire) {
            let Some(events) = self.wait() else { return };
            self.waker.clear();
            self.pass(&events, Instant::now());
            std::thread::sleep(PAUSE);
        }
    }

    /// Polls, and returns the events of each connection; `None` if polling fails for good.
    fn wait(&mut self) -> Option<Vec<PollFlags>> {
        let now = Instant::now();
        self.closed_until = self.closed_until.filter(|until| now < *until);
        let room = self.has_room(now);
        let accepts = room && self.closed_until.is_none();
        let deadlines = self.connections.iter().map(Connection::deadline);
        // A connection may be replaceable after this time.
        let room_again = (!room).then(|| now + PATIENCE);
        let until = deadlines.chain(self.closed_until).chain(room_again).min();
        let timeout = until.map(|until| {
            Timespec::try_from(until.saturating_duration_since(now)).expect("it is less than a minute")
        });
        let listened = if accepts { PollFlags::IN } else { PollFlags::empty() };
        let own = [PollFd::new(&self.waker, PollFlags::IN), PollFd::new(&self.listener, listened)];
        let clients = self.connections.iter().map(|client| PollFd::new(client, client.events()));
        let mut fds: Vec<PollFd<'_>> = own.into_iter().chain(clients).collect();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => Some(fds[2..].iter().map(PollFd::revents).collect()),
            // Memory may be short temporarily.
            Err(Errno::INTR | Errno::AGAIN | Errno::NOMEM) => {
                Some(vec![PollFlags::empty(); self.connections.len()])
            }
            Err(_) => None,
        }
    }

    fn pass(&mut self, events: &[PollFlags], now: Instant) {
        let (handler, scratch) = (&self.handler, &mut self.scratch);
        let mut events = events.iter();
        self.connections.retain_mut(|client| {
            let events = events.next().copied().unwrap_or(PollFlags::empty());
            client.on_events(events, handler, scratch, now) == Status::Open
        });
        self.accept(now);
        self.bound_memory();
        let writers = self.connections.iter().filter(|client| client.is_flowing(now)).count();
        let share = BYTES / writers.max(1);
        self.connections.retain_mut(|client| client.write(share, now) == Status::Open);
    }

    /// Returns whether a client can be accepted, possibly by replacing another one.
    fn has_room(&self, now: Instant) -> bool {
        self.connections.len() < CONNECTIONS || self.replaceable(now).is_some()
    }

    /// The replaceable client that has been in its state longest.
    fn replaceable(&self, now: Instant) -> Option<usize> {
        let ages = self.connections.iter().enumerate();
        ages.filter_map(|(index, client)| Some((client.replaceable(now)?, index)))
            .max()
            .map(|(_, index)| index)
    }

    fn accept(&mut self, now: Instant) {
        // Further clients are accepted in the next pass.
        for _ in 0..CONNECTIONS {
            if self.closed_until.is_some() || !self.has_room(now) {
                return;
            }
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match rustix::net::accept_with(&self.listener, flags) {
                // The socket is dropped at once, because the campaign may need the descriptor.
                Ok(socket) if descriptors_are_scarce(&socket) => self.closed_until = Some(now + RESPITE),
                Ok(socket) => self.admit(TcpStream::from(socket), now),
                Err(Errno::AGAIN) => return,
                // The client has gone, or the call was interrupted.
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO | Errno::PERM) => {}
                Err(_) => self.closed_until = Some(now + RESPITE),
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, now: Instant) {
        if self.connections.len() >= CONNECTIONS
            && let Some(index) = self.replaceable(now)
        {
            self.connections.swap_remove(index);
        }
        // A client that has gone has no address.
        let Ok(reached) = stream.local_addr() else { return };
        // Failure only causes a delay.
        let _ = stream.set_nodelay(true);
        let mut client = Connection::new(stream, reached.ip(), now);
        // Most clients have already sent their request.
        if client.read(&self.handler, &mut self.scratch, now) == Status::Open {
            self.connections.push(client);
        }
    }

    /// Drops the clients that have been reading longest, until few enough versions of pages are in memory.
    fn bound_memory(&mut self) {
        loop {
            let mut held: Vec<&Arc<[u8]>> = Vec::new();
            for (body, _) in self.connections.iter().filter_map(Connection::sending) {
                if held.iter().all(|other| !Arc::ptr_eq(other, body)) {
                    held.push(body);
                }
            }
            if held.len() < 2 || held.iter().map(|body| body.len()).sum::<usize>() <= HELD {
                return;
            }
            let since = |client: &Connection| client.sending().map(|(_, since)| since);
            let ages = self.connections.iter().enumerate();
            let oldest = ages.filter_map(|(index, client)| Some((since(client)?, index))).min();
            let Some((_, index)) = oldest else { return };
            self.connections.swap_remove(index);
        }
    }
}

/// Returns whether the process uses at least half of its descriptors, judged by a new one: the kernel assigns the
/// lowest free number.
fn descriptors_are_scarce(descriptor: &OwnedFd) -> bool {
    let limit = rustix::process::getrlimit(Resource::Nofile).current;
    limit.is_some_and(|limit| u64::from(descriptor.as_raw_fd().unsigned_abs()) >= limit / 2)
}
