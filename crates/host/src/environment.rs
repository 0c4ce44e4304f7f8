//! [`describe`]: the machine, filesystem and device of a measurement.
//!
//! Facts come from `/proc` and `/sys`. Missing facts are left out, so no function here fails. SMART data is
//! read by [`Disk::logs`], which needs access to the device.

use crate::block::{Disk, line};
use crate::cgroup;
use crate::engine;
use crate::mountinfo;
use lowtide_core::Bytes;
use std::fs;
use std::path::Path;

/// Facts about this machine and about the filesystem and device below `path`, as names and values in a fixed
/// order. If `path` does not exist yet, the nearest existing directory above it is described.
///
/// Names: `kernel`, `architecture`, `hostname`, `cpu`, `cores`, `governor`, `memory`, `huge-pages`, `engine`,
/// `cgroup-cpu`, `cgroup-memory`, `cgroup-io` (if limited), `filesystem`, `mount-point`, `mount-options`,
/// `mount-source`, `device`, `device-model`, `device-serial`, `device-firmware`, `device-size`, `scheduler`,
/// `rotational`, `write-cache`, `logical-block`, `physical-block`.
pub fn describe(path: &Path) -> Vec<(String, String)> {
    let mut facts = machine();
    let Some(existing) = existing(path).and_then(|path| path.canonicalize().ok()) else { return facts.0 };
    if let Some(mount) = mountinfo::above(&mountinfo::of("self"), &existing).cloned() {
        facts.add("filesystem", Some(mount.filesystem));
        facts.add("mount-point", Some(mount.point));
        facts.add("mount-options", Some(mount.options));
        facts.add("mount-source", Some(mount.source));
    }
    if let Some(disk) = Disk::beneath(&existing) {
        add_device(&mut facts, &disk);
    }
    facts.0
}

/// Facts about this machine and a block device: those of [`describe`] without the filesystem and its mount.
pub fn describe_device(disk: &Disk) -> Vec<(String, String)> {
    let mut facts = machine();
    add_device(&mut facts, disk);
    facts.0
}

/// Facts about this machine.
fn machine() -> Facts {
    let mut facts = Facts::default();
    let system = rustix::system::uname();
    let kernel = format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy());
    facts.add("kernel", Some(kernel));
    facts.add("architecture", Some(system.machine().to_string_lossy().into_owned()));
    facts.add("hostname", Some(system.nodename().to_string_lossy().into_owned()));
    facts.add("cpu", field("/proc/cpuinfo", "model name"));
    facts.add("cores", std::thread::available_parallelism().ok().map(|cores| cores.to_string()));
    facts.add("governor", line(Path::new("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")));
    facts.add("memory", field("/proc/meminfo", "MemTotal"));
    let huge_pages = line(Path::new("/sys/kernel/mm/transparent_hugepage/enabled"));
    facts.add("huge-pages", huge_pages.map(|text| chosen(&text)));
    facts.add("engine", Some(engine::available().to_string()));
    for (name, limit) in cgroup::limits() {
        facts.add(name, Some(limit));
    }
    facts
}

/// The size of the filesystem on which `path` is or would be made; `None` if the filesystem does not report
/// one.
pub fn filesystem_size(path: &Path) -> Option<Bytes> {
    let space = rustix::fs::statvfs(existing(path)?).ok()?;
    let size = space.f_blocks.saturating_mul(space.f_frsize);
    (size > 0).then(|| Bytes::new(size))
}

/// Returns whether `path` is on a filesystem in memory, which has no device.
pub fn in_memory(path: &Path) -> bool {
    let filesystem = existing(path).and_then(|path| rustix::fs::statfs(path).ok());
    filesystem.is_some_and(|filesystem| engine::memory_filesystem(filesystem.f_type))
}

#[derive(Default)]
struct Facts(Vec<(String, String)>);

impl Facts {
    fn add(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.0.push((name.to_owned(), value));
        }
    }
}

/// The path, or the nearest existing directory above it.
fn existing<'a>(path: &'a Path) -> Option<&'a Path> {
    // The last of the `ancestors` of a relative path is empty and means the current directory.
    let or_here = |path: &'a Path| if path.as_os_str().is_empty() { Path::new(".") } else { path };
    path.ancestors().map(or_here).find(|path| path.exists())
}

/// The first `name: value` of a file in `/proc`.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// The choice that brackets mark in a file of `/sys`: `b` of `a [b] c`; the whole text without brackets.
fn chosen(text: &str) -> String {
    let marked = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(name, _)| name);
    marked.unwrap_or(text).to_owned()
}

fn add_device(facts: &mut Facts, disk: &Disk) {
    let whole = disk.whole_folder();
    let of = |name: &str| line(&whole.join(name));
    facts.add("device", Some(disk.node.display().to_string()));
    facts.add("device-model", disk.identity.model.clone());
    facts.add("device-serial", Some(disk.identity.serial.clone()));
    facts.add("device-firmware", of("device/firmware_rev").or_else(|| of("device/rev")));
    facts.add("device-size", Some(disk.identity.size.to_string()));
    facts.add("scheduler", of("queue/scheduler").map(|text| chosen(&text)));
    facts.add("rotational", Some(if disk.rotational { "yes" } else { "no" }.to_owned()));
    facts.add("write-cache", of("queue/write_cache"));
    facts.add("logical-block", of("queue/logical_block_size").map(|bytes| format!("{bytes}B")));
    facts.add("physical-block", of("queue/physical_block_size").map(|bytes| format!("{bytes}B")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describing_never_fails_and_knows_the_kernel() {
        for path in ["/tmp", "/no/such/place", "", "relative", "/proc/self"] {
            let facts = describe(Path::new(path));
            assert!(
                facts.iter().any(|(name, value)| name == "kernel" && value.starts_with("Linux ")),
                "{path}: {facts:?}"
            );
            assert!(
                facts.iter().all(|(_, value)| !value.is_empty() && !value.contains('\n')),
                "{path}: {facts:?}"
            );
        }
        let size = filesystem_size(Path::new("/tmp/no/such/place")).expect("the filesystem of /tmp");
        assert!(size > Bytes::mib(1), "{size}");
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }
}
