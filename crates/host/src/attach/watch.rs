//! [`Watch`]: calls that wait for a drive, and are not waited for without end.
//!
//! Unmounting writes back what is dirty, and closing a device too: on a slow drive that takes its time, on a server that
//! does not answer it takes for ever, and nothing can end a process that waits so. As long as the loop device completes
//! requests, there is hope. When it does not for a while, the connection of FUSE is cut: everything that waits fails with
//! an error, and goes on. Not here: what is called.

use super::loop_device::LoopDevice;
use super::place::Place;
use super::process::Process;
use crate::error::HostError;
use crate::mountinfo;
use rustix::mount::UnmountFlags;
use rustix::process::Signal;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often is looked.
const LOOK: Duration = Duration::from_millis(20);
/// How often a server is ended, and how long it may take each time.
const CUTS: usize = 10;
/// How long a server whose filesystem is gone may take to end by itself: the state of a large drive is written in seconds.
const LAST_WORDS: Duration = Duration::from_secs(5);
const LAST_MOMENT: Duration = Duration::from_millis(200);

/// Who watches one drive.
#[derive(Debug)]
pub(super) struct Watch {
    place: Place,
    server: Option<Process>,
    devices: Vec<LoopDevice>,
    patience: Duration,
    last_words: Duration,
    may_cut: bool,
    cut_off: bool,
}

impl Watch {
    /// `patience` is how long a drive may complete nothing.
    pub(super) fn new(
        place: &Place,
        server: Option<Process>,
        devices: Vec<LoopDevice>,
        patience: Duration,
    ) -> Watch {
        let (last_words, may_cut) = (LAST_WORDS, true);
        Watch { place: place.clone(), server, devices, patience, last_words, may_cut, cut_off: false }
    }

    /// The same, of a server that has to go on, whatever becomes of this.
    pub(super) fn sparing(mut self) -> Watch {
        self.may_cut = false;
        self
    }

    /// Whether the connection was cut.
    pub(super) fn cut_off(&self) -> bool {
        self.cut_off
    }

    /// Calls something that may wait for the drive.
    ///
    /// # Errors
    /// [`HostError::Hangs`] where even an error of the drive does not end it.
    pub(super) fn call<T: Send + 'static>(
        &mut self,
        what: &'static str,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, HostError> {
        let (send, receive) = channel();
        std::thread::spawn(move || send.send(call()));
        let mut result = None;
        self.until(what, || {
            match receive.recv_timeout(LOOK) {
                Ok(value) => result = Some(value),
                // It panicked, and said so; there is nothing more to wait for.
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => {}
            }
            result.is_some()
        })?;
        Ok(result.expect("calls of the kernel do not panic"))
    }

    /// Waits until something is so; `is_so` takes a moment by itself or none.
    ///
    /// # Errors
    /// As [`Watch::call`].
    pub(super) fn until(
        &mut self,
        what: &'static str,
        mut is_so: impl FnMut() -> bool,
    ) -> Result<(), HostError> {
        let (mut before, mut since) = (self.completed(), Instant::now());
        let mut cut_here = false;
        while !is_so() {
            std::thread::sleep(Duration::from_millis(1));
            let now = self.completed();
            if now != before {
                (before, since) = (now, Instant::now());
            } else if since.elapsed() > self.patience {
                if cut_here {
                    return Err(HostError::Hangs { name: self.place.name().to_owned(), what });
                }
                if !self.may_cut {
                    return Err(HostError::Hangs { name: self.place.name().to_owned(), what });
                }
                self.cut();
                cut_here = true;
                since = Instant::now();
            }
        }
        Ok(())
    }

    fn completed(&self) -> u64 {
        self.devices.iter().map(|device| device.completed()).sum()
    }

    /// Cuts the connection between the kernel and the server: all that waits fails, and so does all that comes.
    pub(super) fn cut(&mut self) {
        self.cut_off = true;
        self.end_server();
    }

    /// Ends a server, with what it serves; whether it has ended.
    ///
    /// The connection is cut first: one that waits for an answer of its own, as while it measures, cannot be killed.
    pub(super) fn end_server(&self) -> bool {
        let at = self.place.mount_point();
        for _ in 0..CUTS {
            for mount in mountinfo::of("self").iter().filter(|mount| Path::new(&mount.point) == at) {
                // The file `abort` where it is there (fuse(4)), and what `umount -f` does where it is not.
                let abort = format!("/sys/fs/fuse/connections/{}/abort", mount.number.1);
                let _ = std::fs::write(abort, "1");
                let _ = rustix::mount::unmount(&at, UnmountFlags::FORCE | UnmountFlags::NOFOLLOW);
            }
            let Some(server) = self.server else { return true };
            // Without its filesystem it ends by itself, and writes what is to be kept of the drive.
            if server.ends_within(self.last_words) {
                return true;
            }
            server.signal(Signal::KILL);
            // It may have been about to mount.
            if server.ends_within(LAST_MOMENT) {
                return true;
            }
        }
        false
    }
}
