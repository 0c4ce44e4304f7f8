//! Users of a device and of its lower levels: mounts, swap, devices built on it, loop devices, programs, locks.
//!
//! ```text
//!   use                          source                                           identified by
//!   ───                          ──────                                           ─────────────
//!   mounts                       mountinfo of each mount namespace, /sys/fs/btrfs number of the device
//!   mounts of a file (erofs)     mountinfo of each mount namespace                filesystem and inode of the source
//!   swap, RAID, device mapper    /proc/swaps, holders/ in sysfs                   number of the device
//!   loop devices                 LOOP_GET_STATUS64 of each                        device; filesystem and inode
//!   open, mapped, registered     fd, map_files, fdinfo of each process and thread device; filesystem and inode
//!   locks                        /proc/locks                                      filesystem and inode
//!   any use known to the kernel  opening exclusively                              refusal
//! ```
//!
//! All uses are searched for at each level of the device's [`Chain`]: a user of the backing file of a loop device
//! uses the loop device. A file that an overlay filesystem shows is recognised by its attributes ([`Original`]).
//! Opening a device exclusively fails if it has any mount, swap or device above it, even one that this process cannot
//! see; the other sources supply the names. A source that cannot be read is an objection too.
//!
//! # Not handled
//! - Other machines, and programs that open the device after the examination.
//! - The servers of filesystems, and their use of their own files.
//! - Files that the kernel itself has open without showing them in /proc: the file of acct(2), further devices of an
//!   erofs, exports of NVMe and SCSI targets and USB gadgets, and file vdevs of ZFS.

use super::chain::{BackingFile, Chain, Device};
use super::disk::{Disk, Number, line, numbers};
use super::guard::{Guard, exclusive};
use super::loops::{Backing, FileId, LoopFile, Resource};
use super::namespace::Namespace;
use super::overlay::{Original, Overlays};
use super::patience::within;
use super::process::{self, Process, Survey, Unseen};
use crate::mountinfo;
use crate::objection::Objection;
use rustix::fs::CWD;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// Mount points without which a system cannot run.
const SYSTEM: [&str; 6] = ["/", "/boot", "/boot/efi", "/usr", "/var", "/etc"];
/// Options of mount(8) that name a second device (XFS).
const OPTIONS_OF_DEVICES: [&str; 2] = ["logdev", "rtdev"];
/// The offset in bytes and the value of the magic number of erofs (`fs/erofs/erofs_fs.h` of the kernel).
const EROFS_OFFSET: u64 = 1024;
const EROFS_MAGIC: u32 = 0xe0f5_e1e2;
/// Time limit for examining all processes, or one served file. Examining the memory of a process that waits
/// for its disk may block.
const PATIENCE: Duration = Duration::from_secs(30);

/// Holds the lower levels of a device.
///
/// # Errors
/// The users of these levels.
pub(super) fn guard(disk: &Disk) -> Result<Guard, Vec<Objection>> {
    let mut unseen = Unseen::default();
    let namespaces = Namespace::all(&process::all(&mut unseen), &mut unseen);
    Guard::take(&Chain::of(disk, &namespaces))
}

/// The users of a device. A `guard` means that this process holds the device and its lower levels.
pub(super) fn objections(disk: &Disk, guard: Option<&Guard>) -> Vec<Objection> {
    let mut unseen = Unseen::default();
    let processes = process::all(&mut unseen);
    let namespaces = Namespace::all(&processes, &mut unseen);
    process::check_view(Namespace::own_mounts(&namespaces), &mut unseen);
    let chain = Chain::of(disk, &namespaces);
    unseen.extend(chain.unknown.iter().cloned());
    let mut all = Objections { chain: &chain, all: Vec::new(), unseen };
    if disk.read_only {
        all.add(0, Objection::ReadOnly);
    }
    if !disk.partitions.is_empty() {
        all.add(0, Objection::PartitionTable(disk.partitions.join(", ")));
    }
    for (level, device) in chain.devices() {
        let found = all.all.len();
        mounts(device, &namespaces, level, &mut all);
        btrfs(device, level, &mut all);
        holders(&device.disk, level, &mut all);
        swaps(&mut all, level);
        let is_named = all.all.len() > found;
        if guard.is_none() {
            match exclusive(&device.disk.node, device.disk.number) {
                // The user is already among the objections.
                Err(Objection::Busy) if is_named => {}
                Err(what) => all.add(level, what),
                Ok(_) => {}
            }
        }
    }
    files_and_programs(&mut all, processes, namespaces);
    if guard.is_none() {
        locks(&mut all);
    }
    let Objections { all: mut objections, unseen, .. } = all;
    objections.extend(unseen.objections());
    objections.sort();
    objections.dedup();
    objections
}

