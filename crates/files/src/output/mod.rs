//! Output files and folders ([`Output`], [`OutputFolder`]), and the protection of files that they must not replace.
//!
//! ```text
//!   path ─► Destination: links followed ─► a store? a WAL of one? used by this command? a device?
//!                                        (checked before the work, and again before writing)
//!           a file ─► .lowtide-….part in the same folder ─► fsync ─► rename
//!           /dev/stdout, /dev/null, a terminal, a pipe ─► written in place
//! ```
//!
//! An output never replaces:
//! - a store, whichever command wrote it;
//! - a file that SQLite keeps with a store (`-wal`, `-shm`, `-journal`);
//! - a file that the same command reads, or writes for another purpose ([`CommandFiles`]);
//! - the data on a device.
//!
//! Files are compared by device and inode. If the last component of a path is a symbolic link, the link is kept and
//! its target is replaced. A path is rejected if the text of the resolved path names a different file.
//!
//! All code that creates files, in this crate and in those that depend on it, uses this module;
//! `crates/cli/tests/tidy` enforces that. SQLite writes stores, and other modules write files in place (log disks,
//! drive contents, files under test). For these, this module only checks the path.

mod destination;
mod error;
mod replace;
#[cfg(test)]
mod tests;

pub use error::OutputError;

use crate::application;
use destination::{Destination, Unreachable};
use rustix::fs::{Access, AtFlags, CWD, accessat, major, minor};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Suffixes of the files that SQLite keeps with a database.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Device numbers of character devices that hold no data: null, zero, full, and the terminal of the process.
const HARMLESS: [(u32, u32); 4] = [(1, 3), (1, 5), (1, 7), (5, 0)];

/// The role of an output, for errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// Noun for the output: "the report".
    pub noun: &'static str,
    /// The option that sets the path: `-o FILE`. Empty if there is no option.
    pub option: &'static str,
    /// Whether the store still contains the data, so that a failed output loses nothing.
    pub is_stored: bool,
}

impl Role {
    /// An output made from data that the store still contains.
    pub const fn stored(noun: &'static str, option: &'static str) -> Role {
        Role { noun, option, is_stored: true }
    }

    /// An output whose data exists nowhere else.
    pub const fn new(noun: &'static str, option: &'static str) -> Role {
        Role { noun, option, is_stored: false }
    }

    fn by(self) -> String {
        if self.option.is_empty() { String::new() } else { format!(" with `{}`", self.option) }
    }

    fn another(self) -> String {
        let what = if self.option.contains("DIR") { "directory" } else { "file" };
        format!("name another {what}{}", self.by())
    }

    fn in_a_directory(self) -> String {
        format!("name a file in a directory that exists and that you may write to{}", self.by())
    }

    fn room(self) -> String {
        let stored = if self.is_stored { ": the measurements are in the store" } else { "" };
        format!("name another place, or make room{stored}")
    }
}

/// The files that a command reads, or writes for another purpose.
#[derive(Debug, Clone, Default)]
pub struct CommandFiles {
    files: Vec<CommandFile>,
}

#[derive(Debug, Clone)]
struct CommandFile {
    what: &'static str,
    path: PathBuf,
    is_store: bool,
}

impl CommandFiles {
    /// Adds a file; `what` is a noun for it: "the experiment".
    pub fn add(&mut self, what: &'static str, path: impl Into<PathBuf>) {
        self.files.push(CommandFile { what, path: path.into(), is_store: false });
    }

    /// Adds a file, unless the text is a name in the catalogue.
    pub fn add_named(&mut self, what: &'static str, name_or_path: &str) {
        if crate::catalogue::is_path(name_or_path) {
            self.add(what, name_or_path);
        }
    }

    /// Adds the device files in a device name, and `others`, the files they refer to.
    pub fn add_device(&mut self, name: &str, others: &[PathBuf]) {
        crate::device::DeviceName::new(name).paths().for_each(|path| self.add("the device file", path));
        others.iter().for_each(|path| self.add("a device file", path));
    }

