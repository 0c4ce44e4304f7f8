//! A request in flight: its requester and its remaining steps ([`Waiting`]).

use super::super::port::OnComplete;
use crate::nbd::request::Header;
use lowtide_core::{Op, Request};

/// Bytes of a step that writes allocated zeroes.
const PIECE: usize = 1 << 20;
static ZEROES: [u8; PIECE] = [0; PIECE];

pub(super) enum Requester {
    /// A client. Another client that reused the key has a different id; `piece` marks a piece of a long request.
    Client { key: usize, id: u64, header: Header, piece: bool },
    /// Another thread.
    Port(OnComplete),
}

/// The step that must follow before the answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum NextStep {
    None,
    /// Write zeroes from `at` to `end`.
    Zeroes {
        at: u64,
        end: u64,
        fua: bool,
    },
    /// Flush.
    Flush,
}

/// A request in flight.
pub(super) struct Waiting {
    pub(super) drive: usize,
    pub(super) requester: Requester,
    /// Offset and length of the data to return.
    pub(super) read: Option<(u64, u32)>,
    /// Bytes in flight, for the memory budget.
    pub(super) bytes: u64,
    pub(super) then: NextStep,
}

impl Waiting {
    /// The next step, with its data.
    pub(super) fn step(&mut self) -> Option<(Request, &'static [u8])> {
        match self.then {
            NextStep::None => None,
            NextStep::Flush => {
                self.then = NextStep::None;
                Some((Request::flush(), &[]))
            }
            NextStep::Zeroes { at, end, fua } => {
                let next = (at / PIECE as u64 * PIECE as u64 + PIECE as u64).min(end);
                let length = next - at;
                self.then = if next < end { NextStep::Zeroes { at: next, end, fua } } else { NextStep::None };
                let request = Request { op: Op::Write { fua }, offset: at, length };
                Some((request, &ZEROES[..length as usize]))
            }
        }
    }

    /// The first step of a request that consists of steps only.
    pub(super) fn first_step(&mut self) -> Option<(Request, &'static [u8])> {
        matches!(self.then, NextStep::Zeroes { .. }).then(|| self.step()).flatten()
    }

    /// Fails the request of a port. The clients of a drive without power are disconnected instead.
    pub(super) fn fail(self) {
        if let Requester::Port(done) = self.requester {
            done(Err(libc::EIO));
        }
    }
}
