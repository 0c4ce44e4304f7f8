//! The byte stream of a client ([`Transport`]): a socket or a pair of pipes, plain or with TLS.
//!
//! No function blocks. Only TLS reads ahead, so early input of a client is preserved across the negotiation. The
//! callers wait: `conversation` with a deadline, and the server thread for all clients together.

use super::permits::Permit;
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The maximum number of network reads of one call, so that other clients are not delayed.
const MOST_READS: usize = 32;

/// The byte stream of a client. Its descriptors are non-blocking, also for other programs that share the pipes.
#[derive(Debug)]
pub struct Transport {
    input: OwnedFd,
    /// The descriptor for output; `None` for a socket, which has one descriptor.
    output: Option<OwnedFd>,
    tls: Option<Box<Secured>>,
    peer: String,
    /// Held while the client is connected.
    _permit: Option<Permit>,
}

#[derive(Debug)]
struct Secured {
    connection: ServerConnection,
    /// Decrypted bytes that can be read.
    readable: usize,
    /// Whether the input has ended.
    ended: bool,
}

impl Transport {
    /// A transport over a connected socket. `peer` is the client's name in log lines.
    ///
    /// # Errors
    /// If the descriptor cannot be made non-blocking.
    pub fn socket(socket: OwnedFd, peer: impl Into<String>) -> io::Result<Transport> {
        Transport::new(socket, None, peer.into())
    }

    /// A transport over two pipes or other descriptors.
    ///
    /// # Errors
    /// If a descriptor cannot be made non-blocking.
    pub fn pipes(input: OwnedFd, output: OwnedFd, peer: impl Into<String>) -> io::Result<Transport> {
        Transport::new(input, Some(output), peer.into())
    }

    fn new(input: OwnedFd, output: Option<OwnedFd>, peer: String) -> io::Result<Transport> {
        for descriptor in std::iter::once(&input).chain(&output) {
            rustix::io::ioctl_fionbio(descriptor, true)?;
        }
        Ok(Transport { input, output, tls: None, peer, _permit: None })
    }

    /// Attaches a permit.
    pub(super) fn with_permit(mut self, permit: Option<Permit>) -> Transport {
        self._permit = permit;
        self
    }

    /// The client's name in log lines.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// Returns whether TLS is on.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Reads available bytes into `buffer`, which must not be empty. Returns 0 at the end.
    ///
    /// With TLS, decrypted bytes may be buffered while [`read_fd`](Self::read_fd) is not readable: read until
    /// `WouldBlock` before polling, or check [`has_buffered`](Self::has_buffered). Use level-triggered polling.
    ///
    /// # Errors
    /// `WouldBlock` if no bytes are available, an error of the connection, or `InvalidData` for invalid TLS.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return Raw(self.input.as_fd()).read(buffer) };
        let output = self.output.as_ref().unwrap_or(&self.input);
        for _ in 0..MOST_READS {
            if tls.readable > 0 || tls.ended {
                return tls.take(buffer);
            }
            tls.receive(self.input.as_fd(), output.as_fd())?;
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Returns whether [`read`](Self::read) would return bytes or the end although the descriptor is not readable.
    /// TLS decrypts complete records, so this may be true right after the negotiation.
    pub fn has_buffered(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.readable > 0 || tls.ended)
    }

    /// Writes as much as possible of at most 1024 parts. TLS may buffer bytes; see
    /// [`wants_write`](Self::wants_write).
    ///
    /// # Errors
    /// `WouldBlock`, or an error of the connection.
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

    /// Returns whether written bytes are still buffered: call [`flush_tls`](Self::flush_tls) when
    /// [`write_fd`](Self::write_fd) is writable. Always false without TLS.
    pub fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.connection.wants_write())
    }

    /// Writes buffered bytes as far as possible. Returns whether the buffer is empty.
    ///
    /// # Errors
    /// An error of the connection.
    pub fn flush_tls(&mut self) -> io::Result<bool> {
        let output = self.output.as_ref().unwrap_or(&self.input);
        self.tls.as_mut().map_or(Ok(true), |tls| tls.send(output.as_fd()))
    }

    /// The descriptor to poll for input.
    pub fn read_fd(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    /// The descriptor to poll for output.
    pub fn write_fd(&self) -> BorrowedFd<'_> {
        self.output.as_ref().unwrap_or(&self.input).as_fd()
    }

    /// Sends the close notification of TLS, if possible. Dropping this ends the connection.
    pub fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.connection.send_close_notify();
            // The client may have gone.
            let _ = self.flush_tls();
        }
    }

    /// Begins TLS. [`shake_hands`](Self::shake_hands) continues the handshake.
    pub(super) fn start_tls(&mut self, config: Arc<ServerConfig>) -> Result<(), rustls::Error> {
        let connection = ServerConnection::new(config)?;
        self.tls = Some(Box::new(Secured { connection, readable: 0, ended: false }));
        Ok(())
    }

    /// Continues the TLS handshake as far as possible. Returns whether it is complete.
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
    /// Reads once from the network, and sends pending TLS messages.
    fn receive(&mut self, input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<()> {
        // An end without close notification is accepted: it completes no request.
        self.ended |= self.connection.read_tls(&mut Raw(input))? == 0;
        let state = self.connection.process_new_packets();
        // Sends an alert, or the answer to a key update.
        let sent = self.send(output);
        let state = state.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.readable = state.plaintext_bytes_to_read();
        self.ended |= state.peer_has_closed();
        sent.map(|_| ())
    }

    /// Takes decrypted bytes; 0 at the end.
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.readable == 0 {
            return Ok(0);
        }
        let length = self.connection.reader().read(buffer)?;
        self.readable -= length;
        Ok(length)
    }

    /// Writes pending TLS records. Returns whether all were written.
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

/// A descriptor with one system call per read or write.
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
