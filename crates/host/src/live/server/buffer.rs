//! What has come from a client and is not parsed, and what it has not taken yet ([`Input`], [`Output`]).

use crate::nbd::Transport;
use std::io::{self, IoSlice};

/// Bytes asked for at once.
const READ: usize = 256 << 10;

/// A buffer that grew beyond this for one request gives the rest back when it is empty.
const KEPT: usize = 1 << 20;

/// Bytes that came.
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// What came and was not consumed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) fn consume(&mut self, length: usize) {
        self.start += length;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > KEPT {
                self.bytes = Vec::new();
            }
        }
    }

    /// Reads once; room for `wanted` bytes in a row is made first. 0 at the end.
    pub(super) fn read(&mut self, transport: &mut Transport, wanted: usize) -> io::Result<usize> {
        if self.bytes.len() - self.start < wanted.max(READ) {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.bytes.len() < wanted.max(READ) {
                self.bytes.resize(wanted.max(READ), 0);
            }
        }
        let length = transport.read(&mut self.bytes[self.end..])?;
        self.end += length;
        Ok(length)
    }
}

/// Bytes to send.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
    sent: usize,
}

impl Output {
    /// Bytes not sent.
    pub(super) fn waiting(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Sends as much as the connection takes.
    pub(super) fn send(&mut self, transport: &mut Transport) -> io::Result<()> {
        while self.waiting() > 0 {
            match transport.write_vectored(&[IoSlice::new(&self.bytes[self.sent..])]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.sent = 0;
        if self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
        } else {
            self.bytes.clear();
        }
        transport.flush_tls().map(drop)
    }
}
