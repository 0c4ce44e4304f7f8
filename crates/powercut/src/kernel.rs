//! Kernel messages about a block device and its filesystem ([`KernelLog`]). A database only gets "I/O error"; the
//! kernel's messages have the details.
//!
//! # Not handled
//! Messages that name no device are ignored. Without permission to read the kernel's log, no messages are returned.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Maximum record size of `/dev/kmsg` in bytes, as defined by the kernel.
const LONGEST: usize = 8192;
/// Maximum number of messages returned by one call.
const MOST: usize = 100;

/// The messages of the kernel since [`KernelLog::from_now`].
#[derive(Debug)]
pub(super) struct KernelLog {
    /// `None` if the log is unreadable.
    file: Option<File>,
}

impl KernelLog {
    /// Opens the log at its end.
    pub(super) fn from_now() -> KernelLog {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open("/dev/kmsg", flags, Mode::empty()).map(File::from);
        let at_end = |mut file: File| file.seek(SeekFrom::End(0)).map(|_| file).ok();
        KernelLog { file: opened.ok().and_then(at_end) }
    }

    /// Returns new messages that name one of `devices`.
    pub(super) fn of(&mut self, devices: &[String]) -> Vec<String> {
        let mut record = vec![0; LONGEST];
        let mut lines = Vec::new();
        while let Some(file) = &mut self.file {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(length) => lines.extend(message(&String::from_utf8_lossy(&record[..length]))),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The kernel overwrote records before they were read. The next read continues with the oldest
                // remaining record.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => break,
            }
        }
        lines.retain(|line| devices.iter().any(|device| names(line, device)));
        lines.truncate(MOST);
        lines
    }
}

/// The text of a record such as `6,1234,5678,-;text`. The lines after the first hold other fields.
fn message(record: &str) -> Option<String> {
    let (_, text) = record.split_once(';')?;
    text.lines().next().map(str::to_owned)
}

/// Returns whether `line` names `device`. `loop10` does not name `loop1`.
fn names(line: &str, device: &str) -> bool {
    line.match_indices(device)
        .any(|(at, _)| !line[at + device.len()..].starts_with(|c: char| c.is_ascii_digit()))
}

/// The kernel's name of the loop device below a mounted filesystem.
pub(super) fn loop_device(mounted: &Path) -> Option<String> {
    let number = std::fs::metadata(mounted).ok()?.dev();
    Some(format!("loop{}", rustix::fs::minor(number)))
}

/// Returns the files below a directory that cannot be read to the end, each with its error. SQLite reports a database
/// in such a file as malformed.
pub(super) fn unreadable(directory: &Path) -> Vec<String> {
    let mut unreadable = Vec::new();
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return vec![format!("{}: {error}", directory.display())],
    };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => unreadable.extend(self::unreadable(&path)),
            Ok(kind) if kind.is_file() => {
                let read =
                    File::open(&path).and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()));
                unreadable.extend(read.err().map(|error| format!("{}: {error}", path.display())));
            }
            _ => {}
        }
    }
    unreadable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_a_device_and_have_no_prefix() {
        let record = "3,926,1003237725,-;XFS (loop1): Log I/O Error (0x6) detected\n SUBSYSTEM=block\n";
        let line = message(record).expect("a message");
        assert_eq!(line, "XFS (loop1): Log I/O Error (0x6) detected");
        assert!(names(&line, "loop1") && !names(&line, "loop"));
        assert!(!names("I/O error, dev loop10, sector 8", "loop1"));
    }

    #[test]
    fn only_unreadable_files_are_reported() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("here"), b"bytes").expect("written");
        assert!(unreadable(directory.path()).is_empty());
        assert_eq!(unreadable(&directory.path().join("gone")).len(), 1);
    }
}
