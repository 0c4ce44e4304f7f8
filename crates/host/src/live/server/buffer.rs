//! What has come from a client and is not parsed, and what it has not taken yet ([`Input`], [`Output`]).
//!
//! Both know how much memory they have: no buffer grows by doubling.

use crate::nbd::Transport;
use std::collections::VecDeque;
use std::io::{self, IoSlice};

/// Bytes asked for at once, and memory for short replies.
pub(super) const CHUNK: usize = 128 << 10;

/// Longer replies have a chunk of their own, so that little of the memory stays unused.
const SHORT: usize = CHUNK / 8;

/// Chunks that are sent at once.
const CHUNKS_AT_ONCE: usize = 16;

/// Bytes that came.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// As long as the memory there is.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// What came and was not consumed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Bytes of memory.
    pub(super) fn capacity(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// How many bytes of memory more it has once `wanted` bytes in a row fit.
    pub(super) fn growth(&self, wanted: usize) -> u64 {
        wanted.max(CHUNK).saturating_sub(self.bytes.len()) as u64
    }

    /// So many bytes were used. A buffer that is longer than `kept` is given back when nothing is left in it.
    pub(super) fn consume(&mut self, length: usize, kept: usize) {
        self.start += length;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > kept {
                self.bytes = Vec::new();
            }
        }
    }

    /// Makes room for `wanted` bytes in a row, those that are here among them.
    pub(super) fn make_room(&mut self, wanted: usize) {
        if self.bytes.len() < wanted.max(CHUNK) {
            // The system gives zeroes without touching memory.
            let mut larger = vec![0; wanted.max(CHUNK)];
            larger[..self.end - self.start].copy_from_slice(self.bytes());
            (self.start, self.end, self.bytes) = (0, self.end - self.start, larger);
        } else if self.bytes.len() - self.start < wanted {
            self.move_to_front();
        }
    }

    fn move_to_front(&mut self) {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
    }

    /// Reads once, into the room there is; 0 at the end, and `WouldBlock` where there is no room.
    pub(super) fn read(&mut self, transport: &mut Transport) -> io::Result<usize> {
        self.make_room(1);
        if self.start > 0 && self.bytes.len() - self.end < CHUNK / 2 {
            self.move_to_front();
        }
        if self.end == self.bytes.len() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let length = transport.read(&mut self.bytes[self.end..])?;
        self.end += length;
        Ok(length)
    }
}

/// Bytes to send.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// Oldest first; none of them grows.
    chunks: VecDeque<Vec<u8>>,
    /// Bytes of the first that were sent.
    sent: usize,
    capacity: usize,
    /// The connection takes nothing more for now.
    stuck: bool,
}

impl Output {
    /// Whether anything was not sent.
    pub(super) fn is_waiting(&self) -> bool {
        self.chunks.front().is_some_and(|chunk| chunk.len() > self.sent)
    }

    /// Bytes of memory.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity as u64
    }

    /// How many bytes of memory more it has once `length` more bytes wait.
    pub(super) fn growth(&self, length: usize) -> u64 {
        let fits = self.chunks.back().is_some_and(|chunk| chunk.capacity() - chunk.len() >= length);
        if fits { 0 } else { chunk_for(length) as u64 }
    }

    /// A buffer to which at most `length` bytes are appended.
    pub(super) fn room(&mut self, length: usize) -> &mut Vec<u8> {
        if self.growth(length) > 0 {
            let chunk = Vec::with_capacity(chunk_for(length));
            self.capacity += chunk.capacity();
            // An empty one that is too small would stand before what is to be sent.
            if self.chunks.back().is_some_and(Vec::is_empty) {
                self.capacity -= self.chunks.pop_back().map_or(0, |chunk| chunk.capacity());
            }
            self.chunks.push_back(chunk);
        }
        self.chunks.back_mut().expect("there is one")
    }

    /// Gives an unused buffer back.
    pub(super) fn give_back(&mut self) {
        if !self.is_waiting() {
            (self.chunks, self.sent, self.capacity) = (VecDeque::new(), 0, 0);
        }
    }

    /// Whether sending may go further than the last time.
    pub(super) fn may_send(&self) -> bool {
        !self.stuck
    }

    /// The connection takes bytes again.
    pub(super) fn unstick(&mut self) {
        self.stuck = false;
    }

    /// Sends as much as the connection takes. A buffer that is longer than `kept` is given back when all is sent.
    pub(super) fn send(&mut self, transport: &mut Transport, kept: usize) -> io::Result<()> {
        while self.is_waiting() {
            let mut parts = [IoSlice::new(&[]); CHUNKS_AT_ONCE];
            let count = self.chunks.len().min(CHUNKS_AT_ONCE);
            for (number, (part, chunk)) in parts.iter_mut().zip(&self.chunks).enumerate() {
                *part = IoSlice::new(&chunk[if number == 0 { self.sent } else { 0 }..]);
            }
            match transport.write_vectored(&parts[..count]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => self.forget(length, kept),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stuck = true;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        self.stuck = !transport.flush_tls()?;
        Ok(())
    }

    /// So many bytes were sent.
    fn forget(&mut self, length: usize, kept: usize) {
        self.sent += length;
        loop {
            let last = self.chunks.len() == 1;
            let Some(first) = self.chunks.front_mut().filter(|first| first.len() <= self.sent) else {
                return;
            };
            self.sent -= first.len();
            if last && first.capacity() <= kept {
                first.clear();
                return;
            }
            self.capacity -= first.capacity();
            self.chunks.pop_front();
        }
    }
}

/// Bytes of a new chunk for a reply.
fn chunk_for(length: usize) -> usize {
    if length > SHORT { length } else { CHUNK }
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
        output.room(3 << 20).extend(std::iter::repeat_n(1, 3 << 20));
        for _ in 0..200 {
            output.room(answer.len()).extend_from_slice(&answer);
            let mut read = 0;
            while read < answer.len() {
                output.send(&mut transport, CHUNK).expect("it is there");
                read += ours.read(&mut answer[read..]).expect("bytes");
            }
            assert!(output.is_waiting(), "there is always more");
            assert!(output.capacity() < 16 << 20, "{} bytes are kept", output.capacity());
        }
    }

    #[test]
    fn replies_of_every_length_come_in_their_order_and_the_memory_is_what_was_announced() {
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        let mut transport = Transport::socket(theirs.into(), "a client").expect("a socket");
        let mut output = Output::default();
        let (mut wanted, mut found, mut part) = (Vec::new(), Vec::new(), vec![0; 100_000]);
        for n in 0..3000_usize {
            let length = if n % 100 == 7 { 300_000 } else { n % 5000 };
            let before = output.capacity() + output.growth(length);
            let reply = vec![n as u8; length];
            output.room(length).extend_from_slice(&reply);
            assert!(output.capacity() <= before, "reply {n}");
            wanted.extend_from_slice(&reply);
            if n % 50 == 0 {
                output.send(&mut transport, CHUNK).expect("it is there");
                while output.is_waiting() {
                    let length = ours.read(&mut part).expect("bytes");
                    found.extend_from_slice(&part[..length]);
                    output.send(&mut transport, CHUNK).expect("it is there");
                }
                assert!(output.capacity() <= CHUNK as u64, "what was needed for a while is given back");
            }
        }
        assert!(wanted.starts_with(&found) && found.len() > wanted.len() * 9 / 10);
    }
}
