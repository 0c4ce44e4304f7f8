//! [`Chain`]: what lies below a device, down to the first level that is not a loop device.
//!
//! ```text
//! level 0    the device under test, its partitions, the disk that it is a part of
//!            │ a loop device
//! level 1    its file, whatever it is called; or, where that is a device, as above
//!            │ a loop device
//! level 2    …
//! ```
//!
//! A write to the device changes every level, so a user of any level is in the way. Not here: device-mapper
//! and RAID devices, which share what is below them by design and hold it exclusively, and what a server does
//! with a file.

use super::disk::{Disk, Number};
use super::loops::{Backing, FileId, LoopFile, Resource};
use super::namespace::Namespace;
use super::overlay::{Original, Overlays};
use crate::mountinfo;
use std::fs;
use std::path::{Path, PathBuf};

/// A device and what lies below it.
#[derive(Debug)]
pub(super) struct Chain {
    /// Levels from the device down; at least one.
    pub levels: Vec<Level>,
    /// The loop devices between the levels.
    pub loops: Vec<Number>,
    /// Overlay filesystems, which may show its files by other numbers.
    pub overlays: Overlays,
    /// Why it is not known what lies below the last level, if something does.
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
    /// Its number, and those of its partitions and of the disk that it is a part of.
    pub numbers: Vec<Number>,
    /// Numbers of the character devices by which programs write to it past its node.
    pub characters: Vec<Number>,
}

/// A file of a chain.
#[derive(Debug)]
pub(super) struct BackingFile {
    /// Its path, as the kernel names it in this mount namespace.
    pub path: PathBuf,
    /// The file itself.
    pub original: Original,
    /// Device numbers by which the kernel's texts name its filesystem, and overlay filesystems that may show it.
    pub filesystems: Vec<Number>,
    /// Whether it is a file of a server, which may have locks of its own.
    pub is_served: bool,
}

impl Chain {
    /// The chain of a device.
    pub(super) fn of(disk: &Disk, namespaces: &[Namespace]) -> Chain {
        let own = namespaces.iter().find(|it| it.is_own()).map_or(&[][..], |it| &it.mounts);
        let overlays = Overlays::of(namespaces);
        let mut chain = Chain { levels: Vec::new(), loops: Vec::new(), overlays, unknown: None };
        let mut next = Some(disk.clone());
        while let Some(disk) = next.take() {
            let whole = disk.whole_folder();
            let (numbers, characters) = (disk.numbers(), disk.character_numbers());
            chain.levels.push(Level::Device(Box::new(Device { disk, numbers, characters })));
            // It is under test: its server has to answer.
            let everything: Vec<Number> = own.iter().map(|mount| mount.number).collect();
            let Some(below) = LoopFile::of(&whole, own, &everything) else { break };
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
                    None => chain.unknown = Some(format!("{} is not there", below.path.display())),
                },
                Backing::Known(Resource::Character(_)) | Backing::Served => {
                    chain.unknown = Some(format!("{} is no file", below.path.display()));
                }
                Backing::Unknown(why) => chain.unknown = Some(why),
            }
        }
        chain
    }

    /// The chain of a file alone.
    pub(super) fn of_file(path: &Path, id: FileId, namespaces: &[Namespace]) -> Chain {
        let overlays = Overlays::of(namespaces);
        let file = BackingFile::new(path.to_owned(), id, namespaces, &overlays);
        Chain { levels: vec![Level::File(Box::new(file))], loops: Vec::new(), overlays, unknown: None }
    }

    /// All resources of the levels, each with the index of its level: to use one is to use the device.
    pub(super) fn resources(&self) -> impl Iterator<Item = (usize, Resource)> + '_ {
        self.levels.iter().enumerate().flat_map(|(place, level)| {
            let all: Vec<Resource> = match level {
                Level::Device(device) => {
                    let blocks = device.numbers.iter().map(|number| Resource::Block(*number));
                    blocks.chain(device.characters.iter().map(|it| Resource::Character(*it))).collect()
                }
                Level::File(file) => vec![Resource::File(file.original.id)],
            };
            all.into_iter().map(move |it| (place, it))
        })
    }

    /// The devices, each with the index of its level.
    pub(super) fn devices(&self) -> impl Iterator<Item = (usize, &Device)> {
        self.levels.iter().enumerate().filter_map(|(place, level)| match level {
            Level::Device(device) => Some((place, &**device)),
            Level::File(_) => None,
        })
    }

    /// The files, each with the index of its level.
    pub(super) fn files(&self) -> impl Iterator<Item = (usize, &BackingFile)> {
        self.levels.iter().enumerate().filter_map(|(place, level)| match level {
            Level::File(file) => Some((place, &**file)),
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
        let own = namespaces.iter().find(|it| it.is_own()).map(|it| it.mounts.clone()).unwrap_or_default();
        let all = || namespaces.iter().flat_map(|namespace| &namespace.mounts);
        let is_served = all().any(|mount| mount.number == id.device && mount.is_served());
        let mut filesystems = vec![id.device];
        // Below btrfs each subvolume has a number of its own, which stands in no text.
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
