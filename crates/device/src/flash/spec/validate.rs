//! Checks of a description, made before anything is derived from it.
//!
//! A description that passes can be simulated without a panic, an overflow or an endless search for a victim. Memory is
//! not checked: the tables take eight bytes per map unit.

use super::{FlashSpec, Gc, Policy, SpecError};
use crate::flash::Geometry;
use crate::spec::{check_rate, check_times, fail};
use lowtide_core::{Bytes, Nanos};

const LARGEST_PAGE: Bytes = Bytes::gib(1);
const LARGEST_UNIT: Bytes = Bytes::gib(1);
const MOST_CHOICES: u32 = 4096;
const MOST_PACE: f64 = 64.0;
const MOST_BITS: u32 = 5;
const MOST_DYNAMIC: f64 = 0.9;
const MOST_LOGS: u32 = 1024;
const MOST_ENTRY: Bytes = Bytes::kib(4);

fn share(key: &'static str, value: f64) -> Result<(), SpecError> {
    if !(0.0..0.5).contains(&value) {
        return fail(key, format!("{value} is not a share from 0 to 0.5"));
    }
    Ok(())
}

impl FlashSpec {
    /// Checks the description.
    ///
    /// # Errors
    /// [`SpecError`] for the first key that is invalid.
    pub fn validate(&self) -> Result<(), SpecError> {
        self.check_sizes()?;
        self.check_map()?;
        self.check_speeds()?;
        check_gc(&self.gc)?;
        self.check_extras()?;
        self.check_room()
    }

    fn check_sizes(&self) -> Result<(), SpecError> {
        let (nand, unit) = (&self.nand, self.map.unit);
        if unit.get() < 512 || !unit.get().is_multiple_of(512) {
            return fail("map.unit", format!("{unit} is not a multiple of 512 bytes"));
        }
        if nand.page == Bytes::ZERO || !nand.page.get().is_multiple_of(unit.get()) {
            return fail("nand.page", format!("{} is not a multiple of the map unit {unit}", nand.page));
        }
        if nand.page > LARGEST_PAGE {
            return fail("nand.page", format!("{} is more than {LARGEST_PAGE}", nand.page));
        }
        if nand.pages_per_block == 0 || !self.units_per_block().is_multiple_of(64) {
            return fail("nand.pages-per-block", "a block must hold a multiple of 64 map units");
        }
        if nand.raw.get() / unit.get() >= u64::from(u32::MAX) {
            return fail("nand.raw", "more than 2^32 map units; use a larger map unit or a scale");
        }
        let blocks = nand.raw.get() / self.block_bytes().get();
        let counts = [
            ("nand.channels", nand.channels),
            ("nand.dies", nand.dies),
            ("gc.concurrency", self.gc.concurrency),
        ];
        for (key, n) in counts {
            if n == 0 {
                return fail(key, "must be at least 1");
            }
            if u64::from(n) > blocks {
                return fail(key, format!("{n} is more than the {blocks} blocks of {}", self.block_bytes()));
            }
        }
        if self.capacity < unit || self.capacity > nand.raw {
            let message = format!("{} is not between {unit} and the raw {}", self.capacity, nand.raw);
            return fail("capacity", message);
        }
        let buffer = self.write_buffer.size;
        if buffer < nand.page * 2 || buffer > nand.raw {
            let (least, most) = (nand.page * 2, nand.raw);
            let message = format!("must hold two NAND pages ({least}) and no more than the NAND ({most})");
            return fail("write-buffer.size", message);
        }
        if self.write_buffer.protected && !self.write_buffer.honours_flush {
            let message =
                "is false, which has no meaning with `protected = true`: every acknowledged write is durable";
            return fail("write-buffer.honours-flush", message);
        }
        Ok(())
    }

    fn check_map(&self) -> Result<(), SpecError> {
        let page = self.map.page;
        if page.get() < 4 || !page.get().is_multiple_of(4) || page > LARGEST_PAGE {
            let message = format!("{page} does not hold entries of 4 bytes, up to {LARGEST_PAGE}");
            return fail("map.page", message);
        }
        if self.map.cache.is_some() && page > self.nand.page {
            return fail("map.page", format!("{page} does not fit into the NAND page of {}", self.nand.page));
        }
        Ok(())
    }

    fn check_speeds(&self) -> Result<(), SpecError> {
        let (nand, controller) = (&self.nand, &self.controller);
        check_rate("nand.channel-rate", nand.channel_rate)?;
        check_rate("controller.link-rate", controller.link_rate)?;
        check_times([
            ("nand.read", nand.read),
            ("nand.program", nand.program),
            ("nand.erase", nand.erase),
            ("controller.latency", controller.latency),
            ("controller.request", controller.request),
            ("controller.read-unit", controller.read_unit),
            ("controller.write-unit", controller.write_unit),
            ("controller.write-request", controller.write_request),
            ("controller.gc-unit", controller.gc_unit),
            ("controller.gc-page", controller.gc_page),
            ("gc.idle.after", self.gc.idle.map_or(Nanos::ZERO, |idle| idle.after)),
        ])?;
        if let Some(slc) = &self.slc_cache {
            check_times([
                ("slc-cache.read", slc.read),
                ("slc-cache.program", slc.program),
                ("slc-cache.fold-after", slc.fold_after.unwrap_or(Nanos::ZERO)),
            ])?;
        }
        if let Some(ftl) = &self.host_ftl {
            check_times([
                ("host-ftl.cpu-per-request", ftl.cpu_per_request),
                ("host-ftl.cpu-per-unit", ftl.cpu_per_unit),
                ("host-ftl.cpu-per-moved-unit", ftl.cpu_per_moved_unit),
            ])?;
        }
        Ok(())
    }

