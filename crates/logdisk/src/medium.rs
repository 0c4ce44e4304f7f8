//! The storage below a log ([`Medium`]): bytes that are read and written at offsets.
//!
//! Until a flush, writes may reach the medium in any order and in part. Crates that use log disks implement the
//! trait.

use crate::Aligned;
use std::io;
use std::sync::Arc;

/// The storage below a log. Offsets and lengths are multiples of 4096 bytes.
pub trait Medium {
    /// Size in bytes.
    fn bytes(&self) -> u64;

    /// Reads at `offset`.
    ///
    /// # Errors
    /// If the bytes cannot be read.
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Announces a read of exactly this range.
    fn will_read(&self, _offset: u64, _length: usize) {}

    /// Writes at `offset`.
    ///
    /// # Errors
    /// If the bytes cannot be written.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Writes bytes that the medium may keep and write later.
    ///
    /// # Errors
    /// If these bytes or earlier ones cannot be written.
    fn write_owned(&self, offset: u64, data: Aligned) -> io::Result<()> {
        self.write(offset, &data)
    }

    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// If the flush fails. It is then unknown which writes are durable.
    fn flush(&self) -> io::Result<()>;

    /// Writes at `offset`, and returns when the write is durable. A medium may use forced unit access.
    ///
    /// # Errors
    /// If the write or the flush fails.
    fn write_durably(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write(offset, data)?;
        self.flush()
    }
}

/// Implements [`Medium`] for pointers to a medium.
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
