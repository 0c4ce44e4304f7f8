//! [`Folder`]: a temporary directory of our own, and the removal of directories that killed processes left behind.
//!
//! The file `.lowtide` marks such a directory, and its process holds a lock on the file. The name alone is not
//! enough, because process ids are reused and containers have the same ids. A directory whose marker is missing or
//! locked by another process is never removed, whatever its name.
//!
//! # Not handled
//! Filesystems without locks: the directory is not marked there, and a killed process leaves it behind.

use crate::postgres::shared_memory;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Prefix of the names of such directories.
const PREFIX: &str = "lowtide-";
/// Name and content of the marker file.
const MARKER: &str = ".lowtide";
const FIRST_LINE: &str = "lowtide 1 directory\n";
/// Depth of the directories in which servers keep sockets and the note of their shared memory: `run/cell-N`.
const DEPTH: u32 = 2;
/// Maximum number of names to try.
const ATTEMPTS: u32 = 1000;

/// A directory of our own. Dropping it removes the directory and its contents.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Held open for its lock.
    _marker: Option<File>,
    /// Set once the directory is removed.
    gone: bool,
}

impl Folder {
    /// Creates `lowtide-NAME-PROCESS` in directory `within`, with a number appended if that name is taken. Servers
    /// that run as other users may traverse the directory.
    ///
    /// # Errors
    /// If `within` does not exist or the directory cannot be created.
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

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory and its contents.
    ///
    /// # Errors
    /// If an entry cannot be removed.
    pub fn remove(mut self) -> io::Result<()> {
        self.gone = true;
        empty_and_remove(&self.path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.gone {
            // Callers that need the error call `remove`. The next process removes leftovers.
            let _ = empty_and_remove(&self.path);
        }
    }
}

/// Marks a directory as ours; `None` if the filesystem has no locks.
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
    // A process that held the lock before saw an empty marker and left the directory alone.
    file.write_all(FIRST_LINE.as_bytes())?;
    Ok(Some(file))
}

/// Removes the contents of a directory, then the marker, then the directory. If an entry cannot be removed, the
/// marker still identifies the directory as ours.
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

/// Removes the directories in `within` whose processes have ended, and the shared memory noted in them. Only
/// directories made with [`Folder::make`] are removed.
pub fn remove_left_over(within: &Path) {
    let Ok(entries) = fs::read_dir(within) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if let Some(_locked) = left(&entry.path()) {
            remove_shared_memory(&entry.path(), DEPTH);
            // The next process retries entries that cannot be removed.
            let _ = empty_and_remove(&entry.path());
        }
    }
}

/// Removes the shared memory of killed servers that is noted in a directory, down to `depth` levels of
/// subdirectories.
fn remove_shared_memory(directory: &Path, depth: u32) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => remove_shared_memory(&entry.path(), depth - 1),
            Ok(kind) if kind.is_file() && entry.file_name() == shared_memory::NOTE => {
                // Memory that a process still uses is not removed.
                let _ = shared_memory::remove(&entry.path());
            }
            _ => {}
        }
    }
}

/// Opens and locks the marker of a directory whose process has ended.
fn left(folder: &Path) -> Option<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file =
        OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(folder.join(MARKER));
    let file = file.ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let metadata = file.metadata().ok()?;
    // Another process may have removed the file between opening and locking.
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

    /// Symptom: a user's own directory named `lowtide-oltp-4711` was deleted, and in a container with fixed process
    /// ids the directory of a killed process was never removed. Cause: the name alone decided. Fix: the marker.
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
        // The id of a running process, and ids that no process has.
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
