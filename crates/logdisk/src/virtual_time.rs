//! A log on a model of a drive, in virtual time: itself a device, so that whatever runs on a drive runs on this.
//!
//! ```text
//!   load ──► LogDevice: Disk ──► Timed: headers and pages of the map kept, times from ──► BlockDevice
//! ```
//!
//! Data is zeroes, of which nothing is kept; all else is the log as it is. What the layer's own processor time would be is left out.

use crate::disk::{Disk, Options, Running};
use crate::error::LogError;
use crate::format::slot::HEADER;
use crate::format::{BLOCK, Geometry, Lba};
use crate::log;
use crate::medium::Medium;
use lowtide_core::{BlockDevice, Bytes, Completion, Counters, DeviceError, Op, Request, VirtualTime};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;

/// Writes to the medium that may be under way, of up to [`log::CHUNK`] bytes each, before the host has to wait.
const UNDER_WAY: usize = 8;

/// Blocks of a frame.
const FRAME_BLOCKS: u64 = crate::format::geometry::FRAME / BLOCK as u64;

/// A model as a medium.
#[derive(Debug)]
struct Timed<D> {
    device: RefCell<D>,
    now: Cell<VirtualTime>,
    under_way: RefCell<VecDeque<VirtualTime>>,
    /// The header that begins in each block.
    heads: RefCell<Vec<[u8; HEADER]>>,
    /// Blocks that have more in them than a header.
    rich: RefCell<BTreeMap<u64, Box<[u8]>>>,
}

impl<D: BlockDevice> Timed<D> {
    fn new(device: D) -> Timed<D> {
        let blocks = device.capacity().get() / BLOCK as u64;
        Timed {
            device: RefCell::new(device),
            now: Cell::new(VirtualTime::START),
            under_way: RefCell::default(),
            heads: RefCell::new(vec![[0; HEADER]; blocks as usize]),
            rich: RefCell::default(),
        }
    }

    fn submit(&self, request: &Request) -> io::Result<VirtualTime> {
        let completion = self.device.borrow_mut().submit(self.now.get(), request);
        completion.status.map_err(io::Error::other)?;
        Ok(completion.at)
    }
}

/// Where the header that begins in a block begins there, if one does.
fn head_in(block: u64) -> Option<usize> {
    let byte = (block % FRAME_BLOCKS) as usize * BLOCK;
    let slot = Geometry::slot_from(byte);
    let at = Geometry::within(slot).checked_sub(byte)?;
    (at < BLOCK).then_some(at)
}

impl<D: BlockDevice> Medium for Timed<D> {
    fn bytes(&self) -> u64 {
        self.device.borrow().capacity().get() / BLOCK as u64 * BLOCK as u64
    }
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let at = self.submit(&Request::read(offset, into.len() as u64))?;
        self.now.set(at);
        let (heads, rich) = (self.heads.borrow(), self.rich.borrow());
        for (block, chunk) in (offset / BLOCK as u64..).zip(into.chunks_mut(BLOCK)) {
            match rich.get(&block) {
                Some(bytes) => chunk.copy_from_slice(bytes),
                None => {
                    chunk.fill(0);
                    if let Some(at) = head_in(block) {
                        chunk[at..at + HEADER].copy_from_slice(&heads[block as usize]);
                    }
                }
            }
        }
        Ok(())
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut under_way = self.under_way.borrow_mut();
        under_way.retain(|&at| at > self.now.get());
        if under_way.len() >= UNDER_WAY
            && let Some(first) = under_way.pop_front()
        {
            self.now.set(self.now.get().max(first));
        }
        let at = self.submit(&Request::write(offset, data.len() as u64))?;
        let place = under_way.partition_point(|&other| other <= at);
        under_way.insert(place, at);
        let (mut heads, mut rich) = (self.heads.borrow_mut(), self.rich.borrow_mut());
        for (block, chunk) in (offset / BLOCK as u64..).zip(data.chunks(BLOCK)) {
            let at = head_in(block);
            let (before, after) = at.map_or((chunk, &[][..]), |at| (&chunk[..at], &chunk[at + HEADER..]));
            let zeroes = |bytes: &[u8]| bytes == &[0; BLOCK][..bytes.len()];
            if zeroes(before) && zeroes(after) {
                rich.remove(&block);
                heads[block as usize] =
                    at.map_or([0; HEADER], |at| chunk[at..at + HEADER].try_into().expect("a header"));
            } else {
                rich.insert(block, chunk.into());
            }
        }
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        let last = self.under_way.borrow_mut().drain(..).next_back();
        self.now.set(last.map_or(self.now.get(), |last| last.max(self.now.get())));
        self.now.set(self.submit(&Request::flush())?);
        Ok(())
    }
}

/// A log disk on a model, as a device.
#[derive(Debug)]
pub struct LogDevice<D> {
    /// `None` only while it is made anew.
    disk: Option<Disk<Timed<D>>>,
    options: Options,
    host: Counters,
}

