//! [`Destination`]: where a path leads when its links are followed, what is there, and whether two paths lead
//! to the same place.
//!
//! Only the last part of a path matters here: the kernel follows links in the folders before it. A path that
//! leads to a descriptor of a process (`/dev/stdout`, `/dev/fd/3`) ends there: the open file is written to as
//! it is. A path whose resolved text names something else ([`Unreachable::Elsewhere`]) has no destination.
//! Not here: whether anything may be written.

use rustix::fs::{AtFlags, CWD, PROC_SUPER_MAGIC, StatxFlags, statfs, statx};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most links that are followed, as many as the kernel follows.
const MOST_LINKS: usize = 40;

/// The end of a path.
#[derive(Debug)]
pub(super) struct Destination {
    /// The folder, with its links resolved.
    pub folder: PathBuf,
    /// The folder and the name in it.
    pub path: PathBuf,
    /// What is there; `None` if nothing is.
    pub found: Option<Metadata>,
    /// Whether it is a descriptor that a process has open.
    pub is_descriptor: bool,
}

/// Why a path leads nowhere.
#[derive(Debug)]
pub(super) enum Unreachable {
    /// The folder does not exist, or is not a folder.
    NoFolder,
    /// The text of the path, with links resolved, names something else. Links in `/proc` (`PID/root`, `PID/cwd`,
    /// `self/fd/3`) and the working directory reach into other mount namespaces, below later mounts and into
    /// deleted folders, where no text leads.
    Elsewhere,
    /// The place cannot be examined.
    Io(io::Error),
}

impl Destination {
    /// Follows a path to its end, which may be a name that is free.
    pub fn of(named: &Path) -> Result<Destination, Unreachable> {
        let mut path = named.to_owned();
        for _ in 0..MOST_LINKS {
            let Some(name) = path.file_name().map(OsStr::to_owned) else {
                // `/`, `.` or `..`: a folder, without links.
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

    /// The number of the descriptor, if it is one of this process.
    pub fn own_descriptor(&self) -> Option<&OsStr> {
        let own = Path::new("/proc").join(std::process::id().to_string());
        self.path.file_name().filter(|_| self.is_descriptor && self.folder.starts_with(own))
    }

    /// Whether both lead to the same file, by device and inode, or to the same free name.
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

    /// Whether a path leads to the same file, or to the same free name.
    pub fn is_at(&self, path: &Path) -> bool {
        match (&self.found, path.metadata()) {
            (Some(this), Ok(other)) => identity(this) == identity(&other),
            _ => Destination::of(path).is_ok_and(|other| self.is_same(&other)),
        }
    }

    /// The path whose name, with `ending` added, is the name of this one.
    pub fn without(&self, ending: &str) -> Option<PathBuf> {
        let name = self.path.file_name()?.as_bytes().strip_suffix(ending.as_bytes())?;
        (!name.is_empty()).then(|| self.folder.join(OsString::from_vec(name.to_owned())))
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Device and inode, and the mount through which a path leads there if the kernel reports it (since 5.8).
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

/// Whether a folder is of a proc filesystem, whose links may lead where their text does not.
fn is_proc(folder: &Path) -> bool {
    statfs(folder).is_ok_and(|filesystem| filesystem.f_type == PROC_SUPER_MAGIC)
}