    fn check_extras(&self) -> Result<(), SpecError> {
        if let Some(slc) = &self.slc_cache {
            let page_units = self.nand.page.get() / self.map.unit.get();
            let bits = slc.bits_per_cell;
            if !(2..=MOST_BITS).contains(&bits) || !page_units.is_multiple_of(u64::from(bits)) {
                let page = self.nand.page;
                let message = format!(
                    "must be from 2 to {MOST_BITS} and divide the {page_units} map units of a page of {page}, which one program writes for all bits"
                );
                return fail("slc-cache.bits-per-cell", message);
            }
            if slc.size > self.nand.raw / u64::from(bits) {
                let (size, raw) = (slc.size, self.nand.raw);
                let message = format!("{size} does not fit into {raw} of NAND with one bit per cell");
                return fail("slc-cache.size", message);
            }
            if !(0.0..=MOST_DYNAMIC).contains(&slc.dynamic) {
                let message = format!("{} is not a share from 0 to {MOST_DYNAMIC}", slc.dynamic);
                return fail("slc-cache.dynamic", message);
            }
            let slc_block = self.block_bytes() / u64::from(bits);
            if slc.dynamic == 0.0 && slc.size < slc_block {
                let message = format!("without `dynamic`, it must hold a block of {slc_block}");
                return fail("slc-cache.size", message);
            }
        }
        if let Some(logs) = &self.log_units {
            if self.slc_cache.is_some() {
                return fail("log-units", "and slc-cache exclude each other");
            }
            let (block, page) = (self.block_bytes(), self.nand.page);
            if logs.unit < block || !logs.unit.get().is_multiple_of(block.get()) || logs.unit > LARGEST_UNIT {
                let (unit, most) = (logs.unit, LARGEST_UNIT);
                let message = format!("{unit} is not a multiple of an erase block, {block}, up to {most}");
                return fail("log-units.unit", message);
            }
            if self.map.unit != page {
                let message = format!("{} is not a NAND page, {page}, as log-units need it", self.map.unit);
                return fail("map.unit", message);
            }
            if logs.open == 0 || logs.open > MOST_LOGS {
                return fail("log-units.open", format!("must be from 1 to {MOST_LOGS}"));
            }
        }
        if let Some(ftl) = &self.host_ftl
            && ftl.bytes_per_entry > MOST_ENTRY
        {
            let message = format!("{} is more than {MOST_ENTRY}", ftl.bytes_per_entry);
            return fail("host-ftl.bytes-per-entry", message);
        }
        Ok(())
    }

    /// Checks that the drive can clean: in addition to the data there must be room for open blocks and the erased pool.
    fn check_room(&self) -> Result<(), SpecError> {
        let geometry = Geometry::new(self);
        if geometry.spare_blocks() >= 4 {
            return Ok(());
        }
        if geometry.doubled_units > 0 {
            let twice = u64::from(geometry.doubled_units) * u64::from(geometry.unit_blocks());
            let others = geometry.open_blocks() - twice + u64::from(geometry.pool_blocks());
            let message = format!(
                "{} open ones, and one that is merged, take {twice} blocks of {} beside {} of capacity and {others} blocks that are kept erased; {} of NAND has too few",
                geometry.doubled_units - 1,
                self.block_bytes(),
                self.capacity,
                self.nand.raw,
            );
            return fail("log-units.open", message);
        }
        let message = format!(
            "{} leaves no room to clean: {} of capacity, and {} blocks of {} open or kept erased, need more",
            self.nand.raw,
            self.capacity,
            geometry.open_blocks() + u64::from(geometry.pool_blocks() + geometry.slc_static_blocks),
            self.block_bytes()
        );
        fail("nand.raw", message)
    }
}

fn check_gc(gc: &Gc) -> Result<(), SpecError> {
    share("gc.set-point", gc.set_point)?;
    if let Some(catch_up) = gc.catch_up {
        share("gc.catch-up.start", catch_up.start)?;
        share("gc.catch-up.until", catch_up.until)?;
        if catch_up.start >= catch_up.until || gc.set_point >= catch_up.until || catch_up.start > gc.set_point
        {
            return fail("gc.catch-up", "needs start ≤ set-point < until");
        }
        if !(catch_up.pace > 1.0 && catch_up.pace <= MOST_PACE) {
            let message = format!("must be above 1, or the pool never refills, and up to {MOST_PACE}");
            return fail("gc.catch-up.pace", message);
        }
    }
    if let Some(idle) = gc.idle {
        share("gc.idle.until", idle.until)?;
    }
    match gc.policy {
        Policy::DChoices(d) if d == 0 || d > MOST_CHOICES => {
            fail("gc.policy", format!("d-choices needs from 1 to {MOST_CHOICES}"))
        }
        _ => Ok(()),
    }
}
