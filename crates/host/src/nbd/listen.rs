//! Accepting clients ([`Listener`]): unix sockets, TCP, sockets of systemd, and stdin with stdout.
//!
//! One thread waits for all sockets. Each client negotiates on its own thread, and is passed on when it has chosen an
//! export. Access is controlled by the permissions of the socket's directory, and by TLS.

use super::activation;
use super::ended::Ended;
use super::export::Export;
use super::negotiate::{Agreed, Settings, negotiate_at};
use super::permits::Permits;
use super::transport::Transport;
use super::unix_socket::UnixSocket;
use super::waiting_room::{Visit, WaitingRoom};
use crate::error::HostError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketAddrAny, SocketFlags, SocketType, sockopt};
use std::io::{self, IsTerminal};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Time without accepting clients after the kernel ran out of resources.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The maximum number of negotiating clients, in addition to those that use exports.
pub const NEGOTIATING: usize = 32;

/// An address at which clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A unix socket.
    Unix(PathBuf),
    /// An IP address and port.
    Tcp(SocketAddr),
    /// A socket of another kind, opened by systemd.
    Other,
}

impl Address {
    /// The URI of the default export (doc/uri.md of the protocol).
    pub fn uri(&self, tls: bool) -> Option<String> {
        let scheme = if tls { "nbds" } else { "nbd" };
        match self {
            Address::Unix(path) => Some(format!("{scheme}+unix:///?socket={}", escaped(path))),
            Address::Tcp(address) => Some(format!("{scheme}://{address}")),
            Address::Other => None,
        }
    }
}

/// Listening sockets and the limits on clients.
#[derive(Debug)]
pub struct Listener {
    sockets: Vec<ListeningSocket>,
    permits: Permits,
    waiting_room: WaitingRoom,
}

#[derive(Debug)]
struct ListeningSocket {
    socket: OwnedFd,
    address: Address,
    /// Removes the file of a unix socket when dropped.
    _file: Option<UnixSocket>,
}

impl Listener {
    /// A listener without sockets, for at most `most` clients that use exports, and [`NEGOTIATING`] more.
    pub fn new(most: usize) -> Listener {
        let (permits, waiting_room) = (Permits::new(most), WaitingRoom::new(NEGOTIATING));
        Listener { sockets: Vec::new(), permits, waiting_room }
    }

    /// Listens on a new unix socket that only its owner can use. It is removed when this is dropped.
    ///
    /// # Errors
    /// [`HostError::Listen`]: a server listens there, the path is a file, or it is too long or not writable.
    pub fn unix(&mut self, path: &Path) -> Result<(), HostError> {
        let (socket, file) =
            UnixSocket::listen(path).map_err(|what| cannot(path.display().to_string(), what))?;
        self.sockets.push(ListeningSocket {
            socket,
            address: Address::Unix(file.path().to_owned()),
            _file: Some(file),
        });
        Ok(())
    }

    /// Listens on `HOST:PORT`. Port 0 selects a free port, which [`addresses`](Self::addresses) returns.
    ///
    /// # Errors
    /// [`HostError::Invalid`]: not an address. [`HostError::Listen`]: the port is in use or not allowed, or the host
    /// is unknown.
    pub fn tcp(&mut self, address: &str) -> Result<(), HostError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidInput => HostError::Invalid {
                what: "the address to listen at",
                value: address.to_owned(),
                accepted: "HOST:PORT is accepted, such as 127.0.0.1:10809".to_owned(),
            },
            io::ErrorKind::AddrInUse => {
                cannot(address.to_owned(), format!("{error}: choose another port, or 0 for a free one"))
            }
            _ => cannot(address.to_owned(), error.to_string()),
        };
        let socket = TcpListener::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = Address::Tcp(socket.local_addr().map_err(failed)?);
        self.sockets.push(ListeningSocket { socket: socket.into(), address, _file: None });
        Ok(())
    }

    /// Listens on the sockets that systemd opened for this process, and returns their number.
    ///
    /// # Errors
    /// [`HostError::Listen`]: one of them is not a listening stream socket.
    pub fn activated(&mut self) -> Result<usize, HostError> {
        let cannot = |what: String| cannot("the sockets of systemd".to_owned(), what);
        let sockets = activation::take().map_err(cannot)?;
        let count = sockets.len();
        for socket in sockets {
            let listens = sockopt::socket_acceptconn(&socket).unwrap_or(false)
                && sockopt::socket_type(&socket).is_ok_and(|kind| kind == SocketType::STREAM);
            if !listens {
                let what =
                    "one of them is not a listening stream socket: write `Accept=no` and `ListenStream=`";
                return Err(cannot(what.to_owned()));
            }
            rustix::io::ioctl_fionbio(&socket, true).map_err(|error| cannot(error.to_string()))?;
            let address = address_of(&socket);
            self.sockets.push(ListeningSocket { socket, address, _file: None });
        }
        Ok(count)
    }

    /// The addresses at which clients connect.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.sockets.iter().map(|listening| &listening.address)
    }

    /// Accepts clients until `settings.stop` is set, and returns when all negotiations have ended.
    ///
    /// Both callbacks are called concurrently, on the threads of the negotiations. `on_ended` gets the name of the
    /// peer and the reason of a failed negotiation. A client holds its permit until its [`Transport`] is dropped.
    ///
    /// # Errors
    /// [`HostError::Listen`]: polling or accepting failed for good.
    pub fn run(
        &self,
        exports: &[Export],
        settings: &Settings,
        on_client: impl Fn(Transport, Agreed) + Sync,
        on_ended: impl Fn(&str, Ended) + Sync,
    ) -> Result<(), HostError> {
        let meet = |transport: Transport, visit: &Arc<Visit>| {
            let peer = transport.peer().to_owned();
            let met = negotiate_at(transport, exports, settings, Some((visit, &self.permits)));
            self.waiting_room.leave(visit);
            match met {
                Ok((transport, agreed)) => on_client(transport, agreed),
                Err(ended) => on_ended(&peer, ended),
            }
        };
        let (meet, on_ended) = (&meet, &on_ended);
        let mut number = 0;
        std::thread::scope(|threads| {
            loop {
                let Some(ready) = self.wait(settings)? else { return Ok(()) };
                for listening in ready {
                    let (socket, peer) = match Listener::accept(listening, number + 1)? {
                        Accepted::Client(socket, peer) => {
                            number += 1;
                            (socket, peer)
                        }
                        Accepted::Nobody => continue,
                        Accepted::NoRoom => {
                            pause(settings);
                            continue;
                        }
                    };
                    let entered = client(socket, peer.clone())
                        .and_then(|transport| Ok((transport, self.waiting_room.enter()?)));
                    let (transport, visit) = match entered {
                        Ok(entered) => entered,
                        Err(error) => {
                            on_ended(&peer, Ended::Io(error));
                            continue;
                        }
                    };
                    let thread = std::thread::Builder::new().name("nbd negotiation".to_owned());
                    let its = Arc::clone(&visit);
                    if let Err(error) = thread.spawn_scoped(threads, move || meet(transport, &its)) {
                        self.waiting_room.leave(&visit);
                        on_ended(&peer, Ended::Io(error));
                    }
                }
            }
        })
    }

    /// Waits for clients; `None` if the server ends.
    fn wait(&self, settings: &Settings) -> Result<Option<Vec<&ListeningSocket>>, HostError> {
        let mut fds: Vec<PollFd<'_>> =
            self.sockets.iter().map(|listening| PollFd::new(&listening.socket, PollFlags::IN)).collect();
        fds.extend(settings.stop.as_ref().map(|stop| PollFd::new(stop, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(cannot("all sockets".to_owned(), error.to_string())),
        }
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        if settings.stop.is_some() && fds.last().is_some_and(ready) {
            return Ok(None);
        }
        Ok(Some(
            self.sockets
                .iter()
                .zip(&fds)
                .filter(|(_, fd)| ready(fd))
                .map(|(listening, _)| listening)
                .collect(),
        ))
    }

    fn accept(listening: &ListeningSocket, number: u64) -> Result<Accepted, HostError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match rustix::net::acceptfrom_with(&listening.socket, flags) {
            Ok((socket, from)) => Ok(Accepted::Client(socket, peer_name(from, number))),
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Ok(Accepted::NoRoom),
            Err(error @ (Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP)) => {
                Err(cannot(format!("{:?}", listening.address), error.to_string()))
            }
            // The client has gone, or its network failed.
            Err(_) => Ok(Accepted::Nobody),
        }
    }
}