    /// Adds a store that the command writes, which may not exist yet.
    pub fn add_store(&mut self, path: impl Into<PathBuf>) {
        self.files.push(CommandFile { what: "the store", path: path.into(), is_store: true });
    }

    /// Adds the files of another part of the command.
    pub fn extend(&mut self, others: CommandFiles) {
        self.files.extend(others.files);
    }

    /// Adds a file and returns the extended list.
    #[must_use]
    pub fn and(mut self, what: &'static str, path: impl Into<PathBuf>) -> CommandFiles {
        self.add(what, path);
        self
    }

    /// The file at a destination.
    fn find(&self, place: &Destination) -> Option<&CommandFile> {
        self.files.iter().find(|file| place.is_at(&file.path))
    }
}

/// A file that is written completely or not at all.
#[derive(Debug, Clone)]
pub struct Output {
    role: Role,
    path: PathBuf,
    others: CommandFiles,
}

impl Output {
    /// Checks the path of an output before the work that produces its contents.
    ///
    /// # Errors
    /// [`OutputError`] if the file cannot be written, or if writing it would destroy data.
    pub fn file(role: Role, path: &Path, others: &CommandFiles) -> Result<Output, OutputError> {
        let output = Output { role, path: path.to_owned(), others: others.clone() };
        output.check()?;
        Ok(output)
    }

    /// The path as the user gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the file atomically. Streams and devices are written in place.
    ///
    /// # Errors
    /// As [`Output::file`], because the path is checked again; [`OutputError::Write`] if writing fails. The old file
    /// is then unchanged.
    pub fn write(&self, content: &[u8]) -> Result<(), OutputError> {
        self.write_with(|out| out.write_all(content))
    }

    /// As [`Output::write`], with the bytes that `content` writes.
    ///
    /// # Errors
    /// As [`Output::write`], and the errors of `content`.
    pub fn write_with(
        &self,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let place = self.check()?;
        let is_stream = place.is_descriptor || place.found.as_ref().is_some_and(|found| !found.is_file());
        let failed = |source| OutputError::Write { path: self.path.clone(), source, role: self.role };
        if is_stream {
            return opened(&place).and_then(|mut file| replace::buffered(&mut file, content)).map_err(failed);
        }
        let part = replace::write_part(&place, content).map_err(failed)?;
        // A store may have been created under this name during the write and sync.
        replace::take_name(part, &self.check()?).map_err(failed)
    }

    fn check(&self) -> Result<Destination, OutputError> {
        let (role, path) = (self.role, || self.path.clone());
        if self.path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(OutputError::Directory { path: path(), role });
        }
        let place =
            Destination::of(&self.path).map_err(|why| OutputError::unreachable(role, &self.path, why))?;
        protect(role, &self.path, &place, &self.others, false)?;
        match place.found.as_ref().map(std::fs::Metadata::file_type) {
            Some(kind) if kind.is_dir() => Err(OutputError::Directory { path: path(), role }),
            Some(kind) if kind.is_socket() && !place.is_descriptor => {
                Err(OutputError::Kind { path: path(), role })
            }
            Some(kind) if place.is_descriptor || !kind.is_file() => Ok(place),
            _ => match writable(&place.folder) {
                Ok(()) => Ok(place),
                Err(source) => {
                    let folder = place.folder;
                    Err(OutputError::NotWritable { path: path(), folder, source, role })
                }
            },
        }
    }
}

/// A directory for output files, created if it does not exist.
#[derive(Debug, Clone)]
pub struct OutputFolder {
    role: Role,
    path: PathBuf,
    others: CommandFiles,
}

