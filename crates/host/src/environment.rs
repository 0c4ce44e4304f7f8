//! [`describe`]: on what machine, filesystem and device a measurement was made.
//!
//! Facts come from `/proc` and `/sys`; one that is not there is left out, and nothing here fails. Leaves out
//! SMART and firmware, which need a device of their own and the rights to ask it.

use crate::block::Disk;
use crate::engine;
use lowtide_core::Bytes;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Facts about this machine and about what `path` lies on, as name and value, in a fixed order. Where `path` does
/// not exist yet, the nearest directory above it counts.
///
/// Names: `kernel`, `architecture`, `hostname`, `cpu`, `cores`, `governor`, `memory`, `huge-pages`, `engine`,
/// `filesystem`, `mount-point`, `mount-options`, `mount-source`, `device`, `device-model`, `device-serial`,
/// `device-size`, `scheduler`, `rotational`, `write-cache`, `logical-block`, `physical-block`.
pub fn describe(path: &Path) -> Vec<(String, String)> {
    let mut facts = machine();
    let Some(existing) = path.ancestors().map(or_here).find(|path| path.exists()) else { return facts.0 };
    let Ok(existing) = existing.canonicalize() else { return facts.0 };
    if let Some(mount) =
        fs::read_to_string("/proc/self/mountinfo").ok().and_then(|text| mount_of(&text, &existing))
    {
        facts.add("filesystem", Some(mount.filesystem));
        facts.add("mount-point", Some(mount.point));
        facts.add("mount-options", Some(mount.options));
        facts.add("mount-source", Some(mount.source));
    }
    if let Some(device) = device_of(&existing) {
        add_device(&mut facts, &device);
    }
    facts.0
}

/// The same about this machine and a block device. Names: those of the machine, and those from `device` on.
pub fn describe_device(disk: &Disk) -> Vec<(String, String)> {
    let mut facts = machine();
    add_device(&mut facts, &disk.whole_folder());
    facts.set("device", disk.node.display().to_string());
    facts.set("device-serial", disk.identity.serial.clone());
    facts.set("device-size", disk.identity.size.to_string());
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
    facts.add("governor", line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    facts.add("memory", field("/proc/meminfo", "MemTotal"));
    facts.add("huge-pages", line("/sys/kernel/mm/transparent_hugepage/enabled").map(|text| chosen(&text)));
    facts.add("engine", Some(engine::available().to_string()));
    facts
}

/// The size of the filesystem that `path` lies on, or would lie on; `None` where it does not say.
pub fn filesystem_size(path: &Path) -> Option<Bytes> {
    let existing = path.ancestors().map(or_here).find(|path| path.exists())?;
    let space = rustix::fs::statvfs(existing).ok()?;
    let size = space.f_blocks.saturating_mul(space.f_frsize);
    (size > 0).then(|| Bytes::new(size))
}

/// Whether what lies at `path` is kept in memory, where there is no device to speak of.
pub fn in_memory(path: &Path) -> bool {
    let existing = path.ancestors().map(or_here).find(|path| path.exists());
    let filesystem = existing.and_then(|path| rustix::fs::statfs(path).ok());
    filesystem.is_some_and(|filesystem| memory_filesystem(filesystem.f_type))
}

/// Whether a filesystem of this type (statfs(2)) is kept in memory.
pub(crate) fn memory_filesystem(kind: rustix::fs::FsWord) -> bool {
    const TMPFS: rustix::fs::FsWord = 0x0102_1994;
    const RAMFS: rustix::fs::FsWord = 0x8584_58f6;
    [TMPFS, RAMFS].contains(&kind)
}

#[derive(Default)]
struct Facts(Vec<(String, String)>);

impl Facts {
    /// Puts a value in the place of another of that name, or at the end.
    fn set(&mut self, name: &str, value: String) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.add(name, Some(value)),
        }
    }

    fn add(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.0.push((name.to_owned(), value));
        }
    }
}

/// The empty path that `ancestors` ends with means the current directory.
fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// The one line of a file in `/sys`.
fn line(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The first `name: value` of a file in `/proc`.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// The choice in `a [b] c`, which is how `/sys` marks it; the whole text where none is marked.
fn chosen(text: &str) -> String {
    let marked = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(name, _)| name);
    marked.unwrap_or(text).to_owned()
}

#[derive(Debug, PartialEq)]
struct Mount {
    point: String,
    options: String,
    filesystem: String,
    source: String,
}

/// The mount that `path` lies on, from the text of `/proc/self/mountinfo` (proc(5)): the longest mount point above
/// it, and of equal ones the last, which covers the others.
fn mount_of(text: &str, path: &Path) -> Option<Mount> {
    let mounts = text.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let mut right = right.split(' ');
        let (filesystem, source, of_filesystem) = (right.next()?, right.next()?, right.next().unwrap_or(""));
        let options = format!("{},{of_filesystem}", left.get(5)?);
        let mut seen = Vec::new();
        options.split(',').for_each(|option| {
            if !option.is_empty() && !seen.contains(&option) {
                seen.push(option);
            }
        });
        Some(Mount {
            point: unescape(left.get(4)?),
            options: seen.join(","),
            filesystem: filesystem.to_owned(),
            source: unescape(source),
        })
    });
    mounts
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| Path::new(&mount.point).components().count())
}

/// Undoes mountinfo's octal escapes of blanks and backslashes.
pub(crate) fn unescape(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (code, plain)| text.replace(code, plain))
}

/// The folder in `/sys` of the whole disk (not the partition) behind `path`.
fn device_of(path: &Path) -> Option<PathBuf> {
    let number = fs::metadata(path).ok()?.dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let folder = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    if folder.join("partition").exists() { folder.parent().map(Path::to_owned) } else { Some(folder) }
}

fn add_device(facts: &mut Facts, device: &Path) {
    let of = |name: &str| line(device.join(name));
    facts.add("device", device.file_name().map(|name| format!("/dev/{}", name.to_string_lossy())));
    facts.add("device-model", of("device/model"));
    facts.add("device-serial", of("device/serial").or_else(|| of("serial")));
    // The kernel counts sectors of 512 bytes here, whatever the device does.
    let size = of("size").and_then(|sectors| sectors.parse::<u64>().ok());
    facts.add("device-size", size.map(|sectors| Bytes::new(sectors * 512).to_string()));
    facts.add("scheduler", of("queue/scheduler").map(|text| chosen(&text)));
    facts.add(
        "rotational",
        of("queue/rotational").map(|flag| if flag == "0" { "no" } else { "yes" }.to_owned()),
    );
    facts.add("write-cache", of("queue/write_cache"));
    facts.add("logical-block", of("queue/logical_block_size").map(|bytes| format!("{bytes}B")));
    facts.add("physical-block", of("queue/physical_block_size").map(|bytes| format!("{bytes}B")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_is_the_longest_and_last_above_the_path() {
        let text = "1 0 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
                    2 1 0:5 / /mnt/my\\040data rw - tmpfs none rw,size=1k\n\
                    3 1 8:1 / /mnt/my\\040data rw,noatime shared:1 - xfs /dev/sda1 rw,attr2\n\
                    nonsense\n";
        let mount = mount_of(text, Path::new("/mnt/my data/file")).expect("found");
        assert_eq!((mount.filesystem.as_str(), mount.options.as_str()), ("xfs", "rw,noatime,attr2"));
        assert_eq!(mount_of(text, Path::new("/mnt/my")).expect("found").source, "/dev/vda");
    }

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
