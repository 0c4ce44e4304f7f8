//! Validation of disk descriptions, before anything is derived from them.
//!
//! A valid description can be simulated without a panic or an overflow.
//!
//! # Not checked
//! Whether such a disk was ever built.

use super::{DiskSpec, Scheduler, SpecError, WriteCache};
use crate::disk::{SECTOR, SeekCurve, Surface};
use crate::spec::fail;
use lowtide_core::{Bytes, Nanos};

const LARGEST: Bytes = Bytes::new(1 << 50);
const SLOWEST: Bytes = Bytes::new(1_000_000);
const FASTEST: Bytes = Bytes::new(100_000_000_000);
const LONGEST: Nanos = Nanos::from_secs(1);
const FEWEST_CYLINDERS: u64 = 16;
/// Single precision represents cylinder numbers exactly up to this limit.
const MOST_CYLINDERS: u64 = 1 << 24;
/// Longest seek in revolutions. The scheduler's coarse time holds no more.
const LONGEST_SEEK: u64 = 12;
const MOST_QUEUED: u32 = 256;
const MOST_SEGMENTS: u32 = 256;
const MOST_ZONES: u32 = 256;

fn count(key: &'static str, n: u32, most: u32) -> Result<(), SpecError> {
    if (1..=most).contains(&n) { Ok(()) } else { fail(key, format!("{n} is not between 1 and {most}")) }
}

impl DiskSpec {
    /// Checks the description.
    ///
    /// # Errors
    /// [`SpecError`] for the first key that is invalid.
    pub fn validate(&self) -> Result<(), SpecError> {
        let capacity = self.capacity;
        if capacity > LARGEST || !capacity.get().is_multiple_of(SECTOR) {
            return fail("capacity", format!("{capacity} is not a multiple of 512 bytes up to {LARGEST}"));
        }
        if !(1_000..=100_000).contains(&self.rpm) {
            return fail("rpm", format!("{} is not between 1000 and 100000", self.rpm));
        }
        count("surfaces", self.surfaces, 64)?;
        count("zones", self.zones, MOST_ZONES)?;
        for (key, rate) in [
            ("outer-rate", self.outer_rate),
            ("inner-rate", self.inner_rate),
            ("interface.rate", self.interface.rate),
        ] {
            if rate < SLOWEST || rate > FASTEST {
                return fail(key, format!("{rate} is not between {SLOWEST} and {FASTEST} per second"));
            }
        }
        if self.inner_rate > self.outer_rate {
            let message = format!("{} is more than the outer {}", self.inner_rate, self.outer_rate);
            return fail("inner-rate", message);
        }
        self.check_memory()?;
        let surface = Surface::new(self);
        let cylinders = surface.cylinders();
        if !(FEWEST_CYLINDERS..=MOST_CYLINDERS).contains(&cylinders) {
            let range = format!("{FEWEST_CYLINDERS} to {MOST_CYLINDERS}");
            return fail("capacity", format!("{capacity} fills {cylinders} cylinders, not {range}"));
        }
        self.check_times(&surface)
    }

    fn check_memory(&self) -> Result<(), SpecError> {
        count("queue.depth", self.queue.depth, MOST_QUEUED)?;
        if self.queue.aging.is_some() && self.queue.scheduler == Scheduler::Fifo {
            return fail("queue.aging", "has no meaning with `fifo`, which serves the oldest first");
        }
        if let Some(read_ahead) = self.read_ahead {
            count("read-ahead.segments", read_ahead.segments, MOST_SEGMENTS)?;
            let size = read_ahead.size.get();
            if size < SECTOR || !size.is_multiple_of(SECTOR) || size > 1 << 30 {
                let message = format!("{} is not a multiple of 512 bytes up to 1GiB", read_ahead.size);
                return fail("read-ahead.size", message);
            }
        }
        if let Some(WriteCache { size, .. }) = self.write_cache
            && size > Bytes::ZERO
            && (size < Bytes::kib(64) || size > Bytes::gib(64))
        {
            return fail("write-cache.size", format!("{size} is neither 0B nor between 64KiB and 64GiB"));
        }
        Ok(())
    }

    fn check_times(&self, surface: &Surface) -> Result<(), SpecError> {
        let seek = &self.seek;
        let revolution = self.revolution();
        let times = [
            ("seek.track", seek.track, revolution * LONGEST_SEEK),
            ("seek.average", seek.average, revolution * LONGEST_SEEK),
            ("seek.full", seek.full, revolution * LONGEST_SEEK),
            ("seek.write-settle", seek.write_settle, revolution),
            ("interface.overhead", self.interface.overhead, LONGEST),
            ("queue.aging", self.queue.aging.unwrap_or_default(), LONGEST),
        ];
        if let Some((key, time, longest)) = times.into_iter().find(|(_, time, longest)| time > longest) {
            return fail(key, format!("{time} is longer than {longest}"));
        }
        SeekCurve::new(seek, surface).map(drop).or_else(|message| fail("seek.average", message))
    }
}
