//! Where clients come in ([`Listener`]): unix sockets, TCP, sockets of systemd, and stdin with stdout.
//!
//! One thread waits for all sockets; each client that comes is negotiated with on a thread of its own, and handed on
//! when it has chosen an export. Not here: what is done with it then, and who may connect; that is for the permissions
//! of the socket's folder, and for TLS.

use super::activation;
use super::ended::Ended;
use super::export::Export;
use super::negotiate::{Agreed, Settings, negotiate_at};
use super::places::Places;
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

/// How long nothing is accepted after the kernel had no room for another client.
const RESPITE: Duration = Duration::from_millis(100);

/// Clients that may negotiate at once, beside those that have chosen an export.
pub const NEGOTIATING: usize = 32;

/// Where a client can connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A unix socket.
    Unix(PathBuf),
    /// A port.
    Tcp(SocketAddr),
    /// Something that systemd opened, of another kind.
    Other,
}

impl Address {
    /// What clients are given to connect here and use the default export (doc/uri.md of the protocol).
    pub fn uri(&self, tls: bool) -> Option<String> {
        let scheme = if tls { "nbds" } else { "nbd" };
        match self {
            Address::Unix(path) => Some(format!("{scheme}+unix:///?socket={}", escaped(path))),
            Address::Tcp(address) => Some(format!("{scheme}://{address}")),
            Address::Other => None,
        }
    }
}

/// Waits for clients.
#[derive(Debug)]
pub struct Listener {
    doors: Vec<Door>,
    places: Places,
    waiting_room: WaitingRoom,
}

#[derive(Debug)]
struct Door {
    socket: OwnedFd,
    address: Address,
    /// Removed at the end.
    _file: Option<UnixSocket>,
}

impl Listener {
    /// For at most `most` clients that use exports at once, and [`NEGOTIATING`] more that have not chosen one. Nobody
    /// can come in yet.
    pub fn new(most: usize) -> Listener {
        let (places, waiting_room) = (Places::new(most), WaitingRoom::new(NEGOTIATING));
        Listener { doors: Vec::new(), places, waiting_room }
    }

    /// Listens on a unix socket, which is made for its owner alone and removed when this is dropped.
    ///
    /// # Errors
    ///
    /// [`HostError::Listen`]: somebody listens there, or the path is taken by a file, too long or not writable.
    pub fn unix(&mut self, path: &Path) -> Result<(), HostError> {
        let (socket, file) =
            UnixSocket::listen(path).map_err(|what| cannot(path.display().to_string(), what))?;
        self.doors.push(Door { socket, address: Address::Unix(file.path().to_owned()), _file: Some(file) });
        Ok(())
    }

