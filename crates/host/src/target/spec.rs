//! [`TargetSpec`]: a target in its text form (`file:PATH`, `dir:PATH`). [`Layout`]: the number and size of its files.

use crate::error::HostError;
use crate::pattern;
use lowtide_core::Bytes;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A target in its text form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetSpec {
    /// `file:PATH`: one file, created if it does not exist.
    File(PathBuf),
    /// `dir:PATH`: files `lowtide-0000.dat` and so on in an existing directory.
    Directory(PathBuf),
}

impl TargetSpec {
    /// The path of the file or directory.
    pub fn path(&self) -> &Path {
        match self {
            TargetSpec::File(path) | TargetSpec::Directory(path) => path,
        }
    }

    /// The paths of the files of a layout, in order.
    ///
    /// # Errors
    /// [`HostError::Invalid`] if the layout has several files and the target is one file.
    pub fn files(&self, layout: Layout) -> Result<Vec<PathBuf>, HostError> {
        match self {
            TargetSpec::File(path) if layout.files == 1 => Ok(vec![path.clone()]),
            TargetSpec::File(path) => {
                let accepted = format!("`file:{}` is one file; write `dir:PATH` for several", path.display());
                Err(HostError::invalid("the number of files", layout.files, accepted))
            }
            TargetSpec::Directory(path) => {
                Ok((0..layout.files).map(|n| path.join(format!("lowtide-{n:04}.dat"))).collect())
            }
        }
    }
}

impl FromStr for TargetSpec {
    type Err = HostError;
    fn from_str(text: &str) -> Result<Self, HostError> {
        match text.split_once(':') {
            Some(("file", path)) if !path.is_empty() => Ok(TargetSpec::File(path.into())),
            Some(("dir", path)) if !path.is_empty() => Ok(TargetSpec::Directory(path.into())),
            _ => Err(HostError::invalid(
                "the target",
                format_args!("`{text}`"),
                "write `file:PATH` for a file or `dir:PATH` for a directory",
            )),
        }
    }
}

impl fmt::Display for TargetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if matches!(self, TargetSpec::File(_)) { "file" } else { "dir" };
        write!(f, "{kind}:{}", self.path().display())
    }
}

/// The number and size of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    files: u32,
    size_each: Bytes,
}

impl Layout {
    /// Splits `total` bytes into `files` files of equal size for requests of `block` bytes. The size is
    /// rounded down to a multiple of the block and of 4 KiB, which direct I/O needs.
    ///
    /// # Errors
    /// [`HostError::Invalid`] if that size is zero.
    pub fn split(total: Bytes, files: u32, block: Bytes) -> Result<Layout, HostError> {
        let page = pattern::PAGE as u64;
        let block = block.get().max(1);
        let unit = block / gcd(block, page) * page;
        let size_each = Bytes::new(total.get() / u64::from(files.max(1))).align_down(Bytes::new(unit));
        if files == 0 || size_each == Bytes::ZERO {
            return Err(HostError::invalid(
                "the size of the data",
                format_args!("{total} in {files} files"),
                format!("each file needs at least {}", Bytes::new(unit)),
            ));
        }
        Ok(Layout { files, size_each })
    }

    /// The number of files.
    pub fn files(self) -> u32 {
        self.files
    }
    /// Bytes of each file.
    pub fn size_each(self) -> Bytes {
        self.size_each
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_parse_print_and_explain() {
        let spec: TargetSpec = "file:/tmp/a:b".parse().expect("valid");
        assert_eq!(spec, TargetSpec::File("/tmp/a:b".into()));
        assert_eq!(spec.to_string(), "file:/tmp/a:b");
        let error = "/dev/sda".parse::<TargetSpec>().unwrap_err().to_string();
        assert_eq!(
            error,
            "the target is `/dev/sda`: write `file:PATH` for a file or `dir:PATH` for a directory"
        );
    }

    #[test]
    fn a_layout_divides_into_whole_blocks() {
        for (total, files, block, expected) in [
            (Bytes::new(1_000_000), 3, Bytes::kib(16), Bytes::kib(16) * 20),
            (Bytes::kib(10), 1, Bytes::new(512), Bytes::kib(8)),
            (Bytes::kib(30), 1, Bytes::kib(6), Bytes::kib(24)),
        ] {
            assert_eq!(Layout::split(total, files, block).expect("valid").size_each(), expected);
        }
        assert!(Layout::split(Bytes::kib(8), 3, Bytes::kib(4)).is_err());
        let several = Layout::split(Bytes::mib(1), 2, Bytes::kib(4)).expect("valid");
        assert!(TargetSpec::File("/tmp/a".into()).files(several).is_err());
        let names = TargetSpec::Directory("/tmp".into()).files(several).expect("valid");
        assert_eq!(names[1], Path::new("/tmp/lowtide-0001.dat"));
    }
}
