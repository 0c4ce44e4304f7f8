//! The input and output buffers of a client ([`Input`], [`Output`]).
//!
//! Both report memory before allocating it: no buffer grows by doubling.

use crate::nbd::Transport;
use std::collections::VecDeque;
use std::io::{self, IoSlice};

/// Size of a read, and of a chunk for short replies.
pub(super) const CHUNK: usize = 128 << 10;

/// Longer replies get their own chunk, so that little memory is unused.
const SHORT: usize = CHUNK / 8;

/// The most chunks in one system call.
const CHUNKS_AT_ONCE: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Input {
    /// The allocated memory; `start..end` is the unread part.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// The bytes that are not consumed yet.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Allocated bytes.
    pub(super) fn capacity(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Bytes that [`Input::make_room`] would allocate.
    pub(super) fn growth(&self, wanted: usize) -> u64 {
        wanted.max(CHUNK).saturating_sub(self.bytes.len()) as u64
    }

    /// Consumes bytes. An empty buffer that is longer than `kept` is freed.
    pub(super) fn consume(&mut self, length: usize, kept: usize) {
        self.start += length;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > kept {
                self.bytes = Vec::new();
            }
        }
    }

    /// Makes room for `wanted` contiguous bytes, including the present ones.
    pub(super) fn make_room(&mut self, wanted: usize) {
        if self.bytes.len() < wanted.max(CHUNK) {
            // `vec!` takes untouched zero pages from the system.
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

    /// Reads once. Returns 0 at the end of the input, and `WouldBlock` if the buffer is full.
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

/// Pending replies.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// The chunks, oldest first. A chunk never reallocates.
    chunks: VecDeque<Vec<u8>>,
    /// Sent bytes of the first chunk.
    sent: usize,
    capacity: usize,
    /// Whether the connection takes no bytes until it is writable again.
    stuck: bool,
}

impl Output {
    /// Returns whether there are unsent bytes.
    pub(super) fn is_waiting(&self) -> bool {
        self.chunks.front().is_some_and(|chunk| chunk.len() > self.sent)
    }

    /// Allocated bytes.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity as u64
    }

    /// Bytes that [`Output::room`] would allocate.
    pub(super) fn growth(&self, length: usize) -> u64 {
        let fits = self.chunks.back().is_some_and(|chunk| chunk.capacity() - chunk.len() >= length);
        if fits { 0 } else { chunk_for(length) as u64 }
    }

    /// A buffer to which at most `length` bytes are appended.
    pub(super) fn room(&mut self, length: usize) -> &mut Vec<u8> {
        if self.growth(length) > 0 {
            let chunk = Vec::with_capacity(chunk_for(length));
            self.capacity += chunk.capacity();
            // An empty last chunk would end the sending early.
            if self.chunks.back().is_some_and(Vec::is_empty) {
                self.capacity -= self.chunks.pop_back().map_or(0, |chunk| chunk.capacity());
            }
            self.chunks.push_back(chunk);
        }
        self.chunks.back_mut().expect("there is one")
    }

    /// Frees the chunks if nothing is unsent.
    pub(super) fn give_back(&mut self) {
        if !self.is_waiting() {
            (self.chunks, self.sent, self.capacity) = (VecDeque::new(), 0, 0);
        }
    }

    /// Returns whether the connection may take bytes.
    pub(super) fn may_send(&self) -> bool {
        !self.stuck
    }

    /// Notes that the connection takes bytes again.
    pub(super) fn unstick(&mut self) {
        self.stuck = false;
    }

    /// Sends as much as the connection takes. A sent chunk that is longer than `kept` is freed.
    pub(super) fn send(&mut self, transport: &mut Transport, kept: usize) -> io::Result<()> {
        while self.is_waiting() {
            let mut parts = [IoSlice::new(&[]); CHUNKS_AT_ONCE];
            let count = self.chunks.len().min(CHUNKS_AT_ONCE);
            for (number, (part, chunk)) in parts.iter_mut().zip(&self.chunks).enumerate() {
                *part = IoSlice::new(&chunk[if number == 0 { self.sent } else { 0 }..]);
            }
            match transport.write_vectored(&parts[..count]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => self.remove_sent(length, kept),
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

    fn remove_sent(&mut self, length: usize, kept: usize) {
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

/// Size of a new chunk for a reply, in bytes.
fn chunk_for(length: usize) -> usize {
    if length > SHORT { length } else { CHUNK }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn memory_stays_bounded_while_replies_are_always_pending() {
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        let mut transport = Transport::socket(theirs.into(), "a client").expect("a socket");
        let (mut output, mut answer) = (Output::default(), vec![0; 1 << 20]);
        output.room(3 << 20).extend(std::iter::repeat_n(1, 3 << 20));
        for _ in 0..200 {
            output.room(answer.len()).extend_from_slice(&answer);
            let mut read = 0;
            while read < answer.len() {
                output.send(&mut transport, CHUNK).expect("connected");
                read += ours.read(&mut answer[read..]).expect("bytes");
            }
            assert!(output.is_waiting(), "replies are pending");
            assert!(output.capacity() < 16 << 20, "{} bytes are kept", output.capacity());
        }
    }

    #[test]
    fn replies_keep_their_order_and_memory_grows_as_announced() {
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
                output.send(&mut transport, CHUNK).expect("connected");
                while output.is_waiting() {
                    let length = ours.read(&mut part).expect("bytes");
                    found.extend_from_slice(&part[..length]);
                    output.send(&mut transport, CHUNK).expect("connected");
                }
                assert!(output.capacity() <= CHUNK as u64, "long chunks are freed");
            }
        }
        assert!(wanted.starts_with(&found) && found.len() > wanted.len() * 9 / 10);
    }
}
