//! A client's stream of bytes ([`Transport`]): a socket or a pair of pipes, plain or in TLS.
//!
//! Nothing here ever blocks, and nothing is read ahead of what the caller takes except by TLS, so what a client sends
//! early is still there after the negotiation. Not here: waiting; `conversation` does it with a deadline, the loop of
//! the transmission with all clients at once.

use super::places::Place;
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Times one call reads from the network before it gives others their turn.
const MOST_TURNS: usize = 32;

/// A client's stream of bytes. Its descriptors do not block; the pipes' other users see that too.
#[derive(Debug)]
pub struct Transport {
    input: OwnedFd,
    /// Where it is not the input too.
    output: Option<OwnedFd>,
    tls: Option<Box<Secured>>,
    peer: String,
    /// Held as long as the client is here.
    _place: Option<Place>,
}

/// The state of TLS.
#[derive(Debug)]
struct Secured {
    connection: ServerConnection,
    /// Bytes that came through and wait to be read.
    readable: usize,
    /// Nothing more comes.
    ended: bool,
}

impl Transport {
    /// Over a connected socket. `peer` is how log lines call the client.
    ///
    /// # Errors
    ///
    /// What the kernel says of the descriptor.
    pub fn socket(socket: OwnedFd, peer: impl Into<String>) -> io::Result<Transport> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Transport { input: socket, output: None, tls: None, peer: peer.into(), _place: None })
    }

    /// Over two pipes, or whatever else can be read and written.
    ///
    /// # Errors
    ///
    /// What the kernel says of the descriptors.
    pub fn pipes(input: OwnedFd, output: OwnedFd, peer: impl Into<String>) -> io::Result<Transport> {
        rustix::io::ioctl_fionbio(&input, true)?;
        rustix::io::ioctl_fionbio(&output, true)?;
        Ok(Transport { input, output: Some(output), tls: None, peer: peer.into(), _place: None })
    }

    /// The same, holding one of the places for clients.
    pub(super) fn with_place(mut self, place: Option<Place>) -> Transport {
        self._place = place;
        self
    }

    /// How log lines call the client.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// Whether the bytes go through TLS.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Reads what is there, up to the length of `buffer`, which has at least one byte; 0 is the end. `WouldBlock` where
    /// nothing is there.
    ///
    /// Under TLS, bytes may wait here that [`read_fd`](Self::read_fd) does not show: read until `WouldBlock` before
    /// polling it, or ask [`has_buffered`](Self::has_buffered). Poll by level, not by edge.
    ///
    /// # Errors
    ///
    /// `WouldBlock`, what the kernel says, and `InvalidData` for what is no TLS.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return Raw(self.input.as_fd()).read(buffer) };
        let output = self.output.as_ref().unwrap_or(&self.input);
        for _ in 0..MOST_TURNS {
            if tls.readable > 0 || tls.ended {
                return tls.take(buffer);
            }
            tls.receive(self.input.as_fd(), output.as_fd())?;
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Whether [`read`](Self::read) would give bytes, or the end, although the descriptor shows none: TLS takes in whole
    /// records. So it may be right after the negotiation.
    pub fn has_buffered(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.readable > 0 || tls.ended)
    }

    /// Writes as much as fits now, of at most 1024 parts. What was taken may wait here, see
    /// [`wants_write`](Self::wants_write).
    ///
    /// # Errors
    ///
    /// `WouldBlock` where nothing fits, and what the kernel says.
    pub fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let output = self.output.as_ref().unwrap_or(&self.input).as_fd();
        let Some(tls) = &mut self.tls else { return Raw(output).write_vectored(parts) };
        if !tls.send(output)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = tls.connection.writer().write_vectored(parts)?;
        tls.send(output)?;
        Ok(taken)
    }

    /// Whether bytes that were taken still wait here: call [`flush_tls`](Self::flush_tls) when
    /// [`write_fd`](Self::write_fd) takes bytes again. Never true without TLS.
    pub fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.connection.wants_write())
    }

    /// Writes what waits here, as far as it fits now; whether all of it went.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn flush_tls(&mut self) -> io::Result<bool> {
        let output = self.output.as_ref().unwrap_or(&self.input);
        self.tls.as_mut().map_or(Ok(true), |tls| tls.send(output.as_fd()))
    }

    /// What to poll for bytes to read.
    pub fn read_fd(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    /// What to poll for room to write.
    pub fn write_fd(&self) -> BorrowedFd<'_> {
        self.output.as_ref().unwrap_or(&self.input).as_fd()
    }

    /// Says goodbye, as TLS wants it, as far as that fits now. The connection ends when this is dropped.
    pub fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.connection.send_close_notify();
            // The client may be gone already.
            let _ = self.flush_tls();
        }
    }

    /// From here on everything is in TLS. The handshake goes on with [`shake_hands`](Self::shake_hands).
    pub(super) fn start_tls(&mut self, config: Arc<ServerConfig>) -> Result<(), rustls::Error> {
        let connection = ServerConnection::new(config)?;
        self.tls = Some(Box::new(Secured { connection, readable: 0, ended: false }));
        Ok(())
    }

    /// Goes on with the handshake of TLS as far as it goes now; whether it is done.
    pub(super) fn shake_hands(&mut self) -> io::Result<bool> {
        let output = self.output.as_ref().unwrap_or(&self.input).as_fd();
        let Some(tls) = &mut self.tls else { return Ok(true) };
        loop {
            if !tls.send(output)? {
                return Ok(false);
            }
            if !tls.connection.is_handshaking() {
                return Ok(true);
            }
            match tls.receive(self.input.as_fd(), output) {
                Ok(()) if tls.ended => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Secured {
    /// Reads once from the network, and sends what TLS itself has to answer.
    fn receive(&mut self, input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<()> {
        // The end without the goodbye of TLS is an end all the same: no request is complete because of it.
        self.ended |= self.connection.read_tls(&mut Raw(input))? == 0;
        let state = self.connection.process_new_packets();
        // An alert that says what was wrong, or the answer to a change of keys.
        let sent = self.send(output);
        let state = state.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.readable = state.plaintext_bytes_to_read();
        self.ended |= state.peer_has_closed();
        sent.map(|_| ())
    }

    /// Takes what came through; 0 at the end.
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.readable == 0 {
            return Ok(0);
        }
        let length = self.connection.reader().read(buffer)?;
        self.readable -= length;
        Ok(length)
    }

    /// Writes what TLS has ready; whether all of it went.
    fn send(&mut self, output: BorrowedFd<'_>) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Raw(output)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// A descriptor, one system call for each call.
struct Raw<'a>(BorrowedFd<'a>);

impl Read for Raw<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::read(self.0, &mut *buffer))?)
    }
}

impl Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::writev(self.0, parts))?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
