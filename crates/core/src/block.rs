//! The BlockDevice contract: what every device, simulated or wrapped, promises in virtual time.
//!
//! ```text
//!   load ──► Partition ──► SimulatedSsd        (filters compose by wrapping: each is a BlockDevice
//!            Array, Cache, Fault …              around one or more BlockDevices)
//! ```
//!
//! A device is asked at an instant and answers with the instant of completion. Time never runs inside a
//! device: it is an argument. Leaves out data: simulated devices keep where each block lives and when it is
//! durable, not its contents.

use crate::state::StateError;
use crate::units::{Bytes, Nanos, VirtualTime};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// Read.
    Read,
    /// Write; with `fua` complete only when durable.
    Write {
        /// Force unit access.
        fua: bool,
    },
    /// Tell the device that the range holds nothing of worth (ATA TRIM, NVMe deallocate).
    Trim,
    /// Make the range read as zeroes.
    WriteZeroes,
    /// Complete when every acknowledged write is durable. Offset and length are ignored.
    Flush,
}

/// One request to a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// What to do.
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
}

/// A request that a device refused, or failed at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum DeviceError {
    /// The range reaches past the end of the device.
    #[error("request for bytes {offset}..{} reaches past the end of the device at {capacity}", offset + length)]
    OutOfRange {
        /// First byte asked for.
        offset: u64,
        /// Number of bytes asked for.
        length: u64,
        /// Bytes the device has.
        capacity: u64,
    },
    /// Offset or length is not a multiple of the device's logical block.
    #[error("request for {length} bytes at {offset} is not aligned to the logical block of {block} bytes")]
    Unaligned {
        /// First byte asked for.
        offset: u64,
        /// Number of bytes asked for.
        length: u64,
        /// Bytes of a logical block.
        block: u64,
    },
    /// The medium does not give back what it holds.
    #[error("bytes {offset}..{} cannot be read: the medium has an error there", offset + length)]
    ReadFailed {
        /// First byte asked for.
        offset: u64,
        /// Number of bytes asked for.
        length: u64,
    },
    /// The medium does not take what it is given; it holds what it held.
    #[error("bytes {offset}..{} cannot be written: the medium has an error there", offset + length)]
    WriteFailed {
        /// First byte asked for.
        offset: u64,
        /// Number of bytes asked for.
        length: u64,
    },
    /// The device has reached the end of its life.
    #[error("the device is worn out: it can be read, and takes no more writes")]
    WornOut,
}

/// The name a caller gives to a request that a device may queue.
pub type Tag = u64;

/// The answer to a request: when it completed, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The instant of completion; never before the instant of submission.
    pub at: VirtualTime,
    /// Whether it succeeded.
    pub status: Result<(), DeviceError>,
}

/// What a device has counted since it was made; all counts only grow, except `free_blocks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Bytes the host has read.
    pub host_read_bytes: u64,
    /// Bytes the host has written.
    pub host_written_bytes: u64,
    /// Bytes programmed into NAND for any reason: host data, garbage collection, map.
    pub nand_written_bytes: u64,
    /// Bytes garbage collection copied, part of `nand_written_bytes`.
    pub gc_moved_bytes: u64,
    /// Bytes of the mapping table written to NAND, part of `nand_written_bytes`.
    pub map_written_bytes: u64,
    /// Map lookups that had to read the table from NAND.
    pub map_misses: u64,
    /// Reads made to complete a write smaller than the map unit.
    pub rmw_reads: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Blocks erased and empty now.
    pub free_blocks: u64,
    /// Nanoseconds that host writes waited for garbage collection.
    pub gc_stall_ns: u64,
    /// Bytes trimmed.
    pub trimmed_bytes: u64,
    /// Acknowledged bytes lost to power cuts.
    pub lost_bytes: u64,
    /// Nanoseconds of the host's processors that the device's driver took, beyond an ordinary driver's.
    #[serde(default)]
    pub host_cpu_ns: u64,
    /// Bytes of blocks and pages of the map that a log layer wrote, for the host and for itself. Headers are left out, and so are
    /// bytes that only fill up.
    #[serde(default)]
    pub layer_written_bytes: u64,
}

