//! A log disk on a model of a drive, in virtual time ([`LogDevice`]). It is a device itself, so any load can run on
//! it.
//!
//! ```text
//!   load ──► LogDevice: Disk ──► Timed: keeps headers and pages of the map, takes times from ──► BlockDevice
//! ```
//!
//! Data is zeroes and not stored; everything else is the real log. Adjacent slots are read together. A request that
//! begins or ends within a block first reads that block.
//!
//! # Not modelled
//! The layer's processor time, beyond a latency; recovery after a power cut (the log continues as it was); cleaning
//! without requests.

mod state;
mod timed;

use crate::disk::{Disk, Options, Running};
use crate::error::LogError;
use crate::format::{BLOCK, Geometry, Lba};
use crate::log::{self, Entry};
use lowtide_core::{
    BlockDevice, Bytes, Completion, Counters, DeviceError, Nanos, Op, Request, StateError, VirtualTime,
};
use std::cell::RefCell;
use std::io::{Read, Write};
use std::ops::Range;
use timed::Timed;

/// Size of a logical block in bytes.
const SECTOR: u64 = 512;

/// The live share of the usable slots when the share `fill` of the capacity holds data. Free segments, segments
/// reserved for checkpoints and recovery, and open segments are not usable.
pub fn live_share(geometry: &Geometry, fill: f64) -> f64 {
    let being_written = 12;
    let segments = geometry.segments.saturating_sub(geometry.kept_free() + being_written).max(1);
    fill * f64::from(geometry.blocks) / (f64::from(segments) * f64::from(geometry.data_slots()))
}

/// A log disk on a model of a drive.
#[derive(Debug)]
pub struct LogDevice<D> {
    options: Options,
    geometry: Geometry,
    latency: Nanos,
    /// Saving takes a shared reference, but closes the log.
    inner: RefCell<Inner<D>>,
}

#[derive(Debug)]
struct Inner<D> {
    /// The disk; `None` only while it is reopened or reformatted.
    disk: Option<Disk<Timed<D>>>,
    /// The log's counters before the last opening, and the counts that the opening itself caused.
    before: log::Counters,
    opened: log::Counters,
    host: Counters,
    /// Bytes written by the host that are not durable.
    unflushed: u64,
}

impl<D: BlockDevice> LogDevice<D> {
    /// Formats a log disk on `device`, which takes no virtual time.
    ///
    /// # Errors
    /// [`LogError`] if the device is too small or too large.
    pub fn new(device: D, options: Options, running: Running) -> Result<LogDevice<D>, LogError> {
        let disk = formatted(Timed::new(device, VirtualTime::START), options, running)?;
        let (geometry, opened) = (*disk.geometry(), disk.counters());
        let inner = Inner {
            disk: Some(disk),
            before: log::Counters::default(),
            opened,
            host: Counters::default(),
            unflushed: 0,
        };
        Ok(LogDevice { options, geometry, latency: Nanos::ZERO, inner: RefCell::new(inner) })
    }

    /// Adds a latency to every request, without occupying the device.
    #[must_use]
    pub fn with_latency(self, latency: Nanos) -> LogDevice<D> {
        LogDevice { latency, ..self }
    }

    /// The log's counters.
    pub fn log_counters(&self) -> log::Counters {
        self.inner.borrow().counted()
    }
    /// Sizes and positions.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }
    /// The target of free segments, above which nothing is cleaned.
    pub fn kept_free(&self) -> u32 {
        self.geometry.kept_free()
    }

    fn with_drive<T>(&self, f: impl FnOnce(&D) -> T) -> T {
        f(&self.inner.borrow().disk().medium().device.borrow())
    }

    fn refusal(&self, request: &Request) -> Option<DeviceError> {
        let Request { op, offset, length } = *request;
        let capacity = self.geometry.capacity();
        if op == Op::Flush {
            return None;
        }
        if offset.checked_add(length).is_none_or(|end| end > capacity) {
            return Some(DeviceError::OutOfRange { offset, length, capacity });
        }
        let aligned = offset.is_multiple_of(SECTOR) && length.is_multiple_of(SECTOR);
        (!aligned).then_some(DeviceError::Unaligned { offset, length, block: SECTOR })
    }
}

