//! A listening unix socket that only its owner can use, and that is removed at the end ([`UnixSocket`]).
//!
//! A stale socket at the path is replaced; any other file is left unchanged. Abstract sockets are not supported,
//! because they have no permissions.

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Length of the kernel's queue of connections.
const BACKLOG: i32 = 128;

/// A listening unix socket and its file.
#[derive(Debug)]
pub struct UnixSocket {
    path: PathBuf,
    /// Device and inode, so that another file at the path is not removed.
    identity: (u64, u64),
}

impl UnixSocket {
    /// Listens on `path`. The error is the end of a sentence.
    pub fn listen(path: &Path) -> Result<(OwnedFd, UnixSocket), String> {
        let address = SocketAddrUnix::new(path).map_err(|_| {
            format!("the path has {} bytes, but a unix socket may have at most 107", path.as_os_str().len())
        })?;
        remove_stale(path, &address)?;
        let socket = socket().map_err(|error| error.to_string())?;
        let prepared = rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)
            // The file gets the mode of the socket (less the umask), so there is no moment with other permissions.
            .and_then(|()| rustix::net::bind(&socket, &address))
            .and_then(|()| rustix::net::listen(&socket, BACKLOG));
        prepared.map_err(|error| match error {
            Errno::ADDRINUSE => "another server has just taken the path".to_owned(),
            error => io::Error::from(error).to_string(),
        })?;
        let made = path.symlink_metadata().map_err(|error| error.to_string())?;
        // A relative path must refer to the same file at the end.
        let path = std::path::absolute(path).map_err(|error| error.to_string())?;
        Ok((socket, UnixSocket { path, identity: (made.dev(), made.ino()) }))
    }

    /// The absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        let ours = |found: std::fs::Metadata| (found.dev(), found.ino()) == self.identity;
        if self.path.symlink_metadata().is_ok_and(ours) {
            // If removing fails, the next server replaces the file.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Removes a socket on which no server listens.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> Result<(), String> {
    let found = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|error| error.to_string())?,
    };
    if !found.file_type().is_socket() {
        return Err("the file exists and is not a socket: choose a free path".to_owned());
    }
    let probe = socket().map_err(|error| error.to_string())?;
    match rustix::net::connect(&probe, address) {
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path)
            .map_err(|error| format!("the socket of a server that ended cannot be removed: {error}")),
        Err(Errno::NOENT) => Ok(()),
        Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE) => {
            Err("another server listens there: end it, or choose another path".to_owned())
        }
        Err(error) => Err(format!("the path is a socket that cannot be used: {}", io::Error::from(error))),
    }
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}