/// One of the [`Counters`], for tables: its name, unit and meaning.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// Its name, that of the field.
    pub name: &'static str,
    /// `B`, `ns`, or nothing for a plain count.
    pub unit: &'static str,
    /// What it counts.
    pub doc: &'static str,
    /// Reads it.
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

            /// The counts of two devices together.
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
    /// NAND bytes per host byte written between `earlier` and now; `None` where the host wrote nothing,
    /// no NAND has ever been written (a disk has none), or a counter went back (a real drive's was reset).
    pub fn write_amplification_since(&self, earlier: &Counters) -> Option<f64> {
        let host = self.host_written_bytes.checked_sub(earlier.host_written_bytes)?;
        let nand = self.nand_written_bytes.checked_sub(earlier.nand_written_bytes)?;
        (host > 0 && self.nand_written_bytes > 0).then(|| nand as f64 / host as f64)
    }

    /// Bytes that a log layer wrote per host byte written between `earlier` and now; `None` where the host wrote nothing, or there is
    /// no such layer.
    pub fn layer_amplification_since(&self, earlier: &Counters) -> Option<f64> {
        let host = self.host_written_bytes.checked_sub(earlier.host_written_bytes)?;
        let layer = self.layer_written_bytes.checked_sub(earlier.layer_written_bytes)?;
        (host > 0 && self.layer_written_bytes > 0).then(|| layer as f64 / host as f64)
    }
}

/// A device that stores blocks, in virtual time.
///
/// The caller submits requests in order of `now`; a device may answer them out of order. Most devices know at once
/// when a request will be complete. One that chooses from its queue what to serve next (a disk) does not: a caller
/// that keeps several requests in flight gives it them by [`BlockDevice::begin`] and asks
/// [`BlockDevice::next_done`] and [`BlockDevice::finish`] for what was queued.
pub trait BlockDevice {
    /// Bytes the host may address.
    fn capacity(&self) -> Bytes;

    /// The logical block: offsets and lengths are multiples of it.
    fn logical_block(&self) -> Bytes {
        Bytes::new(512)
    }

    /// All bytes behind the capacity, where garbage is collected in them: NAND, or what a log layer lies on.
    fn raw_capacity(&self) -> Option<Bytes> {
        None
    }

    /// Takes a request at `now`.
    ///
    /// Where requests are queued, waits for them too.
    ///
    /// # Errors
    /// The completion's status says whether the request was refused, or failed ([`DeviceError`]); it changed
    /// nothing, then.
    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion;

    /// Takes a request at `now` under a name of the caller's, which no other queued request has. The completion
    /// where it is known at once; `None` where the request is queued: [`BlockDevice::finish`] will give it.
    fn begin(&mut self, now: VirtualTime, request: &Request, tag: Tag) -> Option<Completion> {
        let _ = tag;
        Some(self.submit(now, request))
    }

    /// The instant of the next step of what is queued, at or before the earliest completion; what happens then
    /// stays so whatever else is submitted at or before it. `None` where nothing is queued.
    fn next_done(&self) -> Option<VirtualTime> {
        None
    }

    /// Goes to the instant that [`BlockDevice::next_done`] tells and takes what completed then out of the queue.
    ///
    /// `None` while something is queued means that nobody's request was complete with this step (one disk of a
    /// mirror has written, the other has not): ask [`BlockDevice::next_done`] again.
    fn finish(&mut self) -> Option<(Tag, Completion)> {
        None
    }

    /// Tells the device which requests come next, so that a model may fetch its own tables into the
    /// processor's cache early. Has no effect on any answer.
    fn warm(&self, upcoming: &[Request]) {
        let _ = upcoming;
    }

    /// Lets the device be idle until `until`, so that background work can go on.
    fn idle_until(&mut self, until: VirtualTime);

