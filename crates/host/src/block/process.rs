//! Programs that use a device or a file now: open, mapped into memory, or registered with an io_uring.
//!
//! A descriptor is identified by its [`Resource`], not by its name: a device node may have any path, be removed, or
//! be in another root or mount namespace. The survey includes threads with their own descriptors, and files that a
//! program has mapped and closed. Processes that cannot be examined are recorded in [`Unseen`], because a write is
//! permitted only if every use is known.
//!
//! The survey queries no filesystem server, because it would hang if the server does not answer. A served file is
//! recognised by the mount that it was opened on, since its path belongs to another mount namespace.
//!
//! # Not handled
//! This process itself, programs on other machines, and programs that open the device after the survey.

use super::disk::{Number, line};
use super::kernel::share_descriptors;
use super::loops::Resource;
use super::overlay::{Original, Overlays};
use crate::mountinfo::Mount;
use crate::objection::Objection;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, Dir, StatxFlags, readlinkat, statx};
use rustix::io::Errno;
use rustix::path::Arg;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Inode of the first PID namespace (`PROC_PID_INIT_INO` of <linux/proc_ns.h>).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";
/// Number of the capability to examine all processes, even if /proc hides them (<linux/capability.h>).
const CAP_SYS_PTRACE: u32 = 19;

/// A process, with its threads.
#[derive(Debug)]
pub(super) struct Process {
    pub number: u32,
    pub threads: Vec<u32>,
}

/// A program that uses a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct User {
    /// The resource.
    pub resource: Resource,
    /// The program, for messages: `qemu (process 12)`.
    pub by: String,
}

/// Processes and files of the kernel that cannot be examined.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    /// Processes that this user may not examine.
    processes: BTreeSet<u32>,
    texts: BTreeSet<String>,
    /// Descriptors in transit through sockets, which will soon belong to a process.
    passing: BTreeSet<String>,
}

impl Unseen {
    /// Records a process that cannot be examined. Ignores a process that has ended. Also ignores process 1 if a
    /// security module hides it from a user who may examine all others: process 1 opens disks only to mount them,
    /// which the kernel reports.
    pub(super) fn process(&mut self, process: &Process, error: &io::Error) {
        let is_hidden_init = process.number == 1 && may_examine_all();
        if !is_gone(error) && !is_hidden_init {
            self.processes.insert(process.number);
        }
    }

    /// Records a file of the kernel that cannot be read.
    pub(super) fn text(&mut self, path: &str, error: &io::Error) {
        self.texts.insert(format!("{path} cannot be read: {error}"));
    }

    /// Adds reasons why uses are unknown.
    pub(super) fn extend(&mut self, why: impl IntoIterator<Item = String>) {
        self.texts.extend(why);
    }

    /// Adds the records of `other`.
    pub(super) fn join(&mut self, other: Unseen) {
        self.processes.extend(other.processes);
        self.texts.extend(other.texts);
        self.passing.extend(other.passing);
    }

    /// The records as objections.
    pub(super) fn objections(&self) -> impl Iterator<Item = Objection> {
        let passing = self.passing.iter().cloned().map(Objection::Passing);
        passing.chain(self.lasting().into_iter().map(Objection::Unknown))
    }

    /// The records other than descriptors in transit.
    fn lasting(&self) -> Vec<String> {
        let mut all: Vec<String> = self.texts.iter().cloned().collect();
        if let Some(first) = self.processes.first() {
            let more = match self.processes.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            all.push(format!("this user may not examine {}{more}: start lowtide as root", name(*first)));
        }
        all
    }
}

/// Returns whether a process or thread ended while it was examined. `EINVAL` means that it no longer has mounts.
fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::SRCH | Errno::INVAL))
}

/// A process for messages: `sleep (process 12)`.
pub(super) fn name(process: u32) -> String {
    let program = line(Path::new(&format!("/proc/{process}/comm")));
    format!("{} (process {process})", program.unwrap_or_else(|| "a program".to_owned()))
}

/// The folder of a thread in /proc. For the first thread this is the process's own folder, which is faster to look
/// up.
pub(super) fn folder(process: u32, thread: u32) -> String {
    if process == thread { format!("/proc/{process}") } else { format!("/proc/{process}/task/{thread}") }
}

