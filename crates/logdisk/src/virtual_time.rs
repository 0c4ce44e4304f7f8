//! A log on a model of a drive, in virtual time: itself a device, so that whatever runs on a drive runs on this.
//!
//! ```text
//!   load ──► LogDevice: Disk ──► Timed: headers and pages of the map kept, times from ──► BlockDevice
//! ```
//!
//! Data is zeroes, of which nothing is kept; all else is the log as it is. Blocks that lie one after the other are read together. Of
//! requests that do not begin and end with a block, the blocks at the ends are read first. Leaves out the layer's own processors,
//! beyond a latency; recovery after a power cut: the log goes on with what it had; and cleaning while nobody asks for anything.

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

/// The logical block: what a request begins and ends with.
const SECTOR: u64 = 512;

/// The share of what a log has room for that is live when the share `fill` of what it offers holds data: what is free, kept for
/// checkpoints and crashes, or just being written has no room for data.
pub fn live_share(geometry: &Geometry, fill: f64) -> f64 {
    let being_written = 12;
    let segments = geometry.segments.saturating_sub(kept_free(geometry) + being_written).max(1);
    fill * f64::from(geometry.blocks) / (f64::from(segments) * f64::from(geometry.data_slots()))
}

/// As the disk has it.
fn kept_free(geometry: &Geometry) -> u32 {
    (geometry.segments / 64).max(4)
}

/// A log disk on a model, as a device.
#[derive(Debug)]
pub struct LogDevice<D> {
    options: Options,
    geometry: Geometry,
    latency: Nanos,
    /// A state can be saved of a device that is only looked at, and the log is closed for it.
    inner: RefCell<Inner<D>>,
}

#[derive(Debug)]
struct Inner<D> {
    /// `None` only while it is opened or made anew.
    disk: Option<Disk<Timed<D>>>,
    /// What the log had counted before it was opened last, and what it counts since it is open that came of opening.
    before: log::Counters,
    opened: log::Counters,
    host: Counters,
    /// Bytes of the host's blocks that are not durable.
    unflushed: u64,
}

impl<D: BlockDevice> LogDevice<D> {
    /// A log disk, made on `device`, and what the host then has. Nothing was asked of the drive yet.
    ///
    /// # Errors
    /// [`LogError`]: the device is too small, or too large.
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

    /// The same with a latency, which is added to every request and occupies nothing.
    #[must_use]
    pub fn with_latency(self, latency: Nanos) -> LogDevice<D> {
        LogDevice { latency, ..self }
    }

