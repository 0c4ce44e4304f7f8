//! A client of the loop: what it sent, what it waits for, what it has not taken ([`Client`]).
//!
//! A client that does not take its replies, or asks for very much at once, is not read from until it does: what it may
//! make the server hold, [`super::budget`] says. Not here: what requests do.

use super::budget::{self, Budget};
use super::buffer::{Input, Output};
use super::long::Long;
use super::status::MOST_EXTENTS;
use crate::nbd::request::{Command, Header};
use crate::nbd::wire::{MAX_PAYLOAD, REQUEST_BYTES, command};
use crate::nbd::{Agreed, Export, Transport};

/// Requests of one client in flight.
const MOST_REQUESTS: u32 = 1024;

/// The longest reply without its data: a chunk's header and what stands before the data.
const REPLY: u64 = 64;

/// What comes next from a client.
pub(super) enum Next {
    /// A sound request; the payload of a write lies at the front of the input.
    Request(Header, Command),
    /// A read or a write that the client has no room for as a whole: its header is consumed.
    Long(Long),
    /// A request that is answered with an error at once.
    Refused(Header, u32),
    /// Nothing, until more comes.
    Nothing,
    /// Nothing, until the client has taken replies.
    Full,
    /// What came is no request: nothing after it means anything.
    Broken,
}

/// A client.
pub(super) struct Client {
    /// No other client has or had it.
    pub(super) id: u64,
    pub(super) transport: Transport,
    pub(super) agreed: Agreed,
    pub(super) input: Input,
    pub(super) output: Output,
    pub(super) requests: u32,
    /// Bytes of the reads and writes among them.
    pub(super) bytes: u64,
    /// Bytes of the write at the front of the input, for which there is room in flight.
    admitted: Option<u64>,
    /// Bytes that its next request needs and that it may not have now: it is not read from.
    needs: Option<u64>,
    /// The request that is carried out in pieces.
    pub(super) long: Option<Long>,
    /// Payload of a refused write that is still to come.
    pub(super) skip: u64,
    /// It was full before all that it has sent was taken.
    pub(super) held: bool,
    /// Its drive has so much in flight that nobody may ask more of it.
    pub(super) blocked: bool,
    /// It has said good-bye, or sent its last byte: it is answered what it asked for, and no more is read.
    pub(super) leaving: bool,
    /// The connection is gone.
    pub(super) gone: bool,
}

impl Client {
    pub(super) fn new(id: u64, transport: Transport, agreed: Agreed) -> Client {
        Client {
            id,
            transport,
            agreed,
            input: Input::default(),
            output: Output::default(),
            requests: 0,
            bytes: 0,
            admitted: None,
            needs: None,
            long: None,
            skip: 0,
            held: false,
            blocked: false,
            leaving: false,
            gone: false,
        }
    }

    /// Bytes of memory that it holds.
    pub(super) fn holds(&self) -> u64 {
        let tls = if self.transport.is_tls() { budget::TLS } else { 0 };
        let requests = u64::from(self.requests) * budget::REQUEST;
        let buffers = self.input.capacity() + self.output.capacity();
        buffers + self.bytes + self.admitted.unwrap_or(0) + requests + tls
    }

    /// Whether it is read from again only when it has taken replies.
    pub(super) fn is_waiting(&self) -> bool {
        self.needs.is_some() || self.long.as_ref().is_some_and(|long| long.waits_for_replies(self))
    }

    /// Looks again whether there is room for its next request.
    pub(super) fn look_for_room(&mut self, budget: &Budget) {
        if let Some(needs) = self.needs
            && (self.is_idle() || budget.has_room(self.holds(), needs))
        {
            self.needs = None;
        }
    }

    /// Whether nothing of it is in flight, and it has taken all replies.
    fn is_idle(&self) -> bool {
        self.requests == 0 && !self.output.is_waiting()
    }

    /// Whether it has so many requests in flight that no more are taken.
    pub(super) fn is_full(&self) -> bool {
        self.requests >= MOST_REQUESTS
    }

    /// Whether more of what it sends may be taken.
    fn has_room(&self) -> bool {
        !self.gone && !self.blocked && self.needs.is_none() && !self.is_full()
    }

    pub(super) fn wants_input(&self) -> bool {
        let wanted = self.long.as_ref().is_none_or(|long| long.wants_input(self));
        wanted && !self.leaving && self.has_room()
    }

    /// Whether there is something of it to do that no descriptor shows.
    pub(super) fn has_input(&self) -> bool {
        match &self.long {
            Some(long) => long.is_ready(self) || self.wants_input() && self.transport.has_buffered(),
            None => self.has_room() && (self.held || !self.leaving && self.transport.has_buffered()),
        }
    }