    /// Listens on `HOST:PORT`; port 0 is a free one, which [`addresses`](Self::addresses) tells.
    ///
    /// # Errors
    ///
    /// [`HostError::Invalid`]: it is no address. [`HostError::Listen`]: the port is taken or not allowed, or there is no such
    /// host.
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
        self.doors.push(Door { socket: socket.into(), address, _file: None });
        Ok(())
    }

    /// Listens on the sockets that systemd opened for this process, and says how many there are.
    ///
    /// # Errors
    ///
    /// [`HostError::Listen`]: what was passed is no listening stream socket.
    pub fn activated(&mut self) -> Result<usize, HostError> {
        let cannot = |what: String| cannot("the sockets of systemd".to_owned(), what);
        let sockets = activation::take().map_err(cannot)?;
        let count = sockets.len();
        for socket in sockets {
            let listens = sockopt::socket_acceptconn(&socket).unwrap_or(false)
                && sockopt::socket_type(&socket).is_ok_and(|kind| kind == SocketType::STREAM);
            if !listens {
                let what = "one of them is no listening stream socket: write `Accept=no` and `ListenStream=`";
                return Err(cannot(what.to_owned()));
            }
            rustix::io::ioctl_fionbio(&socket, true).map_err(|error| cannot(error.to_string()))?;
            let address = address_of(&socket);
            self.doors.push(Door { socket, address, _file: None });
        }
        Ok(count)
    }

    /// Where clients can connect.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.doors.iter().map(|door| &door.address)
    }

    /// Waits for clients until `settings.stop` is set; returns when no negotiation goes on any more.
    ///
    /// Both callbacks come from the threads of the negotiations, several at once. `on_ended` tells of clients that came to
    /// nothing, by the names of their peers. A client holds its place until its [`Transport`] is dropped.
    ///
    /// # Errors
    ///
    /// [`HostError::Listen`]: a socket cannot be waited for any more.
    pub fn run(
        &self,
        exports: &[Export],
        settings: &Settings,
        on_client: impl Fn(Transport, Agreed) + Sync,
        on_ended: impl Fn(&str, Ended) + Sync,
    ) -> Result<(), HostError> {
        let meet = |transport: Transport, visit: &Arc<Visit>| {
            let peer = transport.peer().to_owned();
            let met = negotiate_at(transport, exports, settings, Some((visit, &self.places)));
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
                for door in ready {
                    let (socket, peer) = match Listener::accept(door, number + 1)? {
                        Accepted::Client(socket, peer) => {
                            number += 1;
                            (socket, peer)
                        }
                        Accepted::Nobody => continue,
                        Accepted::NoRoom => {
                            rest(settings);
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

    /// Waits until somebody comes; `None` where the server ends.
    fn wait(&self, settings: &Settings) -> Result<Option<Vec<&Door>>, HostError> {
        let mut fds: Vec<PollFd<'_>> =
            self.doors.iter().map(|door| PollFd::new(&door.socket, PollFlags::IN)).collect();
        fds.extend(settings.stop.as_ref().map(|stop| PollFd::new(stop, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(cannot("all sockets".to_owned(), error.to_string())),
        }
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        if settings.stop.is_some() && fds.last().is_some_and(ready) {
            return Ok(None);
        }
        Ok(Some(self.doors.iter().zip(&fds).filter(|(_, fd)| ready(fd)).map(|(door, _)| door).collect()))
    }

    fn accept(door: &Door, number: u64) -> Result<Accepted, HostError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match rustix::net::acceptfrom_with(&door.socket, flags) {
            Ok((socket, from)) => Ok(Accepted::Client(socket, peer_name(from, number))),
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Ok(Accepted::NoRoom),
            Err(error @ (Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP)) => {
                Err(cannot(format!("{:?}", door.address), error.to_string()))
            }
            // The client is gone already, or its network failed.
            Err(_) => Ok(Accepted::Nobody),
        }
    }
}

/// What became of an attempt to accept.
enum Accepted {
    Client(OwnedFd, String),
    Nobody,
    NoRoom,
}

/// The client at stdin and stdout, as `-s` of nbdkit has it. What the program writes to stdout from here on goes to
/// stderr, and its stdin is empty.
///
/// # Errors
///
/// [`HostError::Listen`]: they are a terminal, or cannot be had.
pub fn stdio() -> Result<Transport, HostError> {
    let cannot = |what: String| cannot("stdin and stdout".to_owned(), what);
    let failed = |error: io::Error| cannot(error.to_string());
    if io::stdin().is_terminal() || io::stdout().is_terminal() {
        let what = "they are a terminal, and a client is expected there: run it from one, such as `nbdsh`";
        return Err(cannot(what.to_owned()));
    }
    let input = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let output = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
    let nothing = std::fs::File::open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(&nothing).map_err(|error| failed(error.into()))?;
    rustix::stdio::dup2_stdout(io::stderr()).map_err(|error| failed(error.into()))?;
    Transport::pipes(input, output, "the client at stdin").map_err(failed)
}

/// The transport of a client that was accepted.
fn client(socket: OwnedFd, peer: String) -> io::Result<Transport> {
    // A unix socket does not know these, and needs neither.
    let _ = sockopt::set_tcp_nodelay(&socket, true);
    let _ = sockopt::set_socket_keepalive(&socket, true);
    Transport::socket(socket, peer)
}

/// How log lines call the client: its address, or a number where it has none.
fn peer_name(from: Option<SocketAddrAny>, number: u64) -> String {
    let address = from.and_then(|from| SocketAddr::try_from(from).ok());
    address.map_or_else(|| format!("client {number}"), |address| address.to_string())
}

/// The address of a socket that somebody else opened.
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

/// Lets the kernel free something, or the server end.
fn rest(settings: &Settings) {
    let respite = Timespec::try_from(RESPITE).expect("a tenth of a second");
    let stop = settings.stop.as_ref();
    let mut fds: Vec<PollFd<'_>> = stop.map(|stop| PollFd::new(stop, PollFlags::IN)).into_iter().collect();
    // Interrupted or not: it was a rest.
    let _ = poll(&mut fds, Some(&respite));
}

/// A path within a URI.
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
