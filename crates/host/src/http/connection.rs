//! The state machine of one client ([`Connection`]): reading a request, waiting for a page, writing the answer,
//! lingering.
//!
//! No function blocks, and every state has a deadline. Module `server` polls and replaces connections.

use super::cache::{Lookup, PageCache, Rendered};
use super::head::{self, Fault, Method, Request};
use super::hosts::Hosts;
use rustix::event::PollFlags;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Time from the connection, or the first byte of a head, to the end of the head.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Time from the end of an answer to the next request.
const IDLE_TIME: Duration = Duration::from_secs(15);
/// Time for rendering a page, after which the client gets the previous version.
const MAKING_TIME: Duration = Duration::from_secs(10);
/// Time from the first byte of an answer to its last.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// Time of discarding input after the last answer, so that the client does not get a reset instead of the answer.
const LINGER_TIME: Duration = Duration::from_secs(1);
/// Age after which a connection takes no further request.
const CONNECTION_TIME: Duration = Duration::from_secs(300);
const REQUESTS: u32 = 100;

/// Age after which a connection without a complete request may be replaced.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);
/// Time after which an answer may be replaced if the client reads nothing.
const UNREAD: Duration = Duration::from_millis(250);
/// Time after which an answer may be replaced if the client reads slowly.
const SLOW: Duration = Duration::from_secs(5);
/// Time for which an answer counts as flowing after the client last read a byte.
const FLOWING: Duration = Duration::from_millis(100);

const PLAIN: &str = "text/plain; charset=utf-8";

/// The hosts and pages of a server.
pub(super) struct Handler {
    pub(super) hosts: Hosts,
    pub(super) cache: Arc<PageCache>,
}

/// Whether a connection stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Status {
    Open,
    Closed,
}

pub(super) struct Connection {
    stream: TcpStream,
    /// The address of this machine to which the client connected.
    reached: IpAddr,
    state: State,
    opened: Instant,
    /// The start of the current state.
    since: Instant,
    requests: u32,
    /// The received part of the next head.
    input: Vec<u8>,
}

enum State {
    Reading,
    Waiting(Pending),
    Writing(Answer),
    /// The last answer was sent, but the client has not closed the connection.
    Lingering,
}

/// A requested page and its delivery.
#[derive(Clone, Copy)]
struct Pending {
    page: usize,
    delivery: Delivery,
}

#[derive(Clone, Copy)]
struct Delivery {
    /// Whether only the head is sent.
    bodiless: bool,
    keep_alive: bool,
}

struct Answer {
    head: Vec<u8>,
    body: Arc<[u8]>,
    /// Sent bytes of head and body.
    sent: usize,
    /// The time when the client last read a byte.
    moved: Instant,
    keep_alive: bool,
}

impl Connection {
    /// A client that connected to the address `reached`; its stream is non-blocking.
    pub(super) fn new(stream: TcpStream, reached: IpAddr, now: Instant) -> Connection {
        let input = Vec::new();
        Connection { stream, reached, state: State::Reading, opened: now, since: now, requests: 0, input }
    }

    /// The events to poll for, in addition to errors.
    pub(super) fn events(&self) -> PollFlags {
        match self.state {
            State::Reading | State::Lingering => PollFlags::IN,
            State::Waiting(_) => PollFlags::empty(),
            State::Writing(_) => PollFlags::OUT,
        }
    }

    /// The time at which [`Connection::expire`] is due.
    pub(super) fn deadline(&self) -> Instant {
        self.since
            + match self.state {
                State::Reading if self.is_idle() => IDLE_TIME,
                State::Reading => HEAD_TIME,
                State::Waiting(_) => MAKING_TIME,
                State::Writing(_) => ANSWER_TIME,
                State::Lingering => LINGER_TIME,
            }
    }

    /// Returns whether the client is between two requests.
    fn is_idle(&self) -> bool {
        self.requests > 0 && self.input.is_empty()
    }

    /// The age of its state; `None` unless a new connection may replace it.
    pub(super) fn replaceable(&self, now: Instant) -> Option<Duration> {
        let age = now.saturating_duration_since(self.since);
        let may_be = match &self.state {
            State::Reading | State::Lingering => age >= PATIENCE,
            State::Waiting(_) => false,
            State::Writing(answer) => now.saturating_duration_since(answer.moved) >= UNREAD || age >= SLOW,
        };
        may_be.then_some(age)
    }

