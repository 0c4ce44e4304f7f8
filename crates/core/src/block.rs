//! The contract of every device in virtual time ([`BlockDevice`]).
//!
//! ```text
//!   load ──► Partition ──► Fault ──► SimulatedSsd | Array ──► members …
//!            (Wraps)       (Wraps)   (BlockDevice)
//! ```
//!
//! A device takes a request at an instant and returns the instant of its completion. Time is an argument; a device has no clock.
//!
//! # Not modelled
//! Contents. Simulated devices know where each block is and when it is durable, but not its bytes.

use crate::state::StateError;
use crate::units::{Bytes, Nanos, VirtualTime};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// Read.
    Read,
    /// Write.
    Write {
        /// Forced unit access: complete only when durable.
        fua: bool,
    },
    /// Tell the device that the data in the range is no longer needed (ATA TRIM, NVMe deallocate).
    Trim,
    /// Make the range read as zeroes.
    WriteZeroes,
    /// Make every acknowledged write durable. Offset and length are ignored.
    Flush,
}

/// One request to a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// The operation.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

impl Request {
    /// A read of `length` bytes at `offset`.
    pub const fn read(offset: u64, length: u64) -> Self {
        Request { op: Op::Read, offset, length }
    }
    /// A write of `length` bytes at `offset`, without forced unit access.
    pub const fn write(offset: u64, length: u64) -> Self {
        Request { op: Op::Write { fua: false }, offset, length }
    }
    /// A trim of `length` bytes at `offset`.
    pub const fn trim(offset: u64, length: u64) -> Self {
        Request { op: Op::Trim, offset, length }
    }
    /// A flush.
    pub const fn flush() -> Self {
        Request { op: Op::Flush, offset: 0, length: 0 }
    }

    /// Checks that the range lies within `capacity` bytes and is aligned to logical blocks of `block` bytes. A flush has no
    /// range, so it always passes.
    ///
    /// # Errors
    /// [`DeviceError::OutOfRange`], [`DeviceError::Unaligned`].
    #[inline]
    pub fn check(&self, capacity: u64, block: u64) -> Result<(), DeviceError> {
        let Request { op, offset, length } = *self;
        if op == Op::Flush {
            return Ok(());
        }
        if offset.checked_add(length).is_none_or(|end| end > capacity) {
            return Err(DeviceError::OutOfRange { offset, length, capacity });
        }
        if !offset.is_multiple_of(block) || !length.is_multiple_of(block) {
            return Err(DeviceError::Unaligned { offset, length, block });
        }
        Ok(())
    }
}

/// Why a device refused a request or failed to carry it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum DeviceError {
    /// The range reaches past the end of the device.
    #[error("request for bytes {offset}..{} reaches past the end of the device at {capacity}", offset + length)]
    OutOfRange {
        /// First byte of the request.
        offset: u64,
        /// Number of bytes of the request.
        length: u64,
        /// Capacity of the device in bytes.
        capacity: u64,
    },
    /// Offset or length is not a multiple of the device's logical block.
    #[error("request for {length} bytes at {offset} is not aligned to the logical block of {block} bytes")]
    Unaligned {
        /// First byte of the request.
        offset: u64,
        /// Number of bytes of the request.
        length: u64,
        /// Logical block in bytes.
        block: u64,
    },
    /// The medium cannot read the range.
    #[error("bytes {offset}..{} cannot be read: the medium has an error there", offset + length)]
    ReadFailed {
        /// First byte of the request.
        offset: u64,
        /// Number of bytes of the request.
        length: u64,
    },
    /// The medium cannot write the range, which keeps its old data.
    #[error("bytes {offset}..{} cannot be written: the medium has an error there", offset + length)]
    WriteFailed {
        /// First byte of the request.
        offset: u64,
        /// Number of bytes of the request.
        length: u64,
    },
    /// The device has reached the end of its life.
    #[error("the device is worn out: it can be read, but takes no more writes")]
    WornOut,
}

/// Identifies a queued request; the caller chooses it.
pub type Tag = u64;

/// Instant and result of a completed request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The instant of completion; never before the instant of submission.
    pub at: VirtualTime,
    /// The result. A request that failed changed nothing.
    pub status: Result<(), DeviceError>,
}

