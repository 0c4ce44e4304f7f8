//! A request in flight: who waits for it, and what is still to be done for it ([`Waiting`]).

use super::super::port::Done;
use crate::nbd::request::Header;
use lowtide_core::{Op, Request};

/// Zeroes that must take room are written in pieces of this many bytes.
const PIECE: usize = 1 << 20;
static ZEROES: [u8; PIECE] = [0; PIECE];

/// Who waits.
pub(super) enum For {
    /// A client, unless it has gone: what has its place then has another id. It may be a piece of a long request.
    Client { key: usize, id: u64, header: Header, piece: bool },
    /// Another thread.
    Port(Done),
}

/// What is still to be done before the answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Then {
    Nothing,
    /// Zeroes are written up to here, durably or not.
    Zeroes {
        at: u64,
        end: u64,
        fua: bool,
    },
    /// What was done is made durable.
    Flush,
}

/// A request in flight.
pub(super) struct Waiting {
    pub(super) drive: usize,
    pub(super) asked: For,
    /// The range whose bytes are the answer.
    pub(super) read: Option<(u64, u32)>,
    /// Bytes that are read or written.
    pub(super) bytes: u64,
    pub(super) then: Then,
}

impl Waiting {
    /// The next step, with its data; `None` where all is done.
    pub(super) fn step(&mut self) -> Option<(Request, &'static [u8])> {
        match self.then {
            Then::Nothing => None,
            Then::Flush => {
                self.then = Then::Nothing;
                Some((Request::flush(), &[]))
            }
            Then::Zeroes { at, end, fua } => {
                let next = (at / PIECE as u64 * PIECE as u64 + PIECE as u64).min(end);
                let length = next - at;
                self.then = if next < end { Then::Zeroes { at: next, end, fua } } else { Then::Nothing };
                let request = Request { op: Op::Write { fua }, offset: at, length };
                Some((request, &ZEROES[..length as usize]))
            }
        }
    }

    /// The first step, where all of it is steps.
    pub(super) fn first_step(&mut self) -> Option<(Request, &'static [u8])> {
        matches!(self.then, Then::Zeroes { .. }).then(|| self.step()).flatten()
    }

    /// Nobody will answer it: the drive has forgotten it.
    pub(super) fn give_up(self) {
        if let For::Port(done) = self.asked {
            done(Err(libc::EIO));
        }
    }
}
