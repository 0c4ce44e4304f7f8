//! A client of the server: its input, its requests in flight, and its pending replies ([`Client`]).
//!
//! The server stops reading from a client that does not take its replies or exceeds its memory ([`super::budget`]).
//! The server carries out the requests.

use super::budget::{self, Budget};
use super::buffer::{Input, Output};
use super::long::Long;
use super::status::MOST_EXTENTS;
use crate::nbd::request::{Command, Header};
use crate::nbd::wire::{MAX_PAYLOAD, REQUEST_BYTES, command};
use crate::nbd::{Agreed, Export, Transport};

/// The most requests of one client in flight.
const MOST_REQUESTS: u32 = 1024;

/// The longest reply without its data, in bytes: a chunk header and the fields before the data.
const REPLY: u64 = 64;

pub(super) enum Next {
    /// A valid request. Its header is consumed, and its payload is at the front of the input.
    Request(Header, Command),
    /// A read or write that exceeds the client's memory and is carried out in pieces. Its header is consumed.
    Long(Long),
    /// A request to answer with this NBD error.
    Refused(Header, u32),
    /// An incomplete request.
    Nothing,
    /// A request that must wait until the client has taken replies.
    Full,
    /// Not a request header. The input after it has no meaning.
    Broken,
}

pub(super) struct Client {
    /// The number of the client, which is never reused.
    pub(super) id: u64,
    pub(super) transport: Transport,
    pub(super) agreed: Agreed,
    pub(super) input: Input,
    pub(super) output: Output,
    pub(super) requests: u32,
    /// Bytes of the reads and writes in flight.
    pub(super) bytes: u64,
    /// Bytes reserved in flight for the write at the front of the input.
    admitted: Option<u64>,
    /// Bytes that the next request needs and the budget lacks. Until it has them, the server does not read from the
    /// client.
    needs: Option<u64>,
    /// The request that is carried out in pieces.
    pub(super) long: Option<Long>,
    /// Payload of a refused write that is still to come.
    pub(super) skip: u64,
    /// Whether the input may hold requests that were not taken yet.
    pub(super) held: bool,
    /// Whether the drive has the maximum number of bytes in flight.
    pub(super) blocked: bool,
    /// Whether the client has disconnected or sent its last byte. Its requests are answered, and no more input is
    /// read.
    pub(super) leaving: bool,
    /// Whether the connection is lost.
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

    /// Bytes of memory that the client holds.
    pub(super) fn holds(&self) -> u64 {
        let tls = if self.transport.is_tls() { budget::TLS } else { 0 };
        let requests = u64::from(self.requests) * budget::REQUEST;
        let buffers = self.input.capacity() + self.output.capacity();
        buffers + self.bytes + self.admitted.unwrap_or(0) + requests + tls
    }

    /// Returns whether the client must take replies before the server reads from it again.
    pub(super) fn is_waiting(&self) -> bool {
        self.needs.is_some() || self.long.as_ref().is_some_and(|long| long.waits_for_replies(self))
    }

    /// Rechecks whether there is room for the next request.
    pub(super) fn look_for_room(&mut self, budget: &Budget) {
        if let Some(needs) = self.needs
            && (self.is_idle() || budget.has_room(self.holds(), needs))
        {
            self.needs = None;
        }
    }

    /// Returns whether no request is in flight and all replies are taken.
    fn is_idle(&self) -> bool {
        self.requests == 0 && !self.output.is_waiting()
    }

    /// Returns whether the maximum number of requests is in flight.
    pub(super) fn is_full(&self) -> bool {
        self.requests >= MOST_REQUESTS
    }

    /// Returns whether more input may be taken.
    fn has_room(&self) -> bool {
        !self.gone && !self.blocked && self.needs.is_none() && !self.is_full()
    }

    pub(super) fn wants_input(&self) -> bool {
        let wanted = self.long.as_ref().is_none_or(|long| long.wants_input(self));
        wanted && !self.leaving && self.has_room()
    }

    /// Returns whether buffered input can be handled, which poll(2) does not show.
    pub(super) fn has_input(&self) -> bool {
        match &self.long {
            Some(long) => long.is_ready(self) || self.wants_input() && self.transport.has_buffered(),
            None => self.has_room() && (self.held || !self.leaving && self.transport.has_buffered()),
        }
    }

    pub(super) fn wants_output(&self) -> bool {
        !self.gone && (self.output.is_waiting() || self.transport.wants_write())
    }

    /// Returns whether the client is gone, or is leaving and has all its replies.
    pub(super) fn is_finished(&self) -> bool {
        // The missing input of a long write will never arrive.
        let unfinished = match &self.long {
            Some(long) => !long.wants_input(self),
            None => self.held,
        };
        self.gone || self.leaving && !unfinished && self.requests == 0 && !self.wants_output()
    }

    /// Reads once from the connection, and returns whether there may be more input.
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

    /// Consumes bytes of the input. The buffer is kept for the next request if the budget allows.
    pub(super) fn consume(&mut self, length: usize, budget: &Budget) {
        self.input.consume(length, budget.kept());
    }

    /// Takes the next request. After [`Next::Request`] the caller consumes the payload.
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

    /// Reserves the memory for a request.
    fn admit(&mut self, header: &Header, what: Result<Command, u32>, budget: &mut Budget) -> Admitted {
        let length = u64::from(header.length);
        let whole = REQUEST_BYTES + header.payload() as usize;
        let replies = |length: u64| self.output.growth((REPLY + length) as usize);
        let needs = match what {
            // The data moves from the drive to the reply.
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

    /// Returns whether an error reply to this command is a chunk.
    pub(super) fn chunked(&self, kind: u16) -> bool {
        kind == command::BLOCK_STATUS || self.agreed.structured && kind == command::READ
    }

    /// A buffer for a reply with `data` bytes of data.
    pub(super) fn reply(&mut self, data: usize) -> &mut Vec<u8> {
        self.output.room(REPLY as usize + data)
    }
}

/// The decision on a request.
enum Admitted {
    Yes,
    /// The client must take replies first.
    No,
    InPieces(Long),
}

impl Drop for Client {
    fn drop(&mut self) {
        self.transport.close();
    }
}