/// Counters of a device since it was made. They never decrease, except `free_blocks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Bytes read by the host.
    pub host_read_bytes: u64,
    /// Bytes written by the host.
    pub host_written_bytes: u64,
    /// Bytes programmed into NAND for any reason: host data, garbage collection, map.
    pub nand_written_bytes: u64,
    /// Bytes copied by garbage collection, part of `nand_written_bytes`.
    pub gc_moved_bytes: u64,
    /// Bytes of the mapping table written to NAND, part of `nand_written_bytes`.
    pub map_written_bytes: u64,
    /// Map lookups that had to read the table from NAND.
    pub map_misses: u64,
    /// Reads for the read-modify-write of writes smaller than the map unit.
    pub rmw_reads: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Blocks that are erased and empty now.
    pub free_blocks: u64,
    /// Nanoseconds that host writes waited for garbage collection.
    pub gc_stall_ns: u64,
    /// Bytes trimmed.
    pub trimmed_bytes: u64,
    /// Acknowledged bytes lost to power cuts.
    pub lost_bytes: u64,
    /// CPU time of the host in nanoseconds that the device's driver used in addition to an ordinary driver's.
    #[serde(default)]
    pub host_cpu_ns: u64,
    /// Bytes of data blocks and map pages that a log layer wrote, for the host and for itself, without headers and padding.
    #[serde(default)]
    pub layer_written_bytes: u64,
}

/// One of the [`Counters`] with its name, unit and meaning, for tables.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// The name of the field.
    pub name: &'static str,
    /// `B`, `ns`, or empty for a plain count.
    pub unit: &'static str,
    /// The meaning.
    pub doc: &'static str,
    /// Reads the counter.
    pub get: fn(&Counters) -> u64,
}

macro_rules! counters {
    ($($name:ident $unit:literal $doc:literal),+ $(,)?) => {
        impl Counters {
            /// Every counter, in the order of the fields.
            pub const ALL: &'static [Counter] =
                &[$(Counter { name: stringify!($name), unit: $unit, doc: $doc, get: |it| it.$name }),+];
        }

        impl Counters {
            /// The counts since `earlier`; `free_blocks` keeps its present value.
            pub fn since(&self, earlier: &Counters) -> Counters {
                let difference = Counters { $($name: self.$name.wrapping_sub(earlier.$name)),+ };
                Counters { free_blocks: self.free_blocks, ..difference }
            }
        }

        impl std::ops::Add for Counters {
            type Output = Counters;

            /// Sums the counters of two devices.
            fn add(self, other: Counters) -> Counters {
                Counters { $($name: self.$name + other.$name),+ }
            }
        }
    };
}

counters! {
    host_read_bytes "B" "read by the host",
    host_written_bytes "B" "written by the host",
    nand_written_bytes "B" "programmed into NAND",
    gc_moved_bytes "B" "copied by garbage collection",
    map_written_bytes "B" "written to NAND for the mapping table",
    map_misses "" "map lookups that read the map from NAND",
    rmw_reads "" "reads for the read-modify-write of small writes",
    erases "" "blocks erased",
    free_blocks "" "blocks erased and empty at the end of the interval",
    gc_stall_ns "ns" "time that host writes waited for garbage collection",
    trimmed_bytes "B" "trimmed",
    lost_bytes "B" "acknowledged and lost to power cuts",
    host_cpu_ns "ns" "host CPU time used by the driver",
    layer_written_bytes "B" "written by a log layer",
}

impl Counters {
    /// NAND bytes per host byte written since `earlier`. `None` if the host wrote nothing, if no NAND was ever written (a
    /// disk has none), or if a counter decreased (that of a real drive was reset).
    pub fn write_amplification_since(&self, earlier: &Counters) -> Option<f64> {
        let host = self.host_written_bytes.checked_sub(earlier.host_written_bytes)?;
        let nand = self.nand_written_bytes.checked_sub(earlier.nand_written_bytes)?;
        (host > 0 && self.nand_written_bytes > 0).then(|| nand as f64 / host as f64)
    }

    /// Bytes written by a log layer per host byte written since `earlier`. `None` if the host wrote nothing or there is no log
    /// layer.
    pub fn layer_amplification_since(&self, earlier: &Counters) -> Option<f64> {
        let host = self.host_written_bytes.checked_sub(earlier.host_written_bytes)?;
        let layer = self.layer_written_bytes.checked_sub(earlier.layer_written_bytes)?;
        (host > 0 && self.layer_written_bytes > 0).then(|| layer as f64 / host as f64)
    }
}

