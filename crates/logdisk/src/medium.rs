//! What a log lies on: bytes that are read and written at a place.
//!
//! Writes may come to the medium in any order, and half of each, until a flush. Leaves out time, and what the medium is.

use crate::Aligned;
use std::io;
use std::sync::Arc;

/// Where a log lies.
pub trait Medium {
    /// How many bytes there are.
    fn bytes(&self) -> u64;

    /// Reads at `offset`, a multiple of 4096, as many bytes as `into` has, a multiple of 4096.
    ///
    /// # Errors
    /// Where the bytes cannot be had.
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Says that this will be read soon, by these bounds, so that it may be at hand then.
    fn will_read(&self, _offset: u64, _length: usize) {}

    /// Writes at `offset`; both it and the length are multiples of 4096.
    ///
    /// # Errors
    /// Where they cannot be written.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// The same, with bytes that are the medium's from now on, so that it may write them later.
    ///
    /// # Errors
    /// Where they cannot be written; or where some that were taken before could not be.
    fn write_owned(&self, offset: u64, data: Aligned) -> io::Result<()> {
        self.write(offset, &data)
    }

    /// Makes everything that was written before durable.
    ///
    /// # Errors
    /// Where that cannot be done; nothing is known to be durable then.
    fn flush(&self) -> io::Result<()>;

    /// Writes at `offset`, and makes that durable before it returns: a write with forced unit access, where the medium has one.
    ///
    /// # Errors
    /// Where that cannot be done.
    fn write_durably(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write(offset, data)?;
        self.flush()
    }
}

/// What stands for a medium is one.
macro_rules! forward {
    ($of:ty) => {
        impl<M: Medium + ?Sized> Medium for $of {
            fn bytes(&self) -> u64 {
                (**self).bytes()
            }
            fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
                (**self).read(offset, into)
            }
            fn will_read(&self, offset: u64, length: usize) {
                (**self).will_read(offset, length)
            }
            fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
                (**self).write(offset, data)
            }
            fn write_owned(&self, offset: u64, data: Aligned) -> io::Result<()> {
                (**self).write_owned(offset, data)
            }
            fn flush(&self) -> io::Result<()> {
                (**self).flush()
            }
            fn write_durably(&self, offset: u64, data: &[u8]) -> io::Result<()> {
                (**self).write_durably(offset, data)
            }
        }
    };
}

forward!(&M);
forward!(Arc<M>);
