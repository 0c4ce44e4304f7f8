//! Detection of sequential streams and their lengths.

use serde::{Deserialize, Serialize};

/// The most streams followed concurrently.
const STREAMS: usize = 32;

/// The most recent streams.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Streams {
    /// The expected next address of each stream, and its bytes so far.
    followed: Vec<(u64, u64)>,
    next: usize,
}

impl Streams {
    /// The length of the stream that ends with this request, in bytes.
    pub(super) fn length(&mut self, offset: u64, length: u64) -> u64 {
        if let Some(stream) = self.followed.iter_mut().find(|stream| stream.0 == offset) {
            *stream = (offset + length, stream.1 + length);
            return stream.1;
        }
        let new = (offset + length, length);
        if self.followed.len() < STREAMS {
            self.followed.push(new);
        } else {
            self.followed[self.next] = new;
            self.next = (self.next + 1) % STREAMS;
        }
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaved_streams_are_told_apart() {
        let mut streams = Streams::default();
        let lengths: Vec<u64> = [(0, 4), (100, 4), (4, 4), (104, 8), (50, 1)]
            .map(|(at, length)| streams.length(at, length))
            .into();
        assert_eq!(lengths, [4, 4, 8, 12, 1]);
    }
}
