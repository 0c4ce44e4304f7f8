//! A model of a drive as a medium ([`Timed`]): it stores headers and pages of the map; everything else reads as
//! zeroes.
//!
//! Requests reach the model in order of time: a request for an earlier instant is submitted at the latest instant so
//! far.

use crate::format::slot::HEADER;
use crate::format::{BLOCK, Geometry};
use crate::medium::Medium;
use lowtide_core::{BlockDevice, Op, Request, VirtualTime};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;

/// Concurrent writes, of up to [`crate::log::CHUNK`] bytes each, before the host has to wait.
const UNDER_WAY: usize = 8;

const FRAME_BLOCKS: u64 = crate::format::geometry::FRAME / BLOCK as u64;

/// A model of a drive as a medium.
#[derive(Debug)]
pub(super) struct Timed<D> {
    pub(super) device: RefCell<D>,
    /// The progress of the present request.
    pub(super) now: Cell<VirtualTime>,
    /// The latest instant of a request to the model.
    pub(super) clock: Cell<VirtualTime>,
    /// Whether requests take no time and do not reach the model.
    pub(super) quiet: Cell<bool>,
    pub(super) under_way: RefCell<VecDeque<VirtualTime>>,
    /// The header that begins in each block.
    pub(super) heads: RefCell<Vec<[u8; HEADER]>>,
    /// Blocks with other contents than a header.
    pub(super) rich: RefCell<BTreeMap<u64, Box<[u8]>>>,
}

impl<D: BlockDevice> Timed<D> {
    /// An empty medium; `clock` is the latest instant of a request to the model.
    pub(super) fn new(device: D, clock: VirtualTime) -> Timed<D> {
        let blocks = device.capacity().get() / BLOCK as u64;
        Timed {
            device: RefCell::new(device),
            now: Cell::new(clock),
            clock: Cell::new(clock),
            quiet: Cell::new(false),
            under_way: RefCell::default(),
            heads: RefCell::new(vec![[0; HEADER]; blocks as usize]),
            rich: RefCell::default(),
        }
    }

    /// Submits a request at the present or the latest instant, and returns its completion.
    pub(super) fn submit(&self, request: &Request) -> io::Result<VirtualTime> {
        if self.quiet.get() {
            return Ok(self.now.get());
        }
        let at = self.now.get().max(self.clock.get());
        self.clock.set(at);
        let completion = self.device.borrow_mut().submit(at, request);
        completion.status.map_err(io::Error::other)?;
        Ok(completion.at)
    }

    /// Stores headers and other contents.
    fn keep(&self, offset: u64, data: &[u8]) {
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
    }
}

/// The offset of the header that begins in a block, if any.
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
        if !self.quiet.get() {
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
        }
        self.keep(offset, data);
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        if self.quiet.get() {
            return Ok(());
        }
        let last = self.under_way.borrow_mut().drain(..).next_back();
        self.now.set(last.map_or(self.now.get(), |last| last.max(self.now.get())));
        self.now.set(self.submit(&Request::flush())?);
        Ok(())
    }
    fn write_durably(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let length = data.len() as u64;
        self.now.set(self.submit(&Request { op: Op::Write { fua: true }, offset, length })?);
        self.keep(offset, data);
        Ok(())
    }
}
