//! Frames of a saved state: chunks of bytes, each with a CRC-32C of everything up to its end.
//!
//! A reader returns no byte of a frame before its checksum is verified. The contents are opaque here.

use lowtide_core::StateError;
use std::io::{self, Read, Write};

/// Maximum length of a frame in bytes.
const MOST: usize = 1 << 20;

/// Writes frames.
pub(super) struct FrameWriter<'a> {
    out: &'a mut dyn Write,
    frame: Vec<u8>,
    checksum: u32,
}

impl<'a> FrameWriter<'a> {
    /// Begins after a header with this checksum.
    pub(super) fn new(out: &'a mut dyn Write, checksum: u32) -> Self {
        FrameWriter { out, frame: Vec::with_capacity(MOST), checksum }
    }

    /// Writes the remaining bytes, and an empty frame to mark the end.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if !self.frame.is_empty() {
            self.write_frame()?;
        }
        self.write_frame()?;
        self.out.flush()
    }

    fn write_frame(&mut self) -> io::Result<()> {
        let length = (self.frame.len() as u32).to_le_bytes();
        self.checksum = crc32c::crc32c_append(self.checksum, &length);
        self.checksum = crc32c::crc32c_append(self.checksum, &self.frame);
        self.out.write_all(&length)?;
        self.out.write_all(&self.frame)?;
        self.out.write_all(&self.checksum.to_le_bytes())?;
        self.frame.clear();
        Ok(())
    }
}

impl Write for FrameWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(MOST - self.frame.len());
        self.frame.extend_from_slice(&bytes[..taken]);
        if self.frame.len() == MOST {
            self.write_frame()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads frames. Errors wrap a [`StateError`].
pub(super) struct FrameReader<'a> {
    from: &'a mut dyn Read,
    /// Number of bytes read, including the header.
    at: u64,
    frame: Vec<u8>,
    taken: usize,
    checksum: u32,
    ended: bool,
}

impl<'a> FrameReader<'a> {
    /// Begins after a header of `at` bytes with this checksum.
    pub(super) fn new(from: &'a mut dyn Read, at: u64, checksum: u32) -> Self {
        FrameReader { from, at, frame: Vec::new(), taken: 0, checksum, ended: false }
    }

    /// Reads the end marker. Fails if more data comes first.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if self.taken == self.frame.len() && !self.ended {
            self.read_frame()?;
        }
        if self.ended {
            return Ok(());
        }
        Err(io::Error::other(StateError::Nonsense { what: "it holds more than the device's state" }))
    }

    fn read_frame(&mut self) -> io::Result<()> {
        let mut length = [0; 4];
        self.read_all(&mut length)?;
        let bytes = u32::from_le_bytes(length) as usize;
        if bytes > MOST {
            return Err(io::Error::other(StateError::Damaged { at: self.at }));
        }
        let mut frame = std::mem::take(&mut self.frame);
        frame.resize(bytes, 0);
        self.read_all(&mut frame)?;
        let mut written = [0; 4];
        self.read_all(&mut written)?;
        self.checksum = crc32c::crc32c_append(crc32c::crc32c_append(self.checksum, &length), &frame);
        if self.checksum != u32::from_le_bytes(written) {
            return Err(io::Error::other(StateError::Damaged { at: self.at }));
        }
        (self.frame, self.taken, self.ended) = (frame, 0, bytes == 0);
        Ok(())
    }

    fn read_all(&mut self, into: &mut [u8]) -> io::Result<()> {
        self.from.read_exact(into).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::other(StateError::Short { at: self.at }),
            _ => error,
        })?;
        self.at += into.len() as u64;
        Ok(())
    }
}

impl Read for FrameReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.frame.len() && !self.ended {
            self.read_frame()?;
        }
        let count = into.len().min(self.frame.len() - self.taken);
        into[..count].copy_from_slice(&self.frame[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}
