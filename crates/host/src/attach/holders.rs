//! Users that prevent removing a mount or a device: programs, mounts below, loop devices, devices built on it.
//!
//! Reads only links and files of procfs and sysfs, because access to a served file may block.
//!
//! # Not handled
//! Other mount namespaces, files that are mapped and closed, and processes that this user may not examine.

use super::loop_device;
use crate::mountinfo::Mount;
use std::fs;
use std::path::Path;

/// Users of the filesystem mounted at `at`.
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

/// Users of the device with this node and folder in sysfs.
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

fn loops(uses: impl Fn(&Path) -> bool) -> Vec<String> {
    loop_device::over(uses).iter().map(|device| format!("the loop device loop{}", device.number())).collect()
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
