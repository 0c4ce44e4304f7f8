//! A unix socket to listen on ([`UnixSocket`]): made for its owner alone, and removed at the end.
//!
//! A socket that nobody listens on any more is replaced; anything else in its place is left alone. Not here: abstract
//! sockets, which have no permissions.

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// A listening unix socket and its file.
#[derive(Debug)]
pub struct UnixSocket {
    path: PathBuf,
    /// Device and inode: another file in its place is not removed.
    identity: (u64, u64),
}

impl UnixSocket {
    /// Listens on `path`. An error is the rest of a sentence.
    pub fn listen(path: &Path) -> Result<(OwnedFd, UnixSocket), String> {
        let address = SocketAddrUnix::new(path).map_err(|_| {
            format!("the path has {} bytes, and a unix socket's at most 107", path.as_os_str().len())
        })?;
        make_way(path, &address)?;
        let socket = socket().map_err(|error| error.to_string())?;
        let prepared = rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)
            // The file takes the mode of the socket, less the umask: nobody else can come in between.
            .and_then(|()| rustix::net::bind(&socket, &address))
            .and_then(|()| rustix::net::listen(&socket, BACKLOG));
        prepared.map_err(|error| match error {
            Errno::ADDRINUSE => "another server took the path just now".to_owned(),
            error => io::Error::from(error).to_string(),
        })?;
        let made = path.symlink_metadata().map_err(|error| error.to_string())?;
        // A relative path must mean the same file at the end.
        let path = std::path::absolute(path).map_err(|error| error.to_string())?;
        Ok((socket, UnixSocket { path, identity: (made.dev(), made.ino()) }))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        let ours = |found: std::fs::Metadata| (found.dev(), found.ino()) == self.identity;
        if self.path.symlink_metadata().is_ok_and(ours) {
            // A file that stays is replaced by the next server.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Removes a socket that nobody listens on.
fn make_way(path: &Path, address: &SocketAddrUnix) -> Result<(), String> {
    let found = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|error| error.to_string())?,
    };
    if !found.file_type().is_socket() {
        return Err("the file exists and is no socket: name a path that is free".to_owned());
    }
    let probe = socket().map_err(|error| error.to_string())?;
    match rustix::net::connect(&probe, address) {
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path)
            .map_err(|error| format!("the socket of a server that ended cannot be removed: {error}")),
        Err(Errno::NOENT) => Ok(()),
        Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE) => {
            Err("another server listens there: end it, or name another path".to_owned())
        }
        Err(error) => Err(format!("there is a socket already: {}", io::Error::from(error))),
    }
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}
