//! Connections to servers: their time limits, and how another thread cuts them.
//!
//! If a machine loses power or a network drops packets, a client could wait for ever. Connecting and logging in
//! therefore have a time limit, and TCP keepalive detects a lost peer. A server that is alive may take any time
//! to answer, because a slow drive is part of the measurement.
//!
//! The protocols are in the engines' modules.

use rustix::fd::{AsFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, Resource};
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Time limit for connecting over TCP, and again for logging in.
pub(crate) const REACHED: Duration = Duration::from_secs(10);
/// TCP keepalive: idle time before the first probe.
pub(crate) const SILENT: Duration = Duration::from_secs(15);
/// TCP keepalive: interval between probes.
pub(crate) const AGAIN: Duration = Duration::from_secs(5);
/// TCP keepalive: unanswered probes until the connection is lost.
pub(crate) const TIMES: u32 = 6;
/// Time limit for the acknowledgement of sent data, after which the connection is lost.
pub(crate) const UNANSWERED: Duration = Duration::from_secs(45);

/// Connects to the first address of a host that answers.
///
/// # Errors
/// An error of the system if the host has no address, or if none answers within [`REACHED`].
pub(crate) fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, REACHED) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                watch(&stream)?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Enables keepalive probes and the limit for unacknowledged data.
fn watch(socket: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, SILENT)?;
    sockopt::set_tcp_keepintvl(socket, AGAIN)?;
    sockopt::set_tcp_keepcnt(socket, TIMES)?;
    sockopt::set_tcp_user_timeout(socket, UNANSWERED.as_millis() as u32)?;
    Ok(())
}

/// The error for a server that accepted a connection but did not complete the login within [`REACHED`].
pub(crate) fn late() -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!("the server let nobody in within {} s", REACHED.as_secs()),
    )
}

/// Removes the read timeout of a connection.
///
/// # Errors
/// An error of the system if the socket cannot be duplicated.
pub(crate) fn wait_without_end(socket: RawFd) -> io::Result<()> {
    let socket = by_number(socket)?;
    Ok(sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, None)?)
}

/// A handle that cuts a connection from another thread. A thread that waits for an answer then gets an error.
#[derive(Debug)]
pub(crate) struct Cut(OwnedFd);

impl Cut {
    /// Handle of a socket; `None` if the process may not open more files.
    pub(crate) fn of(socket: impl AsFd) -> Option<Cut> {
        let copy = || rustix::io::fcntl_dupfd_cloexec(&socket, 0);
        or_with_more_files(copy).map(Cut)
    }
    /// Handle of a socket by its file descriptor, which stays with its owner. `None` if the kernel cannot
    /// duplicate it.
    pub(crate) fn by_number(socket: RawFd) -> Option<Cut> {
        or_with_more_files(|| by_number(socket)).map(Cut)
    }
    /// Cuts the connection.
    pub(crate) fn now(&self) {
        let _ = rustix::net::shutdown(&self.0, rustix::net::Shutdown::Both);
    }
}

/// Duplicates a file descriptor of this process.
fn by_number(number: RawFd) -> rustix::io::Result<OwnedFd> {
    let own = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    rustix::process::pidfd_getfd(&own, number, PidfdGetfdFlags::empty())
}

/// Calls `open`. If too many files are open, raises the limit to its maximum and tries once more.
fn or_with_more_files(open: impl Fn() -> rustix::io::Result<OwnedFd>) -> Option<OwnedFd> {
    match open() {
        Err(Errno::MFILE) => {
            let mut limit = rustix::process::getrlimit(Resource::Nofile);
            limit.current = limit.maximum;
            rustix::process::setrlimit(Resource::Nofile, limit).ok()?;
            open().ok()
        }
        other => other.ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_connection_that_waits_is_cut_from_elsewhere() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let mut stream = connect("127.0.0.1", port).expect("it listens");
        assert!(sockopt::socket_keepalive(&stream).expect("asked"));
        let cut = Cut::by_number(stream.as_raw_fd()).expect("its own socket");
        std::thread::scope(|scope| {
            let waits = scope.spawn(move || stream.read(&mut [0]));
            cut.now();
            assert_eq!(waits.join().expect("no panic").expect("an end"), 0);
        });
    }

    #[test]
    fn a_limit_for_the_login_is_taken_away_by_number() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        stream.set_read_timeout(Some(REACHED)).expect("set");
        wait_without_end(stream.as_raw_fd()).expect("its own socket");
        assert_eq!(stream.read_timeout().expect("asked"), None);
    }
}
