//! Reading and writing with a deadline ([`Conversation`]), for the negotiation.
//!
//! The deadline covers the entire negotiation, so a client cannot extend it by sending byte by byte. The protocol is
//! in module `negotiate`.

use super::ended::Ended;
use super::transport::Transport;
use super::waiting_room::Visit;
use crate::event::Event;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustls::ServerConfig;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A transport that waits until a deadline.
pub(super) struct Conversation<'a> {
    transport: Transport,
    patience: Duration,
    deadline: Instant,
    stop: Option<&'a Event>,
    visit: Option<&'a Visit>,
}

impl<'a> Conversation<'a> {
    /// Sets a deadline `patience` from now. The conversation ends early if `stop` is set or the visit is dismissed.
    pub(super) fn new(
        transport: Transport,
        patience: Duration,
        stop: Option<&'a Event>,
        visit: Option<&'a Visit>,
    ) -> Conversation<'a> {
        Conversation { transport, patience, deadline: Instant::now() + patience, stop, visit }
    }

    /// Moves the deadline to `patience` from now.
    pub(super) fn set_patience(&mut self, patience: Duration) {
        (self.patience, self.deadline) = (patience, Instant::now() + patience);
    }

    pub(super) fn transport(&self) -> &Transport {
        &self.transport
    }

    pub(super) fn into_transport(self) -> Transport {
        self.transport
    }

    pub(super) fn read<const N: usize>(&mut self) -> Result<[u8; N], Ended> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads `length` bytes. The caller limits the length.
    pub(super) fn read_all(&mut self, length: usize) -> Result<Vec<u8>, Ended> {
        let mut bytes = vec![0; length];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads and discards bytes.
    pub(super) fn skip(&mut self, length: usize) -> Result<(), Ended> {
        let mut bytes = [0; 4096];
        let mut left = length;
        while left > 0 {
            let next = left.min(bytes.len());
            self.fill(&mut bytes[..next])?;
            left -= next;
        }
        Ok(())
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) -> Result<(), Ended> {
        while !bytes.is_empty() {
            match self.transport.write_vectored(&[IoSlice::new(bytes)]) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(PollFlags::OUT)?,
                Err(error) => return Err(lost(error)),
            }
        }
        while !self.transport.flush_tls().map_err(lost)? {
            self.wait(PollFlags::OUT)?;
        }
        Ok(())
    }

    /// Performs the TLS handshake.
    pub(super) fn start_tls(&mut self, config: Arc<ServerConfig>) -> Result<(), Ended> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData => Ended::Tls(error.to_string()),
            _ => lost(error),
        };
        self.transport.start_tls(config).map_err(|error| Ended::Tls(error.to_string()))?;
        while !self.transport.shake_hands().map_err(failed)? {
            let write = self.transport.wants_write();
            self.wait(if write { PollFlags::OUT } else { PollFlags::IN })?;
        }
        Ok(())
    }

    /// Closes the connection.
    pub(super) fn close(&mut self) {
        self.transport.close();
    }

    fn fill(&mut self, mut bytes: &mut [u8]) -> Result<(), Ended> {
        while !bytes.is_empty() {
            match self.transport.read(bytes) {
                Ok(0) => return Err(Ended::Left),
                Ok(read) => {
                    bytes = &mut bytes[read..];
                    self.visit.into_iter().for_each(Visit::hear);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(PollFlags::IN)?,
                Err(error) => return Err(lost(error)),
            }
        }
        Ok(())
    }

    /// Waits until the transport is readable or writable.
    fn wait(&self, direction: PollFlags) -> Result<(), Ended> {
        let transport = &self.transport;
        let client = if direction == PollFlags::OUT { transport.write_fd() } else { transport.read_fd() };
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Ended::TimedOut(self.patience));
            }
            let left = Timespec::try_from(left).map_err(|_| Ended::TimedOut(self.patience))?;
            let stops = [self.stop, self.visit.map(|visit| &visit.dismissed)];
            let mut fds = vec![PollFd::from_borrowed_fd(client, direction)];
            fds.extend(stops.into_iter().flatten().map(|stop| PollFd::new(stop, PollFlags::IN)));
            match poll(&mut fds, Some(&left)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) if fds[1..].iter().any(|stop| !stop.revents().is_empty()) => {
                    let stopping = self.stop.is_some_and(Event::is_set);
                    return Err(match self.visit.filter(|_| !stopping) {
                        Some(visit) => Ended::Silent(visit.most),
                        None => Ended::Stopping,
                    });
                }
                Ok(_) => {
                    if let Some(visit) = self.visit
                        && fds[0].revents().contains(PollFlags::IN)
                    {
                        visit.hear();
                    }
                    return Ok(());
                }
                Err(error) => return Err(Ended::Io(error.into())),
            }
        }
    }
}

/// Converts an I/O error. A client that disconnects resets the connection, or breaks a pipe.
fn lost(error: io::Error) -> Ended {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    match error.kind() {
        BrokenPipe | ConnectionReset | UnexpectedEof => Ended::Left,
        _ => Ended::Io(error),
    }
}
