//! Taking an attached drive apart: what there is of it is looked up, not remembered, so that it does not matter how far
//! attaching came, who was killed when, or how often this is called.
//!
//! ```text
//!   filesystems on the loop device ─► loop device ─► FUSE ─► server ─► files
//! ```
//!
//! Not here: what is not below the drive; filesystems on partitions and devices built on it keep it from going, and are
//! told.

use super::journal::{Facts, Journal};
use super::loop_device::{self, LoopDevice};
use super::place::Place;
use super::watch::Watch;
use super::{Force, holders};
use crate::error::{HostError, Operation};
use crate::mountinfo::{self, Mount};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long something may be in use by programs that look at what was just closed (udev does).
const MOMENT: Duration = Duration::from_secs(3);
/// How long a server may take to end in order: it may have the state of a large drive to write.
const LAST_WORDS: Duration = Duration::from_secs(120);

/// What became of a drive that was detached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Detached {
    /// The drive did not answer, or was cut off by force: what was not written yet is lost.
    pub cut_off: bool,
    /// What goes once those that use it have let go.
    pub left: Vec<String>,
}

/// Takes one drive apart.
#[derive(Debug)]
pub(super) struct Dismantling {
    place: Place,
    facts: Facts,
    force: Force,
    watch: Watch,
    left: Vec<String>,
}

impl Dismantling {
    pub(super) fn new(place: &Place, facts: &Facts, force: Force) -> Dismantling {
        let watch = Watch::new(place, facts.server, loop_device::over(&place.file()), force.patience());
        Dismantling { place: place.clone(), facts: facts.clone(), force, watch, left: Vec::new() }
    }

    /// The same, of a drive whose server goes on.
    pub(super) fn sparing_the_server(mut self) -> Dismantling {
        self.watch = self.watch.sparing();
        self
    }

    /// Everything, and the journal at last; `last` takes the state that the server left.
    ///
    /// # Errors
    /// [`HostError::Busy`] where something is in use; [`HostError`] where the kernel refuses. What is left can be taken
    /// apart by calling this again.
    pub(super) fn all(mut self, journal: Journal, last: impl FnOnce(&Path)) -> Result<Detached, HostError> {
        if self.facts.loop_device.is_none() {
            // The server was being waited for: it would go on to mount what is looked for below.
            self.watch.end_server();
        }
        // What is in use keeps its queue, too.
        self.filesystems()?;
        self.queue()?;
        self.block_device()?;
        if self.force == Force::Lazily && !self.left.is_empty() {
            self.watch.cut();
        }
        self.fuse()?;
        // It ends by itself when its filesystem is gone.
        if self.facts.server.is_some_and(|server| !server.ends_within(LAST_WORDS)) {
            self.watch.end_server();
        }
        if let Some(mount) = self.facts.mount.as_ref().filter(|mount| mount.made) {
            // What others put there since is theirs.
            let _ = fs::remove_dir(&mount.at);
        }
        last(&self.place.state());
        self.place.clear()?;
        journal.close()?;
        Ok(Detached { cut_off: self.watch.cut_off(), left: self.left })
    }

    /// The filesystems and the loop device.
    ///
    /// # Errors
    /// As [`Dismantling::all`].
    pub(super) fn block_device(&mut self) -> Result<(), HostError> {
        self.filesystems()?;
        let off = self.loop_devices();
        if matches!(off, Err(HostError::Busy { .. })) && self.mounts().next().is_some() {
            // A mount that somebody was about to make, and has made meanwhile.
            self.filesystems()?;
            return self.loop_devices();
        }
        off
    }

    /// What is mounted from the loop device, wherever that is; the last one covers the others.
    fn mounts(&self) -> impl Iterator<Item = Mount> + use<> {
        let devices = loop_device::over(&self.place.file());
        let of_one = move |mount: &Mount| devices.iter().any(|device| is_of(mount, *device));
        mountinfo::of("self").into_iter().rev().filter(of_one)
    }

    fn filesystems(&mut self) -> Result<(), HostError> {
        self.mounts().try_for_each(|mount| self.unmount(Path::new(&mount.point)))
    }

    fn loop_devices(&mut self) -> Result<(), HostError> {
        for device in loop_device::over(&self.place.file()) {
            self.watch.call("taking the loop device off", move || device.clear())??;
            let file = self.place.file();
            let begin = Instant::now();
            // It is taken off by the last one that closes it.
            let lazily = self.force == Force::Lazily;
            let patient = || begin.elapsed() < MOMENT || (!lazily && is_writing(device));
            self.watch.until("the loop device", || device.file().as_ref() != Some(&file) || !patient())?;
            if device.file().as_ref() == Some(&file) {
                let by = holders::of_device(&device.node(), &device.folder());
                if !lazily {
                    return Err(HostError::Busy { path: device.node(), by });
                }
                self.left.push(told(&device.node(), &by));
            }
        }
        Ok(())
    }

    /// The scheduler of the loop device and what else outlives its file, while it still is ours.
    fn queue(&mut self) -> Result<(), HostError> {
        let facts = (self.facts.loop_device, self.facts.queue.clone());
        let (Some(number), Some(queue)) = facts else { return Ok(()) };
        for device in loop_device::over(&self.place.file()).into_iter().filter(|it| it.number() == number) {
            let queue = queue.clone();
            self.watch.call("giving the loop device its queue back", move || device.restore(&queue))?;
        }
        Ok(())
    }

    fn fuse(&mut self) -> Result<(), HostError> {
        let at = self.place.mount_point();
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
                // Not mounted any more.
                Err(Errno::INVAL | Errno::NOENT) => return Ok(()),
                Err(Errno::BUSY) if begin.elapsed() < MOMENT => std::thread::sleep(Duration::from_millis(50)),
                Err(Errno::BUSY) => break,
                Err(error) => return Err(HostError::io(Operation::Unmount, at)(error)),
            }
        }
        let by = holders::of_mount(at, &mountinfo::of("self"));
        if self.force != Force::Lazily {
            return Err(HostError::Busy { path: at.to_owned(), by });
        }
        let folder = at.to_owned();
        // What was written shall not be lost for that; where it cannot be saved, it cannot.
        let _ = self.watch.call("writing back", move || fs::File::open(folder).map(rustix::fs::syncfs))?;
        self.left.push(told(at, &by));
        let unmounted = self.try_unmount(at, UnmountFlags::DETACH)?;
        unmounted.map_err(HostError::io(Operation::Unmount, at))
    }

    fn try_unmount(&mut self, at: &Path, flags: UnmountFlags) -> Result<Result<(), Errno>, HostError> {
        let at = at.to_owned();
        self.watch.call("unmounting", move || rustix::mount::unmount(at, flags | UnmountFlags::NOFOLLOW))
    }
}

/// Whether a mount is that of a device. Btrfs has numbers that no device has; the source tells.
pub(super) fn is_of(mount: &Mount, device: LoopDevice) -> bool {
    mount.number == device.major_and_minor() || Path::new(&mount.source) == device.node()
}

/// Whether requests are under way: whoever closed the device has left some.
fn is_writing(device: LoopDevice) -> bool {
    device.in_flight() > 0
}

fn told(path: &Path, by: &[String]) -> String {
    format!("{}: {}", path.display(), crate::error::by_whom(by))
}