/// All processes except this one.
pub(super) fn all(unseen: &mut Unseen) -> Vec<Process> {
    let this = std::process::id();
    let numbers = |folder: &str| -> io::Result<Vec<u32>> {
        let names = fs::read_dir(folder)?.flatten().map(|entry| entry.file_name());
        Ok(names.filter_map(|name| name.to_str()?.parse().ok()).collect())
    };
    let mut all = Vec::new();
    let processes = numbers("/proc").inspect_err(|error| unseen.text("/proc", error)).unwrap_or_default();
    for number in processes.into_iter().filter(|number| *number != this) {
        let mut process = Process { number, threads: Vec::new() };
        match numbers(&format!("/proc/{number}/task")) {
            Ok(threads) => process.threads = threads,
            Err(error) => unseen.process(&process, &error),
        }
        all.push(process);
    }
    all
}

/// Checks whether /proc shows all processes of the machine.
pub(super) fn check_view(own: &[Mount], unseen: &mut Unseen) {
    match fs::read_link("/proc/self/ns/pid") {
        Err(error) => unseen.text("/proc/self/ns/pid", &error),
        Ok(namespace) if namespace.as_os_str() == FIRST_PID_NAMESPACE => {}
        Ok(_) => unseen.extend([
            "only the processes of this PID namespace are visible: start lowtide in that of the machine \
             (of a container: --pid=host)"
                .to_owned(),
        ]),
    }
    let hides = own
        .iter()
        .filter(|mount| mount.filesystem == "proc" && mount.point == "/proc")
        .any(|mount| mount.option("hidepid").is_some_and(|level| !["0", "off"].contains(&level)));
    if hides && !may_examine_all() {
        unseen.extend(["/proc hides processes from this user (hidepid): start lowtide as root".to_owned()]);
    }
}

/// Returns whether this process may examine all others.
fn may_examine_all() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    effective.is_some_and(|set| set & (1 << CAP_SYS_PTRACE) != 0)
}

/// A search for programs that use the wanted resources.
pub(super) struct Survey<'a> {
    wanted: &'a BTreeSet<Resource>,
    /// The wanted files, which overlay filesystems may show under other numbers.
    originals: Vec<Original>,
    overlays: Overlays,
    /// Filesystems whose files are not examined, because their servers may not answer.
    avoided: Avoided,
    /// The resource of each mapped file, by the end of its line in `maps`. A cache, because all processes map the
    /// same libraries.
    mapped: HashMap<String, Option<Resource>>,
    users: BTreeSet<User>,
    unseen: &'a mut Unseen,
}

