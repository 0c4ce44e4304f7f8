//! [`Target`]: prepared test files, removed when it is dropped. [`examine`]: the work that preparing them needs.
//!
//! The steps on a single file are in [`super::file`] and [`crate::data`].

use super::file::{TestFile, refuse_all_but_directories, refuse_all_but_files};
use super::{Layout, TargetSpec};
use crate::data::{Order, Progress, TestData, fill};
use crate::error::{HostError, Operation};
use lowtide_core::{Bytes, Seed};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The work that preparing a target needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outlook {
    /// Bytes to write.
    pub to_write: Bytes,
    /// Number of files to create.
    pub to_make: u32,
    /// Number of existing files that are reused: made by lowtide, full, and of the right size.
    pub reused: u32,
}

/// The parameters of preparing a target.
#[derive(Debug, Clone, Copy)]
pub struct Preparation<'a> {
    /// The target.
    pub spec: &'a TargetSpec,
    /// The number and size of its files.
    pub layout: Layout,
    /// The order in which each file is filled.
    pub order: Order,
    /// The seed of the written data.
    pub seed: Seed,
    /// Whether the files are kept when the target is dropped, for later runs.
    pub keep: bool,
    /// Set by another thread to stop filling.
    pub interrupt: &'a AtomicBool,
}

/// Files under test, locked against other processes of lowtide. Dropping the target removes the files that
/// are not kept.
#[derive(Debug)]
pub struct Target {
    data: TestData,
    files: Vec<TestFile>,
    outlook: Outlook,
}

/// Returns the work that [`Target::prepare`] would do, after the same checks. Changes nothing.
///
/// # Errors
/// As [`Target::prepare`], except failures of writing.
pub fn examine(spec: &TargetSpec, layout: Layout) -> Result<Outlook, HostError> {
    look(spec, layout).map(|(_, _, outlook)| outlook)
}

/// The paths of a layout, the existing files among them, and the remaining work.
type Examined = (Vec<PathBuf>, Vec<Option<TestFile>>, Outlook);

/// Examines the paths of a layout.
fn look(spec: &TargetSpec, layout: Layout) -> Result<Examined, HostError> {
    let size = layout.size_each();
    let directory = match spec {
        TargetSpec::Directory(path) => path,
        TargetSpec::File(path) => match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        },
    };
    let paths = spec.files(layout)?;
    if let TargetSpec::Directory(path) = spec {
        refuse_all_but_directories(path)?;
    }
    let found = paths.iter().map(|path| TestFile::find(path, size)).collect::<Result<Vec<_>, _>>()?;
    let mut outlook = Outlook { to_write: Bytes::ZERO, to_make: 0, reused: 0 };
    let mut wanted = Bytes::ZERO;
    for file in &found {
        if file.as_ref().is_some_and(|file| file.full) {
            outlook.reused += 1;
            continue;
        }
        outlook.to_make += u32::from(file.is_none());
        outlook.to_write += size;
        wanted += size.saturating_sub(file.as_ref().map_or(Bytes::ZERO, TestFile::allocated));
    }
    let space = rustix::fs::statvfs(directory).map_err(HostError::io(Operation::Inspect, directory))?;
    let available = Bytes::new(space.f_bavail.saturating_mul(space.f_frsize));
    if wanted > available {
        return Err(HostError::NoSpace { path: spec.path().to_owned(), wanted, available });
    }
    Ok((paths, found, outlook))
}

/// Removes the files that a killed run left at a target: files that lowtide made and that are not kept, whatever
/// number is in their names. All other files stay, and so do files that are in use or cannot be examined.
///
/// # Errors
/// [`HostError::Io`] if the directory cannot be listed, or for the first file that cannot be removed.
pub fn remove_left_over(spec: &TargetSpec) -> Result<(), HostError> {
    let paths = match spec {
        TargetSpec::File(path) => vec![path.clone()],
        TargetSpec::Directory(directory) => {
            let entries =
                std::fs::read_dir(directory).map_err(HostError::io(Operation::Inspect, directory))?;
            let ours = |name: &str| {
                let number = name.strip_prefix("lowtide-").and_then(|rest| rest.strip_suffix(".dat"));
                number.is_some_and(|number| {
                    number.len() >= 4 && number.bytes().all(|digit| digit.is_ascii_digit())
                })
            };
            let named = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(ours));
            named.map(|entry| entry.path()).collect()
        }
    };
    let mut result = Ok(());
    for path in paths {
        if let Ok(Some(file)) = TestFile::find(&path, Bytes::ZERO)
            && !file.kept
        {
            result = result.and(file.remove());
        }
    }
    result
}