impl OutputFolder {
    /// Checks the path of a directory.
    ///
    /// # Errors
    /// [`OutputError`] if the directory cannot be created or written to.
    pub fn new(role: Role, path: &Path, others: &CommandFiles) -> Result<OutputFolder, OutputError> {
        let named = || path.to_owned();
        let not_writable = |folder: &Path, source| OutputError::NotWritable {
            path: named(),
            folder: folder.to_owned(),
            source,
            role,
        };
        let place = match Destination::of(path) {
            Ok(place) => {
                protect(role, path, &place, others, false)?;
                place
            }
            // Missing parent directories will be created too.
            Err(Unreachable::NoFolder) => path
                .ancestors()
                .find_map(there)
                .unwrap_or(Err(Unreachable::NoFolder))
                .map_err(|why| OutputError::unreachable(role, path, why))?,
            Err(why) => return Err(OutputError::unreachable(role, path, why)),
        };
        let within = match &place.found {
            Some(found) if found.is_dir() => &place.path,
            Some(_) => return Err(OutputError::NotADirectory { path: named(), role }),
            None => &place.folder,
        };
        writable(within).map_err(|source| not_writable(within, source))?;
        Ok(OutputFolder { role, path: path.to_owned(), others: others.clone() })
    }

    /// The path as the user gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the directory and its missing parents.
    ///
    /// # Errors
    /// [`OutputError::Write`] if a directory cannot be created.
    pub fn make(&self) -> Result<(), OutputError> {
        std::fs::create_dir_all(&self.path).map_err(|source| OutputError::Write {
            path: self.path.clone(),
            source,
            role: self.role,
        })
    }

    /// A file in the directory.
    ///
    /// # Errors
    /// As [`Output::file`].
    pub fn file(&self, name: &str) -> Result<Output, OutputError> {
        Output::file(self.role, &self.path.join(name), &self.others)
    }
}

/// The destination of an existing path. `None` if the path does not exist.
fn there(path: &Path) -> Option<Result<Destination, Unreachable>> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    match Destination::of(path) {
        Ok(place) => place.found.is_some().then_some(Ok(place)),
        Err(Unreachable::Elsewhere) => Some(Err(Unreachable::Elsewhere)),
        Err(_) => None,
    }
}

/// Creates a new file.
///
/// # Errors
/// [`OutputError`] if the file exists or cannot be created.
pub fn create_new(role: Role, path: &Path, others: &CommandFiles) -> Result<File, OutputError> {
    in_place(role, path, others)?;
    File::create_new(path).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => OutputError::Exists { path: path.to_owned(), role },
        _ => OutputError::Write { path: path.to_owned(), source, role },
    })
}

/// Checks a path that other code will write in place. Only data loss is checked; the code that opens the file reports
/// other errors.
///
/// # Errors
/// [`OutputError`] if the path is a store, belongs to one, is used by the same command, or leads to another file than
/// its resolved text.
pub fn in_place(role: Role, path: &Path, others: &CommandFiles) -> Result<(), OutputError> {
    match Destination::of(path) {
        Ok(place) if place.found.as_ref().is_none_or(std::fs::Metadata::is_file) => {
            protect(role, path, &place, others, false)
        }
        Err(why @ Unreachable::Elsewhere) => Err(OutputError::unreachable(role, path, why)),
        _ => Ok(()),
    }
}

/// Checks the path of a store. An existing store is accepted, since new results are added to it.
///
/// # Errors
/// [`OutputError`] if the path belongs to another store, is used by the same command for another purpose, or is a
/// device.
pub fn store(path: &Path, others: &CommandFiles) -> Result<(), OutputError> {
    const STORE: Role = Role::new("the store", "--store FILE");
    match Destination::of(path) {
        Ok(place) => protect(STORE, path, &place, others, true),
        // SQLite would open the file that the resolved text names.
        Err(why @ Unreachable::Elsewhere) => Err(OutputError::unreachable(STORE, path, why)),
        Err(_) => Ok(()),
    }
}

