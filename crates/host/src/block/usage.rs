//! Who uses a device now: mounts, swap, devices built on it, loop devices, programs.
//!
//! What the kernel itself knows is asked of the kernel: it lets only one user open a device exclusively, and mounts
//! and devices above are such users (see [`super::claim`]). The texts read here say who it is, and find what an
//! exclusive open does not: programs that opened it as a plain file, and loop devices. Leaves out other machines.

use super::disk::{Disk, line, numbers};
use super::objection::Objection;
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
    let texts = ["/proc/self/mountinfo", "/proc/1/mountinfo"];
    let texts = texts.iter().filter_map(|path| fs::read_to_string(path).ok());
    let mut found = BTreeSet::new();
    for text in texts {
        for (number, source, at) in text.lines().filter_map(mount) {
            // Btrfs gives mounts numbers that no device has; the source tells.
            let by_number = own.contains(&number).then_some(number);
            if let Some(number) = by_number.or_else(|| own_node(own, Path::new(&source))) {
                found.insert((name_of(number), at));
            }
        }
    }
    let objection = |(device, at): (String, String)| {
        if SYSTEM.contains(&at.as_str()) { Objection::Root { at } } else { Objection::Mounted { device, at } }
    };
    found.into_iter().map(objection).collect()
}

/// Number, source and mount point of a line of mountinfo (proc(5)).
fn mount(line: &str) -> Option<((u32, u32), String, String)> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ');
    let number = numbers(left.nth(2)?)?;
    let point = left.nth(1)?;
    let source = right.split(' ').nth(1)?;
    Some((number, crate::environment::unescape(source), crate::environment::unescape(point)))
}

fn swaps(own: &[(u32, u32)]) -> Vec<Objection> {
    let text = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let paths = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    paths
        .filter_map(|path| own_node(own, Path::new(&crate::environment::unescape(path))))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_gives_device_and_place() {
        let line = "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        assert_eq!(mount(line), Some(((98, 0), "/dev/root".to_owned(), "/mnt 2".to_owned())));
        assert_eq!(mount("nonsense"), None);
    }
}
