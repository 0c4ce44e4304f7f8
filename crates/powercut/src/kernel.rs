//! Messages of the kernel about a block device and the filesystem on it ([`KernelLog`]): a database only gets
//! "I/O error".
//!
//! Not here: messages that name no device, and kernels whose log may not be read.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Longest record of `/dev/kmsg` in bytes, as the kernel defines it.
const LONGEST: usize = 8192;
/// Most messages that are kept.
const MOST: usize = 100;

/// The messages of the kernel from a moment on.
#[derive(Debug)]
pub(super) struct KernelLog {
    /// `None` if it cannot be read.
    file: Option<File>,
}

impl KernelLog {
    /// Messages from now on.
    pub(super) fn from_now() -> KernelLog {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open("/dev/kmsg", flags, Mode::empty()).map(File::from);
        let at_end = |mut file: File| file.seek(SeekFrom::End(0)).map(|_| file).ok();
        KernelLog { file: opened.ok().and_then(at_end) }
    }

    /// Messages about one of these block devices since then, or since the last call.
    pub(super) fn of(&mut self, devices: &[String]) -> Vec<String> {
        let mut record = vec![0; LONGEST];
        let mut lines = Vec::new();
        while let Some(file) = &mut self.file {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(length) => lines.extend(message(&String::from_utf8_lossy(&record[..length]))),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Records that were overwritten before they were read are lost; the next one is there.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => break,
            }
        }
        lines.retain(|line| devices.iter().any(|device| names(line, device)));
        lines.truncate(MOST);
        lines
    }
}

/// The text of a record: `6,1234,5678,-;text`, and fields on lines of their own.
fn message(record: &str) -> Option<String> {
    let (_, text) = record.split_once(';')?;
    text.lines().next().map(str::to_owned)
}

/// Whether a message names a device: `loop1` is not `loop10`.
fn names(line: &str, device: &str) -> bool {
    line.match_indices(device)
        .any(|(at, _)| !line[at + device.len()..].starts_with(|c: char| c.is_ascii_digit()))
}

/// The kernel's name of the loop device under a mounted filesystem.
pub(super) fn loop_device(mounted: &Path) -> Option<String> {
    let number = std::fs::metadata(mounted).ok()?.dev();
    Some(format!("loop{}", rustix::fs::minor(number)))
}

/// Files below a directory that cannot be read to the end, and why: SQLite calls the database of such a file
/// malformed.
pub(super) fn unreadable(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return vec![format!("{}: {error}", directory.display())],
    };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(unreadable(&path)),
            Ok(kind) if kind.is_file() => {
                let read =
                    File::open(&path).and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()));
                found.extend(read.err().map(|error| format!("{}: {error}", path.display())));
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_of_a_device_and_have_no_prefix() {
        let record = "3,926,1003237725,-;XFS (loop1): Log I/O Error (0x6) detected\n SUBSYSTEM=block\n";
        let line = message(record).expect("a message");
        assert_eq!(line, "XFS (loop1): Log I/O Error (0x6) detected");
        assert!(names(&line, "loop1") && !names(&line, "loop"));
        assert!(!names("I/O error, dev loop10, sector 8", "loop1"));
    }

    #[test]
    fn what_can_be_read_is_not_told() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("here"), b"bytes").expect("written");
        assert!(unreadable(directory.path()).is_empty());
        assert_eq!(unreadable(&directory.path().join("gone")).len(), 1);
    }
}
