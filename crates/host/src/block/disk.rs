//! [`Disk`]: a block device as sysfs describes it, and its [`Identity`]. Its users are found in
//! [`super::usage`].

use crate::error::{HostError, Operation};
use crate::mountinfo;
use lowtide_core::Bytes;
use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Major and minor number of a device.
pub(super) type Number = (u32, u32);

/// The identity of a device, which stays the same across reboots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The text that the user types to permit overwriting: the serial number, or a substitute if the device has none.
    pub serial: String,
    /// The kind of that text: `serial number`, `backing file`.
    pub kind: &'static str,
    /// The model, if known.
    pub model: Option<String>,
    /// The size.
    pub size: Bytes,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(model) = &self.model {
            write!(f, "{model}, ")?;
        }
        write!(f, "{} bytes, {} {}", self.size.get(), self.kind, self.serial)
    }
}

/// A block device: a whole disk or a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// The path by which the user named it.
    pub path: PathBuf,
    /// The device node, with links resolved: `/dev/sdb`.
    pub node: PathBuf,
    /// Major and minor number.
    pub number: (u32, u32),
    /// The kernel's name: `sdb`.
    pub name: String,
    /// The identity.
    pub identity: Identity,
    /// Whether the kernel rejects writes to it.
    pub read_only: bool,
    /// The kernel's name of the whole disk, if this is a partition.
    pub partition_of: Option<String>,
    /// Its partitions, by the kernel's names.
    pub partitions: Vec<String>,
    /// Whether the kernel treats the device as a spinning disk.
    pub rotational: bool,
    /// The smallest unit of I/O.
    pub logical_block: Bytes,
    /// The folder of the device in sysfs.
    pub(super) folder: PathBuf,
}

impl Disk {
    /// The device at a path such as `/dev/sdb` or `/dev/disk/by-id/…`.
    ///
    /// # Errors
    /// [`HostError::WrongKind`] if the path is not that of a block device; [`HostError::Io`] if it cannot be
    /// examined.
    pub fn find(path: &Path) -> Result<Disk, HostError> {
        let node = fs::canonicalize(path).map_err(HostError::io(Operation::Inspect, path))?;
        let metadata = fs::metadata(&node).map_err(HostError::io(Operation::Inspect, path))?;
        if !metadata.file_type().is_block_device() {
            let found = match metadata.file_type() {
                kind if kind.is_dir() => "a directory",
                kind if kind.is_file() => "a file",
                _ => "not a block device",
            };
            return Err(HostError::WrongKind { path: path.to_owned(), found, wanted: "a block device" });
        }
        let number = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
        Self::of_number(path, node, number)
    }

    /// The device with a number, as sysfs describes it now.
    pub(super) fn of_number(path: &Path, node: PathBuf, number: (u32, u32)) -> Result<Disk, HostError> {
        let link = PathBuf::from(format!("/sys/dev/block/{}:{}", number.0, number.1));
        let folder = fs::canonicalize(&link).map_err(HostError::io(Operation::Inspect, &link))?;
        let name = file_name(&folder);
        let is_partition = folder.join("partition").exists();
        let whole = if is_partition { folder.parent().unwrap_or(&folder).to_owned() } else { folder.clone() };
        // The kernel counts sectors of 512 bytes, independent of the device.
        let sectors = line(&folder.join("size")).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let (kind, serial) = serial(&whole);
        let serial = match line(&folder.join("partition")) {
            Some(part) => format!("{serial}-part{part}"),
            None => serial,
        };
        let identity = Identity {
            serial,
            kind,
            model: line(&whole.join("device/model")),
            size: Bytes::new(sectors * 512),
        };
        Ok(Disk {
            path: path.to_owned(),
            node,
            number,
            identity,
            read_only: line(&folder.join("ro")).is_some_and(|flag| flag != "0"),
            rotational: line(&whole.join("queue/rotational")).is_some_and(|flag| flag == "1"),
            partition_of: is_partition.then(|| file_name(&whole)),
            partitions: partitions(&folder, &name),
            logical_block: Bytes::new(
                line(&whole.join("queue/logical_block_size"))
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(512),
            ),
            name,
            folder,
        })
    }

    /// The whole disk below a file or directory; `None` if there is no disk.
    pub fn beneath(path: &Path) -> Option<Disk> {
        let number = fs::metadata(path).ok()?.dev();
        let number = (rustix::fs::major(number), rustix::fs::minor(number));
        let of = |number| Self::of_number(path, PathBuf::new(), number).ok();
        // Btrfs reports a device number that belongs to no device, so the source of the mount is used.
        let part = of(number).or_else(|| {
            let mounts = mountinfo::of("self");
            let mount = mountinfo::above(&mounts, &fs::canonicalize(path).ok()?)?;
            Self::find(Path::new(&mount.source)).ok()
        })?;
        let whole = of(numbers(&line(&part.whole_folder().join("dev"))?)?)?;
        let node = Path::new("/dev").join(&whole.name);
        Some(Disk { path: node.clone(), node, ..whole })
    }

