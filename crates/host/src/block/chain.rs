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
//! A write to the device changes every level, so a user of any level is in the way. Leaves out device-mapper
//! and RAID devices, which share what is below them by design and hold it exclusively, and what a server does
//! with a file.

use super::disk::{Disk, Number};
use super::loops::{Backing, FileId, LoopFile, Resource};
use super::namespace::Namespace;
use crate::mountinfo::{self, Mount};
use std::fs;
use std::path::{Path, PathBuf};

/// A device and what lies below it.
#[derive(Debug)]
pub(super) struct Chain {
    /// Levels from the device down; at least one.
    pub levels: Vec<Level>,
    /// The loop devices between the levels.
    pub loops: Vec<Number>,
    /// Why it is not known what lies below the last level, if something does.
    pub unknown: Option<String>,
}

/// A level of a chain.
#[derive(Debug)]
pub(super) enum Level {
    /// A device.
    Device(Box<Device>),
    /// A file.
    File(BackingFile),
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
    /// The file itself, and the same file as overlay filesystems show it.
    pub ids: Vec<FileId>,
    /// Device numbers by which the kernel's texts name its filesystem.
    pub filesystems: Vec<Number>,
    /// Whether it is a file of a server, which may have locks of its own.
    pub is_served: bool,
}

impl Chain {
    /// The chain of a device.
    pub(super) fn of(disk: &Disk, namespaces: &[Namespace]) -> Chain {
        let own = namespaces.iter().find(|it| it.is_own()).map_or(&[][..], |it| &it.mounts);
        let mut chain = Chain { levels: Vec::new(), loops: Vec::new(), unknown: None };
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
                    chain.levels.push(Level::File(BackingFile::new(below.path, id, namespaces)));
                }
                Backing::Known(Resource::Block(number)) => match at(number) {
                    Some(disk) => next = Some(disk),
                    None => chain.unknown = Some(format!("{} is not there", below.path.display())),
                },
                Backing::Known(Resource::Character(_)) | Backing::Served(_) => {
                    chain.unknown = Some(format!("{} is no file", below.path.display()));
                }
                Backing::Unknown(why) => chain.unknown = Some(why),
            }
        }
        chain
    }

    /// The chain of a file alone.
    pub(super) fn of_file(path: &Path, id: FileId, namespaces: &[Namespace]) -> Chain {
        let file = BackingFile::new(path.to_owned(), id, namespaces);
        Chain { levels: vec![Level::File(file)], loops: Vec::new(), unknown: None }
    }

    /// All resources of the levels, each with the index of its level: to use one is to use the device.
    pub(super) fn resources(&self) -> impl Iterator<Item = (usize, Resource)> + '_ {
        self.levels.iter().enumerate().flat_map(|(place, level)| {
            let all: Vec<Resource> = match level {
                Level::Device(device) => {
                    let blocks = device.numbers.iter().map(|number| Resource::Block(*number));
                    blocks.chain(device.characters.iter().map(|it| Resource::Character(*it))).collect()
                }
                Level::File(file) => file.ids.iter().map(|id| Resource::File(*id)).collect(),
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
            Level::File(file) => Some((place, file)),
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
    fn new(path: PathBuf, id: FileId, namespaces: &[Namespace]) -> BackingFile {
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
        let mut ids = vec![id];
        for namespace in namespaces {
            for mount in namespace.mounts.iter().filter(|mount| mount.filesystem == "overlay") {
                ids.extend(overlaid(mount, namespace, &path, id));
            }
        }
        ids.sort_unstable();
        ids.dedup();
        BackingFile { path, ids, filesystems, is_served }
    }
}

/// The same file on the other side of an overlay filesystem: in a layer, if `path` names it in the overlay;
/// in the overlay, if `path` names it in a layer.
fn overlaid(mount: &Mount, namespace: &Namespace, path: &Path, id: FileId) -> Vec<FileId> {
    let is_it = |path: &Path| Resource::at(path) == Some(Resource::File(id));
    let file_at = |path: PathBuf| match Resource::at(&path) {
        Some(Resource::File(id)) => Some(id),
        _ => None,
    };
    let lower = mount.option("lowerdir").into_iter().flat_map(|all| all.split(':'));
    let layers: Vec<&Path> = mount
        .option("upperdir")
        .into_iter()
        .chain(lower)
        .map(Path::new)
        .filter(|it| it.is_absolute())
        .collect();
    let shown = |below: &Path| {
        let below = Path::new("/").join(below);
        let below = below.strip_prefix(&mount.root).ok()?.to_owned();
        Some(namespace.path(&Path::new(&mount.point).join(below)))
    };
    let in_it = path.strip_prefix(&mount.point).ok().filter(|_| is_it(&namespace.path(path)));
    let root = Path::new(&mount.root).strip_prefix("/").unwrap_or(Path::new(""));
    let below =
        in_it.into_iter().flat_map(|rest| layers.iter().map(move |layer| layer.join(root).join(rest)));
    let named_below = layers.iter().filter_map(|layer| path.strip_prefix(layer).ok()).filter(|_| is_it(path));
    let above = named_below.filter_map(shown);
    // Only the uppermost layer that has the file counts; writes never reach the others.
    below.filter_map(file_at).take(1).chain(above.filter_map(file_at)).collect()
}
