//! The status of a served log disk, for other processes ([`announce`], [`ask`]).
//!
//! A served log disk answers at an abstract socket, whose name is derived from the file or block device that holds
//! the log disk. The socket disappears with the process. An attached log disk also answers at its control socket.
//!
//! NBD and attaching pass their clients to [`Service::handle`].

use super::{Figures, LogDrive};
use crate::Service;
use crate::control::{self, Answer, AskError, Controlled, Order, Question, Report};
use lowtide_host::live::{Drive, Handle};
use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;

impl Controlled for LogDrive {
    fn answer(question: Question, handle: &Handle<LogDrive>) -> Answer {
        if question.order != Order::Stat {
            return Answer::Error("a log disk takes no orders; it only reports its status".to_owned());
        }
        let usage = handle.usage();
        let figures = handle.call(move |drives, now_ns| {
            let figures = drives.iter_mut().map(|drive| {
                let name = drive.export().name.clone();
                Figures::of_served(drive.disk(), &name, now_ns as f64 / 1e9, usage)
            });
            figures.collect()
        });
        match figures {
            Some(log_disks) => Answer::Ok(Box::new(Report { log_disks, ..Report::default() })),
            None => Answer::Error("the server is ending".to_owned()),
        }
    }
}

/// Answers calls of [`ask`] for `target`, the file or block device that holds the log disk.
///
/// # Errors
/// The socket or its thread cannot be created.
pub fn announce(service: &Service<LogDrive>, target: &Path) -> io::Result<()> {
    let listener = UnixListener::bind_addr(&address(target)?)?;
    let answer = service.answer();
    std::thread::Builder::new().spawn(move || control::serve(&listener, answer)).map(drop)
}

/// Asks the process that serves the log disk in `target` for its figures.
///
/// # Errors
/// [`AskError`] if no process serves the log disk, or its answer cannot be read.
pub fn ask(target: &Path) -> Result<Figures, AskError> {
    let nobody = |why: String| AskError::Nobody { socket: target.to_owned(), why };
    let stream = address(target).and_then(|address| UnixStream::connect_addr(&address));
    let stream = stream.map_err(|error| nobody(error.to_string()))?;
    let report = control::ask_over(stream, target, &Question { drive: None, order: Order::Stat })?;
    report.log_disks.into_iter().next().ok_or_else(|| nobody("not a log disk".to_owned()))
}

/// The name of the socket for a file or block device, independent of its path.
fn address(target: &Path) -> io::Result<SocketAddr> {
    let metadata = fs::metadata(target)?;
    let name = if metadata.file_type().is_block_device() {
        format!("lowtide-logdisk-device-{}", metadata.rdev())
    } else {
        format!("lowtide-logdisk-file-{}-{}", metadata.dev(), metadata.ino())
    };
    SocketAddr::from_abstract_name(name)
}