    pub(super) fn wants_output(&self) -> bool {
        !self.gone && (self.output.is_waiting() || self.transport.wants_write())
    }

    /// Whether nothing is owed to it any more.
    pub(super) fn is_finished(&self) -> bool {
        // Of a long write that is not here in full nothing more comes.
        let unfinished = match &self.long {
            Some(long) => !long.wants_input(self),
            None => self.held,
        };
        self.gone || self.leaving && !unfinished && self.requests == 0 && !self.wants_output()
    }

    /// Reads once from the connection; whether there may be more.
    pub(super) fn receive(&mut self) -> bool {
        match self.input.read(&mut self.transport) {
            Ok(0) => self.leaving = true,
            Ok(_) => return self.transport.has_buffered(),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return true,
            Err(_) => self.gone = true,
        }
        false
    }

    /// Consumes bytes of the input. Buffers are kept from one request to the next where there is room for that.
    pub(super) fn consume(&mut self, length: usize, budget: &Budget) {
        self.input.consume(length, budget.kept());
    }

    /// The next request. After [`Next::Request`] the header is consumed, and the payload is the caller's to consume.
    pub(super) fn next(&mut self, export: &Export, budget: &mut Budget) -> Next {
        if self.skip > 0 {
            let length = self.skip.min(self.input.bytes().len() as u64);
            self.consume(length as usize, budget);
            self.skip -= length;
        }
        let Some(first) = self.input.bytes().first_chunk::<REQUEST_BYTES>().filter(|_| self.skip == 0) else {
            return Next::Nothing;
        };
        let Some(header) = Header::parse(first) else { return Next::Broken };
        let what = header.command(export, &self.agreed);
        if self.admitted.is_none() {
            match self.admit(&header, what, budget) {
                Admitted::Yes => {}
                Admitted::No => return Next::Full,
                Admitted::InPieces(long) => {
                    self.consume(REQUEST_BYTES, budget);
                    return Next::Long(long);
                }
            }
        }
        match what {
            Ok(what) => {
                if self.input.bytes().len() < REQUEST_BYTES + header.payload() as usize {
                    return Next::Nothing;
                }
                self.admitted = None;
                self.consume(REQUEST_BYTES, budget);
                Next::Request(header, what)
            }
            Err(error) => {
                self.consume(REQUEST_BYTES, budget);
                self.skip = u64::from(header.payload());
                Next::Refused(header, error)
            }
        }
    }

    /// Takes the memory that a request needs.
    fn admit(&mut self, header: &Header, what: Result<Command, u32>, budget: &mut Budget) -> Admitted {
        let length = u64::from(header.length);
        let whole = REQUEST_BYTES + header.payload() as usize;
        let replies = |length: u64| self.output.growth((REPLY + length) as usize);
        let needs = match what {
            // Its bytes are the drive's at first, and then the reply's.
            Ok(Command::Read) => length + REPLY + budget::REQUEST,
            Ok(Command::Cache) if length <= u64::from(MAX_PAYLOAD) => length + budget::REQUEST,
            Ok(Command::Write { .. }) => self.input.growth(whole) + length + budget::REQUEST,
            Ok(Command::BlockStatus { .. }) => replies(8 * MOST_EXTENTS as u64),
            Ok(_) => budget::REQUEST,
            Err(_) => replies(0),
        };
        let holds = self.holds();
        if !budget.take(holds, needs) {
            if !self.is_idle() {
                self.needs = Some(needs);
                return Admitted::No;
            }
            self.output.give_back();
            if let Some(long) = what.ok().and_then(|what| Long::of(header, what)) {
                return Admitted::InPieces(long);
            }
        }
        if matches!(what, Ok(Command::Write { .. })) {
            self.input.make_room(whole);
            self.admitted = Some(length);
        }
        Admitted::Yes
    }

    /// Whether an error of this command comes in a chunk.
    pub(super) fn chunked(&self, kind: u16) -> bool {
        kind == command::BLOCK_STATUS || self.agreed.structured && kind == command::READ
    }

    /// A buffer for a reply with so much data.
    pub(super) fn reply(&mut self, data: usize) -> &mut Vec<u8> {
        self.output.room(REPLY as usize + data)
    }
}

/// Whether a request may be taken.
enum Admitted {
    Yes,
    /// Not before replies were taken.
    No,
    InPieces(Long),
}

impl Drop for Client {
    fn drop(&mut self) {
        self.transport.close();
    }
}
