//! [`Folder`]: a directory of our own for a while, and what killed processes left of theirs.
//!
//! The file `.lowtide` in it says so, and is locked as long as its process lives: numbers of processes are given again, and
//! those of containers are the same in each. What has no such file, or is locked, is somebody else's, whatever it is called.
//! Where a filesystem knows no locks the directory is not marked, and what a killed process leaves there stays. Not here:
//! what is in it.

use crate::postgres::shared_memory;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How the names of such directories begin.
const PREFIX: &str = "lowtide-";
/// The file that marks them, and all that it says.
const MARKER: &str = ".lowtide";
const FIRST_LINE: &str = "lowtide 1 directory\n";
/// How far down servers keep their sockets, and beside them the note of their shared memory: `run/cell-N`.
const DEPTH: u32 = 2;
/// How many names are tried.
const ATTEMPTS: u32 = 1000;

/// A directory of our own. Dropping it removes it with all that is in it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Held open for its lock.
    _marker: Option<File>,
    /// It was removed.
    gone: bool,
}

impl Folder {
    /// Makes `lowtide-NAME-PROCESS` in directory `within`, with another number behind it where that is taken. Servers that
    /// run as users of their own may pass.
    ///
    /// # Errors
    /// Where `within` is not there or nothing can be made in it.
    pub fn make(within: &Path, name: &str) -> io::Result<Folder> {
        let plain = format!("{PREFIX}{name}-{}", std::process::id());
        let others = (1..ATTEMPTS).map(|number| format!("{plain}-{number}"));
        for name in std::iter::once(plain.clone()).chain(others) {
            let path = within.join(name);
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    let mut folder = Folder { path, _marker: None, gone: false };
                    folder._marker = mark(&folder.path)?;
                    fs::set_permissions(&folder.path, Permissions::from_mode(0o755))?;
                    return Ok(folder);
                }
            }
        }
        Err(io::Error::other(format!("{ATTEMPTS} names like {plain} are taken")))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it with all that is in it.
    ///
    /// # Errors
    /// Where something in it cannot be removed.
    pub fn remove(mut self) -> io::Result<()> {
        self.gone = true;
        empty_and_remove(&self.path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.gone {
            // Whoever wants to know calls `remove`; what stays is found by the next one.
            let _ = empty_and_remove(&self.path);
        }
    }
}

/// Marks a directory as ours; `None` where there are no locks.
fn mark(folder: &Path) -> io::Result<Option<File>> {
    let path = folder.join(MARKER);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    match flock(&file, FlockOperation::LockExclusive) {
        Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
            fs::remove_file(&path)?;
            return Ok(None);
        }
        locked => locked?,
    }
    // Whoever locked it before found nothing in it, and left it.
    file.write_all(FIRST_LINE.as_bytes())?;
    Ok(Some(file))
}

/// The marker goes last: what cannot be removed now is still known to be ours.
fn empty_and_remove(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() == MARKER {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    fs::remove_dir_all(folder)
}

/// Removes the directories in `within` that processes made with [`Folder::make`] which are gone now, with the shared memory
/// that is noted in them.
pub fn remove_left_over(within: &Path) {
    let Ok(entries) = fs::read_dir(within) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if let Some(_locked) = left(&entry.path()) {
            remove_shared_memory(&entry.path(), DEPTH);
            // What cannot be removed is tried again by the next one.
            let _ = empty_and_remove(&entry.path());
        }
    }
}

/// Removes the shared memory of killed servers that is noted in a directory, at most so many directories down.
fn remove_shared_memory(directory: &Path, depth: u32) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => remove_shared_memory(&entry.path(), depth - 1),
            Ok(kind) if kind.is_file() && entry.file_name() == shared_memory::NOTE => {
                // Where a process still ends, all of it is for the next one.
                let _ = shared_memory::remove(&entry.path());
            }
            _ => {}
        }
    }
}