fn formatted<D: BlockDevice>(
    medium: Timed<D>,
    options: Options,
    running: Running,
) -> Result<Disk<Timed<D>>, LogError> {
    medium.quiet.set(true);
    let mut disk = Disk::format(medium, options, [1; 16])?;
    disk.set_running(running);
    disk.medium().quiet.set(false);
    Ok(disk)
}

/// Opens a log disk in no virtual time, with its map in memory, ready for writes.
fn opened<D: BlockDevice>(medium: Timed<D>, running: Running) -> Result<Disk<Timed<D>>, LogError> {
    medium.quiet.set(true);
    let mut disk = Disk::open(medium, running)?;
    let first = |page: u32| page * crate::format::geometry::PAGE_ENTRIES;
    (0..disk.geometry().pages()).try_for_each(|page| disk.entry(first(page)).map(drop))?;
    disk.checkpoint(false)?;
    disk.medium().quiet.set(false);
    Ok(disk)
}

/// The blocks that a range of bytes touches.
fn touched(offset: u64, length: u64) -> Range<Lba> {
    (offset / BLOCK as u64) as Lba..(offset + length).div_ceil(BLOCK as u64) as Lba
}

/// The blocks that a range of bytes covers completely.
fn covered(offset: u64, length: u64) -> Range<Lba> {
    let (first, end) = (offset.div_ceil(BLOCK as u64), (offset + length) / BLOCK as u64);
    first as Lba..end.max(first) as Lba
}

impl<D: BlockDevice> Inner<D> {
    fn disk(&self) -> &Disk<Timed<D>> {
        self.disk.as_ref().expect("set between calls")
    }
    fn disk_mut(&mut self) -> &mut Disk<Timed<D>> {
        self.disk.as_mut().expect("set between calls")
    }
    fn take(&mut self) -> Disk<Timed<D>> {
        self.disk.take().expect("set between calls")
    }

    fn counted(&self) -> log::Counters {
        let [now, opened, before] =
            [self.disk().counters(), self.opened, self.before].map(log::Counters::values);
        let count = |n: usize| before[n].wrapping_add(now[n].wrapping_sub(opened[n]));
        log::Counters::from_values(std::array::from_fn(count))
    }

    /// Replaces the disk by one that was opened or formatted.
    fn replace(&mut self, disk: Disk<Timed<D>>, before: log::Counters) {
        (self.before, self.opened) = (before, disk.counters());
        self.unflushed = 0;
        self.disk = Some(disk);
    }

    /// Closes the log cleanly, in no virtual time.
    fn close(&mut self) -> Result<(), LogError> {
        let disk = self.disk_mut();
        disk.medium().quiet.set(true);
        let closed = disk.checkpoint(true);
        disk.medium().quiet.set(false);
        closed
    }

    fn carry_out(&mut self, now: VirtualTime, request: &Request) -> Result<VirtualTime, LogError> {
        let Request { op, offset, length } = *request;
        self.disk().medium().now.set(now);
        match op {
            Op::Read => self.read(touched(offset, length))?,
            Op::Write { fua } => {
                self.write(offset, length)?;
                if fua {
                    self.flush()?;
                }
            }
            Op::Trim => self.unmap(covered(offset, length))?,
            Op::WriteZeroes => {
                let whole = covered(offset, length);
                let (first, end) =
                    (u64::from(whole.start) * BLOCK as u64, u64::from(whole.end) * BLOCK as u64);
                if whole.is_empty() {
                    self.write(offset, length)?;
                } else {
                    self.write(offset, first - offset)?;
                    self.unmap(whole)?;
                    self.write(end, offset + length - end)?;
                }
            }
            Op::Flush => self.flush()?,
        }
        Ok(self.disk().medium().now.get())
    }

