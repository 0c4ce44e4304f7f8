//! Who keeps a mount or a device from going: programs, mounts below, loop devices, devices built on it.
//!
//! Reads links and texts of the kernel and nothing else: whoever looked at a file of a server that does not answer would
//! wait with it. Not here: other mount namespaces, files that are mapped and
//! closed, and what this user may not see.

use crate::mountinfo::Mount;
use std::fs;
use std::path::Path;

/// What is in use below `at`, where something is mounted.
pub(super) fn of_mount(at: &Path, mounts: &[Mount]) -> Vec<String> {
    let below = mounts
        .iter()
        .map(|mount| Path::new(&mount.point))
        .filter(|point| *point != at && point.starts_with(at));
    let mut all: Vec<String> = below.map(|point| format!("a mount at {}", point.display())).collect();
    all.extend(loops(|file| file.starts_with(at)));
    all.extend(programs(|path| path.starts_with(at)));
    all
}

/// What uses a device with its node and its folder in sysfs.
pub(super) fn of_device(node: &Path, folder: &Path) -> Vec<String> {
    let held = fs::read_dir(folder.join("holders")).into_iter().flatten().flatten();
    let mut all: Vec<String> =
        held.map(|entry| format!("the device {}", entry.file_name().to_string_lossy())).collect();
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let is_swap = swaps.lines().any(|line| line.split_whitespace().next().map(Path::new) == Some(node));
    all.extend(is_swap.then(|| "swap".to_owned()));
    all.extend(loops(|file| file == node));
    all.extend(programs(|path| path == node));
    all
}

fn loops(below: impl Fn(&Path) -> bool) -> Vec<String> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let over = entries.filter(|entry| {
        let file = fs::read_to_string(entry.path().join("loop/backing_file"));
        file.is_ok_and(|file| below(Path::new(file.trim_end_matches('\n'))))
    });
    over.map(|entry| format!("the loop device {}", entry.file_name().to_string_lossy())).collect()
}

fn programs(uses: impl Fn(&Path) -> bool) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut all = Vec::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let folder = entry.path();
        let open = fs::read_dir(folder.join("fd")).into_iter().flatten().flatten().map(|link| link.path());
        let links = ["cwd", "root", "exe"].map(|link| folder.join(link)).into_iter().chain(open);
        if links.filter_map(|link| fs::read_link(link).ok()).any(|path| uses(&path)) {
            let program = fs::read_to_string(folder.join("comm")).unwrap_or_default();
            all.push(format!("{} (process {name})", program.trim()));
        }
    }
    all.sort();
    all
}