/// Rejects a path if writing to it would destroy data.
fn protect(
    role: Role,
    named: &Path,
    place: &Destination,
    others: &CommandFiles,
    to_store: bool,
) -> Result<(), OutputError> {
    let path = || named.to_owned();
    let kind = place.found.as_ref().map(std::fs::Metadata::file_type);
    match kind {
        Some(kind) if kind.is_block_device() => {
            return Err(OutputError::Device {
                path: path(),
                to: place.path.clone(),
                kind: "block device",
                role,
            });
        }
        Some(kind) if kind.is_char_device() && !is_harmless(place) => {
            return Err(OutputError::Device {
                path: path(),
                to: place.path.clone(),
                kind: "character device",
                role,
            });
        }
        // Pipes and terminals may be read and written by one command.
        Some(kind) if !kind.is_file() && !kind.is_dir() => return Ok(()),
        _ => {}
    }
    // This check precedes `is_store`: opening and closing a store would drop the locks that this process holds on it.
    if let Some(file) = others.find(place) {
        return Err(OutputError::OfCommand { path: path(), other: file.path.clone(), what: file.what, role });
    }
    if kind.is_some_and(|kind| kind.is_file()) && !to_store {
        let unreadable = |source| OutputError::Unreadable { path: path(), source, role };
        if is_store(place).map_err(unreadable)? {
            return Err(OutputError::Store { path: path(), role });
        }
    }
    match beside(place, others) {
        Some(store) => Err(OutputError::BesideStore { path: path(), store, role }),
        None => Ok(()),
    }
}

fn is_store(place: &Destination) -> io::Result<bool> {
    if !place.is_descriptor {
        return application::is_store(&place.path);
    }
    let path = place.path.read_link()?;
    if place.is_at(&path) {
        return application::is_store(&path);
    }
    // The path no longer leads to the file, but another may, such as a second hard link.
    let has_name = place.found.as_ref().is_some_and(|found| found.nlink() > 0);
    Ok(has_name && application::has_header(&place.path)?)
}

/// The store that a `-wal`, `-shm` or `-journal` file belongs to. The store exists, or is to be written by this
/// command.
fn beside(place: &Destination, others: &CommandFiles) -> Option<PathBuf> {
    let open = place.path.read_link().ok().filter(|_| place.is_descriptor);
    let open = open.filter(|path| place.is_at(path)).and_then(|path| Destination::of(&path).ok());
    let place = open.as_ref().unwrap_or(place);
    BESIDE.iter().filter_map(|ending| place.without(ending)).find(|path| {
        let Ok(place) = Destination::of(path) else { return false };
        let is_file = place.found.as_ref().is_some_and(std::fs::Metadata::is_file);
        others.find(&place).is_some_and(|file| file.is_store)
            || is_file && application::is_store(&place.path).unwrap_or(true)
    })
}

/// Whether writing to a character device loses nothing: it is in [`HARMLESS`], or is this process's standard output
/// or error.
fn is_harmless(place: &Destination) -> bool {
    let Some(found) = &place.found else { return false };
    let is = |other: Result<rustix::fs::Stat, Errno>| {
        other.is_ok_and(|other| (other.st_dev, other.st_ino) == (found.dev(), found.ino()))
    };
    HARMLESS.contains(&(major(found.rdev()), minor(found.rdev())))
        || is(rustix::fs::fstat(io::stdout().as_fd()))
        || is(rustix::fs::fstat(io::stderr().as_fd()))
}

/// Whether files can be made in a folder.
fn writable(folder: &Path) -> io::Result<()> {
    match accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        // An old kernel cannot check this. A later write reports the error.
        Ok(()) | Err(Errno::NOSYS | Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Opens a stream, a device or an open descriptor for writing in place.
fn opened(place: &Destination) -> io::Result<File> {
    match place.own_descriptor().and_then(std::ffi::OsStr::to_str) {
        // A duplicate shares the file position, so later output of this process follows these bytes.
        Some("1") => return Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?)),
        Some("2") => return Ok(File::from(io::stderr().as_fd().try_clone_to_owned()?)),
        _ => {}
    }
    let is_file = place.found.as_ref().is_some_and(std::fs::Metadata::is_file);
    OpenOptions::new().write(true).append(is_file).open(&place.path)
}
