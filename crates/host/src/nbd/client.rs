//! An NBD client for benchmarks and tests ([`NbdClient`]): one connection with several requests in flight.
//!
//! All functions block. TLS and structured replies are not supported.

use super::request::Header;
use super::wire::{
    MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC, REQUEST_BYTES, SIMPLE_REPLY_MAGIC, command, handshake, info,
    option, reply,
};
use std::io::{self, Read, Write};

/// A connection in its transmission phase.
#[derive(Debug)]
pub struct NbdClient<S> {
    stream: S,
    size: u64,
    input: Vec<u8>,
    start: usize,
    end: usize,
    cookie: u64,
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the server's answer is not NBD: {what}"))
}

impl<S: Read + Write> NbdClient<S> {
    /// Negotiates the use of an export.
    ///
    /// # Errors
    /// An error of the connection; [`io::ErrorKind::InvalidData`] if the server violates the protocol or refuses.
    pub fn connect(mut stream: S, export: &str) -> io::Result<NbdClient<S>> {
        let mut hello = [0; 18];
        stream.read_exact(&mut hello)?;
        if hello[..8] != MAGIC.to_be_bytes() || hello[8..16] != OPTION_MAGIC.to_be_bytes() {
            return Err(wrong("the greeting"));
        }
        let flags = u32::from(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
        let mut out = flags.to_be_bytes().to_vec();
        out.extend(OPTION_MAGIC.to_be_bytes());
        out.extend(option::GO.to_be_bytes());
        out.extend((export.len() as u32 + 6).to_be_bytes());
        out.extend((export.len() as u32).to_be_bytes());
        out.extend(export.as_bytes());
        out.extend(0u16.to_be_bytes());
        stream.write_all(&out)?;
        let mut size = 0;
        loop {
            let mut head = [0; 20];
            stream.read_exact(&mut head)?;
            if head[..8] != OPTION_REPLY_MAGIC.to_be_bytes() {
                return Err(wrong("a reply to an option"));
            }
            let number = |from: usize| u32::from_be_bytes([0, 1, 2, 3].map(|n| head[from + n]));
            let (kind, length) = (number(12), number(16));
            let mut data = vec![0; length.min(1 << 16) as usize];
            stream.read_exact(&mut data)?;
            match kind {
                reply::ACK => break,
                reply::INFO if data.len() == 12 && data[..2] == info::EXPORT.to_be_bytes() => {
                    size = data[2..10].iter().fold(0, |size, byte| size << 8 | u64::from(*byte));
                }
                reply::INFO => {}
                kind => {
                    let why = String::from_utf8_lossy(&data).into_owned();
                    return Err(wrong(&format!("the export `{export}` was refused ({kind:#x}) {why}")));
                }
            }
        }
        Ok(NbdClient::begun(stream, size))
    }

    /// A connection after its negotiation, to an export of `size` bytes.
    pub fn begun(stream: S, size: u64) -> NbdClient<S> {
        NbdClient { stream, size, input: vec![0; 256 << 10], start: 0, end: 0, cookie: 0 }
    }

    /// Size of the export in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The connection.
    pub fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Sends a request, and returns its cookie.
    ///
    /// # Errors
    /// An error of the connection.
    pub fn send(&mut self, kind: u16, flags: u16, offset: u64, length: u32, data: &[u8]) -> io::Result<u64> {
        self.cookie += 1;
        let header = Header { flags, kind, cookie: self.cookie, offset, length }.bytes();
        if data.is_empty() {
            self.stream.write_all(&header)?;
        } else {
            let mut all = Vec::with_capacity(header.len() + data.len());
            all.extend_from_slice(&header);
            all.extend_from_slice(data);
            self.stream.write_all(&all)?;
        }
        Ok(self.cookie)
    }

    /// Sends several reads of `length` bytes with one system call.
    ///
    /// # Errors
    /// An error of the connection.
    pub fn send_reads(&mut self, offsets: impl IntoIterator<Item = u64>, length: u32) -> io::Result<()> {
        let mut all = Vec::with_capacity(32 * REQUEST_BYTES);
        for offset in offsets {
            self.cookie += 1;
            let header = Header { flags: 0, kind: command::READ, cookie: self.cookie, offset, length };
            all.extend_from_slice(&header.bytes());
        }
        self.stream.write_all(&all)
    }

    /// Receives the next reply: cookie and error number, 0 for success. The data of a successful read goes to `data`.
    ///
    /// # Errors
    /// An error of the connection; [`io::ErrorKind::InvalidData`] for an invalid reply.
    pub fn receive(&mut self, data: &mut [u8]) -> io::Result<(u64, u32)> {
        let head: [u8; 16] = self.take(16)?.try_into().expect("16 bytes");
        if head[..4] != SIMPLE_REPLY_MAGIC.to_be_bytes() {
            return Err(wrong("a reply"));
        }
        let number =
            |from: usize, to: usize| head[from..to].iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
        let (error, cookie) = (number(4, 8) as u32, number(8, 16));
        if error == 0 && !data.is_empty() {
            let taken = self.take(data.len())?;
            data.copy_from_slice(taken);
        }
        Ok((cookie, error))
    }

    /// Returns whether received bytes are buffered.
    pub fn has_more(&self) -> bool {
        self.start < self.end
    }

    /// Sends a request and waits for its reply. Returns the error number, 0 for success.
    ///
    /// # Errors
    /// See [`NbdClient::send`], [`NbdClient::receive`].
    pub fn ask(
        &mut self,
        kind: u16,
        flags: u16,
        offset: u64,
        length: u32,
        data: &mut [u8],
    ) -> io::Result<u32> {
        let payload: &[u8] = if kind == command::WRITE { data } else { &[] };
        let cookie = self.send(kind, flags, offset, length, payload)?;
        let found = self.receive(if kind == command::READ { data } else { &mut [] })?;
        if found.0 == cookie { Ok(found.1) } else { Err(wrong("the cookie of another request")) }
    }

    fn take(&mut self, length: usize) -> io::Result<&[u8]> {
        if self.input.len() - self.start < length {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.input.len() < length {
                self.input.resize(length, 0);
            }
        }
        while self.end - self.start < length {
            match self.stream.read(&mut self.input[self.end..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.start += length;
        let taken = self.start - length..self.start;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        Ok(&self.input[taken])
    }
}
