//! [`Chain`]: a device and the levels below it, down to the first one that is not a loop device.
//!
//! ```text
//! level 0    the device under test, its partitions, the disk that it is a partition of
//!            │ a loop device
//! level 1    the backing file, under any name; or a device, with its partitions and its disk
//!            │ a loop device
//! level 2    …
//! ```
//!
//! A write to the device changes every level, so a user of any level is an objection.
//!
//! # Not handled
//! - Levels below device-mapper and RAID devices. These devices share lower devices by design, and hold them
//!   exclusively.
//! - The storage of the server behind a served file.

use super::disk::{Disk, Number};
use super::loops::{Backing, FileId, LoopFile, Resource};
use super::namespace::Namespace;
use super::overlay::{Original, Overlays};
use crate::mountinfo;
use std::fs;
use std::path::{Path, PathBuf};

/// A device and the levels below it.
#[derive(Debug)]
pub(super) struct Chain {
    /// Levels from the device down; at least one.
    pub levels: Vec<Level>,
    /// The loop devices between the levels.
    pub loops: Vec<Number>,
    /// Overlay filesystems, which may show the files under other numbers.
    pub overlays: Overlays,
    /// The reason why the level below the last one cannot be determined; `None` otherwise.
    pub unknown: Option<String>,
}

/// A level of a chain.
#[derive(Debug)]
pub(super) enum Level {
    /// A device.
    Device(Box<Device>),
    /// A file.
    File(Box<BackingFile>),
}

/// A device of a chain.
#[derive(Debug)]
pub(super) struct Device {
    /// The device itself.
    pub disk: Disk,
    /// Numbers of the device, its partitions and the disk that it is a partition of.
    pub numbers: Vec<Number>,
    /// Numbers of the character devices through which programs access the disk without its block device.
    pub characters: Vec<Number>,
}

/// A file of a chain.
#[derive(Debug)]
pub(super) struct BackingFile {
    /// The path by which the kernel names the file in this mount namespace.
    pub path: PathBuf,
    /// The file itself.
    pub original: Original,
    /// Device numbers of its filesystem in files of `/proc`, and of overlay filesystems that may show the
    /// file.
    pub filesystems: Vec<Number>,
    /// Whether the file comes from a server, which may hold its own locks.
    pub is_served: bool,
}

impl Chain {
    /// The chain of a device.
    pub(super) fn of(disk: &Disk, namespaces: &[Namespace]) -> Chain {
        let own = Namespace::own_mounts(namespaces);
        let overlays = Overlays::of(namespaces);
        let mut chain = Chain { levels: Vec::new(), loops: Vec::new(), overlays, unknown: None };
        let mut next = Some(disk.clone());
        while let Some(disk) = next.take() {
            let folder = disk.whole_folder();
            let (numbers, characters) = (disk.numbers(), disk.character_numbers());
            chain.levels.push(Level::Device(Box::new(Device { disk, numbers, characters })));
            // The file is under test, so its server must answer: any filesystem may be queried.
            let everything: Vec<Number> = own.iter().map(|mount| mount.number).collect();
            let Some(below) = LoopFile::of(&folder, own, &everything) else { break };
            if chain.loops.contains(&below.number) {
                break;
            }
            chain.loops.push(below.number);
            match below.backing {
                Backing::Known(Resource::File(id)) => {
                    let file = BackingFile::new(below.path, id, namespaces, &chain.overlays);
                    chain.levels.push(Level::File(Box::new(file)));
                }
                Backing::Known(Resource::Block(number)) => match at(number) {
                    Some(disk) => next = Some(disk),
                    None => chain.unknown = Some(format!("{} does not exist", below.path.display())),
                },
                Backing::Known(Resource::Character(_)) | Backing::Served => {
                    chain.unknown = Some(format!("{} is not a file", below.path.display()));
                }
                Backing::Unknown(why) => chain.unknown = Some(why),
            }
        }
        chain
    }

    /// The chain of a file without a device above it.
    pub(super) fn of_file(path: &Path, id: FileId, namespaces: &[Namespace]) -> Chain {
        let overlays = Overlays::of(namespaces);
        let file = BackingFile::new(path.to_owned(), id, namespaces, &overlays);
        Chain { levels: vec![Level::File(Box::new(file))], loops: Vec::new(), overlays, unknown: None }
    }

    /// All resources of the levels, each with the index of its level. A user of any of them uses the device.
    pub(super) fn resources(&self) -> impl Iterator<Item = (usize, Resource)> + '_ {
        self.levels.iter().enumerate().flat_map(|(index, level)| {
            let all: Vec<Resource> = match level {
                Level::Device(device) => {
                    let blocks = device.numbers.iter().map(|number| Resource::Block(*number));
                    blocks.chain(device.characters.iter().map(|it| Resource::Character(*it))).collect()
                }
                Level::File(file) => vec![Resource::File(file.original.id)],
            };
            all.into_iter().map(move |it| (index, it))
        })
    }

    /// The devices, each with the index of its level.
    pub(super) fn devices(&self) -> impl Iterator<Item = (usize, &Device)> {
        self.levels.iter().enumerate().filter_map(|(index, level)| match level {
            Level::Device(device) => Some((index, &**device)),
            Level::File(_) => None,
        })
    }

    /// The files, each with the index of its level.
    pub(super) fn files(&self) -> impl Iterator<Item = (usize, &BackingFile)> {
        self.levels.iter().enumerate().filter_map(|(index, level)| match level {
            Level::File(file) => Some((index, &**file)),
            Level::Device(_) => None,
        })
    }
}

impl Level {
    /// The name shown to users.
    pub(super) fn name(&self) -> String {
        match self {
            Level::Device(device) => device.disk.node.display().to_string(),
            Level::File(file) => file.path.display().to_string(),
        }
    }
}

/// The device with a number.
fn at(number: Number) -> Option<Disk> {
    let folder = fs::canonicalize(format!("/sys/dev/block/{}:{}", number.0, number.1)).ok()?;
    let node = Path::new("/dev").join(folder.file_name()?);
    Disk::of_number(&node, node.clone(), number).ok()
}

impl BackingFile {
    fn new(path: PathBuf, id: FileId, namespaces: &[Namespace], overlays: &Overlays) -> BackingFile {
        let own = Namespace::own_mounts(namespaces);
        let all = || namespaces.iter().flat_map(|namespace| &namespace.mounts);
        let is_served = all().any(|mount| mount.number == id.device && mount.is_served());
        let mut filesystems = vec![id.device];
        // Each Btrfs subvolume has its own number, which no file in `/proc` contains.
        if !all().any(|mount| mount.number == id.device) {
            let above =
                mountinfo::above(own, &path).filter(|_| Resource::at(&path) == Some(Resource::File(id)));
            match above {
                Some(mount) => filesystems.push(mount.number),
                None => filesystems.extend(all().filter(|it| it.number.0 == 0).map(|it| it.number)),
            }
        }
        filesystems.extend(overlays.numbers());
        let original = Original::new(id, &path, overlays);
        BackingFile { path, original, filesystems, is_served }
    }
}
