//! Connections to servers: how long one may be silent, and how it is cut from another thread.
//!
//! A peer that vanishes without a word (a machine that loses power, a network that drops packets) would be waited for
//! without end. So connecting and logging in have a limit, and the kernel asks the other side whether it is still
//! there. A server that is there and takes long is waited for: a slow drive is what is measured. Not here: the protocols.

use rustix::fd::{AsFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, Resource};
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long a server over TCP may take to be reached, and again to let us in.
pub(crate) const REACHED: Duration = Duration::from_secs(10);
/// A connection that is silent for so long is asked whether it is still there,
pub(crate) const SILENT: Duration = Duration::from_secs(15);
/// and again after so long,
pub(crate) const AGAIN: Duration = Duration::from_secs(5);
/// so often.
pub(crate) const TIMES: u32 = 6;
/// What was sent and is not acknowledged by then is lost, and the connection with it.
pub(crate) const UNANSWERED: Duration = Duration::from_secs(45);

/// Connects to a host, by the first of its addresses that answers.
///
/// # Errors
/// Where none is found, or none answers within [`REACHED`].
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

/// Has the kernel ask whether the other side is there.
fn watch(socket: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, SILENT)?;
    sockopt::set_tcp_keepintvl(socket, AGAIN)?;
    sockopt::set_tcp_keepcnt(socket, TIMES)?;
    sockopt::set_tcp_user_timeout(socket, UNANSWERED.as_millis() as u32)?;
    Ok(())
}

/// The error for a server that took a connection and did not log us in within [`REACHED`].
pub(crate) fn late() -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!("the server let nobody in within {} s", REACHED.as_secs()),
    )
}

/// Lets a connection wait for answers without end again.
///
/// # Errors
/// Where its socket cannot be had.
pub(crate) fn wait_without_end(socket: RawFd) -> io::Result<()> {
    let socket = by_number(socket)?;
    Ok(sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, None)?)
}

/// A connection as it is cut from another thread: whoever waits for its answer hears that it is gone.
#[derive(Debug)]
pub(crate) struct Cut(OwnedFd);

impl Cut {
    /// Of a socket; nothing where this process may have no more open files.
    pub(crate) fn of(socket: impl AsFd) -> Option<Cut> {
        let copy = || rustix::io::fcntl_dupfd_cloexec(&socket, 0);
        or_with_more_files(copy).map(Cut)
    }
    /// Of a socket by its number, which stays that of its owner; nothing where the kernel does not give it.
    pub(crate) fn by_number(socket: RawFd) -> Option<Cut> {
        or_with_more_files(|| by_number(socket)).map(Cut)
    }
    /// Cuts it.
    pub(crate) fn now(&self) {
        let _ = rustix::net::shutdown(&self.0, rustix::net::Shutdown::Both);
    }
}

/// A file of this process by its number, once more.
fn by_number(number: RawFd) -> rustix::io::Result<OwnedFd> {
    let own = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    rustix::process::pidfd_getfd(&own, number, PidfdGetfdFlags::empty())
}

/// Where too many files are open, as many are allowed as may be, and it is tried again.
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
