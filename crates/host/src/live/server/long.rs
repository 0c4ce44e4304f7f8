//! Requests that exceed the memory of their client and are carried out in pieces ([`Long`]).
//!
//! A client has at most one such request, and no other request at the same time. Every client can therefore make the
//! largest request, however little memory is free. Each piece is one request to the drive. If a piece of a read fails
//! after the first one was sent, a simple reply or a reply of one chunk can no longer report the error; the server
//! then closes the connection, as the protocol demands. [`super::budget`] decides which requests are split.

use super::client::Client;
use crate::nbd::answer;
use crate::nbd::request::{Command, Header};
use crate::nbd::wire::{command, flag};
use lowtide_core::{Op, Request};

/// Size of a piece, in bytes.
const PIECE: u64 = 64 << 10;

/// A request in pieces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Long {
    pub(super) header: Header,
    op: Op,
    /// Start of the next piece.
    at: u64,
    /// End of the last piece.
    end: u64,
    under_way: bool,
}

impl Long {
    /// Splits a request. Returns `None` for a command without data.
    pub(super) fn of(header: &Header, what: Command) -> Option<Long> {
        let op = match what {
            Command::Read | Command::Cache => Op::Read,
            Command::Write { fua } => Op::Write { fua },
            _ => return None,
        };
        let (at, end) = (header.offset, header.offset + u64::from(header.length));
        Some(Long { header: *header, op, at, end, under_way: false })
    }

    /// Length of the next piece, which ends at a multiple of [`PIECE`].
    fn piece(&self) -> u64 {
        (self.at / PIECE * PIECE + PIECE).min(self.end) - self.at
    }

    fn is_write(&self) -> bool {
        matches!(self.op, Op::Write { .. })
    }

    /// Returns whether the next piece waits for input.
    pub(super) fn wants_input(&self, client: &Client) -> bool {
        self.is_write() && !self.under_way && (client.input.bytes().len() as u64) < self.piece()
    }

    /// Returns whether the next piece waits until the client has taken replies.
    pub(super) fn waits_for_replies(&self, client: &Client) -> bool {
        !self.is_write() && !self.under_way && client.output.is_waiting()
    }

    /// Returns whether the next piece can begin.
    pub(super) fn is_ready(&self, client: &Client) -> bool {
        !(self.under_way || client.gone || self.wants_input(client) || self.waits_for_replies(client))
    }

    /// Begins the next piece. Returns it as a request to the drive and as a request header.
    pub(super) fn begin(&mut self) -> (Request, Header) {
        let length = self.piece();
        self.under_way = true;
        let header = Header { offset: self.at, length: length as u32, ..self.header };
        (Request { op: self.op, offset: self.at, length }, header)
    }

    /// Returns whether the reply is simple or must be one chunk.
    fn is_one(&self, structured: bool) -> bool {
        !structured || self.header.flags & flag::DF != 0
    }

    /// Returns whether a part of the reply was sent.
    fn has_begun(&self) -> bool {
        self.at > self.header.offset
    }
}

/// Completes a piece. `fill` reads its bytes; `hole` marks an unallocated piece, sent without bytes.
pub(super) fn complete(
    client: &mut Client,
    piece: &Header,
    result: Result<(), i32>,
    hole: bool,
    fill: impl FnOnce(&mut [u8]) -> Result<(), i32>,
) {
    let Some(mut long) = client.long.take() else { return };
    let (structured, cookie) = (client.agreed.structured, long.header.cookie);
    long.under_way = false;
    let length = piece.length as usize;
    let last = piece.offset + u64::from(piece.length) == long.end;
    let sends = long.header.kind == command::READ;
    let result = result.and_then(|()| {
        if !sends {
            return Ok(());
        }
        let one = long.is_one(structured);
        let begins = !long.has_begun();
        let out = client.reply(length);
        if one {
            let whole = (long.header.offset, long.header.length);
            answer::part(out, begins.then_some((structured, cookie, whole)), length, fill)
        } else if hole {
            answer::hole(out, last, cookie, (piece.offset, piece.length));
            Ok(())
        } else {
            answer::chunk(out, last, cookie, (piece.offset, piece.length), fill)
        }
    });
    match result {
        Ok(()) if last => {
            if !sends {
                answer::done(client.reply(0), cookie);
            }
        }
        Ok(()) => {
            long.at += u64::from(piece.length);
            client.long = Some(long);
        }
        // The reply has already announced success.
        Err(_) if sends && long.has_begun() && long.is_one(structured) => client.gone = true,
        Err(errno) => {
            let chunked = client.chunked(long.header.kind);
            answer::failed(client.reply(0), chunked, cookie, answer::error_number(errno));
            if long.is_write() {
                client.skip = long.end - piece.offset - u64::from(piece.length);
            }
        }
    }
    // Input may have arrived meanwhile.
    client.held = true;
}