impl<'a> Survey<'a> {
    /// A search for users of `wanted`; `originals` are the files among these. Files on served mounts are skipped,
    /// unless such a file is wanted.
    pub(super) fn new(
        wanted: &'a BTreeSet<Resource>,
        originals: Vec<Original>,
        overlays: Overlays,
        mounts: impl Iterator<Item = &'a Mount>,
        unseen: &'a mut Unseen,
    ) -> Survey<'a> {
        let avoided = Avoided::new(wanted, mounts);
        let (mapped, users) = (HashMap::new(), BTreeSet::new());
        Survey { wanted, originals, overlays, avoided, mapped, users, unseen }
    }

    /// Searches these processes for users.
    pub(super) fn of(mut self, processes: &[Process]) -> BTreeSet<User> {
        for process in processes {
            let mut examined: Vec<u32> = Vec::new();
            for &thread in &process.threads {
                // Threads share their descriptors, except those that unshared them or have ended.
                if examined.iter().any(|other| share_descriptors(*other, thread) == Some(true)) {
                    continue;
                }
                examined.push(thread);
                if let Err(error) = self.descriptors(process.number, thread) {
                    self.unseen.process(process, &error);
                }
            }
            // All threads share one address space. If the first thread has ended, only the other threads show its
            // files.
            for &thread in &process.threads {
                match self.mappings(process.number, thread) {
                    Ok(false) => {}
                    Ok(true) => break,
                    Err(error) => self.unseen.process(process, &error),
                }
            }
        }
        self.users
    }

    fn add(&mut self, resource: Resource, process: u32, how: &str) {
        if self.wanted.contains(&resource) {
            let by = name(process);
            let by = if how.is_empty() { by } else { format!("{}, {how})", by.trim_end_matches(')')) };
            self.users.insert(User { resource, by });
        }
    }

    /// Maps `found`, the resource at `path` in `folder`, to a wanted resource: `found` itself, or the file that an
    /// overlay filesystem shows as `found`.
    fn wanted(
        &self,
        found: Resource,
        folder: impl AsFd,
        path: impl Arg + Copy,
        is_overlay: impl Fn() -> Option<bool>,
    ) -> Option<Resource> {
        if self.wanted.contains(&found) {
            return Some(found);
        }
        let Resource::File(id) = found else { return None };
        let folder = folder.as_fd();
        let mut originals = self.originals.iter();
        let original = originals.find(|it| it.is_shown_as(id, folder, path, &is_overlay))?;
        Some(Resource::File(original.id))
    }

    /// The wanted resource at a path.
    fn named(&self, path: &str) -> Option<Resource> {
        let found = Resource::at(Path::new(path))?;
        let is_overlay = || match found {
            Resource::File(id) => self.overlays.have_filesystem(id.device),
            _ => Some(false),
        };
        self.wanted(found, CWD, path, is_overlay)
    }

    fn descriptors(&mut self, process: u32, thread: u32) -> io::Result<()> {
        let path = format!("{}/fd", self::folder(process, thread));
        let folder = File::open(path)?;
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name.to_bytes().first() == Some(&b'.') {
                continue;
            }
            let details = || details(process, thread, name);
            if !self.avoided.mounts.is_empty()
                && mount_of(&details()).is_some_and(|mount| self.avoided.mounts.contains(&mount))
            {
                continue;
            }
            self.descriptor(process, thread, &folder, name)?;
        }
        Ok(())
    }

    fn descriptor(&mut self, process: u32, thread: u32, folder: &File, name: &CStr) -> io::Result<()> {
        let mask = StatxFlags::TYPE | StatxFlags::INO;
        let status = match statx(folder, name, AtFlags::STATX_DONT_SYNC, mask) {
            Ok(status) => status,
            // A FUSE filesystem of another user rejects everybody else. Its files are on no device.
            Err(Errno::ACCESS | Errno::PERM) => {
                let accessible = statx(folder, name, AtFlags::STATX_DONT_SYNC, StatxFlags::empty());
                return accessible.map(drop).map_err(io::Error::from);
            }
            // Closed in the meantime, or a file whose server has ended.
            Err(_) => return Ok(()),
        };
        let details = || details(process, thread, name);
        if let Some(resource) = Resource::of(&status) {
            let is_overlay = || self.overlays.have_mount(mount_of(&details()));
            if let Some(resource) = self.wanted(resource, folder, name, is_overlay) {
                self.add(resource, process, "");
            }
            return Ok(());
        }
        let kind = u32::from(status.stx_mode) & libc::S_IFMT;
        if kind == libc::S_IFSOCK {
            // Descriptors that were sent but not received yet belong to no process.
            let in_transit = details()
                .lines()
                .any(|line| line.strip_prefix("scm_fds:").is_some_and(|number| number.trim() != "0"));
            if in_transit {
                let process = super::process::name(process);
                self.unseen.passing.insert(format!("open files are being handed over to {process}"));
            }
        } else if kind == 0
            && readlinkat(folder, name, Vec::new())
                .is_ok_and(|link| link.to_bytes() == b"anon_inode:[io_uring]")
        {
            for path in registered(&details()) {
                let path = format!("{}/root/{path}", self::folder(process, thread));
                if let Some(resource) = self.named(&path) {
                    self.add(resource, process, "registered with an io_uring");
                }
            }
        }
        Ok(())
    }

    /// Examines the mapped files of a process. Returns whether the process has any mappings.
    fn mappings(&mut self, process: u32, thread: u32) -> io::Result<bool> {
        let text = fs::read(format!("{}/maps", self::folder(process, thread)))?;
        let mut folder = None;
        // A file whose name is not UTF-8 is still found by its numbers.
        for line in String::from_utf8_lossy(&text).lines() {
            let Some((range, filesystem, end)) = mapping(line) else { continue };
            if let Some(known) = self.mapped.get(end) {
                if let Some(resource) = *known {
                    self.add(resource, process, "mapped");
                }
                continue;
            }
            let path = end.find('/').map(|at| &end[at..]);
            if self.avoided.filesystems.contains(&filesystem) {
                continue;
            }
            let folder = match &folder {
                Some(folder) => folder,
                None => folder.insert(File::open(format!("/proc/{process}/map_files"))?),
            };
            let mask = StatxFlags::TYPE | StatxFlags::INO;
            let resource = match statx(folder, range, AtFlags::STATX_DONT_SYNC, mask) {
                Ok(status) => {
                    let is_overlay = || self.overlays.have_filesystem(filesystem);
                    Resource::of(&status).and_then(|it| self.wanted(it, &*folder, range, is_overlay))
                }
                // Unmapped in the meantime; or the first thread has ended, and only the names remain.
                Err(Errno::NOENT) => {
                    let named = path.map(|path| format!("{}/root{path}", self::folder(process, thread)));
                    if let Some(resource) = named.and_then(|path| self.named(&path)) {
                        self.add(resource, process, "mapped");
                    }
                    continue;
                }
                Err(error @ (Errno::ACCESS | Errno::PERM)) => {
                    statx(folder, range, AtFlags::STATX_DONT_SYNC, StatxFlags::empty()).map_err(|_| error)?;
                    None
                }
                Err(_) => None,
            };
            if let Some(resource) = resource {
                self.add(resource, process, "mapped");
            }
            self.mapped.insert(end.to_owned(), resource);
        }
        Ok(!text.is_empty())
    }
}