/// The marker of a directory that a process left which is gone, locked.
fn left(folder: &Path) -> Option<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file =
        OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(folder.join(MARKER));
    let file = file.ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let metadata = file.metadata().ok()?;
    // Another may have removed it between opening and locking.
    let ours = metadata.is_file() && metadata.nlink() > 0;
    if !ours || metadata.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    let mut text = String::new();
    (&file).take(FIRST_LINE.len() as u64).read_to_string(&mut text).ok()?;
    (text == FIRST_LINE).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(within: &Path) -> Vec<String> {
        let entries = fs::read_dir(within).expect("there").flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().into_string().expect("plain")).collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_goes_with_all_that_is_in_it_and_one_that_is_held_stays() {
        let within = tempfile::tempdir().expect("a folder");
        let (one, other) = (Folder::make(within.path(), "oltp"), Folder::make(within.path(), "oltp"));
        let (one, other) = (one.expect("made"), other.expect("made"));
        assert_ne!(one.path(), other.path(), "a process may have two");
        fs::create_dir_all(one.path().join("sets/set-0")).expect("made");
        fs::write(one.path().join("sets/set-0/rows"), "rows").expect("written");
        remove_left_over(within.path());
        assert_eq!(names(within.path()).len(), 2, "both are held");
        drop(one);
        assert_eq!(names(within.path()).len(), 1);
        other.remove().expect("removed");
        assert_eq!(names(within.path()), Vec::<String>::new());
    }

    /// Symptom: a directory of the user's own that was called `lowtide-oltp-4711` was deleted, and what a killed process left
    /// stayed in a container whose processes have the same number each time. Cause: the name alone decided. Fix: the marker.
    #[test]
    fn what_was_left_goes_whatever_its_number_and_what_is_not_ours_stays() {
        let within = tempfile::tempdir().expect("a folder");
        let make = |name: &str, marker: Option<&str>| {
            let path = within.path().join(name);
            fs::create_dir_all(path.join("cell/data-0")).expect("made");
            fs::write(path.join("cell/data-0/rows"), "rows").expect("written");
            if let Some(text) = marker {
                fs::write(path.join(MARKER), text).expect("written");
            }
        };
        // The number of a process that lives, and that of none.
        let alive = format!("lowtide-oltp-{}", std::process::id());
        make(&alive, Some(FIRST_LINE));
        make("lowtide-oltp-4194304", Some(FIRST_LINE));
        make("lowtide-oltp-4194303", None);
        make("lowtide-oltp-4194302", Some("my notes\n"));
        make("lowtide-oltp-4194301", Some(""));
        make("notes", Some(FIRST_LINE));
        let elsewhere = tempfile::tempdir().expect("a folder");
        fs::write(elsewhere.path().join(MARKER), FIRST_LINE).expect("written");
        std::os::unix::fs::symlink(elsewhere.path(), within.path().join("lowtide-link")).expect("linked");
        remove_left_over(within.path());
        let stay =
            ["lowtide-link", "lowtide-oltp-4194301", "lowtide-oltp-4194302", "lowtide-oltp-4194303", "notes"];
        assert_eq!(names(within.path()), stay);
        assert_eq!(names(elsewhere.path()), [MARKER], "a link leads to somebody else's");
        assert!(within.path().join("lowtide-oltp-4194303/cell/data-0/rows").exists());
    }

    #[test]
    fn a_name_that_is_taken_is_left_alone() {
        let within = tempfile::tempdir().expect("a folder");
        let taken = within.path().join(format!("lowtide-oltp-{}", std::process::id()));
        fs::create_dir(&taken).expect("made");
        fs::write(taken.join("notes"), "mine").expect("written");
        let folder = Folder::make(within.path(), "oltp").expect("made");
        assert_ne!(folder.path(), taken);
        drop(folder);
        assert_eq!(names(&taken), ["notes"]);
        let missing = Folder::make(&within.path().join("no-such"), "oltp").expect_err("not there");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
