//! [`Target`]: test files made ready, and gone again when it is dropped; [`examine`]: what that would take.
//!
//! Not here: the steps on a single file; see [`super::file`] and [`super::fill`].

use super::file::{Found, TestFile, refuse_all_but_directories, refuse_all_but_files};
use super::{Layout, TargetSpec};
use crate::data::{Order, Progress, TestData, fill};
use crate::error::{HostError, Operation};
use lowtide_core::{Bytes, Seed};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// What preparing a target would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outlook {
    /// Bytes that would be written.
    pub to_write: Bytes,
    /// Files that would be made.
    pub to_make: u32,
    /// Files that are there already, made by lowtide, of the right size and full.
    pub reused: u32,
}

/// How to prepare a target.
#[derive(Debug, Clone, Copy)]
pub struct Preparation<'a> {
    /// The target.
    pub spec: &'a TargetSpec,
    /// Its files.
    pub layout: Layout,
    /// In which order they are filled.
    pub order: Order,
    /// The seed of what is written.
    pub seed: Seed,
    /// Whether the files stay when the target is dropped, to be reused by a later run.
    pub keep: bool,
    /// Set by someone else to stop filling.
    pub interrupt: &'a AtomicBool,
}

/// Files under test, locked against another lowtide. Dropping it removes them, except those that are to be kept.
#[derive(Debug)]
pub struct Target {
    data: TestData,
    files: Vec<TestFile>,
    outlook: Outlook,
}

/// Says what [`Target::prepare`] would do, with every check that it makes. Changes nothing.
///
/// # Errors
/// As [`Target::prepare`], except for what happens while writing.
pub fn examine(spec: &TargetSpec, layout: Layout) -> Result<Outlook, HostError> {
    look(spec, layout).map(|(_, _, outlook)| outlook)
}

/// The files of the layout as they are found, and what is to be done about them.
fn look(spec: &TargetSpec, layout: Layout) -> Result<(Vec<PathBuf>, Vec<Found>, Outlook), HostError> {
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
    for found in &found {
        match found {
            Found::Ours(file) if file.full => outlook.reused += 1,
            Found::Ours(file) => {
                outlook.to_write += size;
                wanted += size.saturating_sub(file.taken());
            }
            Found::Nothing => {
                outlook.to_make += 1;
                outlook.to_write += size;
                wanted += size;
            }
        }
    }
    let space = rustix::fs::statvfs(directory).map_err(HostError::io(Operation::Inspect, directory))?;
    let available = Bytes::new(space.f_bavail.saturating_mul(space.f_frsize));
    if wanted > available {
        return Err(HostError::NoSpace { path: spec.path().to_owned(), wanted, available });
    }
    Ok((paths, found, outlook))
}

/// Removes what a run that was killed left of `spec`: files that lowtide made and that are not to be kept, under
/// whichever number. Files that are in use or cannot be examined stay, and so does everything else.
///
/// # Errors
/// [`HostError::Io`] where the directory cannot be listed, or for the first file that could not be removed.
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
        match TestFile::find(&path, Bytes::ZERO) {
            Ok(Found::Ours(file)) if !file.kept => result = result.and(file.remove()),
            _ => {}
        }
    }
    result
}

impl Target {
    /// Makes the files where they are missing, reserves their space and writes every byte of them; files that an
    /// earlier run left full and of the right size are taken as they are. `progress` hears of each MiB.
    ///
    /// Every check comes before the first write, so a target that is refused is unchanged. Where something fails
    /// later, the files taken so far are removed, except those that are to be kept.
    ///
    /// # Errors
    /// [`HostError::NotOurs`], [`HostError::InUse`], [`HostError::BlockDevice`], [`HostError::WrongKind`] and
    /// [`HostError::NoSpace`] where the target is refused; [`HostError::Invalid`] where a `file:` target should be
    /// several files; [`HostError::Interrupted`] where the interrupt flag was set; [`HostError::Io`] where the
    /// kernel refuses something.
    pub fn prepare(how: &Preparation<'_>, progress: &mut dyn FnMut(Progress)) -> Result<Target, HostError> {
        let (paths, found, outlook) = look(how.spec, how.layout)?;
        let size = how.layout.size_each();
        let data = TestData::new(paths.clone(), size)?;
        // From here on a failure drops the target, and with it what was made.
        let mut target = Target { data, files: Vec::new(), outlook };
        let mut done = Bytes::ZERO;
        for (number, (path, found)) in paths.iter().zip(found).enumerate() {
            let file = match found {
                Found::Ours(file) => file,
                Found::Nothing => TestFile::create(path)?,
            };
            target.files.push(file);
            let file = &mut target.files[number];
            if !file.full {
                file.reserve(size)?;
                let data_offset = number as u64 * size.get();
                let told = &mut |written| {
                    done += written;
                    progress(Progress { done, total: outlook.to_write });
                };
                fill((&file.file, &file.path), size, data_offset, how.order, how.seed, how.interrupt, told)?;
                file.complete(size)?;
            }
        }
        if how.keep {
            target.files.iter_mut().try_for_each(|file| file.keep(size))?;
        }
        Ok(target)
    }

    /// A file as it is, made by whomever, for workloads that only read: nothing is checked but that it is a file,
    /// nothing is written, nothing is removed. Its size is rounded down to whole blocks.
    ///
    /// # Errors
    /// [`HostError::BlockDevice`], [`HostError::WrongKind`]; [`HostError::Invalid`] where it holds no whole block;
    /// [`HostError::Io`] where it cannot be examined.
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

    /// What preparing it did.
    pub fn outlook(&self) -> Outlook {
        self.outlook
    }

    /// Removes the files, except those that are to be kept, and says whether that worked.
    ///
    /// # Errors
    /// [`HostError::Io`] for the first file that could not be removed; the others are removed all the same.
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
        // Whoever wants to know calls `remove`.
        let _ = self.clean();
    }
}