/// Served filesystems that are not examined.
///
/// Served filesystems on which device nodes can be opened are examined nevertheless, because only the status of a
/// file shows that it is a device. FUSE and NFS answer from cached attributes.
#[derive(Default)]
struct Avoided {
    /// Numbers of their mounts.
    mounts: BTreeSet<u64>,
    /// Numbers of the filesystems.
    filesystems: BTreeSet<Number>,
}

impl Avoided {
    fn new<'a>(wanted: &BTreeSet<Resource>, mounts: impl Iterator<Item = &'a Mount>) -> Avoided {
        let is_wanted = |mount: &Mount| {
            wanted.iter().any(|it| matches!(it, Resource::File(file) if file.device == mount.number))
        };
        let served = mounts.filter(|mount| mount.is_served() && !is_wanted(mount));
        let (with_nodes, without): (Vec<&Mount>, Vec<&Mount>) = served.partition(|mount| mount.has_nodes());
        // A line of `maps` names only the filesystem, which another mount may show with device nodes.
        let is_plain = |number: &Number| with_nodes.iter().all(|mount| mount.number != *number);
        Avoided {
            mounts: without.iter().map(|mount| mount.id).collect(),
            filesystems: without.iter().map(|mount| mount.number).filter(is_plain).collect(),
        }
    }
}

/// The `fdinfo` of a descriptor; empty if it was closed in the meantime.
fn details(process: u32, thread: u32, name: &CStr) -> String {
    let path = format!("{}/fdinfo/{}", folder(process, thread), name.to_string_lossy());
    fs::read_to_string(path).unwrap_or_default()
}

/// The number of the mount that a descriptor was opened on, from its `fdinfo`.
fn mount_of(details: &str) -> Option<u64> {
    details.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok())
}

/// The address range, the number of the filesystem, and the file (device, inode, path) in a line of `maps`; `None` if
/// no file is mapped there.
fn mapping(line: &str) -> Option<(&str, Number, &str)> {
    // 7f12-7f34 r--s 00000000 00:06 123                        /dev/sdb
    let mut words = line.splitn(4, ' ');
    let (range, _, _, end) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let mut words = end.split(' ');
    let (major, minor) = words.next()?.split_once(':')?;
    let hexadecimal = |text| u32::from_str_radix(text, 16).ok();
    let filesystem = (hexadecimal(major)?, hexadecimal(minor)?);
    (words.next()? != "0").then_some((range, filesystem, end))
}

/// The files that are registered with an io_uring, as its `fdinfo` names them.
fn registered(text: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| !line.starts_with("UserFiles:")).skip(1);
    let files = lines.map_while(|line| {
        let (number, path) = line.trim_start().split_once(": ")?;
        number.parse::<u32>().ok()?;
        Some(crate::mountinfo::unescape(path.trim_end()))
    });
    files.collect()
}

/// A lock on a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lock {
    /// The device number of the filesystem, as /proc/locks gives it, and the inode number.
    pub file: ((u32, u32), u64),
    /// The holder, for messages: `qemu (process 12, POSIX)`.
    pub by: String,
}

/// All locks except those of this process.
pub(super) fn locks(unseen: &mut Unseen) -> Vec<Lock> {
    let text = fs::read_to_string("/proc/locks").inspect_err(|error| unseen.text("/proc/locks", error));
    let mut names = BTreeMap::new();
    let mut name = |process: u32| names.entry(process).or_insert_with(|| self::name(process)).clone();
    text.unwrap_or_default().lines().filter_map(|line| lock(line, &mut name)).collect()
}

