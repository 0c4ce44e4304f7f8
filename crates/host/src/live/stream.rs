//! The bytes of a client, as the loop reads and writes them ([`Stream`]).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// A connection that never blocks.
pub trait Stream: Send {
    /// Reads what is there; 0 at the end.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where nothing is there; anything else is the end of the connection.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Writes as much as the connection takes.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where it takes nothing; anything else is the end of the connection.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Whether bytes that [`Stream::write`] took have not left yet: call it again, with none, when the connection takes more.
    fn holds_back(&self) -> bool {
        false
    }

    /// Whether bytes that can be read have left the connection already: do not wait for more.
    fn has_more(&self) -> bool {
        false
    }

    /// What to wait on for reading.
    fn read_fd(&self) -> BorrowedFd<'_>;

    /// What to wait on for writing.
    fn write_fd(&self) -> BorrowedFd<'_>;
}

/// One that was made non-blocking.
impl Stream for UnixStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        io::Read::read(self, into)
    }
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::Write::write(self, bytes)
    }
    fn read_fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
    fn write_fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}
