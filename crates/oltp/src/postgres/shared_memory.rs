//! The shared memory of a PostgreSQL server of our own: noted while the server runs, removed if it was killed.
//!
//! A killed server leaves a System V segment and files in `/dev/shm`. Its next start on the same cluster would remove
//! them, but the cluster of a killed lowtide is deleted. So a file next to the server's socket lists its shared
//! memory. If lowtide outlives the server, [`Noted`] removes the listed memory; if not, the code that removes that
//! directory ([`crate::folder`]) does so first. Memory that a process still uses, or that now belongs to another
//! server, is never removed.
//!
//! # Not handled
//! - Memory of parallel queries that were running when the server was killed, if the server's own list of it was
//!   overwritten.
//! - Servers with a `dynamic_shared_memory_type` other than `posix`; these leave nothing in `/dev/shm`.
//!
//! Source: PostgreSQL, `src/backend/utils/init/miscinit.c` (`postmaster.pid`) and `src/backend/storage/ipc/dsm.c`.

use crate::OltpError;
use crate::server::{POLL, io_error};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The name of the note.
pub(crate) const NOTE: &str = "shared-memory";
const FIRST_LINE: &str = "lowtide 1 shared memory";
/// The folder of POSIX shared memory.
const POSIX: &str = "/dev/shm";
/// Prefix of PostgreSQL's files there.
const PREFIX: &str = "PostgreSQL.";
/// `PG_DYNSHMEM_CONTROL_MAGIC`, with which the list of a server's files begins.
const CONTROL: u32 = 0x9a50_3d32;
/// Bytes before the list's entries, and bytes of an entry (`dsm_control_header`, `dsm_control_item` since PostgreSQL
/// 14).
const HEADER: usize = 16;
const ENTRY: usize = 40;
/// Maximum bytes of a list that are read.
const LIST: u64 = 1 << 20;

/// A System V segment: its key, its id and the process that created it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    key: i64,
    id: i64,
    creator: i64,
}

/// Time limit for the processes of a killed server to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// The note of a server's shared memory. Dropping it after the server's process has ended removes the memory that the
/// server left.
#[derive(Debug)]
pub(super) struct Noted(PathBuf);

impl Drop for Noted {
    fn drop(&mut self) {
        let begin = Instant::now();
        while !remove(&self.0) && begin.elapsed() < PATIENCE {
            std::thread::sleep(POLL);
        }
    }
}

/// Lists the shared memory of the server on cluster `data` with process id `postmaster`. The note of a server without
/// such memory is empty.
///
/// # Errors
/// [`OltpError`] if the note cannot be written.
pub(super) fn note(run: &Path, data: &Path, postmaster: u32) -> Result<Noted, OltpError> {
    let mut text = format!("{FIRST_LINE}\n");
    // The seventh line holds the key and the id of the segment.
    let pid_file = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    if let Some((key, id)) = pid_file.lines().nth(6).and_then(two) {
        // The kernel lists keys as signed numbers.
        let key = i64::from((key as u32).cast_signed());
        let _ = writeln!(text, "segment {key} {id} {postmaster}");
    }
    for file in files_of(postmaster) {
        let inode = fs::metadata(&file).map(|metadata| metadata.ino());
        if let (Ok(inode), Some(name)) = (inode, file.file_name().and_then(|name| name.to_str())) {
            let _ = writeln!(text, "file {inode} {name}");
        }
    }
    let path = run.join(NOTE);
    fs::write(&path, text).map_err(|source| io_error(&path, source))?;
    Ok(Noted(path))
}

fn two(line: &str) -> Option<(i64, i64)> {
    let mut numbers = line.split_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// PostgreSQL's files in `/dev/shm` that a process has mapped.
fn files_of(process: u32) -> BTreeSet<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let begin = format!("{POSIX}/{PREFIX}");
    maps.lines().filter_map(|line| line.find(&begin).map(|at| PathBuf::from(&line[at..]))).collect()
}