    /// Reads blocks concurrently. One request reads adjacent slots.
    fn read(&mut self, blocks: Range<Lba>) -> Result<(), LogError> {
        let disk = self.disk_mut();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for lba in blocks {
            let slot = match disk.entry(lba)? {
                Entry::Hole => continue,
                Entry::Lost => return Err(LogError::Unreadable(lba)),
                Entry::At(slot) => slot,
            };
            if disk.log().in_memory(slot).is_some() {
                continue;
            }
            let (first, block) = (disk.geometry().offset(slot), BLOCK as u64);
            let end = (first + crate::format::slot::SLOT as u64).next_multiple_of(block);
            let first = first / block * block;
            match ranges.last_mut() {
                Some(before) if before.start <= first && first <= before.end => {
                    before.end = before.end.max(end)
                }
                _ => ranges.push(first..end),
            }
        }
        let medium = disk.medium();
        let mut last = medium.now.get();
        for range in ranges {
            let request = Request::read(range.start, range.end - range.start);
            let done = medium.submit(&request);
            last = last.max(done.map_err(|source| LogError::Medium { what: "reading a block", source })?);
        }
        medium.now.set(last);
        Ok(())
    }

    /// Writes a range of bytes. Partly covered blocks are read first.
    fn write(&mut self, offset: u64, length: u64) -> Result<(), LogError> {
        if length == 0 {
            return Ok(());
        }
        let (all, whole) = (touched(offset, length), covered(offset, length));
        for lba in all.clone().filter(|lba| !whole.contains(lba)) {
            self.host.rmw_reads += 1;
            self.read(lba..lba + 1)?;
        }
        for lba in all {
            // Without flushes of the host, dead segments would wait for a checkpoint, and cleaning would become ever
            // more expensive.
            if self.disk().flush_frees_much() {
                self.disk_mut().flush_for_room()?;
                self.unflushed = 0;
            }
            let checkpoints = self.disk().counters().checkpoints;
            self.disk_mut().write(lba, &[0; BLOCK])?;
            if self.disk().counters().checkpoints != checkpoints {
                // The checkpoint was made before this block.
                self.unflushed = 0;
            }
            self.unflushed += BLOCK as u64;
        }
        Ok(())
    }

    fn unmap(&mut self, blocks: Range<Lba>) -> Result<(), LogError> {
        self.host.trimmed_bytes += blocks.len() as u64 * BLOCK as u64;
        self.disk_mut().unmap(blocks.start, blocks.len() as u32)
    }

    fn flush(&mut self) -> Result<(), LogError> {
        self.disk_mut().flush()?;
        self.unflushed = 0;
        Ok(())
    }

    /// Carries out and counts a request.
    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        let Request { op, offset, length } = *request;
        let done = self.carry_out(now, request);
        match op {
            Op::Read => self.host.host_read_bytes += length,
            Op::Write { .. } => self.host.host_written_bytes += length,
            Op::Trim | Op::WriteZeroes | Op::Flush => {}
        }
        match done {
            Ok(at) => Completion { at, status: Ok(()) },
            Err(_) => {
                let error = match op {
                    Op::Read => DeviceError::ReadFailed { offset, length },
                    _ => DeviceError::WriteFailed { offset, length },
                };
                Completion { at: self.disk().medium().now.get(), status: Err(error) }
            }
        }
    }
}

