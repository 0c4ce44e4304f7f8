//! Preparation of a simulated drive in virtual time: purge, filesystem, fill.
//!
//! The models of the drive and of the filesystem are in crate `lowtide-device`.

use super::database::{self, Database};
use crate::experiment::{Fill, Purge};
use crate::plan::{PlannedCell, cells};
use lowtide_core::rng::shuffle;
use lowtide_core::{BlockDevice, Bytes, DeviceError, Extents, Request, Seed, VirtualTime};
use lowtide_device::layout::{Layout, lay_out};
use lowtide_device::{AnyDevice, DeviceSpec, power};

/// Bytes of a request while filling and trimming.
const CHUNK: u64 = 1 << 20;
/// Bytes of a request while a drive is aged.
const AGING: Bytes = Bytes::kib(16);

/// A simulated drive and its history.
pub struct History {
    drive: AnyDevice,
    now: VirtualTime,
    /// Bytes of the first device if several are concatenated, else of the drive.
    first_part: Bytes,
    /// The number and the offset of the data files of the last inserts.
    files: Option<(u32, u64)>,
    /// The drive's counter of host bytes at the last purge.
    written_at_purge: u64,
    cache: power::Cache,
}

/// A drive ready for its cell's load.
pub struct PreparedDrive<'a> {
    pub(crate) drive: &'a mut AnyDevice,
    pub(crate) now: &'a mut VirtualTime,
    /// The layout of the filesystem; its files are the data.
    pub layout: Layout,
    /// Host bytes written since the last purge.
    pub written_before: Bytes,
    /// The database, for inserts.
    pub database: Option<Database>,
    /// The write cache of the drive.
    pub cache: power::Cache,
}

impl History {
    /// A new drive.
    ///
    /// # Panics
    /// If the description is invalid. The descriptions of a plan are valid.
    pub fn new(spec: &DeviceSpec, seed: Seed) -> Self {
        let drive = spec.build(seed).expect("the plan validated the description");
        let (first_part, cache) = (spec.first_part(), spec.cache());
        History { drive, now: VirtualTime::START, first_part, files: None, written_at_purge: 0, cache }
    }

    /// The drive.
    pub fn drive(&self) -> &AnyDevice {
        &self.drive
    }

    /// The drive's virtual time.
    pub fn now(&self) -> VirtualTime {
        self.now
    }

    /// Takes back the model of a drive that was attached; `now` is its virtual time.
    pub fn take_back(&mut self, model: AnyDevice, now: VirtualTime) {
        (self.drive, self.now) = (model, now);
    }

