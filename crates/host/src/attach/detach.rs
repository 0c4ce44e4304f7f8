//! Detaches a drive by looking up what is attached, so it is idempotent and works after a crash at any point.
//!
//! ```text
//!   filesystems on the loop device ─► loop device ─► FUSE ─► server ─► files
//! ```
//!
//! # Not handled
//! Filesystems on partitions, and devices built on the drive. They prevent detaching, and are reported.

use super::journal::{Journal, Record};
use super::paths::Paths;
use super::watch::Watch;
use super::{Force, holders};
use crate::error::{HostError, Operation};
use crate::mountinfo::{self, Mount};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time limit for programs such as udev, which examine a device after it is closed.
const BUSY_TIMEOUT: Duration = Duration::from_secs(3);
/// Time limit for a server that ends by itself: it may have to write the state of a large drive.
const EXIT_TIMEOUT: Duration = Duration::from_secs(120);

/// The result of detaching a drive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Detached {
    /// Whether the connection was cut, because the drive did not answer or by force. Unwritten data is lost.
    pub cut_off: bool,
    /// Mounts and devices that disappear when their last user closes them, each with its users.
    pub left: Vec<String>,
}

/// The detaching of one drive.
#[derive(Debug)]
pub(super) struct Detaching {
    paths: Paths,
    record: Record,
    force: Force,
    watch: Watch,
    left: Vec<String>,
}

impl Detaching {
    pub(super) fn new(paths: &Paths, record: &Record, force: Force) -> Detaching {
        let watch = Watch::new(paths, record.server, paths.loop_devices(), force.patience());
        Detaching { paths: paths.clone(), record: record.clone(), force, watch, left: Vec::new() }
    }

    /// Leaves the server running.
    pub(super) fn keeping_server(mut self) -> Detaching {
        self.watch = self.watch.without_cut();
        self
    }

    /// Detaches all parts, and removes the journal last. Calls `take_state` with the path of the state file that the
    /// server wrote.
    ///
    /// # Errors
    /// [`HostError::Busy`] if a part is in use; [`HostError`] if a system call fails. A second call continues where
    /// the first one failed.
    pub(super) fn all(
        mut self,
        journal: Journal,
        take_state: impl FnOnce(&Path),
    ) -> Result<Detached, HostError> {
        if self.record.loop_device.is_none() {
            // Attaching ended while the server was starting. The server might still mount its filesystem.
            self.watch.end_server();
        }
        // The filesystems come first: if one is in use, the queue settings must stay as they are.
        self.filesystems()?;
        self.queue()?;
        self.block_device()?;
        if self.force == Force::Lazily && !self.left.is_empty() {
            self.watch.cut();
        }
        self.fuse()?;
        // The server ends by itself once its filesystem is unmounted.
        if self.record.server.is_some_and(|server| !server.ends_within(EXIT_TIMEOUT)) {
            self.watch.end_server();
        }
        if let Some(mount) = self.record.mount.as_ref().filter(|mount| mount.made) {
            // Fails if the folder is not empty: its files belong to others.
            let _ = fs::remove_dir(&mount.at);
        }
        take_state(&self.paths.state());
        self.paths.clear()?;
        journal.close()?;
        Ok(Detached { cut_off: self.watch.cut_off(), left: self.left })
    }

    /// Detaches the filesystems and the loop device.
    ///
    /// # Errors
    /// As [`Detaching::all`].
    pub(super) fn block_device(&mut self) -> Result<(), HostError> {
        self.filesystems()?;
        let result = self.loop_devices();
        if matches!(result, Err(HostError::Busy { .. })) && self.mounts().next().is_some() {
            // Another process has mounted the device in the meantime.
            self.filesystems()?;
            return self.loop_devices();
        }
        result
    }

    /// Mounts of the loop device, latest first.
    fn mounts(&self) -> impl Iterator<Item = Mount> + use<> {
        let devices = self.paths.loop_devices();
        let of_one = move |mount: &Mount| devices.iter().any(|device| device.is_mounted_at(mount));
        mountinfo::of("self").into_iter().rev().filter(of_one)
    }

    fn filesystems(&mut self) -> Result<(), HostError> {
        self.mounts().try_for_each(|mount| self.unmount(Path::new(&mount.point)))
    }

    fn loop_devices(&mut self) -> Result<(), HostError> {
        for device in self.paths.loop_devices() {
            self.watch.call("detaching the loop device", move || device.clear())??;
            let file = self.paths.file();
            let is_attached = || device.file().as_ref() == Some(&file);
            let begin = Instant::now();
            // The kernel detaches it after the last user has closed it and its requests have completed.
            let lazily = self.force == Force::Lazily;
            let waits = || begin.elapsed() < BUSY_TIMEOUT || (!lazily && device.in_flight() > 0);
            self.watch.until("the loop device", || !is_attached() || !waits())?;
            if is_attached() {
                let by = holders::of_device(&device.node(), &device.folder());
                if !lazily {
                    return Err(HostError::Busy { path: device.node(), by });
                }
                self.left.push(in_use(&device.node(), &by));
            }
        }
        Ok(())
    }

    /// Restores the queue settings of the loop device while it is still attached.
    fn queue(&mut self) -> Result<(), HostError> {
        let record = (self.record.loop_device, self.record.queue.clone());
        let (Some(number), Some(queue)) = record else { return Ok(()) };
        for device in self.paths.loop_devices().into_iter().filter(|it| it.number() == number) {
            let queue = queue.clone();
            self.watch.call("restoring the queue of the loop device", move || device.restore(&queue))?;
        }
        Ok(())
    }

    fn fuse(&mut self) -> Result<(), HostError> {
        let at = self.paths.mount_point();
        while mountinfo::of("self").iter().any(|mount| Path::new(&mount.point) == at) {
            self.unmount(&at)?;
        }
        Ok(())
    }

    fn unmount(&mut self, at: &Path) -> Result<(), HostError> {
        let begin = Instant::now();
        loop {
            match self.try_unmount(at, UnmountFlags::empty())? {
                Ok(()) => return Ok(()),
                // No longer mounted.
                Err(Errno::INVAL | Errno::NOENT) => return Ok(()),
                Err(Errno::BUSY) if begin.elapsed() < BUSY_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(Errno::BUSY) => break,
                Err(error) => return Err(HostError::io(Operation::Unmount, at)(error)),
            }
        }
        let by = holders::of_mount(at, &mountinfo::of("self"));
        if self.force != Force::Lazily {
            return Err(HostError::Busy { path: at.to_owned(), by });
        }
        let folder = at.to_owned();
        // Dirty pages are written back first, if possible.
        let _ = self.watch.call("writing back", move || fs::File::open(folder).map(rustix::fs::syncfs))?;
        self.left.push(in_use(at, &by));
        let unmounted = self.try_unmount(at, UnmountFlags::DETACH)?;
        unmounted.map_err(HostError::io(Operation::Unmount, at))
    }

    fn try_unmount(&mut self, at: &Path, flags: UnmountFlags) -> Result<Result<(), Errno>, HostError> {
        let at = at.to_owned();
        self.watch.call("unmounting", move || rustix::mount::unmount(at, flags | UnmountFlags::NOFOLLOW))
    }
}

fn in_use(path: &Path, by: &[String]) -> String {
    format!("{}: {}", path.display(), crate::error::by_whom(by))
}
