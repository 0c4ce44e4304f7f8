//! Who uses a device now: mounts, swap, devices built on it, loop devices, programs.
//!
//! What the kernel itself knows is asked of the kernel: it lets only one user open a device exclusively, and mounts
//! and devices above are such users (see [`super::claim`]). The texts read here say who it is, and find what an
//! exclusive open does not: programs that opened it as a plain file, and loop devices. Leaves out other machines.

use super::disk::{Disk, line};
use super::objection::Objection;
use crate::mountinfo;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Directories whose filesystem a system cannot run without.
const SYSTEM: [&str; 6] = ["/", "/boot", "/boot/efi", "/usr", "/var", "/etc"];

/// What uses the device.
pub(super) fn objections(disk: &Disk) -> Vec<Objection> {
    let own = disk.numbers();
    let mut all = Vec::new();
    if disk.read_only {
        all.push(Objection::ReadOnly);
    }
    all.extend(mounts(&own));
    all.extend(swaps(&own));
    all.extend(holders(disk));
    all.extend(loops(&own));
    all.extend(open_in(&own));
    if !disk.partitions.is_empty() {
        all.push(Objection::PartitionTable { what: disk.partitions.join(", ") });
    }
    all
}

/// The number of a node, where it is one of the device's own.
fn own_node(own: &[(u32, u32)], path: &Path) -> Option<(u32, u32)> {
    let metadata = fs::metadata(path).ok()?;
    let number = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
    (metadata.file_type().is_block_device() && own.contains(&number)).then_some(number)
}

fn name_of(number: (u32, u32)) -> String {
    let folder = fs::canonicalize(format!("/sys/dev/block/{}:{}", number.0, number.1));
    let name = folder.ok().and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| format!("{}:{}", number.0, number.1))
}

/// Mounts of this process and, where it may be read, of the first one, whose mounts others may not see.
fn mounts(own: &[(u32, u32)]) -> Vec<Objection> {
    let mut found = BTreeSet::new();
    for mount in ["self", "1"].iter().flat_map(|process| mountinfo::of(process)) {
        // Btrfs gives mounts numbers that no device has; the source tells.
        let by_number = own.contains(&mount.number).then_some(mount.number);
        if let Some(number) = by_number.or_else(|| own_node(own, Path::new(&mount.source))) {
            found.insert((name_of(number), mount.point));
        }
    }
    let objection = |(device, at): (String, String)| {
        if SYSTEM.contains(&at.as_str()) { Objection::Root { at } } else { Objection::Mounted { device, at } }
    };
    found.into_iter().map(objection).collect()
}

fn swaps(own: &[(u32, u32)]) -> Vec<Objection> {
    let text = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let paths = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    paths
        .filter_map(|path| own_node(own, Path::new(&mountinfo::unescape(path))))
        .map(|number| Objection::Swap { device: name_of(number) })
        .collect()
}

fn holders(disk: &Disk) -> Vec<Objection> {
    let held = disk.folders().into_iter().filter_map(|folder| {
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
        let device = folder.file_name()?.to_string_lossy().into_owned();
        (!by.is_empty()).then_some(Objection::Held { device, by })
    });
    held.collect()
}

/// Loop devices whose file is the device, or a partition of it.
fn loops(own: &[(u32, u32)]) -> Vec<Objection> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let backed = entries.filter_map(|entry| {
        let file = line(&entry.path().join("loop/backing_file"))?;
        own_node(own, Path::new(&file))?;
        Some(Objection::LoopBacking { by: format!("/dev/{}", entry.file_name().to_string_lossy()) })
    });
    backed.collect()
}

/// Programs that have it open, as far as this user may see; not this one.
fn open_in(own: &[(u32, u32)]) -> Vec<Objection> {
    let this = std::process::id().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut by: Vec<String> = Vec::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == this || !name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let descriptors = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        // Only nodes are looked at: a file of a server that does not answer would hold up whoever looks.
        let mut nodes = descriptors
            .map(|fd| fd.path())
            .filter(|fd| fs::read_link(fd).is_ok_and(|target| target.starts_with("/dev")));
        if nodes.any(|fd| own_node(own, &fd).is_some()) {
            let program = line(&entry.path().join("comm")).unwrap_or_else(|| "a program".to_owned());
            by.push(format!("{program} (process {name})"));
        }
    }
    by.sort();
    if by.is_empty() { Vec::new() } else { vec![Objection::Open { by }] }
}
