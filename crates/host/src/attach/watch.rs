//! [`Watch`]: a time limit for system calls that wait for a drive.
//!
//! Unmounting a filesystem and closing a device write back dirty pages. On a slow drive that takes long; with a
//! server that does not answer, it never ends, and the waiting process cannot be killed. The watch keeps waiting
//! while the loop device completes requests. If no request completes for a while, the watch cuts the FUSE connection,
//! so that all waiting requests fail.

use super::loop_device::LoopDevice;
use super::paths::Paths;
use super::process::Process;
use crate::error::HostError;
use crate::mountinfo;
use rustix::mount::UnmountFlags;
use rustix::process::Signal;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The interval between two checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of attempts to end a server.
const END_ATTEMPTS: usize = 10;
/// Time limit for a server to end after its filesystem was unmounted: it writes the state of the drive.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for a server to end after a kill.
const KILL_TIMEOUT: Duration = Duration::from_millis(200);

/// The time limit for calls that wait for one drive.
#[derive(Debug)]
pub(super) struct Watch {
    paths: Paths,
    server: Option<Process>,
    devices: Vec<LoopDevice>,
    patience: Duration,
    may_cut: bool,
    cut_off: bool,
}

impl Watch {
    /// Waits up to `patience` while the drive completes no request.
    pub(super) fn new(
        paths: &Paths,
        server: Option<Process>,
        devices: Vec<LoopDevice>,
        patience: Duration,
    ) -> Watch {
        Watch { paths: paths.clone(), server, devices, patience, may_cut: true, cut_off: false }
    }

    /// A watch that never cuts the connection, for a server that has to keep running.
    pub(super) fn without_cut(mut self) -> Watch {
        self.may_cut = false;
        self
    }

    /// Returns whether the connection was cut.
    pub(super) fn cut_off(&self) -> bool {
        self.cut_off
    }

    /// Runs a call that may wait for the drive.
    ///
    /// # Errors
    /// [`HostError::Hangs`] if the call does not return even after the connection was cut.
    pub(super) fn call<T: Send + 'static>(
        &mut self,
        what: &'static str,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, HostError> {
        let (send, receive) = channel();
        std::thread::spawn(move || send.send(call()));
        let mut result = None;
        self.until(what, || {
            match receive.recv_timeout(CHECK_INTERVAL) {
                Ok(value) => result = Some(value),
                // The call panicked.
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => {}
            }
            result.is_some()
        })?;
        Ok(result.expect("system calls do not panic"))
    }

    /// Waits until `is_so` returns true; it must return quickly.
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
                if cut_here || !self.may_cut {
                    return Err(HostError::Hangs { name: self.paths.name().to_owned(), call: what });
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

    /// Cuts the connection between the kernel and the server, so that waiting and later requests fail.
    pub(super) fn cut(&mut self) {
        self.cut_off = true;
        self.end_server();
    }

    /// Unmounts the FUSE filesystem and ends the server. The connection is cut first, because a server that
    /// waits for its own filesystem, as during a measurement, cannot be killed.
    pub(super) fn end_server(&self) {
        let at = self.paths.mount_point();
        for _ in 0..END_ATTEMPTS {
            for mount in mountinfo::of("self").iter().filter(|mount| Path::new(&mount.point) == at) {
                // Through the file `abort` (fuse(4)); if it does not exist, as `umount -f` does.
                let abort = format!("/sys/fs/fuse/connections/{}/abort", mount.number.1);
                let _ = std::fs::write(abort, "1");
                let _ = rustix::mount::unmount(&at, UnmountFlags::FORCE | UnmountFlags::NOFOLLOW);
            }
            // Without its filesystem the server ends by itself, after writing the state of the drive.
            let Some(server) = self.server.filter(|server| !server.ends_within(EXIT_TIMEOUT)) else { return };
            server.signal(Signal::KILL);
            // If it still runs, it may have been about to mount.
            if server.ends_within(KILL_TIMEOUT) {
                return;
            }
        }
    }
}