enum Accepted {
    Client(OwnedFd, String),
    Nobody,
    NoRoom,
}

/// The client at stdin and stdout, like `-s` of nbdkit. From here on, the program's stdin is empty, and its stdout
/// goes to stderr.
///
/// # Errors
/// [`HostError::Listen`]: they are a terminal, or cannot be duplicated.
pub fn stdio() -> Result<Transport, HostError> {
    let cannot = |what: String| cannot("stdin and stdout".to_owned(), what);
    let failed = |error: io::Error| cannot(error.to_string());
    if io::stdin().is_terminal() || io::stdout().is_terminal() {
        let what = "they are a terminal, not a client: start the server from a client, such as `nbdsh`";
        return Err(cannot(what.to_owned()));
    }
    let input = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let output = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
    let nothing = std::fs::File::open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(&nothing).map_err(|error| failed(error.into()))?;
    rustix::stdio::dup2_stdout(io::stderr()).map_err(|error| failed(error.into()))?;
    Transport::pipes(input, output, "the client at stdin").map_err(failed)
}

fn client(socket: OwnedFd, peer: String) -> io::Result<Transport> {
    // Unix sockets have neither option.
    let _ = sockopt::set_tcp_nodelay(&socket, true);
    let _ = sockopt::set_socket_keepalive(&socket, true);
    Transport::socket(socket, peer)
}

/// The name of the client in log lines: its address, or a number.
fn peer_name(from: Option<SocketAddrAny>, number: u64) -> String {
    let address = from.and_then(|from| SocketAddr::try_from(from).ok());
    address.map_or_else(|| format!("client {number}"), |address| address.to_string())
}

/// The address of a socket from systemd.
fn address_of(socket: &OwnedFd) -> Address {
    let Ok(address) = rustix::net::getsockname(socket) else { return Address::Other };
    if let Ok(address) = SocketAddr::try_from(address.clone()) {
        return Address::Tcp(address);
    }
    let path = rustix::net::SocketAddrUnix::try_from(address).ok();
    let path = path.as_ref().and_then(|unix| unix.path_bytes()).map(|bytes| {
        use std::os::unix::ffi::OsStrExt;
        PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
    });
    path.map_or(Address::Other, Address::Unix)
}

/// Waits for [`ACCEPT_PAUSE`], or until the server ends.
fn pause(settings: &Settings) {
    let pause = Timespec::try_from(ACCEPT_PAUSE).expect("a tenth of a second");
    let stop = settings.stop.as_ref();
    let mut fds: Vec<PollFd<'_>> = stop.map(|stop| PollFd::new(stop, PollFlags::IN)).into_iter().collect();
    // A signal may end the pause early.
    let _ = poll(&mut fds, Some(&pause));
}

/// Escapes a path for a URI.
fn escaped(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    bytes
        .map(|&byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn cannot(address: String, what: String) -> HostError {
    HostError::Listen { address, what }
}