    /// What the log counted.
    pub fn log_counters(&self) -> log::Counters {
        self.inner.borrow().counted()
    }
    /// Where everything lies.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }
    /// Free segments from which on nothing is cleaned.
    pub fn kept_free(&self) -> u32 {
        kept_free(&self.geometry)
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

/// A new log on a medium, without the time that making it takes.
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

/// Opens a log in no time, with its map in memory, ready to be written.
fn opened<D: BlockDevice>(medium: Timed<D>, running: Running) -> Result<Disk<Timed<D>>, LogError> {
    medium.quiet.set(true);
    let mut disk = Disk::open(medium, running)?;
    let first = |page: u32| page * crate::format::geometry::PAGE_ENTRIES;
    (0..disk.geometry().pages()).try_for_each(|page| disk.entry(first(page)).map(drop))?;
    disk.checkpoint(false)?;
    disk.medium().quiet.set(false);
    Ok(disk)
}

/// Blocks that a range of bytes touches.
fn touched(offset: u64, length: u64) -> Range<Lba> {
    (offset / BLOCK as u64) as Lba..(offset + length).div_ceil(BLOCK as u64) as Lba
}

/// Blocks that a range of bytes covers.
fn covered(offset: u64, length: u64) -> Range<Lba> {
    let (first, end) = (offset.div_ceil(BLOCK as u64), (offset + length) / BLOCK as u64);
    first as Lba..end.max(first) as Lba
}

impl<D: BlockDevice> Inner<D> {
    fn disk(&self) -> &Disk<Timed<D>> {
        self.disk.as_ref().expect("it is there between calls")
    }
    fn disk_mut(&mut self) -> &mut Disk<Timed<D>> {
        self.disk.as_mut().expect("it is there between calls")
    }
    fn take(&mut self) -> Disk<Timed<D>> {
        self.disk.take().expect("it is there between calls")
    }

    fn counted(&self) -> log::Counters {
        let since = together(self.disk().counters(), self.opened, u64::wrapping_sub);
        together(self.before, since, u64::wrapping_add)
    }

    /// Goes on with a disk that was opened or made just now.
    fn go_on(&mut self, disk: Disk<Timed<D>>, before: log::Counters) {
        (self.before, self.opened) = (before, disk.counters());
        self.unflushed = 0;
        self.disk = Some(disk);
    }

    /// Closes the log in good order, in no time.
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

    /// Reads blocks; neighbours on the drive in one go, and all side by side.
    fn read(&mut self, blocks: Range<Lba>) -> Result<(), LogError> {
        let disk = self.disk_mut();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for lba in blocks {
            let slot = match disk.entry(lba)? {
                Entry::Hole => continue,
                Entry::Lost => return Err(LogError::Unreadable(lba)),
                Entry::At(slot) => slot,
            };
            if disk.log().here(slot).is_some() {
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

    /// Writes the blocks of a range of bytes; what the range leaves of the first and the last is read before.
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
            // Where the host never flushes, what was emptied would wait for a checkpoint, and cleaning would cost ever more until then.
            if self.disk().flush_frees_much() {
                self.disk_mut().flush_for_room()?;
                self.unflushed = 0;
            }
            let checkpoints = self.disk().counters().checkpoints;
            self.disk_mut().write(lba, &[0; BLOCK])?;
            if self.disk().counters().checkpoints != checkpoints {
                // It came before the block.
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

    /// What the log writes for a request that was carried out, or not.
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

/// Two sets of counters, one by one.
fn together(one: log::Counters, other: log::Counters, f: fn(u64, u64) -> u64) -> log::Counters {
    log::Counters {
        host_blocks: f(one.host_blocks, other.host_blocks),
        moved_blocks: f(one.moved_blocks, other.moved_blocks),
        map_pages: f(one.map_pages, other.map_pages),
        written_bytes: f(one.written_bytes, other.written_bytes),
        cleaned: f(one.cleaned, other.cleaned),
        checkpoints: f(one.checkpoints, other.checkpoints),
        bad_blocks: f(one.bad_blocks, other.bad_blocks),
        marks: f(one.marks, other.marks),
    }
}

impl<D: BlockDevice> BlockDevice for LogDevice<D> {
    fn capacity(&self) -> Bytes {
        Bytes::new(self.geometry.capacity())
    }
    fn raw_capacity(&self) -> Option<Bytes> {
        // Whatever the drive does, the log is full once as much was written as it has room for.
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
        let disk = formatted(Timed::new(device, clock.get()), options, running).expect("it was made before");
        inner.go_on(disk, before);
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

    /// The log is closed and opened again for it, in no time: how long ago a block was written, it does not know any more.
    fn save(&self, out: &mut dyn Write) -> Result<(), StateError> {
        let mut inner = self.inner.borrow_mut();
        let before = inner.counted();
        inner.close().map_err(|_| StateError::Cannot { why: "the log on it cannot be closed" })?;
        inner.unflushed = 0;
        state::save(inner.disk().medium(), &counts(&before, &inner.host), out)?;
        let disk = inner.take();
        let running = disk.running();
        let disk = opened(disk.into_medium(), running).expect("it was closed just now");
        inner.go_on(disk, before);
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
        let disk = disk.ok_or(StateError::Nonsense { what: "what it holds of a log cannot be opened" })?;
        inner.go_on(disk, before);
        Ok(())
    }
}

/// What was counted, to be saved.
fn counts(log: &log::Counters, host: &Counters) -> [u64; 13] {
    let Counters { host_read_bytes, host_written_bytes, trimmed_bytes, lost_bytes, rmw_reads, .. } = *host;
    let of_host = [host_read_bytes, host_written_bytes, trimmed_bytes, lost_bytes, rmw_reads];
    let log::Counters {
        host_blocks,
        moved_blocks,
        map_pages,
        written_bytes,
        cleaned,
        checkpoints,
        bad_blocks,
        marks,
    } = *log;
    let of_log =
        [host_blocks, moved_blocks, map_pages, written_bytes, cleaned, checkpoints, bad_blocks, marks];
    let mut all = [0; 13];
    all.iter_mut().zip(of_host.into_iter().chain(of_log)).for_each(|(place, count)| *place = count);
    all
}

/// The same, as it was before.
fn counted(counts: [u64; 13]) -> (log::Counters, Counters) {
    let [host_read_bytes, host_written_bytes, trimmed_bytes, lost_bytes, rmw_reads, of_log @ ..] = counts;
    let [host_blocks, moved_blocks, map_pages, written_bytes, cleaned, checkpoints, bad_blocks, marks] =
        of_log;
    let log = log::Counters {
        host_blocks,
        moved_blocks,
        map_pages,
        written_bytes,
        cleaned,
        checkpoints,
        bad_blocks,
        marks,
    };
    let host = Counters {
        host_read_bytes,
        host_written_bytes,
        trimmed_bytes,
        lost_bytes,
        rmw_reads,
        ..Counters::default()
    };
    (log, host)
}

#[cfg(test)]
mod tests;
