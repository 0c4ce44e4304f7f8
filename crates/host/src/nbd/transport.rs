//! A client's stream of bytes ([`Transport`]): a socket or a pair of pipes, plain or in TLS.
//!
//! Nothing here ever blocks, and nothing is read ahead of what the caller takes except by TLS, so what a client sends
//! early is still there after the negotiation. Leaves out waiting: `conversation` does it with a deadline, the loop of
//! the transmission with all clients at once.

use super::places::Place;
use rustix::io::Errno;
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
    tls: Option<Box<ServerConnection>>,
    peer: String,
    /// Held as long as the client is here.
    _place: Option<Place>,
}

impl Transport {
    /// Over a connected socket. `peer` is how log lines call the client.
    pub fn socket(socket: OwnedFd, peer: impl Into<String>) -> io::Result<Transport> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Transport { input: socket, output: None, tls: None, peer: peer.into(), _place: None })
    }

    /// Over two pipes, or whatever else can be read and written.
    pub fn pipes(input: OwnedFd, output: OwnedFd, peer: impl Into<String>) -> io::Result<Transport> {
        rustix::io::ioctl_fionbio(&input, true)?;
        rustix::io::ioctl_fionbio(&output, true)?;
        Ok(Transport { input, output: Some(output), tls: None, peer: peer.into(), _place: None })
    }

    /// The same, holding one of the places for clients.
    pub(super) fn with_place(mut self, place: Place) -> Transport {
        self._place = Some(place);
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
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return Raw(self.input.as_fd()).read(buffer) };
        for _ in 0..MOST_TURNS {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The end of the connection without the end of TLS. No request is complete because of it, so it says
                // nothing that the client did not say.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                done => return done,
            }
            tls.read_tls(&mut Raw(self.input.as_fd()))?;
            let said = tls.process_new_packets();
            // An alert that says what was wrong, or the answer to a change of keys.
            let output = self.output.as_ref().unwrap_or(&self.input);
            let sent = send_pending(tls, output.as_fd());
            said.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            sent?;
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Whether [`read`](Self::read) would give bytes, or the end, although the descriptor shows none.
    pub fn has_buffered(&mut self) -> bool {
        let Some(tls) = &mut self.tls else { return false };
        // An error is there to be read too.
        tls.process_new_packets()
            .map_or(true, |state| state.plaintext_bytes_to_read() > 0 || state.peer_has_closed())
    }

    /// Writes as much as fits now; `WouldBlock` where nothing does. What was taken may wait here, see
    /// [`wants_write`](Self::wants_write).
    pub fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let output = self.output.as_ref().unwrap_or(&self.input);
        let Some(tls) = &mut self.tls else { return Raw(output.as_fd()).write_vectored(parts) };
        if !send_pending(tls, output.as_fd())? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = tls.writer().write_vectored(parts)?;
        send_pending(tls, output.as_fd())?;
        Ok(taken)
    }

    /// Whether bytes that were taken still wait here: call [`flush_tls`](Self::flush_tls) when
    /// [`write_fd`](Self::write_fd) takes bytes again. Never true without TLS.
    pub fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Writes what waits here, as far as it fits now; whether all of it went.
    pub fn flush_tls(&mut self) -> io::Result<bool> {
        let output = self.output.as_ref().unwrap_or(&self.input);
        self.tls.as_mut().map_or(Ok(true), |tls| send_pending(tls, output.as_fd()))
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
            tls.send_close_notify();
            // The client may be gone already.
            let _ = self.flush_tls();
        }
    }

    /// From here on everything is in TLS. The handshake goes on with [`shake_hands`](Self::shake_hands).
    pub(super) fn start_tls(&mut self, config: Arc<ServerConfig>) -> Result<(), rustls::Error> {
        self.tls = Some(Box::new(ServerConnection::new(config)?));
        Ok(())
    }

    /// Goes on with the handshake of TLS as far as it goes now; whether it is done.
    pub(super) fn shake_hands(&mut self) -> io::Result<bool> {
        let output = self.output.as_ref().unwrap_or(&self.input);
        let Some(tls) = &mut self.tls else { return Ok(true) };
        loop {
            if !send_pending(tls, output.as_fd())? {
                return Ok(false);
            }
            if !tls.is_handshaking() {
                return Ok(true);
            }
            match tls.read_tls(&mut Raw(self.input.as_fd())) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
            if let Err(error) = tls.process_new_packets() {
                // The alert that says what was wrong; the client may be gone already.
                let _ = send_pending(tls, output.as_fd());
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        }
    }
}

/// Writes what TLS has ready; whether all of it went.
fn send_pending(tls: &mut ServerConnection, output: BorrowedFd<'_>) -> io::Result<bool> {
    while tls.wants_write() {
        match tls.write_tls(&mut Raw(output)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
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
        match rustix::io::retry_on_intr(|| rustix::io::writev(self.0, parts)) {
            Ok(written) => Ok(written),
            Err(Errno::INVAL) if parts.len() > MOST_PARTS => self.write_vectored(&parts[..MOST_PARTS]),
            Err(error) => Err(error.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Parts that one system call takes on Linux (`UIO_MAXIOV`).
const MOST_PARTS: usize = 1024;
