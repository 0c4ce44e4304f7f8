//! A thread that serves drives or a log disk ([`Service`]), and its control socket ([`ControlSocket`]).
//!
//! NBD listeners and attaching pass their clients to [`Service::handle`].

use super::control::{self, Answer, Controlled, Question};
use lowtide_host::live::{Buffers, Clock, Handle, Port, Server};
use lowtide_host::nbd::Export;
use lowtide_host::nbd::unix_socket::UnixSocket;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

/// A unix socket that takes orders.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    /// Removes the socket's file when dropped.
    file: UnixSocket,
}

impl ControlSocket {
    /// Creates a unix socket that only its owner can use. Orders wait there until [`Service::obey`].
    ///
    /// # Errors
    /// A message for the user, if the socket cannot be created.
    pub fn at(path: &Path) -> Result<ControlSocket, String> {
        let (socket, file) = UnixSocket::listen(path)?;
        let listener = UnixListener::from(socket);
        listener.set_nonblocking(false).map_err(|error| error.to_string())?;
        Ok(ControlSocket { listener, file })
    }
}

/// A running server. The server ends when [`Handle::stop`] is called.
pub struct Service<D> {
    handle: Handle<D>,
    exports: Vec<Export>,
    thread: JoinHandle<Vec<D>>,
    /// Removes the control socket's file when dropped.
    control: Option<UnixSocket>,
}

impl<D: Controlled> Service<D> {
    /// Serves drives on a new thread. If `alone` is set, the server ends when its last client has left. All clients
    /// share `buffers`.
    ///
    /// # Errors
    /// The system has no more file descriptors or threads.
    pub fn start(drives: Vec<D>, clock: Clock, alone: bool, buffers: Buffers) -> io::Result<Service<D>> {
        let exports = drives.iter().map(|drive| drive.export().clone()).collect();
        let (server, handle) = Server::new(drives, clock)?;
        let server = server.with_buffers(buffers);
        let server = if alone { server.ending_alone() } else { server };
        let thread = std::thread::Builder::new().name("drives".to_owned()).spawn(move || server.run())?;
        Ok(Service { handle, exports, thread, control: None })
    }

    /// Answers questions at `socket`, including those that already wait there.
    pub fn obey(&mut self, socket: ControlSocket) {
        let ControlSocket { listener, file } = socket;
        let answer = self.answer();
        std::thread::spawn(move || control::serve(&listener, answer));
        self.control = Some(file);
    }

    /// Returns a function that answers questions, for the threads of a socket.
    pub(super) fn answer(&self) -> impl Fn(Question) -> Answer + Clone + Send + 'static + use<D> {
        let handle = self.handle.clone();
        move |question| D::answer(question, &handle)
    }

    /// The handle by which other threads reach the server's thread.
    pub fn handle(&self) -> &Handle<D> {
        &self.handle
    }

    /// The exports, in the order of the drives.
    pub fn exports(&self) -> &[Export] {
        &self.exports
    }

    /// A port through which other threads access a drive, in multiples of `block` bytes.
    pub fn port(&self, drive: usize, block: u32) -> Arc<dyn Port> {
        self.handle.port(drive, self.exports[drive].size, block)
    }

    /// Gives the server's thread real-time priority.
    ///
    /// # Errors
    /// The process lacks the privilege, or the server has ended.
    pub fn real_time(&self) -> io::Result<()> {
        self.handle
            .call(|_, _| lowtide_host::live::real_time())
            .unwrap_or_else(|| Err(io::Error::other("the server has ended")))
    }

    /// Waits until the server ends, and returns the drives.
    pub fn wait(self) -> Vec<D> {
        self.thread.join().expect("the server does not panic")
    }
}