impl<D: BlockDevice> LogDevice<D> {
    /// A log disk, made on `device`, and what the host then has.
    ///
    /// # Errors
    /// [`LogError`]: the device is too small, or fails.
    pub fn new(device: D, options: Options, running: Running) -> Result<LogDevice<D>, LogError> {
        let mut disk = Disk::format(Timed::new(device), options, [1; 16])?;
        disk.set_running(running);
        Ok(LogDevice { disk: Some(disk), options, host: Counters::default() })
    }

    /// What the log counted.
    pub fn log_counters(&self) -> log::Counters {
        self.disk().counters()
    }
    /// Where everything lies.
    pub fn geometry(&self) -> &Geometry {
        self.disk().geometry()
    }
    /// Free segments from which on nothing is cleaned.
    pub fn kept_free(&self) -> u32 {
        self.disk().kept_free()
    }

    fn disk(&self) -> &Disk<Timed<D>> {
        self.disk.as_ref().expect("it is there between calls")
    }
    fn parts(&mut self) -> &mut Disk<Timed<D>> {
        self.disk.as_mut().expect("it is there between calls")
    }

    fn carry_out(&mut self, now: VirtualTime, request: &Request) -> Result<VirtualTime, LogError> {
        let disk = self.parts();
        disk.medium().now.set(now);
        let first = (request.offset / BLOCK as u64) as Lba;
        let count = (request.length / BLOCK as u64) as u32;
        match request.op {
            Op::Read => {
                let mut last = now;
                let mut block = [0; BLOCK];
                for lba in first..first + count {
                    // Side by side.
                    disk.medium().now.set(now);
                    disk.read(lba, &mut block)?;
                    last = last.max(disk.medium().now.get());
                }
                return Ok(last);
            }
            Op::Write { fua } => {
                for lba in first..first + count {
                    disk.write(lba, &[0; BLOCK])?;
                }
                if fua {
                    disk.flush()?;
                }
            }
            Op::Trim | Op::WriteZeroes => disk.unmap(first, count)?,
            Op::Flush => disk.flush()?,
        }
        Ok(disk.medium().now.get())
    }

    fn refusal(&self, request: &Request) -> Option<DeviceError> {
        let (capacity, block) = (self.capacity().get(), BLOCK as u64);
        if request.op == Op::Flush {
            return None;
        }
        if !request.offset.is_multiple_of(block) || !request.length.is_multiple_of(block) {
            return Some(DeviceError::Unaligned { offset: request.offset, length: request.length, block });
        }
        match request.offset.checked_add(request.length) {
            Some(end) if end <= capacity => None,
            _ => Some(DeviceError::OutOfRange { offset: request.offset, length: request.length, capacity }),
        }
    }
}

impl<D: BlockDevice> BlockDevice for LogDevice<D> {
    fn capacity(&self) -> Bytes {
        Bytes::new(self.disk().geometry().capacity())
    }
    fn logical_block(&self) -> Bytes {
        Bytes::new(BLOCK as u64)
    }
    fn raw_capacity(&self) -> Option<Bytes> {
        self.disk().medium().device.borrow().raw_capacity()
    }
    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        if let Some(error) = self.refusal(request) {
            return Completion { at: now, status: Err(error) };
        }
        let done = self.carry_out(now, request);
        match request.op {
            Op::Read => self.host.host_read_bytes += request.length,
            Op::Write { .. } => self.host.host_written_bytes += request.length,
            Op::Trim | Op::WriteZeroes => self.host.trimmed_bytes += request.length,
            Op::Flush => {}
        }
        match done {
            Ok(at) => Completion { at, status: Ok(()) },
            Err(_) => {
                let (offset, length) = (request.offset, request.length);
                let error = match request.op {
                    Op::Read => DeviceError::ReadFailed { offset, length },
                    _ => DeviceError::WriteFailed { offset, length },
                };
                Completion { at: self.parts().medium().now.get(), status: Err(error) }
            }
        }
    }
    fn idle_until(&mut self, until: VirtualTime) {
        self.parts().medium().device.borrow_mut().idle_until(until);
    }
    fn busy_until(&self) -> VirtualTime {
        let medium = self.disk().medium();
        let last = medium.under_way.borrow().back().copied().unwrap_or(VirtualTime::START);
        last.max(medium.device.borrow().busy_until())
    }
    fn power_cut(&mut self, now: VirtualTime) {
        // The model says what is lost of its own; what of the log is lost, tests on media with bytes say.
        self.parts().medium().device.borrow_mut().power_cut(now);
    }
    fn secure_erase(&mut self) {
        let disk = self.disk.take().expect("it is there between calls");
        let running = disk.running();
        let Timed { device, .. } = disk.into_medium();
        let mut device = device.into_inner();
        device.secure_erase();
        let mut disk = Disk::format(Timed::new(device), self.options, [1; 16]).expect("it was made before");
        disk.set_running(running);
        self.disk = Some(disk);
    }
    fn counters(&self) -> Counters {
        let device = self.disk().medium().device.borrow().counters();
        let Counters { host_read_bytes, host_written_bytes, trimmed_bytes, .. } = self.host;
        Counters { host_read_bytes, host_written_bytes, trimmed_bytes, ..device }
    }
    fn erase_counts(&self) -> Vec<u32> {
        self.disk().medium().device.borrow().erase_counts()
    }
}
