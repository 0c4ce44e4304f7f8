//! [`Destination`]: the file or free name that a path leads to after following symbolic links, and comparison of
//! destinations.
//!
//! Only links in the last component are followed here; the kernel resolves the folders before it. A path to an open
//! descriptor (`/dev/stdout`, `/dev/fd/3`) is not followed further, because the open file is written in place. A path
//! whose resolved text names another file ([`Unreachable::Elsewhere`]) has no destination.
//!
//! Checks against data loss are in the parent module.

use rustix::fs::{AtFlags, CWD, PROC_SUPER_MAGIC, StatxFlags, statfs, statx};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of links followed: the kernel's limit.
const MOST_LINKS: usize = 40;

/// The end of a path.
#[derive(Debug)]
pub(super) struct Destination {
    /// The folder, with its links resolved.
    pub folder: PathBuf,
    /// The folder joined with the file name.
    pub path: PathBuf,
    /// Metadata of the file; `None` if the name is free.
    pub found: Option<Metadata>,
    /// Whether the path is a link to an open descriptor of a process.
    pub is_descriptor: bool,
}

/// The reason why a path has no destination.
#[derive(Debug)]
pub(super) enum Unreachable {
    /// The folder is missing, or is not a directory.
    NoFolder,
    /// The text of the path, with links resolved, names another file. Links in `/proc` (`PID/root`, `PID/cwd`,
    /// `self/fd/3`) and the working directory can lead into other mount namespaces, below later mounts and into
    /// deleted folders. No path text leads to such a file.
    Elsewhere,
    /// The path cannot be examined.
    Io(io::Error),
}

impl Destination {
    /// Follows a path to a file or a free name.
    pub fn of(named: &Path) -> Result<Destination, Unreachable> {
        let mut path = named.to_owned();
        for _ in 0..MOST_LINKS {
            let Some(name) = path.file_name().map(OsStr::to_owned) else {
                // `/`, `.` and `..` are folders, not links.
                let path = canonical(&path)?;
                let found = Some(path.metadata().map_err(Unreachable::Io)?);
                return Ok(Destination { folder: path.clone(), path, found, is_descriptor: false });
            };
            let above = path.parent().filter(|above| !above.as_os_str().is_empty());
            let folder = canonical(above.unwrap_or(Path::new(".")))?;
            if !folder.is_dir() {
                return Err(Unreachable::NoFolder);
            }
            let at = folder.join(name);
            let in_proc = is_proc(&folder);
            if in_proc && folder.ends_with("fd") {
                let found = Some(at.metadata().map_err(Unreachable::Io)?);
                return Ok(Destination { folder, path: at, found, is_descriptor: true });
            }
            match at.symlink_metadata() {
                Ok(found) if found.is_symlink() => {
                    path = folder.join(at.read_link().map_err(Unreachable::Io)?);
                    if in_proc && identity_and_mount(&at).ok() != identity_and_mount(&path).ok() {
                        return Err(Unreachable::Elsewhere);
                    }
                }
                Ok(found) => {
                    return Ok(Destination { folder, path: at, found: Some(found), is_descriptor: false });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Destination { folder, path: at, found: None, is_descriptor: false });
                }
                Err(error) => return Err(Unreachable::Io(error)),
            }
        }
        Err(Unreachable::Io(Errno::LOOP.into()))
    }

    /// The number of the descriptor, if this process has it open.
    pub fn own_descriptor(&self) -> Option<&OsStr> {
        let own = Path::new("/proc").join(std::process::id().to_string());
        self.path.file_name().filter(|_| self.is_descriptor && self.folder.starts_with(own))
    }

    /// Whether both are the same file, by device and inode, or the same free name.
    pub fn is_same(&self, other: &Destination) -> bool {
        match (&self.found, &other.found) {
            (Some(this), Some(other)) => identity(this) == identity(other),
            (None, None) => {
                let folder = |place: &Destination| place.folder.metadata().ok().as_ref().map(identity);
                self.path.file_name() == other.path.file_name() && folder(self) == folder(other)
            }
            _ => false,
        }
    }

    /// Whether a path leads to the same file or the same free name.
    pub fn is_at(&self, path: &Path) -> bool {
        match (&self.found, path.metadata()) {
            (Some(this), Ok(other)) => identity(this) == identity(&other),
            _ => Destination::of(path).is_ok_and(|other| self.is_same(&other)),
        }
    }

    /// The path with `ending` removed from the file name; `None` if the name does not end so.
    pub fn without(&self, ending: &str) -> Option<PathBuf> {
        let name = self.path.file_name()?.as_bytes().strip_suffix(ending.as_bytes())?;
        (!name.is_empty()).then(|| self.folder.join(OsString::from_vec(name.to_owned())))
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Device and inode, and the mount that the path leads through, if the kernel reports it (since 5.8).
fn identity_and_mount(path: &Path) -> io::Result<((u64, u64), Option<u64>)> {
    let found = path.metadata()?;
    let mount = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok();
    let mount = mount.filter(|found| found.stx_mask & StatxFlags::MNT_ID.bits() != 0);
    Ok((identity(&found), mount.map(|found| found.stx_mnt_id)))
}

/// Resolves the links of a folder.
fn canonical(path: &Path) -> Result<PathBuf, Unreachable> {
    let is_missing =
        |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    let named = identity_and_mount(path).map_err(|error| match is_missing(&error) {
        true => Unreachable::NoFolder,
        false => Unreachable::Io(error),
    })?;
    let resolved = path.canonicalize().and_then(|text| Ok((identity_and_mount(&text)?, text)));
    match resolved {
        Ok((found, text)) if found == named => Ok(text),
        Err(error) if !is_missing(&error) => Err(Unreachable::Io(error)),
        _ => Err(Unreachable::Elsewhere),
    }
}

/// Whether a folder is in a proc filesystem, whose links may lead elsewhere than their text.
fn is_proc(folder: &Path) -> bool {
    statfs(folder).is_ok_and(|filesystem| filesystem.f_type == PROC_SUPER_MAGIC)
}