/// The users of a file except this process.
pub(super) fn of_file(file: &File, path: &Path) -> Vec<Objection> {
    let Some(Resource::File(id)) = Resource::of_open(file) else { return Vec::new() };
    let mut unseen = Unseen::default();
    let processes = process::all(&mut unseen);
    let namespaces = Namespace::all(&processes, &mut unseen);
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let chain = Chain::of_file(&path, id, &namespaces);
    let mut all = Objections { chain: &chain, all: Vec::new(), unseen };
    swaps(&mut all, 0);
    files_and_programs(&mut all, processes, namespaces);
    locks(&mut all);
    // Unknown uses are ignored. Users without root privileges may test files too, and a file is not a whole device.
    all.all.sort();
    all.all
}

/// The loop devices over a file.
pub(super) fn loops_over(file: &File, path: &Path) -> Vec<Objection> {
    let Some(Resource::File(id)) = Resource::of_open(file) else { return Vec::new() };
    let overlays = Overlays::own();
    let original = Original::new(id, path, &overlays);
    let all = LoopFile::all(&mountinfo::of("self"), &[id.device]);
    let over = all.into_iter().filter(|other| match other.backing {
        Backing::Known(Resource::File(there)) => {
            there == id || is_shown_by(other, there, &original, &overlays)
        }
        _ => false,
    });
    over.map(|other| Objection::LoopBacking(other.node.display().to_string())).collect()
}

/// The objections to a device or file that were found so far.
struct Objections<'a> {
    chain: &'a Chain,
    all: Vec<Objection>,
    unseen: Unseen,
}

impl Objections<'_> {
    fn add(&mut self, level: usize, what: Objection) {
        self.all.push(match level {
            0 => what,
            below => Objection::Below { level: self.chain.levels[below].name(), what: Box::new(what) },
        });
    }

    /// The levels that are or contain a resource, by index.
    fn levels(&self, resource: Resource) -> Vec<usize> {
        self.chain.resources().filter(|(_, it)| *it == resource).map(|(level, _)| level).collect()
    }
}

/// The number of a device node, if it is one of `own`.
fn own_node(own: &[Number], path: &Path) -> Option<Number> {
    match Resource::at(path) {
        Some(Resource::Block(number)) if own.contains(&number) => Some(number),
        _ => None,
    }
}

fn name_of(number: Number) -> String {
    let folder = fs::canonicalize(format!("/sys/dev/block/{}:{}", number.0, number.1));
    let name = folder.ok().and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| format!("{}:{}", number.0, number.1))
}

/// Mounts of files, loop devices and programs at all levels.
fn files_and_programs(all: &mut Objections<'_>, processes: Vec<Process>, namespaces: Vec<Namespace>) {
    for (level, file) in all.chain.files() {
        mounts_of_file(file, &namespaces, level, all);
    }
    loops(all, Namespace::own_mounts(&namespaces));
    programs(all, processes, namespaces);
}