/// A block device in virtual time.
///
/// The caller submits requests in order of `now`; completions may be out of order. Most devices know the completion of a request
/// at once. A device that chooses the next request from its queue, such as a disk, does not. A caller with several requests in
/// flight therefore hands them over with [`BlockDevice::begin`] and collects queued ones with [`BlockDevice::next_done`] and
/// [`BlockDevice::finish`].
///
/// The provided methods are for a device without a queue, NAND or saved state. A device in front of another one
/// implements [`Wraps`](crate::Wraps) instead, which forwards every call.
pub trait BlockDevice {
    /// Bytes the host may address.
    fn capacity(&self) -> Bytes;

    /// The logical block: offsets and lengths are multiples of it.
    fn logical_block(&self) -> Bytes {
        Bytes::new(512)
    }

    /// All bytes behind the capacity if they need garbage collection: NAND, or the medium of a log layer.
    fn raw_capacity(&self) -> Option<Bytes> {
        None
    }

    /// Carries out a request at `now`, and waits for it if it is queued.
    ///
    /// # Errors
    /// The completion's status holds the [`DeviceError`] of a request that was refused or failed. Such a request changed nothing.
    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion;

    /// Takes a request at `now` under a tag that no other queued request has. Returns the completion if it is known at once;
    /// otherwise the request is queued, and [`BlockDevice::finish`] returns its completion later.
    fn begin(&mut self, now: VirtualTime, request: &Request, tag: Tag) -> Option<Completion> {
        let _ = tag;
        Some(self.submit(now, request))
    }

    /// The instant of the next step of the queue, at or before the earliest completion; `None` if the queue is empty. The
    /// outcome of the step is fixed: requests submitted later at or before that instant do not change it.
    fn next_done(&self) -> Option<VirtualTime> {
        None
    }

    /// Advances to [`BlockDevice::next_done`] and removes a request that completes then from the queue.
    ///
    /// `None` from a queue with requests means that the step completed no request: for example, one disk of a mirror has
    /// written and the other has not. The caller then asks [`BlockDevice::next_done`] again.
    fn finish(&mut self) -> Option<(Tag, Completion)> {
        None
    }

    /// Announces the next requests, so that a model may load its tables into the processor's cache. Has no effect on results.
    fn warm(&self, upcoming: &[Request]) {
        let _ = upcoming;
    }

    /// Lets the device be idle until `until`, so that background work can proceed.
    fn idle_until(&mut self, until: VirtualTime);

    /// When background work for acknowledged requests (buffer write-back, cache eviction) ends. A lower bound while the end
    /// is unknown; [`VirtualTime::START`] when idle.
    fn busy_until(&self) -> VirtualTime {
        VirtualTime::START
    }

    /// Cuts the power at `now`. Writes that are acknowledged but not durable are lost.
    fn power_cut(&mut self, now: VirtualTime);

    /// Erases everything, like ATA secure erase or NVMe format. Wear remains.
    fn secure_erase(&mut self);

    /// The counters since the device was made.
    fn counters(&self) -> Counters;

    /// Erase cycles of each NAND block.
    fn erase_counts(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Host memory that the device's driver uses for a map.
    fn host_memory(&self) -> Bytes {
        Bytes::ZERO
    }

    /// Writes all state that depends on history, including queued requests.
    ///
    /// # Errors
    /// [`StateError`] if writing fails or the device has no saved form.
    fn save(&self, out: &mut dyn Write) -> Result<(), StateError> {
        let _ = out;
        Err(StateError::NO_FORM)
    }

    /// Restores the state that [`BlockDevice::save`] wrote for a device with the same description.
    ///
    /// # Errors
    /// [`StateError`] if the state cannot be read or is inconsistent. The device must not be used afterwards.
    fn restore(&mut self, from: &mut dyn Read) -> Result<(), StateError> {
        let _ = from;
        Err(StateError::NO_FORM)
    }
}

/// Lets an idle device finish the background work of earlier requests, for at most `most`. Returns the instant at
/// which that work ended or the time was up. Work that a drive starts on its own, such as garbage collection,
/// continues meanwhile and may delay the background work.
pub fn rest<D: BlockDevice + ?Sized>(device: &mut D, now: VirtualTime, most: Nanos) -> VirtualTime {
    let (mut at, last) = (now, now + most);
    while at < last && device.busy_until() > at {
        at = device.busy_until().min(last);
        device.idle_until(at);
    }
    at
}