impl<D: BlockDevice> BlockDevice for LogDevice<D> {
    fn capacity(&self) -> Bytes {
        Bytes::new(self.geometry.capacity())
    }
    fn raw_capacity(&self) -> Option<Bytes> {
        // The log has been filled once when the bytes written equal the size of the drive.
        self.with_drive(|drive| drive.raw_capacity().or(Some(drive.capacity())))
    }
    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        if let Some(error) = self.refusal(request) {
            return Completion { at: now, status: Err(error) };
        }
        if request.length == 0 && request.op != Op::Flush {
            return Completion { at: now, status: Ok(()) };
        }
        let Completion { at, status } = self.inner.get_mut().submit(now, request);
        Completion { at: at + self.latency, status }
    }
    fn idle_until(&mut self, until: VirtualTime) {
        let inner = self.inner.get_mut();
        let medium = inner.disk().medium();
        medium.clock.set(medium.clock.get().max(until));
        medium.device.borrow_mut().idle_until(medium.clock.get());
    }
    fn busy_until(&self) -> VirtualTime {
        let inner = self.inner.borrow();
        let medium = inner.disk().medium();
        let last = medium.under_way.borrow().back().copied().unwrap_or(VirtualTime::START);
        last.max(medium.device.borrow().busy_until())
    }
    fn power_cut(&mut self, now: VirtualTime) {
        let inner = self.inner.get_mut();
        inner.host.lost_bytes += inner.unflushed;
        inner.unflushed = 0;
        let medium = inner.disk().medium();
        medium.under_way.borrow_mut().clear();
        medium.device.borrow_mut().power_cut(now);
    }
    fn secure_erase(&mut self) {
        let options = self.options;
        let inner = self.inner.get_mut();
        let (before, disk) = (inner.counted(), inner.take());
        let running = disk.running();
        let Timed { device, clock, .. } = disk.into_medium();
        let mut device = device.into_inner();
        device.secure_erase();
        let disk = formatted(Timed::new(device, clock.get()), options, running).expect("formatted before");
        inner.replace(disk, before);
    }
    fn counters(&self) -> Counters {
        let inner = self.inner.borrow();
        let (device, log) = (inner.disk().medium().device.borrow().counters(), inner.counted());
        let Counters { host_read_bytes, host_written_bytes, trimmed_bytes, lost_bytes, rmw_reads, .. } =
            inner.host;
        Counters {
            host_read_bytes,
            host_written_bytes,
            trimmed_bytes,
            lost_bytes,
            rmw_reads: device.rmw_reads + rmw_reads,
            layer_written_bytes: (log.host_blocks + log.moved_blocks + log.map_pages + log.marks)
                * BLOCK as u64,
            ..device
        }
    }
    fn erase_counts(&self) -> Vec<u32> {
        self.with_drive(D::erase_counts)
    }
    fn host_memory(&self) -> Bytes {
        Bytes::new(u64::from(self.geometry.pages()) * BLOCK as u64) + self.with_drive(D::host_memory)
    }

    /// Closes and reopens the log in no virtual time, which loses the ages of segments.
    fn save(&self, out: &mut dyn Write) -> Result<(), StateError> {
        let mut inner = self.inner.borrow_mut();
        let before = inner.counted();
        inner.close().map_err(|_| StateError::Cannot { why: "the log on it cannot be closed" })?;
        inner.unflushed = 0;
        state::save(inner.disk().medium(), &counts(&before, &inner.host), out)?;
        let disk = inner.take();
        let running = disk.running();
        let disk = opened(disk.into_medium(), running).expect("just closed");
        inner.replace(disk, before);
        Ok(())
    }

    fn restore(&mut self, from: &mut dyn Read) -> Result<(), StateError> {
        let inner = self.inner.get_mut();
        let disk = inner.take();
        let running = disk.running();
        let mut medium = disk.into_medium();
        let (before, host) = counted(state::restore(&mut medium, from)?);
        inner.host = host;
        let disk = opened(medium, running).ok().filter(|disk| *disk.geometry() == self.geometry);
        let disk = disk.ok_or(StateError::Nonsense { what: "its log cannot be opened" })?;
        inner.replace(disk, before);
        Ok(())
    }
}

/// The counters in a saved state: host counters, then log counters.
fn counts(log: &log::Counters, host: &Counters) -> [u64; 13] {
    let Counters { host_read_bytes, host_written_bytes, trimmed_bytes, lost_bytes, rmw_reads, .. } = *host;
    let of_host = [host_read_bytes, host_written_bytes, trimmed_bytes, lost_bytes, rmw_reads];
    let mut all = [0; 13];
    all[..5].copy_from_slice(&of_host);
    all[5..].copy_from_slice(&log.values());
    all
}

/// The counters of a saved state.
fn counted(counts: [u64; 13]) -> (log::Counters, Counters) {
    let [host_read_bytes, host_written_bytes, trimmed_bytes, lost_bytes, rmw_reads, of_log @ ..] = counts;
    let host = Counters {
        host_read_bytes,
        host_written_bytes,
        trimmed_bytes,
        lost_bytes,
        rmw_reads,
        ..Counters::default()
    };
    (log::Counters::from_values(of_log), host)
}

#[cfg(test)]
mod tests;
