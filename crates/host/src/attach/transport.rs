//! What a request takes on its way from a block device to its drive and back: system calls, copies, and threads of the
//! kernel that wake ([`Server::transport_ns`]).
//!
//! It is measured on a drive of one block that is attached for a moment, in the place of the one that will be: whatever
//! takes that apart after a kill takes this apart, too. Not here: filesystems on the device, whose time is their own.

use super::loop_device::LoopDevice;
use super::server::Server;
use crate::error::{HostError, Operation};
use crate::live::{self, Clock};
use crate::region::Region;
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::Duration;

/// How often a free loop device is looked for.
const ATTEMPTS: usize = 32;
/// How often something is tried that the kernel still holds, and how long it is left in peace.
const PATIENCE: usize = 1000;
const MOMENT: Duration = Duration::from_millis(1);

impl Server {
    /// Nanoseconds that a request to the block device takes longer than the drive does: the median of direct reads of
    /// 4 KiB, one at a time.
    ///
    /// # Errors
    /// [`HostError::Io`] where the kernel refuses what attaching needs.
    pub fn transport_ns(&self, clock: Clock) -> Result<u64, HostError> {
        let at = self.place.mount_point();
        let fail = |source: io::Error| HostError::io(Operation::SetUp, &at)(source);
        let (server, handle) = live::slow(clock).map_err(fail)?;
        let port = handle.port(0, u64::from(live::BLOCK), live::BLOCK);
        let drive = std::thread::Builder::new().spawn(move || drop(server.run())).map_err(fail)?;
        let session = self.mount(port, "lowtide:measure")?;
        let serving = session.spawn().map_err(fail)?;
        let measured = self.measured();
        // The kernel lets go of the file a moment after the loop device did.
        let mut unmounted = Err(Errno::BUSY);
        for _ in 0..PATIENCE {
            unmounted = rustix::mount::unmount(&at, UnmountFlags::NOFOLLOW);
            if unmounted != Err(Errno::BUSY) {
                break;
            }
            std::thread::sleep(MOMENT);
        }
        unmounted.map_err(HostError::io(Operation::Unmount, &at))?;
        let served = serving.join();
        handle.stop();
        let _ = drive.join();
        served.map_err(fail)?;
        measured
    }

    fn measured(&self) -> Result<u64, HostError> {
        let file = self.place.file();
        for _ in 0..ATTEMPTS {
            let device = LoopDevice::free()?;
            if device.configure(&file, live::BLOCK)? {
                let measured = read(device);
                device.clear()?;
                return measured;
            }
        }
        Err(HostError::io(Operation::SetUp, &file)(Errno::BUSY))
    }
}

fn read(device: LoopDevice) -> Result<u64, HostError> {
    let node = device.node();
    let fail = |source: io::Error| HostError::io(Operation::Read, &node)(source);
    let file: File = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&node).map_err(fail)?;
    let mut memory = Region::new(live::BLOCK as usize).map_err(fail)?;
    let into = &mut memory.bytes()[..live::BLOCK as usize];
    live::measure(|| file.read_exact_at(into, 0)).map_err(fail)
}