/// Mounts in all namespaces.
fn mounts(device: &Device, namespaces: &[Namespace], level: usize, all: &mut Objections<'_>) {
    let own = &device.numbers;
    let mut mounted: BTreeSet<(String, String)> = BTreeSet::new();
    for namespace in namespaces {
        for mount in &namespace.mounts {
            let node = |path: &str| {
                path.starts_with('/').then(|| own_node(own, &namespace.path(Path::new(path)))).flatten()
            };
            // Btrfs reports a device number that belongs to no device, so the source of the mount is used.
            let by_source =
                || (mount.number.0 == 0 && !mount.is_served()).then(|| node(&mount.source)).flatten();
            let number = own.contains(&mount.number).then_some(mount.number).or_else(by_source);
            if let Some(number) = number {
                // Many namespaces show the same mount.
                let seen = mounted.iter().any(|(device, at)| {
                    *device == name_of(number) && at.split(" in the mount").next() == Some(&mount.point)
                });
                if !seen {
                    mounted.insert((name_of(number), format!("{}{}", mount.point, namespace.suffix())));
                }
            }
            for option in OPTIONS_OF_DEVICES {
                if let Some(number) = mount.option(option).and_then(node) {
                    let by = vec![format!("the filesystem at {}{}", mount.point, namespace.suffix())];
                    all.add(level, Objection::Held { device: name_of(number), by });
                }
            }
        }
    }
    for (device, at) in mounted {
        let is_system = SYSTEM.contains(&at.as_str());
        all.add(level, if is_system { Objection::Root(at) } else { Objection::Mounted { device, at } });
    }
}

/// Adds mounts of a file without a loop device (erofs), in all namespaces.
fn mounts_of_file(file: &BackingFile, namespaces: &[Namespace], level: usize, all: &mut Objections<'_>) {
    let is_of_file = |mount: &&mountinfo::Mount| mount.filesystem == "erofs" && mount.number.0 == 0;
    for namespace in namespaces {
        for mount in namespace.mounts.iter().filter(is_of_file) {
            let at = format!("{}{}", mount.point, namespace.suffix());
            match is_source(file, mount, namespace, &all.chain.overlays) {
                Ok(false) => {}
                Ok(true) => {
                    let device = file.path.display().to_string();
                    all.add(level, Objection::Mounted { device, at });
                }
                Err(error) => {
                    let file = file.path.display();
                    let why = format!("whether {file} is the erofs at {at} cannot be determined: {error}");
                    all.unseen.extend([why]);
                }
            }
        }
    }
}

/// Returns whether a file is the source of a mounted erofs.
fn is_source(
    file: &BackingFile,
    mount: &mountinfo::Mount,
    namespace: &Namespace,
    overlays: &Overlays,
) -> io::Result<bool> {
    let source = Path::new(&mount.source);
    let path = namespace.path(source);
    let found = source.is_absolute().then(|| path.clone()).map(|path| {
        within(PATIENCE, move || Resource::at(&path)).ok_or_else(|| {
            io::Error::new(ErrorKind::TimedOut, format!("the server of {} does not answer", source.display()))
        })
    });
    match found.transpose()?.flatten() {
        Some(Resource::File(id)) => {
            Ok(id == file.original.id
                || file.original.is_shown_as(id, CWD, &path, || overlays.have(id, &path)))
        }
        // A source that is relative, belongs to another root, or no longer exists cannot be compared, so any erofs
        // matches.
        _ => is_erofs(&file.path),
    }
}

/// Returns whether a file holds an erofs.
fn is_erofs(path: &Path) -> io::Result<bool> {
    let mut magic = [0; 4];
    match File::open(path).and_then(|file| file.read_exact_at(&mut magic, EROFS_OFFSET)) {
        Ok(()) => Ok(u32::from_le_bytes(magic) == EROFS_MAGIC),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Adds mounted Btrfs filesystems with several devices, because mountinfo names only one of the devices.
fn btrfs(device: &Device, level: usize, all: &mut Objections<'_>) {
    for filesystem in fs::read_dir("/sys/fs/btrfs").into_iter().flatten().flatten() {
        let devices = fs::read_dir(filesystem.path().join("devices")).into_iter().flatten().flatten();
        for entry in devices {
            let number = line(&entry.path().join("dev")).and_then(|text| numbers(&text));
            if number.is_some_and(|number| device.numbers.contains(&number)) {
                let device = entry.file_name().to_string_lossy().into_owned();
                let by = vec![format!("the Btrfs filesystem {}", filesystem.file_name().to_string_lossy())];
                all.add(level, Objection::Held { device, by });
            }
        }
    }
}

/// Adds swap on a device or on the backing file below it.
fn swaps(all: &mut Objections<'_>, level: usize) {
    let path = "/proc/swaps";
    let text = fs::read_to_string(path).inspect_err(|error| all.unseen.text(path, error)).unwrap_or_default();
    let paths = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    for path in paths.map(mountinfo::unescape) {
        let Some(resource) = Resource::at(Path::new(&path)) else { continue };
        // A file is checked only together with the device above it.
        let is_here =
            |at: &usize| *at == level || (*at == level + 1 && matches!(resource, Resource::File(_)));
        for level in all.levels(resource).into_iter().filter(is_here) {
            let device = match resource {
                Resource::Block(number) => name_of(number),
                _ => path.clone(),
            };
            all.add(level, Objection::Swap(device));
        }
    }
}

fn holders(disk: &Disk, level: usize, all: &mut Objections<'_>) {
    for folder in disk.folders() {
        let entries = fs::read_dir(folder.join("holders")).into_iter().flatten().flatten();
        let mut by: Vec<String> = entries
            .map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                match line(&entry.path().join("dm/name")) {
                    Some(mapped) => format!("{name} ({mapped})"),
                    None => name,
                }
            })
            .collect();
        by.sort();
        let device = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        if let (Some(device), false) = (device, by.is_empty()) {
            all.add(level, Objection::Held { device, by });
        }
    }
}

