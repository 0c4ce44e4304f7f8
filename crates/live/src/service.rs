//! Drives that are served ([`Service`]): the loop on a thread of its own, and where it can be asked from.
//!
//! Not here: listening for NBD clients, and attaching; both hand their clients to [`Service::handle`].

use super::control::{self, Answer, Question};
use super::drive::LiveDrive;
use lowtide_host::live::{Buffers, Clock, Drive, Handle, Port, Server};
use lowtide_host::nbd::Export;
use lowtide_host::nbd::unix_socket::UnixSocket;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Where questions and orders come in.
#[derive(Debug)]
pub struct Orders {
    listener: UnixListener,
    /// Removed at the end.
    file: UnixSocket,
}

impl Orders {
    /// Takes orders at a unix socket, which is made for its owner alone; they wait until a service obeys.
    ///
    /// # Errors
    /// In words, where it cannot be made.
    pub fn at(path: &Path) -> Result<Orders, String> {
        let (socket, file) = UnixSocket::listen(path)?;
        let listener = UnixListener::from(socket);
        listener.set_nonblocking(false).map_err(|error| error.to_string())?;
        Ok(Orders { listener, file })
    }

    /// Answers what comes, and what has come; what is given back removes the socket.
    pub(crate) fn answered_by(
        self,
        answer: impl Fn(Question) -> Answer + Clone + Send + 'static,
    ) -> UnixSocket {
        let Orders { listener, file } = self;
        std::thread::spawn(move || control::serve(&listener, answer));
        file
    }
}

/// Drives that are served.
pub struct Service {
    handle: Handle<LiveDrive>,
    exports: Vec<Export>,
    thread: JoinHandle<Vec<LiveDrive>>,
    /// Removed at the end.
    control: Option<UnixSocket>,
}

impl Service {
    /// Serves drives from now on, until it is ended; with `alone`, until its last client has left. Clients share
    /// `buffers`.
    ///
    /// # Errors
    /// Where there are no file descriptors or threads to be had.
    pub fn start(drives: Vec<LiveDrive>, clock: Clock, alone: bool, buffers: Buffers) -> io::Result<Service> {
        let exports = drives.iter().map(|drive| drive.export().clone()).collect();
        let (server, handle) = Server::new(drives, clock)?;
        let server = server.with_buffers(buffers);
        let server = if alone { server.ending_alone() } else { server };
        let thread = std::thread::Builder::new().name("drives".to_owned()).spawn(move || server.run())?;
        Ok(Service { handle, exports, thread, control: None })
    }

    /// Answers questions and orders from now on, those that have come already too.
    pub fn obey(&mut self, orders: Orders) {
        let handle = self.handle.clone();
        self.control = Some(orders.answered_by(move |question| control::answer(question, &handle)));
    }

    /// The loop.
    pub fn handle(&self) -> &Handle<LiveDrive> {
        &self.handle
    }

    /// What clients are told of the drives.
    pub fn exports(&self) -> &[Export] {
        &self.exports
    }

    /// A way to a drive from other threads.
    pub fn port(&self, drive: usize) -> Arc<dyn Port> {
        let Export { size, minimum_block, .. } = self.exports[drive];
        self.handle.port(drive, size, minimum_block)
    }

    /// Asks the scheduler to run the loop before all ordinary threads.
    ///
    /// # Errors
    /// What the kernel says; it wants a privilege.
    pub fn real_time(&self) -> io::Result<()> {
        self.handle
            .call(|_, _| lowtide_host::live::real_time())
            .unwrap_or_else(|| Err(io::Error::other("the loop has ended")))
    }

    /// Waits until the loop has ended by itself, or was told to; gives the drives back.
    pub fn wait(self) -> Vec<LiveDrive> {
        self.thread.join().expect("the loop does not panic")
    }
}
