//! [`Marker`]: identifies the files that lowtide made.
//!
//! The marker is the extended attribute `user.lowtide` or, if the filesystem does not support attributes, a sidecar
//! `NAME.lowtide` in the same directory. It contains `lowtide 1 inode=N size=BYTES state=filling|full`, and the word
//! `kept` at the end if the file is kept for later runs.
//!
//! The inode number ties the marker to the file: a copy, or another file that was moved to the name, is not
//! recognised. If a user overwrites a marked file in place, lowtide treats the new contents as its own.

use crate::error::{HostError, Operation};
use lowtide_core::Bytes;
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const ATTRIBUTE: &str = "user.lowtide";
const VERSION: &str = "lowtide 1";

/// The content of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    inode: u64,
    pub(super) size: Bytes,
    /// Whether every byte was written.
    pub(super) full: bool,
    /// Whether the file is kept. Without this flag, a file outside a run is left over from a run that could not
    /// remove it.
    pub(super) kept: bool,
}

impl Marker {
    /// Reads the marker of `file` at `path`; `None` if the file has none, or has the marker of another file.
    pub(super) fn read(file: &File, path: &Path) -> Result<Option<Marker>, HostError> {
        let mut text = [0; 256];
        let found = match rustix::fs::fgetxattr(file, ATTRIBUTE, &mut text[..]) {
            Ok(length) => Marker::parse(&text[..length]),
            Err(Errno::NODATA | Errno::RANGE | Errno::OPNOTSUPP | Errno::PERM) => {
                std::fs::read(sidecar(path)).ok().and_then(|text| Marker::parse(&text))
            }
            Err(error) => return Err(HostError::io(Operation::Inspect, path)(error)),
        };
        let inode = file.metadata().map_err(HostError::io(Operation::Inspect, path))?.ino();
        Ok(found.filter(|marker| marker.inode == inode))
    }

    /// Marks `file` at `path`.
    pub(super) fn write(
        file: &File,
        path: &Path,
        size: Bytes,
        full: bool,
        kept: bool,
    ) -> Result<(), HostError> {
        let fail = |error: io::Error| HostError::io(Operation::Mark, path)(error);
        let inode = file.metadata().map_err(fail)?.ino();
        let text = Marker { inode, size, full, kept }.to_text();
        match rustix::fs::fsetxattr(file, ATTRIBUTE, text.as_bytes(), XattrFlags::empty()) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::PERM | Errno::NOSPC) => write_sidecar(&sidecar(path), &text),
            Err(error) => Err(fail(error.into())),
        }
    }

    /// Removes the sidecar of `path` if lowtide made it.
    pub(super) fn remove_sidecar(path: &Path) {
        let sidecar = sidecar(path);
        if std::fs::read(&sidecar).is_ok_and(|text| Marker::parse(&text).is_some()) {
            let _ = std::fs::remove_file(sidecar);
        }
    }

    fn to_text(self) -> String {
        let state = if self.full { "full" } else { "filling" };
        let kept = if self.kept { " kept" } else { "" };
        format!("{VERSION} inode={} size={} state={state}{kept}\n", self.inode, self.size.get())
    }

    fn parse(text: &[u8]) -> Option<Marker> {
        let words = || std::str::from_utf8(text).ok()?.strip_prefix(VERSION).map(str::split_whitespace);
        let field = |name: &str| words()?.find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        Some(Marker {
            inode: field("inode")?.parse().ok()?,
            size: Bytes::new(field("size")?.parse().ok()?),
            full: field("state")? == "full",
            kept: words()?.any(|word| word == "kept"),
        })
    }
}

fn sidecar(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lowtide");
    name.into()
}

/// Writes a sidecar. Overwrites only a sidecar that lowtide made.
fn write_sidecar(path: &Path, text: &str) -> Result<(), HostError> {
    let fail = |error: io::Error| HostError::io(Operation::Mark, path)(error);
    let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mut old = OpenOptions::new().read(true).write(true).open(path).map_err(fail)?;
            let mut found = Vec::new();
            (&old).take(256).read_to_end(&mut found).map_err(fail)?;
            if Marker::parse(&found).is_none() {
                return Err(HostError::NotOurs(path.to_owned()));
            }
            io::Seek::rewind(&mut old).map_err(fail)?;
            old.set_len(0).map_err(fail)?;
            old
        }
        created => created.map_err(fail)?,
    };
    file.write_all(text.as_bytes()).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_round_trips_and_other_text_is_rejected() {
        for kept in [false, true] {
            let marker = Marker { inode: 7, size: Bytes::mib(3), full: true, kept };
            assert_eq!(Marker::parse(marker.to_text().as_bytes()), Some(marker));
        }
        for junk in
            ["", "lowtide 2 inode=7 size=3 state=full", "lowtide 1 inode=x size=3 state=full", "lowtide 1"]
        {
            assert_eq!(Marker::parse(junk.as_bytes()), None, "{junk}");
        }
    }

    #[test]
    fn a_sidecar_never_replaces_a_file_of_the_user() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("data.lowtide");
        std::fs::write(&path, "my notes").expect("written");
        let text = Marker { inode: 7, size: Bytes::mib(3), full: true, kept: false }.to_text();
        assert!(matches!(write_sidecar(&path, &text), Err(HostError::NotOurs { .. })));
        assert_eq!(std::fs::read(&path).expect("readable"), b"my notes");
        std::fs::remove_file(&path).expect("removed");
        write_sidecar(&path, &text).expect("made");
        write_sidecar(&path, &text).expect("replaced");
        assert_eq!(std::fs::read(&path).expect("readable"), text.as_bytes());
    }
}
