//! How other threads reach a drive that is served live ([`Port`]).

use lowtide_core::Request;

/// What a request comes to: the data of a read (empty for anything else), or an error number of Linux.
pub type Outcome = Result<Vec<u8>, i32>;

/// Who hears of it. Called once, on the thread that serves the drive, so it does little.
pub type Done = Box<dyn FnOnce(Outcome) + Send>;

/// A way to a drive.
pub trait Port: Send + Sync + 'static {
    /// Bytes the drive has.
    fn size(&self) -> u64;

    /// Offsets and lengths are multiples of it.
    fn block(&self) -> u32;

    /// Which life of the drive this is: the number grows with every power cut.
    fn life(&self) -> u64;

    /// Asks the drive, in the life the caller began with; in a later one the answer is `EIO`. `data` is as long as a
    /// write, and empty for anything else. Never blocks.
    fn submit(&self, life: u64, request: Request, data: Vec<u8>, done: Done);
}