/// Removes the memory that a note lists, unless a process still uses it; returns `false` in that case.
pub(crate) fn remove(note: &Path) -> bool {
    let Ok(text) = fs::read_to_string(note) else { return true };
    let mut lines = text.lines();
    if lines.next() != Some(FIRST_LINE) {
        return true;
    }
    let listed = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let mut segments = Vec::new();
    let mut files = Vec::new();
    for line in lines {
        if let Some(segment) = line.strip_prefix("segment ").and_then(noted_segment) {
            match users(&listed, segment) {
                Some(0) => segments.push(segment),
                // A process of the server is still ending.
                Some(_) => return false,
                None => {}
            }
        } else if let Some((inode, name)) = line.strip_prefix("file ").and_then(|rest| rest.split_once(' ')) {
            files.extend(noted_file(inode, name));
        }
    }
    for file in &files {
        for of_list in listed_files(file).iter().chain([file]) {
            let _ = fs::remove_file(of_list);
        }
    }
    for segment in segments {
        let mut ipcrm = Command::new("ipcrm");
        ipcrm.args(["-m", &segment.id.to_string()]).stdin(Stdio::null());
        let _ = ipcrm.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
    true
}

fn noted_segment(line: &str) -> Option<Segment> {
    let mut numbers = line.split_whitespace().map(|number| number.parse().ok());
    Some(Segment { key: numbers.next()??, id: numbers.next()??, creator: numbers.next()?? })
}

/// Number of processes attached to a segment, by the kernel's list; `None` if the segment is gone or belongs to
/// another server.
fn users(listed: &str, segment: Segment) -> Option<i64> {
    listed.lines().find_map(|line| {
        // key shmid perms size cpid lpid nattch …
        let fields: Vec<i64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
        let same = fields.len() > 6
            && [fields[0], fields[1], fields[4]] == [segment.key, segment.id, segment.creator];
        same.then(|| fields[6])
    })
}

/// The path of a noted file, if its inode is still the same.
fn noted_file(inode: &str, name: &str) -> Option<PathBuf> {
    let plain = name.strip_prefix(PREFIX)?.bytes().all(|byte| byte.is_ascii_digit());
    let path = Path::new(POSIX).join(name);
    let same = plain && fs::symlink_metadata(&path).ok()?.ino() == inode.parse::<u64>().ok()?;
    same.then_some(path)
}

/// The files in a server's list that have the same owner; empty if this file is not a list.
fn listed_files(list: &Path) -> Vec<PathBuf> {
    let mut bytes = Vec::new();
    let Ok(file) = fs::File::open(list) else { return Vec::new() };
    let owner = |path: &Path| fs::symlink_metadata(path).map(|metadata| metadata.uid()).ok();
    if file.take(LIST).read_to_end(&mut bytes).is_err() {
        return Vec::new();
    }
    let named = handles(&bytes).into_iter().map(|handle| Path::new(POSIX).join(format!("{PREFIX}{handle}")));
    named.filter(|path| owner(path).is_some() && owner(path) == owner(list)).collect()
}

/// The handles in use in a server's list.
fn handles(list: &[u8]) -> Vec<u32> {
    let number = |at: usize| {
        list.get(at..at + 4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four of them")))
    };
    if number(0) != Some(CONTROL) {
        return Vec::new();
    }
    let entries = number(4).unwrap_or(0) as usize;
    let entry = |at: usize| Some((number(at)?, number(at + 4)?));
    let all = (0..entries).map_while(|entry_number| entry(HEADER + entry_number * ENTRY));
    // An entry without references is free. Entries with odd handles are in the server's main memory and have no file.
    all.filter(|(_, references)| *references > 0).map(|(handle, _)| handle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_known_by_key_number_and_creator() {
        let listed = "       key      shmid perms  size  cpid  lpid nattch   uid   gid\n\
                      \x20 5432001         7   600    56   812   900      2   104   113\n\
                      \x20-5432002         8   600    56   813   901      0   104   113\n";
        assert_eq!(users(listed, Segment { key: 5432001, id: 7, creator: 812 }), Some(2));
        assert_eq!(users(listed, Segment { key: -5432002, id: 8, creator: 813 }), Some(0));
        assert_eq!(users(listed, Segment { key: -5432002, id: 8, creator: 814 }), None, "another's");
    }

    #[test]
    fn a_list_names_the_handles_in_use() {
        let mut list = vec![0; HEADER + 3 * ENTRY];
        let mut put = |at: usize, value: u32| list[at..at + 4].copy_from_slice(&value.to_le_bytes());
        put(0, CONTROL);
        put(4, 3);
        for (number, (handle, references)) in [(4711, 2), (4712, 0), (4713, 1)].into_iter().enumerate() {
            put(HEADER + number * ENTRY, handle);
            put(HEADER + number * ENTRY + 4, references);
        }
        assert_eq!(handles(&list), [4711, 4713]);
        assert_eq!(handles(&list[..HEADER + ENTRY]), [4711], "cut off");
        assert_eq!(handles(b"something else entirely"), Vec::<u32>::new());
    }

    #[test]
    fn what_was_noted_must_be_a_file_of_postgresql_that_is_still_the_same() {
        assert_eq!(noted_file("1", "PostgreSQL.../../etc/passwd"), None);
        assert_eq!(noted_file("1", "other"), None);
        assert_eq!(noted_file("1", "PostgreSQL.4294967299"), None);
    }
}