fn lock(line: &str, name: &mut dyn FnMut(u32) -> String) -> Option<Lock> {
    // 1: OFDLCK ADVISORY  WRITE -1 fe:00:10010678 0 EOF
    let mut words = line.split_whitespace().skip(1).skip_while(|word| *word == "->");
    let kind = words.next()?;
    let mut words = words.skip(2);
    let process = words.next()?;
    let mut file = words.next()?.split(':');
    let mut hexadecimal = || u32::from_str_radix(file.next()?, 16).ok();
    let device = (hexadecimal()?, hexadecimal()?);
    let inode = file.next()?.parse().ok()?;
    let by = match process.parse::<u32>() {
        Ok(process) if process == std::process::id() => return None,
        Ok(process) if process > 0 => format!("{}, {kind})", name(process).trim_end_matches(')')),
        // A lock of an open file description belongs to no particular process.
        _ => format!("a program ({kind})"),
    };
    Some(Lock { file: (device, inode), by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_files_are_parsed_and_others_ignored() {
        let line = "7f00-7f01 r--s 00001000 00:06 345                        /dev/my disk (deleted)";
        let (range, filesystem, end) = mapping(line).expect("a file");
        assert_eq!((range, filesystem), ("7f00-7f01", (0, 6)));
        let line = "7f00-7f01 r--s 00001000 103:1a 345    /x";
        assert_eq!(mapping(line), Some(("7f00-7f01", (0x103, 0x1a), "103:1a 345    /x")));
        assert!(end.starts_with("00:06 345 ") && end.ends_with("/dev/my disk (deleted)"));
        for other in
            ["7f00-7f01 rw-p 00000000 00:00 0 ", "7f00-7f01 rw-p 00000000 00:00 0    [heap]", "", "x"]
        {
            assert_eq!(mapping(other), None, "{other}");
        }
    }

    #[test]
    fn the_mount_of_a_descriptor_is_parsed() {
        assert_eq!(mount_of("pos:\t0\nflags:\t0100000\nmnt_id:\t45\nino:\t7\n"), Some(45));
        assert_eq!(mount_of(""), None);
    }

    #[test]
    fn locks_are_parsed_with_file_and_holder() {
        let text = "1: POSIX  ADVISORY  WRITE 7 fe:00:10010678 0 EOF\n1: -> POSIX  ADVISORY  WRITE 8 fe:00:10010678 0 EOF\n\
                    2: OFDLCK ADVISORY  WRITE -1 07:0103:12 100 200\n3: FLOCK\nnonsense";
        let mut name = |process: u32| format!("p (process {process})");
        let all: Vec<Lock> = text.lines().filter_map(|line| lock(line, &mut name)).collect();
        let image = ((0xfe, 0), 10_010_678);
        assert_eq!(
            all,
            [
                Lock { file: image, by: "p (process 7, POSIX)".to_owned() },
                Lock { file: image, by: "p (process 8, POSIX)".to_owned() },
                Lock { file: ((7, 0x103), 12), by: "a program (OFDLCK)".to_owned() },
            ]
        );
    }

    #[test]
    fn registered_files_are_parsed() {
        let text =
            "pos:\t0\nUserFiles:\t3\n    0: /dev/loop3\n    1: /a\\040b\nUserBufs:\t1\n    0: 0x7f/4096\n";
        assert_eq!(registered(text), ["/dev/loop3", "/a b"]);
        assert_eq!(registered("pos:\t0\n"), Vec::<String>::new());
    }

    #[test]
    fn processes_that_cannot_be_examined_are_recorded_unless_they_ended() {
        let mut unseen = Unseen::default();
        let mut record = |number, errno| {
            let process = Process { number, threads: vec![number] };
            unseen.process(&process, &io::Error::from_raw_os_error(errno));
            unseen.lasting()
        };
        assert_eq!(record(u32::MAX, libc::ESRCH), Vec::<String>::new());
        assert_eq!(record(u32::MAX, libc::ENOENT), Vec::<String>::new());
        record(u32::MAX, libc::EACCES);
        record(u32::MAX - 1, libc::EACCES);
        let text = unseen.lasting().join("\n");
        assert!(text.contains("a program (process 4294967294) and 1 more: start lowtide as root"), "{text}");
    }
}