    /// Returns whether the device accepts discards (TRIM and its equivalents).
    pub fn discards(&self) -> bool {
        line(&self.whole_folder().join("queue/discard_max_bytes")).is_some_and(|most| most != "0")
    }

    /// The kernel's name of the whole disk.
    pub(super) fn whole_name(&self) -> String {
        self.partition_of.clone().unwrap_or_else(|| self.name.clone())
    }

    /// The folders in sysfs of the device, its partitions, and, for a partition, its whole disk. A user of any of
    /// them may use bytes of this device.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.folder.clone()];
        folders.extend(self.partitions.iter().map(|name| self.folder.join(name)));
        if self.partition_of.is_some() {
            folders.extend(self.folder.parent().map(Path::to_owned));
        }
        folders
    }

    /// The folder in sysfs of the whole disk.
    pub(crate) fn whole_folder(&self) -> PathBuf {
        let parent = self.partition_of.as_ref().and_then(|_| self.folder.parent());
        parent.unwrap_or(&self.folder).to_owned()
    }

    /// The numbers of the character devices that take commands to the whole disk: SCSI (`/dev/sg0`, `/dev/bsg/…`) and
    /// NVMe (`/dev/ng0n1`).
    pub(super) fn character_numbers(&self) -> Vec<Number> {
        let whole = self.whole_folder();
        let scsi = ["device/scsi_generic", "device/bsg"].into_iter().flat_map(|kind| {
            fs::read_dir(whole.join(kind)).into_iter().flatten().flatten().map(|entry| entry.path())
        });
        let name = file_name(&whole);
        let nvme = name.strip_prefix("nvme").map(|rest| whole.with_file_name(format!("ng{rest}")));
        scsi.chain(nvme).filter_map(|folder| numbers(&line(&folder.join("dev"))?)).collect()
    }

    /// The numbers of the devices in [`Disk::folders`].
    pub(super) fn numbers(&self) -> Vec<(u32, u32)> {
        self.folders().iter().filter_map(|folder| numbers(&line(&folder.join("dev"))?)).collect()
    }
}

/// Parses `8:17`.
pub(crate) fn numbers(text: &str) -> Option<Number> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The contents of a one-line file in sysfs or procfs; `None` if it is missing or empty.
pub(crate) fn line(path: &Path) -> Option<String> {
    trimmed(&fs::read(path).ok()?)
}

/// The text without surrounding white space and NULs; `None` if it is empty.
fn trimmed(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn partitions(folder: &Path, name: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().join("partition").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|part| part.starts_with(name))
        .collect();
    names.sort();
    names
}

/// The kind of identifier that a whole disk has, and its text.
fn serial(folder: &Path) -> (&'static str, String) {
    let number = "serial number";
    // NVMe and MMC have the file `device/serial`, virtio has `serial`. SCSI and ATA have a page of vital product
    // data.
    if let Some(serial) = line(&folder.join("device/serial")).or_else(|| line(&folder.join("serial"))) {
        return (number, serial);
    }
    if let Some(serial) = fs::read(folder.join("device/vpd_pg80")).ok().and_then(|page| page_80(&page)) {
        return (number, serial);
    }
    if let Some(file) = line(&folder.join("loop/backing_file")) {
        return ("backing file", file);
    }
    if let Some(uuid) = line(&folder.join("dm/uuid")).or_else(|| line(&folder.join("md/uuid"))) {
        return ("UUID", uuid);
    }
    if let Some(wwid) = line(&folder.join("device/wwid")).or_else(|| line(&folder.join("wwid"))) {
        return ("world wide name", wwid);
    }
    ("name (it has no serial number)", file_name(folder))
}

/// The serial in page 80h of a SCSI device's vital product data, after a header of four bytes (SPC-4, 7.8.15).
fn page_80(page: &[u8]) -> Option<String> {
    trimmed(page.get(4..)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_another_kind_is_rejected_by_kind() {
        let error = Disk::find(Path::new("/tmp")).unwrap_err().to_string();
        assert_eq!(error, "/tmp is a directory, but a block device is wanted here");
        let error = Disk::find(Path::new("/dev/null")).unwrap_err().to_string();
        assert_eq!(error, "/dev/null is not a block device, but a block device is wanted here");
        assert!(Disk::find(Path::new("/dev/no-such-disk")).is_err());
    }

    #[test]
    fn the_serial_follows_the_header_of_its_page() {
        assert_eq!(page_80(b"\0\x80\0\x0aWD-WCC4N0  \0").as_deref(), Some("WD-WCC4N0"));
        assert_eq!(page_80(b"\0\x80\0\0"), None);
        assert_eq!(numbers("259:3"), Some((259, 3)));
    }
}
