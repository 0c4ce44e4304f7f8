//! A client of the loop: what it sent, what it waits for, what it has not taken ([`Client`]).
//!
//! A client that does not take its answers, or asks for very much at once, is not read from until it does: what one
//! client makes the server hold is bounded. Leaves out what requests do.

use super::buffer::{Input, Output};
use crate::nbd::request::{Command, Header};
use crate::nbd::wire::{REQUEST_BYTES, command};
use crate::nbd::{Agreed, Export, Transport};

/// Requests of one client in flight.
const MOST_REQUESTS: u32 = 1024;

/// Bytes of reads and writes in flight and of answers not taken, for one client; one request more may begin below it.
const MOST_BYTES: u64 = 64 << 20;

/// What comes next from a client.
pub(super) enum Next {
    /// A sound request; the payload of a write lies at the front of the input.
    Request(Header, Command),
    /// A request that is answered with an error at once.
    Refused(Header, u32),
    /// Nothing, until more comes.
    Nothing,
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
    /// Payload of a refused write that is still to come.
    skip: u64,
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
            skip: 0,
            held: false,
            blocked: false,
            leaving: false,
            gone: false,
        }
    }

    /// Whether it holds so much that nothing more is taken from it.
    pub(super) fn is_full(&self) -> bool {
        self.requests >= MOST_REQUESTS || self.bytes + self.output.waiting() as u64 >= MOST_BYTES
    }

    pub(super) fn wants_input(&self) -> bool {
        !self.leaving && !self.gone && !self.blocked && !self.is_full()
    }

    /// Whether there is something of it to take that no descriptor shows.
    pub(super) fn has_input(&self) -> bool {
        self.wants_input() && (self.held || self.transport.has_buffered())
    }

    pub(super) fn wants_output(&self) -> bool {
        !self.gone && (self.output.waiting() > 0 || self.transport.wants_write())
    }

    /// Whether nothing is owed to it any more.
    pub(super) fn is_finished(&self) -> bool {
        self.gone || self.leaving && self.requests == 0 && !self.wants_output()
    }

    /// Reads once from the connection; whether there may be more.
    pub(super) fn receive(&mut self) -> bool {
        let wanted = self.wanted();
        match self.input.read(&mut self.transport, wanted) {
            Ok(0) => self.leaving = true,
            Ok(_) => return self.transport.has_buffered(),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return true,
            Err(_) => self.gone = true,
        }
        false
    }

    /// Bytes that the request at the front of the input has in all.
    fn wanted(&self) -> usize {
        match self.header() {
            Some(header) if self.skip == 0 => {
                REQUEST_BYTES + header.payload().min(crate::nbd::wire::MAX_PAYLOAD) as usize
            }
            _ => REQUEST_BYTES,
        }
    }

    fn header(&self) -> Option<Header> {
        self.input.bytes().first_chunk().and_then(Header::parse)
    }

    /// The next request. After [`Next::Request`] the header is consumed, and the payload is the caller's to consume.
    pub(super) fn next(&mut self, export: &Export) -> Next {
        if self.skip > 0 {
            let length = self.skip.min(self.input.bytes().len() as u64);
            self.input.consume(length as usize);
            self.skip -= length;
        }
        let Some(first) = self.input.bytes().first_chunk::<REQUEST_BYTES>().filter(|_| self.skip == 0) else {
            return Next::Nothing;
        };
        let Some(header) = Header::parse(first) else { return Next::Broken };
        match header.command(export, self.agreed.structured, self.agreed.base_allocation) {
            Ok(what) => {
                if self.input.bytes().len() < REQUEST_BYTES + header.payload() as usize {
                    return Next::Nothing;
                }
                self.input.consume(REQUEST_BYTES);
                Next::Request(header, what)
            }
            Err(error) => {
                self.input.consume(REQUEST_BYTES);
                self.skip = u64::from(header.payload());
                Next::Refused(header, error)
            }
        }
    }

    /// Whether an error of this command comes in a chunk.
    pub(super) fn chunked(&self, kind: u16) -> bool {
        kind == command::BLOCK_STATUS || self.agreed.structured && kind == command::READ
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.transport.close();
    }
}