/// Adds loop devices over any level, except those of the chain itself.
fn loops(all: &mut Objections<'_>, own: &[mountinfo::Mount]) {
    let asked: Vec<Number> = all.chain.files().flat_map(|(_, file)| file.filesystems.clone()).collect();
    for other in LoopFile::all(own, &asked) {
        if all.chain.loops.contains(&other.number) {
            continue;
        }
        let levels = match other.backing {
            Backing::Known(resource @ Resource::File(id)) => {
                let mut levels = all.levels(resource);
                let is_it = |file: &BackingFile| is_shown_by(&other, id, &file.original, &all.chain.overlays);
                levels.extend(all.chain.files().filter(|(_, file)| is_it(file)).map(|(level, _)| level));
                levels
            }
            Backing::Known(resource) => all.levels(resource),
            Backing::Served => Vec::new(),
            Backing::Unknown(why) => {
                all.unseen.extend([why]);
                continue;
            }
        };
        for level in levels {
            all.add(level, Objection::LoopBacking(other.node.display().to_string()));
        }
    }
}

/// Returns whether a loop device uses this file through an overlay filesystem.
fn is_shown_by(by: &LoopFile, id: FileId, original: &Original, overlays: &Overlays) -> bool {
    let path = by.path_without_server();
    original.is_shown_as(id, CWD, path, || overlays.have(id, path))
}

/// Adds programs that use any level.
fn programs(all: &mut Objections<'_>, processes: Vec<Process>, namespaces: Vec<Namespace>) {
    let wanted: BTreeSet<Resource> = all.chain.resources().map(|(_, resource)| resource).collect();
    let originals: Vec<Original> = all.chain.files().map(|(_, file)| file.original.clone()).collect();
    let overlays = all.chain.overlays.clone();
    let answer = within(PATIENCE, move || {
        let mut unseen = Unseen::default();
        let mounts = namespaces.iter().flat_map(|namespace| &namespace.mounts);
        let users = Survey::new(&wanted, originals, overlays, mounts, &mut unseen).of(&processes);
        (users, unseen)
    });
    let Some((users, unseen)) = answer else {
        let why = "examining a process takes too long; it may be waiting for its disk";
        all.unseen.extend([why.to_owned()]);
        return;
    };
    all.unseen.join(unseen);
    let mut by_level: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for user in users {
        for level in all.levels(user.resource) {
            by_level.entry(level).or_default().insert(user.by.clone());
        }
    }
    for (level, by) in by_level {
        all.add(level, Objection::Open(by.into_iter().collect()));
    }
}

/// Adds locks on the files of the chain.
fn locks(all: &mut Objections<'_>) {
    if all.chain.files().next().is_none() {
        return;
    }
    let locks = process::locks(&mut all.unseen);
    for (level, file) in all.chain.files() {
        let is_it = |lock: &process::Lock| {
            let (device, inode) = lock.file;
            file.original.id.inode == inode && file.filesystems.contains(&device)
        };
        let by: BTreeSet<String> =
            locks.iter().filter(|lock| is_it(lock)).map(|lock| lock.by.clone()).collect();
        if !by.is_empty() {
            all.add(level, Objection::Locked(by.into_iter().collect()));
        }
    }
}
