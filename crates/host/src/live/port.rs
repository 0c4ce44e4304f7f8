//! Access to a served drive from other threads ([`Port`]).

use lowtide_core::Request;

/// The outcome of a request: the data of a read, nothing for other requests, or a Linux error number.
pub type Outcome = Result<Vec<u8>, i32>;

/// A callback for the outcome, called once on the server's thread. It must return quickly.
pub type OnComplete = Box<dyn FnOnce(Outcome) + Send>;

/// Access to a drive.
pub trait Port: Send + Sync + 'static {
    /// Size of the drive, in bytes.
    fn size(&self) -> u64;

    /// Offsets and lengths of requests must be multiples of this many bytes.
    fn block(&self) -> u32;

    /// The number of power cuts so far.
    fn life(&self) -> u64;

    /// Submits a request without blocking. `data` holds the data of a write, else nothing. After a power cut since
    /// [`Port::life`] returned `life`, the outcome is `EIO`.
    fn submit(&self, life: u64, request: Request, data: Vec<u8>, done: OnComplete);
}
