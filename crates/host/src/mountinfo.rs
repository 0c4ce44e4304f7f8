//! Mounts, as listed in `/proc/…/mountinfo` (proc(5)).

use std::fs;
use std::io;
use std::path::Path;

/// A mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The number of the mount (`mnt_id` in `fdinfo`), unique across all namespaces.
    pub id: u64,
    /// Major and minor number of the device. On Btrfs, the number of no device.
    pub number: (u32, u32),
    /// The mounted directory of the filesystem: `/` except for bind mounts.
    pub root: String,
    /// The mount point.
    pub point: String,
    /// The options of the mount and of the filesystem, each once, joined by commas.
    pub options: String,
    /// The type of the filesystem.
    pub filesystem: String,
    /// The source, as it was named when mounting.
    pub source: String,
}

/// The mounts that a process (`self`, `1`) sees, oldest first; empty if they cannot be read.
pub(crate) fn of(process: &str) -> Vec<Mount> {
    read(process).unwrap_or_default()
}

/// The mounts that a process or a thread (`12/task/13`) sees, oldest first.
pub(crate) fn read(process: &str) -> io::Result<Vec<Mount>> {
    let text = fs::read(format!("/proc/{process}/mountinfo"))?;
    Ok(String::from_utf8_lossy(&text).lines().filter_map(parse).collect())
}

/// Types of filesystems whose files come from a server (a program or another machine). Access to these files may
/// block.
const SERVED: [&str; 12] =
    ["fuse", "fuseblk", "nfs", "cifs", "smb3", "9p", "ceph", "afs", "virtiofs", "orangefs", "lustre", "gfs2"];

impl Mount {
    /// Returns whether the files come from a server, which may not answer.
    pub(crate) fn is_served(&self) -> bool {
        SERVED.iter().any(|kind| {
            self.filesystem.strip_prefix(kind).is_some_and(|rest| !rest.starts_with(char::is_alphabetic))
        })
    }

    /// Returns whether device nodes on it can be opened.
    pub(crate) fn has_nodes(&self) -> bool {
        !self.options.split(',').any(|option| option == "nodev")
    }

    /// Returns whether it is a mount of the device with this number and node. On Btrfs the number is that of no
    /// device, so the source is compared too.
    pub(crate) fn is_of(&self, number: (u32, u32), node: &Path) -> bool {
        self.number == number || Path::new(&self.source) == node
    }

    /// The value of an option: `/a` for `upperdir=/a`.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        self.options.split(',').find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }
}

/// The mount that contains `path`: the mount with the longest mount point above it. If several mounts share that
/// mount point, the last one counts, because it hides the others.
pub(crate) fn above<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| Path::new(&mount.point).components().count())
}

/// Undoes the octal escapes of blanks and backslashes.
pub(crate) fn unescape(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (code, plain)| text.replace(code, plain))
}

fn parse(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let mut right = right.split(' ');
    let (major, minor) = left.get(2)?.split_once(':')?;
    let (filesystem, source, of_filesystem) = (right.next()?, right.next()?, right.next().unwrap_or(""));
    let options = format!("{},{of_filesystem}", left.get(5)?);
    let mut seen = Vec::new();
    options.split(',').for_each(|option| {
        if !option.is_empty() && !seen.contains(&option) {
            seen.push(option);
        }
    });
    Some(Mount {
        id: left.first()?.parse().ok()?,
        number: (major.parse().ok()?, minor.parse().ok()?),
        root: unescape(left.get(3)?),
        point: unescape(left.get(4)?),
        options: unescape(&seen.join(",")),
        filesystem: filesystem.to_owned(),
        source: unescape(source),
    })
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
        let mounts: Vec<Mount> = text.lines().filter_map(parse).collect();
        assert_eq!(mounts.len(), 3);
        let mount = above(&mounts, Path::new("/mnt/my data/file")).expect("found");
        assert_eq!((mount.filesystem.as_str(), mount.options.as_str()), ("xfs", "rw,noatime,attr2"));
        assert_eq!((mount.id, mount.number), (3, (8, 1)));
        assert!(
            mount.has_nodes() && !parse("4 1 0:5 / /x rw,nodev - tmpfs n rw").expect("a mount").has_nodes()
        );
        assert_eq!(above(&mounts, Path::new("/mnt/my")).expect("found").source, "/dev/vda");
    }

    #[test]
    fn served_filesystems_are_recognised_by_type() {
        let text = "9 1 0:40 / /m rw - KIND a rw,lowerdir=/l:/m,upperdir=/u\\040v";
        for (kind, served) in [
            ("fuse", true),
            ("fuse.sshfs", true),
            ("fuseblk", true),
            ("nfs4", true),
            ("9p", true),
            ("nfsd", false),
            ("ext4", false),
            ("fusectl", false),
        ] {
            let mount = parse(&text.replace("KIND", kind)).expect("a mount");
            assert_eq!(mount.is_served(), served, "{kind}");
            assert_eq!((mount.option("upperdir"), mount.option("upper")), (Some("/u v"), None));
        }
    }
}
