//! The transport time of a request between a block device and its drive: system calls, copies, and wake-ups of kernel
//! threads ([`Server::transport_ns`]).
//!
//! The measurement attaches a drive of one block at the mount point of the real drive. Detaching the real drive after
//! a kill therefore removes both. The time of filesystems is not included.

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

/// Maximum number of attempts to find a free loop device.
const ATTEMPTS: usize = 32;
/// Maximum number of attempts to unmount while the kernel still holds the file, and the pause between them.
const UNMOUNT_ATTEMPTS: usize = 1000;
const PAUSE: Duration = Duration::from_millis(1);

impl Server {
    /// Nanoseconds that a request to the block device takes beyond the service time of the drive: the median
    /// over direct reads of 4 KiB, one at a time.
    ///
    /// # Errors
    /// [`HostError::Io`] if the drive cannot be attached or read.
    pub fn transport_ns(&self, clock: Clock) -> Result<u64, HostError> {
        let at = self.paths.mount_point();
        let fail = |source: io::Error| HostError::io(Operation::SetUp, &at)(source);
        let (server, handle) = live::slow(clock).map_err(fail)?;
        let port = handle.port(0, u64::from(live::BLOCK), live::BLOCK);
        let drive = std::thread::Builder::new().spawn(move || drop(server.run())).map_err(fail)?;
        let session = self.mount(port, "lowtide:measure")?;
        let serving = session.spawn().map_err(fail)?;
        let measured = self.measured();
        // The kernel releases the file shortly after the loop device was detached.
        let mut unmounted = Err(Errno::BUSY);
        for _ in 0..UNMOUNT_ATTEMPTS {
            unmounted = rustix::mount::unmount(&at, UnmountFlags::NOFOLLOW);
            if unmounted != Err(Errno::BUSY) {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        unmounted.map_err(HostError::io(Operation::Unmount, &at))?;
        let served = serving.join();
        handle.stop();
        let _ = drive.join();
        served.map_err(fail)?;
        measured
    }

    fn measured(&self) -> Result<u64, HostError> {
        let file = self.paths.file();
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