    /// Gives the drive the history that `cell` asks for.
    ///
    /// # Errors
    /// [`DeviceError`] if a request fails. Planned cells fit on the drive, so it refuses no request.
    pub fn prepare(&mut self, cell: &PlannedCell, seed: Seed) -> Result<PreparedDrive<'_>, DeviceError> {
        let preparation = &cell.settings.preparation;
        self.purge(cell.purge_before)?;
        self.purge(preparation.purge)?;
        let capacity = self.drive.capacity();
        let usable = cells::usable(&cell.settings, capacity).expect("the plan checked the partition");
        let database = cell.settings.load.work.inserts().map(|inserts| {
            let room = inserts.room(self.first_part, capacity);
            database::place(inserts, room, capacity, seed.part("place", 0), self.files)
        });
        self.files = database.as_ref().map(|database| (database.engine.data_files, database.data));
        let room = database.as_ref().map(|database| database.room);
        let filesystem = preparation.layout.filesystem.made();
        let layout = lay_out(filesystem, usable, room.unwrap_or(cell.data))
            .expect("the plan checked that the data fits");
        if preparation.layout.mkfs_trims {
            self.each(CHUNK, 0, usable.get(), Request::trim)?;
        }
        for &(offset, length) in &layout.mkfs_writes {
            self.each(CHUNK, offset, length, Request::write)?;
        }
        // A database is written when it is loaded, also without a fill.
        let loaded = cell.settings.load.work.is_transactions();
        match preparation.fill {
            Fill::None if !loaded => {}
            Fill::None | Fill::Sequential | Fill::Aged => {
                for extent in layout.files.pieces() {
                    self.each(CHUNK, extent.device_offset, extent.length, Request::write)?;
                }
                if preparation.fill == Fill::Aged {
                    self.age(&layout.files, seed)?;
                }
            }
            Fill::Random => {
                let block = if database.is_some() { Bytes::new(CHUNK) } else { cell.settings.load.block };
                self.fill_at_random(&layout.files, block, seed, u64::MAX)?;
            }
        }
        if let Some(passes) = cell.precondition {
            for extent in (0..passes.times).flat_map(|_| layout.files.pieces()) {
                self.each(passes.block.get(), extent.device_offset, extent.length, Request::write)?;
            }
        }
        self.submit(Request::flush())?;
        self.now = self.now + preparation.idle;
        self.drive.idle_until(self.now);
        let written = self.drive.counters().host_written_bytes - self.written_at_purge;
        Ok(PreparedDrive {
            drive: &mut self.drive,
            now: &mut self.now,
            layout,
            written_before: Bytes::new(written),
            database,
            cache: self.cache,
        })
    }

    fn purge(&mut self, purge: Purge) -> Result<(), DeviceError> {
        match purge {
            Purge::None => return Ok(()),
            Purge::Trim => self.each(CHUNK, 0, self.drive.capacity().get(), Request::trim)?,
            // A model has one kind of erase for all methods of real drives.
            Purge::SecureErase
            | Purge::SecureDiscard
            | Purge::NvmeFormat
            | Purge::NvmeSanitize
            | Purge::AtaSecureErase => self.drive.secure_erase(),
        }
        self.written_at_purge = self.drive.counters().host_written_bytes;
        Ok(())
    }

    fn submit(&mut self, request: Request) -> Result<(), DeviceError> {
        let completion = self.drive.submit(self.now, &request);
        self.now = completion.at;
        completion.status
    }

    /// Submits requests of `block` bytes that cover a range, one after another.
    fn each(
        &mut self,
        block: u64,
        offset: u64,
        length: u64,
        make: impl Fn(u64, u64) -> Request,
    ) -> Result<(), DeviceError> {
        (0..length.div_ceil(block))
            .map(|n| (n * block, block.min(length - n * block)))
            .try_for_each(|(at, length)| self.submit(make(offset + at, length)))
    }

    /// Writes the data repeatedly until all NAND has been written since the last purge.
    fn age(&mut self, files: &Extents, seed: Seed) -> Result<(), DeviceError> {
        let raw = self.drive.raw_capacity().map_or(0, Bytes::get);
        for round in 0.. {
            let written = self.drive.counters().host_written_bytes - self.written_at_purge;
            let missing = raw.saturating_sub(written);
            if missing == 0 || files.length() < AGING.get() {
                break;
            }
            self.fill_at_random(files, AGING, seed.part("age", round), missing.div_ceil(AGING.get()))?;
        }
        Ok(())
    }

    /// Writes every block once, in random order, for at most `most` blocks.
    fn fill_at_random(
        &mut self,
        files: &Extents,
        block: Bytes,
        seed: Seed,
        most: u64,
    ) -> Result<(), DeviceError> {
        let mut rng = seed.part("fill", 0).stream();
        let mut order: Vec<u32> = (0..(files.length() / block.get()) as u32).collect();
        shuffle(&mut rng, &mut order);
        order.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        for number in order {
            let mut parts = Vec::with_capacity(1);
            files.split(&Request::write(u64::from(number) * block.get(), block.get()), |part| {
                parts.push(part)
            });
            parts.into_iter().try_for_each(|part| self.submit(part))?;
        }
        Ok(())
    }
}

impl PreparedDrive<'_> {
    /// The model and its virtual time, for attaching the drive.
    pub fn history(&self) -> (&AnyDevice, VirtualTime) {
        (self.drive, *self.now)
    }
}