    /// The body that is being sent, and the start of sending.
    pub(super) fn sending(&self) -> Option<(&Arc<[u8]>, Instant)> {
        match &self.state {
            State::Writing(answer) => Some((&answer.body, self.since)),
            _ => None,
        }
    }

    /// Returns whether the client is reading its answer.
    pub(super) fn is_flowing(&self, now: Instant) -> bool {
        matches!(&self.state, State::Writing(answer) if now.saturating_duration_since(answer.moved) < FLOWING)
    }

    /// Handles poll events and deadlines.
    pub(super) fn on_events(
        &mut self,
        events: PollFlags,
        handler: &Handler,
        scratch: &mut [u8],
        now: Instant,
    ) -> Status {
        let broken = events.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
        let is_reading = matches!(self.state, State::Reading | State::Lingering);
        if broken && !is_reading {
            return Status::Closed;
        }
        let may_read = is_reading && (broken || events.contains(PollFlags::IN));
        if may_read && self.read(handler, scratch, now) == Status::Closed {
            return Status::Closed;
        }
        if let State::Waiting(pending) = self.state {
            self.try_page(pending, handler, now);
        }
        if now >= self.deadline() { self.expire(handler, now) } else { Status::Open }
    }

    /// Reads once.
    pub(super) fn read(&mut self, handler: &Handler, scratch: &mut [u8], now: Instant) -> Status {
        match self.stream.read(scratch) {
            Ok(0) => return Status::Closed,
            Ok(count) if matches!(self.state, State::Reading) => self.take(&scratch[..count], handler, now),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return Status::Closed,
        }
        Status::Open
    }

    /// Appends to the head, and answers when it is complete.
    fn take(&mut self, mut bytes: &[u8], handler: &Handler, now: Instant) {
        if self.input.is_empty() {
            // Some clients send an extra empty line after a request.
            bytes = &bytes[bytes.iter().take_while(|byte| b"\r\n".contains(byte)).count()..];
            if bytes.is_empty() {
                return;
            }
            if self.requests > 0 {
                self.since = now;
            }
        }
        let seen = self.input.len();
        self.input.extend_from_slice(bytes);
        let fault = match head::end(&self.input, seen) {
            Some(end) if end <= head::LONGEST => match head::parse(&self.input[..end]) {
                Ok(request) => return self.answer(&request, end, handler, now),
                Err(fault) => fault,
            },
            None if !head::begins(&self.input) => Fault::Malformed,
            None if self.input.len() <= head::LONGEST => return,
            _ => Fault::TooLarge,
        };
        let (status, text) = explain(fault);
        self.reply_text(status, text, Delivery { bodiless: false, keep_alive: false }, now);
    }

    fn answer(&mut self, request: &Request, end: usize, handler: &Handler, now: Instant) {
        self.requests += 1;
        let last = self.requests >= REQUESTS || now.saturating_duration_since(self.opened) >= CONNECTION_TIME;
        // Further input is a body or a pipelined request.
        let keep_alive = request.keep_alive && !last && !request.body && self.input.len() == end;
        let delivery = Delivery { bodiless: request.method == Method::Head, keep_alive };
        let pages = handler.cache.pages();
        if request.host.as_ref().is_some_and(|host| !handler.hosts.accept(host, self.reached)) {
            return self.reply_text(403, handler.hosts.refusal(), delivery, now);
        }
        let Some(page) = pages.iter().position(|page| page.path == request.path) else {
            let paths: Vec<&str> = pages.iter().map(|page| page.path).collect();
            return self.reply_text(404, &format!("the pages are {}\n", paths.join(" and ")), delivery, now);
        };
        if request.method == Method::Other {
            return self.reply_text(405, "only GET and HEAD\n", delivery, now);
        }
        if request.body {
            return self.reply_text(413, "requests must have no body\n", delivery, now);
        }
        self.enter(State::Waiting(Pending { page, delivery }), now);
        self.try_page(Pending { page, delivery }, handler, now);
    }