impl Target {
    /// Creates missing files, reserves their space and writes every byte of them. Reuses existing files that are full
    /// and of the right size. Calls `progress` after each write.
    ///
    /// All checks precede the first write, so a rejected target is unchanged. If a later step fails, the files
    /// prepared so far are removed, except those that are kept.
    ///
    /// # Errors
    /// [`HostError::NotOurs`], [`HostError::InUse`], [`HostError::BlockDevice`], [`HostError::WrongKind`] or
    /// [`HostError::NoSpace`] if the target is rejected; [`HostError::Invalid`] if the layout has several files and
    /// the target is one file; [`HostError::Interrupted`] once the interrupt flag is set; [`HostError::Io`] if a
    /// system call fails.
    pub fn prepare(how: &Preparation<'_>, progress: &mut dyn FnMut(Progress)) -> Result<Target, HostError> {
        let (paths, found, outlook) = look(how.spec, how.layout)?;
        let size = how.layout.size_each();
        let data = TestData::new(paths.clone(), size)?;
        // From here on, a failure drops the target, which removes the files.
        let mut target = Target { data, files: Vec::new(), outlook };
        let mut done = Bytes::ZERO;
        for (number, (path, found)) in paths.iter().zip(found).enumerate() {
            target.files.push(found.map_or_else(|| TestFile::create(path), Ok)?);
            let file = &mut target.files[number];
            if !file.full {
                file.reserve(size)?;
                let data_offset = number as u64 * size.get();
                let report = &mut |written| {
                    done += written;
                    progress(Progress { done, total: outlook.to_write });
                };
                fill((&file.file, path), size, data_offset, how.order, how.seed, how.interrupt, report)?;
                file.complete(size)?;
            }
        }
        if how.keep {
            target.files.iter_mut().try_for_each(|file| file.keep(size))?;
        }
        Ok(target)
    }

    /// An existing file of any origin, for workloads that only read. The file is neither written nor removed. Its
    /// size is rounded down to whole blocks.
    ///
    /// # Errors
    /// [`HostError::BlockDevice`] or [`HostError::WrongKind`] if it is not a file; [`HostError::Invalid`] if
    /// it is smaller than a block; [`HostError::Io`] if it cannot be examined.
    pub fn existing(path: &Path, block: Bytes) -> Result<Target, HostError> {
        let metadata = std::fs::metadata(path).map_err(HostError::io(Operation::Inspect, path))?;
        refuse_all_but_files(path, metadata.file_type(), "a file")?;
        let size = Bytes::new(metadata.len()).align_down(block);
        let data = TestData::new(vec![path.to_owned()], size)?;
        let outlook = Outlook { to_write: Bytes::ZERO, to_make: 0, reused: 1 };
        Ok(Target { data, files: Vec::new(), outlook })
    }

    /// The bytes under test.
    pub fn data(&self) -> &TestData {
        &self.data
    }

    /// The work that preparing needed.
    pub fn outlook(&self) -> Outlook {
        self.outlook
    }

    /// Removes the files that are not kept.
    ///
    /// # Errors
    /// [`HostError::Io`] for the first file that cannot be removed. The other files are still removed.
    pub fn remove(mut self) -> Result<(), HostError> {
        self.clean()
    }

    fn clean(&mut self) -> Result<(), HostError> {
        let files = std::mem::take(&mut self.files);
        let mut result = Ok(());
        for file in files.iter().filter(|file| !file.kept) {
            result = result.and(file.remove());
        }
        result
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Errors are reported by `remove`.
        let _ = self.clean();
    }
}
