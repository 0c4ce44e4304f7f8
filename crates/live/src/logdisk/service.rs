//! A log disk that is served ([`Service`]): the loop on a thread of its own, and where it is asked how it is.
//!
//! It is asked by what it lies in ([`ask`]): its figures are told to whoever on this machine names the same file or block device, at
//! an abstract socket, which goes with the process. An attached one takes the same question at its control socket.
//! Not here: clients; NBD and attaching hand theirs to [`Service::handle`].

use super::{Figures, LogDrive};
use crate::Orders;
use crate::control::{self, Answer, AskError, Order, Question, Report};
use lowtide_host::live::{Buffers, Clock, Drive, Handle, Port, Server};
use lowtide_host::nbd::Export;
use lowtide_host::nbd::unix_socket::UnixSocket;
use lowtide_logdisk::BLOCK;
use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

/// A log disk that is served.
pub struct Service {
    handle: Handle<LogDrive>,
    export: Export,
    thread: JoinHandle<Vec<LogDrive>>,
    /// Removed at the end.
    control: Option<UnixSocket>,
}

impl Service {
    /// Serves a log disk from now on, until it is ended. Clients share `buffers`.
    ///
    /// # Errors
    /// Where there are no file descriptors or threads to be had.
    pub fn start(drive: LogDrive, buffers: Buffers) -> io::Result<Service> {
        let export = drive.export().clone();
        let (server, handle) = Server::new(vec![drive], Clock::new())?;
        let server = server.with_buffers(buffers);
        let thread = std::thread::Builder::new().name("log disk".to_owned()).spawn(move || server.run())?;
        Ok(Service { handle, export, thread, control: None })
    }

    /// Tells how it is to whoever names the file or block device `target`, in which it lies.
    ///
    /// # Errors
    /// What the system says.
    pub fn tell_of(&self, target: &Path) -> io::Result<()> {
        let listener = UnixListener::bind_addr(&address(target)?)?;
        let answer = self.answer();
        std::thread::Builder::new().spawn(move || control::serve(&listener, answer)).map(drop)
    }

    /// Answers questions at a control socket from now on, those that have come already too.
    pub fn obey(&mut self, orders: Orders) {
        self.control = Some(orders.answered_by(self.answer()));
    }

    fn answer(&self) -> impl Fn(Question) -> Answer + Clone + Send + 'static + use<> {
        let handle = self.handle.clone();
        move |question| match question.order {
            Order::Stat => {
                let usage = handle.usage();
                let figures = handle.call(move |drives, now_ns| {
                    let figures = drives.iter_mut().map(|drive| {
                        let name = drive.export().name.clone();
                        Figures::of_served(drive.disk(), &name, now_ns as f64 / 1e9, usage)
                    });
                    figures.collect()
                });
                match figures {
                    Some(figures) => Answer::Ok(Box::new(Report::of_log_disks(figures))),
                    None => Answer::Error("the server is going away".to_owned()),
                }
            }
            _ => Answer::Error("this is a log disk, which says how it is and takes no orders".to_owned()),
        }
    }

    /// The loop.
    pub fn handle(&self) -> &Handle<LogDrive> {
        &self.handle
    }

    /// What clients are told of it.
    pub fn export(&self) -> &Export {
        &self.export
    }

    /// A way to it from other threads, by whole blocks.
    pub fn port(&self) -> Arc<dyn Port> {
        self.handle.port(0, self.export.size, BLOCK as u32)
    }

    /// Waits until the loop was told to end; gives the log disk back.
    pub fn wait(self) -> LogDrive {
        self.thread.join().expect("the loop does not panic").pop().expect("there is one")
    }
}

/// How the log disk is that lies in a file or on a block device, and that another process serves.
///
/// # Errors
/// [`AskError`] where nobody does, or nobody says so.
pub fn ask(target: &Path) -> Result<Figures, AskError> {
    let nobody = |why: String| AskError::Nobody { socket: target.to_owned(), why };
    let stream = address(target).and_then(|address| UnixStream::connect_addr(&address));
    let stream = stream.map_err(|error| nobody(error.to_string()))?;
    let report = control::ask_over(stream, target, &Question { drive: None, order: Order::Stat })?;
    report.log_disks.into_iter().next().ok_or_else(|| nobody("it is no log disk".to_owned()))
}

/// The name of a socket for what lies in a file or on a block device, whatever path leads there.
fn address(target: &Path) -> io::Result<SocketAddr> {
    let metadata = fs::metadata(target)?;
    let name = if metadata.file_type().is_block_device() {
        format!("lowtide-logdisk-device-{}", metadata.rdev())
    } else {
        format!("lowtide-logdisk-file-{}-{}", metadata.dev(), metadata.ino())
    };
    SocketAddr::from_abstract_name(name)
}