    /// Replies with the page if it is fresh.
    fn try_page(&mut self, pending: Pending, handler: &Handler, now: Instant) {
        if let Lookup::Fresh(rendered) = handler.cache.lookup(pending.page, now) {
            self.reply_page(&rendered, pending, handler, now);
        }
    }

    fn reply_page(&mut self, rendered: &Rendered, pending: Pending, handler: &Handler, now: Instant) {
        match rendered {
            Ok(bytes) => {
                let kind = handler.cache.pages()[pending.page].kind;
                self.reply(200, kind, Arc::clone(bytes), pending.delivery, now);
            }
            Err(reason) => self.reply_text(503, &format!("{reason}\n"), pending.delivery, now),
        }
    }

    /// Ends a state whose deadline has passed.
    fn expire(&mut self, handler: &Handler, now: Instant) -> Status {
        match self.state {
            State::Waiting(pending) => match handler.cache.lookup(pending.page, now) {
                Lookup::Fresh(rendered) | Lookup::Stale(Some(rendered)) => {
                    self.reply_page(&rendered, pending, handler, now)
                }
                Lookup::Stale(None) => {
                    let text = "this page is still being rendered: ask again\n";
                    self.reply_text(503, text, pending.delivery, now);
                }
            },
            State::Reading if !self.input.is_empty() => {
                let last = Delivery { bodiless: false, keep_alive: false };
                self.reply_text(408, "the request took too long\n", last, now);
            }
            State::Reading | State::Writing(_) | State::Lingering => return Status::Closed,
        }
        Status::Open
    }

    fn reply_text(&mut self, status: u16, text: &str, delivery: Delivery, now: Instant) {
        self.reply(status, PLAIN, text.as_bytes().into(), delivery, now);
    }

    fn reply(&mut self, status: u16, kind: &str, body: Arc<[u8]>, delivery: Delivery, now: Instant) {
        let mut head = format!(
            "HTTP/1.1 {status} {}\r\nDate: {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n",
            reason(status),
            httpdate::fmt_http_date(SystemTime::now()),
            body.len()
        );
        head.push_str(match status {
            405 => "Allow: GET, HEAD\r\n",
            503 => "Retry-After: 3\r\n",
            _ => "",
        });
        head.push_str(if delivery.keep_alive {
            "Connection: keep-alive\r\n\r\n"
        } else {
            "Connection: close\r\n\r\n"
        });
        let body = if delivery.bodiless { Arc::default() } else { body };
        let answer =
            Answer { head: head.into_bytes(), body, sent: 0, moved: now, keep_alive: delivery.keep_alive };
        self.input = Vec::new();
        self.enter(State::Writing(answer), now);
    }

    /// Writes at most `most` bytes of the answer.
    pub(super) fn write(&mut self, most: usize, now: Instant) -> Status {
        let mut left = most;
        let State::Writing(answer) = &mut self.state else { return Status::Open };
        while left > 0 {
            let at = answer.sent.saturating_sub(answer.head.len());
            let part = if answer.sent < answer.head.len() {
                &answer.head[answer.sent..]
            } else {
                &answer.body[at..]
            };
            if part.is_empty() {
                break;
            }
            match self.stream.write(&part[..part.len().min(left)]) {
                Ok(0) => return Status::Closed,
                Ok(count) => {
                    answer.sent += count;
                    answer.moved = now;
                    left -= count;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Status::Open,
                Err(_) => return Status::Closed,
            }
        }
        if answer.sent < answer.head.len() + answer.body.len() {
            return Status::Open;
        }
        if answer.keep_alive {
            self.enter(State::Reading, now);
        } else {
            if self.stream.shutdown(Shutdown::Write).is_err() {
                return Status::Closed;
            }
            self.enter(State::Lingering, now);
        }
        Status::Open
    }

    fn enter(&mut self, state: State, now: Instant) {
        self.state = state;
        self.since = now;
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// The status and the text of the answer to an invalid head.
fn explain(fault: Fault) -> (u16, &'static str) {
    match fault {
        Fault::Malformed => (400, "not an HTTP request for one host\n"),
        Fault::TooLarge => (431, "request line and headers exceed 16 KiB or 64 headers\n"),
        Fault::Version => (505, "only HTTP/1.0 and HTTP/1.1\n"),
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}