    /// Until when what it was asked for goes on behind what it has acknowledged: buffers that are written, caches that
    /// are emptied. Where the end is not known yet, an instant by which more is. The start of time where nothing goes on.
    fn busy_until(&self) -> VirtualTime {
        VirtualTime::START
    }

    /// Cuts the power at `now`: what was acknowledged but not durable is lost.
    fn power_cut(&mut self, now: VirtualTime);

    /// Erases everything, as ATA secure erase or NVMe format do. Wear stays.
    fn secure_erase(&mut self);

    /// What the device has counted.
    fn counters(&self) -> Counters;

    /// Erase cycles of each block, where the device has NAND.
    fn erase_counts(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Memory of the host that the device's driver takes, where it keeps the map there.
    fn host_memory(&self) -> Bytes {
        Bytes::ZERO
    }

    /// Writes everything that history changes, requests that are queued among it.
    ///
    /// # Errors
    /// [`StateError`] where it cannot be written, or the device has no saved form.
    fn save(&self, out: &mut dyn Write) -> Result<(), StateError> {
        let _ = out;
        Err(StateError::Cannot { why: "it has no saved form" })
    }

    /// Takes what [`BlockDevice::save`] wrote of a device of the same description, and is as that one was.
    ///
    /// # Errors
    /// [`StateError`] where it cannot be read or makes no sense; the device must not be used then.
    fn restore(&mut self, from: &mut dyn Read) -> Result<(), StateError> {
        let _ = from;
        Err(StateError::Cannot { why: "it has no saved form" })
    }
}

/// A device behind a pointer is that device.
macro_rules! pointer {
    ($pointer:ty) => {
        impl<D: BlockDevice + ?Sized> BlockDevice for $pointer {
            fn capacity(&self) -> Bytes {
                (**self).capacity()
            }
            fn logical_block(&self) -> Bytes {
                (**self).logical_block()
            }
            fn raw_capacity(&self) -> Option<Bytes> {
                (**self).raw_capacity()
            }
            fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
                (**self).submit(now, request)
            }
            fn warm(&self, upcoming: &[Request]) {
                (**self).warm(upcoming);
            }
            fn idle_until(&mut self, until: VirtualTime) {
                (**self).idle_until(until);
            }
            fn busy_until(&self) -> VirtualTime {
                (**self).busy_until()
            }
            fn power_cut(&mut self, now: VirtualTime) {
                (**self).power_cut(now);
            }
            fn secure_erase(&mut self) {
                (**self).secure_erase();
            }
            fn counters(&self) -> Counters {
                (**self).counters()
            }
            fn begin(&mut self, now: VirtualTime, request: &Request, tag: Tag) -> Option<Completion> {
                (**self).begin(now, request, tag)
            }
            fn next_done(&self) -> Option<VirtualTime> {
                (**self).next_done()
            }
            fn finish(&mut self) -> Option<(Tag, Completion)> {
                (**self).finish()
            }
            fn erase_counts(&self) -> Vec<u32> {
                (**self).erase_counts()
            }
            fn host_memory(&self) -> Bytes {
                (**self).host_memory()
            }
            fn save(&self, out: &mut dyn Write) -> Result<(), StateError> {
                (**self).save(out)
            }
            fn restore(&mut self, from: &mut dyn Read) -> Result<(), StateError> {
                (**self).restore(from)
            }
        }
    };
}
pointer!(Box<D>);
pointer!(&mut D);

/// Lets a device to which nothing is asked any more go on until nothing is left to do of what it was asked, `most` of its
/// time at most; the instant at which it rests. Work that a drive finds for itself, as garbage to collect, is done meanwhile
/// and keeps it from resting where it has the dies to itself.
pub fn rest<D: BlockDevice + ?Sized>(device: &mut D, now: VirtualTime, most: Nanos) -> VirtualTime {
    let (mut at, last) = (now, now + most);
    while at < last && device.busy_until() > at {
        at = device.busy_until().min(last);
        device.idle_until(at);
    }
    at
}
