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

    /// Gives room back to a client that always has answers waiting, once half of what is kept has been sent.
    fn forget_sent(&mut self) {
        if self.sent >= KEPT && self.sent >= self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Sends as much as the connection takes.
    pub(super) fn send(&mut self, transport: &mut Transport) -> io::Result<()> {
        while self.waiting() > 0 {
            match transport.write_vectored(&[IoSlice::new(&self.bytes[self.sent..])]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.forget_sent();
                    return Ok(());
                }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_client_that_always_has_answers_waiting_is_not_held_for_ever() {
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        let mut transport = Transport::socket(theirs.into(), "a client").expect("a socket");
        let (mut output, mut answer) = (Output::default(), vec![0; 1 << 20]);
        output.bytes.extend(std::iter::repeat_n(1, 3 << 20));
        for _ in 0..200 {
            output.bytes.extend_from_slice(&answer);
            let mut read = 0;
            while read < answer.len() {
                output.send(&mut transport).expect("it is there");
                read += ours.read(&mut answer[read..]).expect("bytes");
            }
            assert!(output.waiting() > 0, "there is always more");
            assert!(output.bytes.len() < 16 << 20, "{} bytes are kept", output.bytes.len());
        }
    }
}
