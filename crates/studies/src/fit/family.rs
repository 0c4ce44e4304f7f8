//! The drives among which the measured one is looked for: everything but a few parameters is known or assumed.
//!
//! Without an example the controller is what limits: a request takes its time for each unit, a moved unit takes its own, and the NAND is
//! fast enough not to be seen. With `--like` all else is as in that device file. Not here: arrays, disks and drives with log units:
//! their levels follow other laws.

use super::simulate::small;
use super::{COST_UNIT, FitError};
use lowtide_core::{Bytes, Nanos};
use lowtide_device::DeviceSpec;
use lowtide_device::flash::FlashSpec;
use lowtide_device::flash::spec::{Controller, Gc, Map, Nand, Policy, WriteBuffer};
use lowtide_files::device::{self, Device};
use std::path::PathBuf;

/// Bytes of a map unit where nobody says.
const UNIT: Bytes = COST_UNIT;
/// A block of the assumed NAND: that of drives of the time of the studies, and small enough for models to be small.
const PAGE: Bytes = Bytes::kib(16);
const PAGES_PER_BLOCK: u32 = 128;
const DIES: u32 = 32;
/// Bytes of the table for each map unit.
const ENTRY: u64 = 4;
/// How finely the least raw NAND is looked for, as a share of the capacity.
const STEP: f64 = 0.002;
/// Steps of that search.
const STEPS: u32 = 1000;
/// How far raw NAND is looked for, in sizes of the least that works.
const LARGEST: f64 = 3.0;
/// A page of the table: one read from NAND finds so many units.
const MAP_PAGE: Bytes = Bytes::new(512);

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// Bytes of NAND that data can lie on.
    pub raw: f64,
    /// Seconds that a written byte takes: one over the peak rate.
    pub write: f64,
    /// Seconds that a moved byte takes, beyond that.
    pub moved: f64,
    /// What is cleaned next.
    pub policy: Policy,
    /// Bytes of data that the table in memory reaches, and seconds that a byte takes more when its entry is not there.
    pub map: Option<Reach>,
}

/// A mapping table that does not fit its memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reach {
    /// Bytes of data it reaches.
    pub bytes: f64,
    /// Seconds more for a byte whose entry has to be read.
    pub miss: f64,
}

/// The drive that a fitted drive resembles.
#[derive(Debug, Clone, PartialEq)]
pub struct Like {
    /// Its name, or the path of its file.
    pub name: String,
    /// The files outside of the catalogue that its file refers to.
    pub files: Vec<PathBuf>,
    spec: FlashSpec,
}

impl Like {
    /// Reads its file.
    ///
    /// # Errors
    /// [`FitError::Like`] where it is not one flash drive that maps pages.
    pub fn read(name: &str) -> Result<Like, FitError> {
        let wrong = |error: String| FitError::Like(format!("{name}: {error}"));
        let Device { spec, files, .. } =
            device::find(name).map_err(|error| FitError::Like(error.to_string()))?;
        match spec {
            DeviceSpec::Flash(spec) if spec.log_units.is_none() && spec.slc_cache.is_none() => {
                spec.validate().map_err(|error| wrong(error.to_string()))?;
                Ok(Like { name: name.to_owned(), files, spec })
            }
            _ => Err(FitError::Like(format!(
                "`{name}` is not one flash drive that maps pages, the only kind that `fit` supports"
            ))),
        }
    }
}

/// What all drives of a family have in common.
#[derive(Debug, Clone)]
pub(super) struct Family {
    base: FlashSpec,
    /// The device it is like.
    pub like: Option<String>,
    /// Bytes of a request of the load.
    pub block: Bytes,
    pub threads: u32,
}

impl Family {
    /// # Errors
    /// [`FitError`] where requests are not a multiple of the family's map unit.
    pub(super) fn new(
        like: Option<&Like>,
        capacity: Bytes,
        block: Bytes,
        threads: u32,
    ) -> Result<Family, FitError> {
        let base = match like {
            None => assumed(capacity, block),
            Some(like) => FlashSpec { capacity, ..like.spec.clone() },
        };
        let unit = base.map.unit;
        if unit == Bytes::ZERO || !block.get().is_multiple_of(unit.get()) {
            let accepted = match like {
                Some(_) => format!("multiples of {unit}"),
                None => format!("512B, 1KiB, 2KiB and multiples of {UNIT}"),
            };
            return Err(FitError::Setting(format!(
                "requests of {block} are no whole map units: what completing them costs is not fitted; {accepted} are (`--block`)"
            )));
        }
        Ok(Family { base, like: like.map(|like| like.name.clone()), block, threads })
    }

    /// The drive that the family is built around, for people.
    pub(super) fn words(&self) -> String {
        self.like.as_ref().map_or("the assumed drive".to_owned(), |like| format!("`{like}`"))
    }

    /// The least seconds that a written byte takes: its link is not faster.
    pub(super) fn least_write(&self) -> f64 {
        1.0 / self.base.controller.link_rate.get().max(1) as f64
    }

    /// The least data of which a drive with so much raw NAND, made small, still holds a request.
    pub(super) fn least_data(&self, raw: f64) -> Bytes {
        let parameters = Parameters { raw, write: 1e-9, moved: 1e-9, policy: Policy::Greedy, map: None };
        self.block * small(&self.drive(&parameters)).0
    }

    /// Why no drive with so much raw NAND can be simulated; `None` where one can.
    pub(super) fn objection(&self, raw: f64) -> Option<String> {
        let parameters = Parameters { raw, write: 1e-9, moved: 1e-9, policy: Policy::Greedy, map: None };
        let drive = self.drive(&parameters);
        let why = drive.validate().and_then(|()| small(&drive).1.validate()).err()?;
        Some(why.to_string())
    }

    /// Units of an erase block.
    pub(super) fn units_per_block(&self) -> u64 {
        self.base.units_per_block()
    }

    /// The least raw NAND with which a drive of this family works, and the most that is looked at, bytes.
    ///
    /// # Errors
    /// [`FitError::NoFit`] where no drive of the capacity works, with the reason.
    pub(super) fn raw_range(&self) -> Result<(f64, f64), FitError> {
        let capacity = self.base.capacity.get() as f64;
        let mut steps = (0..STEPS).map(|n| capacity * (1.0 + STEP * f64::from(n)));
        let Some(least) = steps.find(|raw| self.objection(*raw).is_none()) else {
            let why = self.objection(capacity * 1.1).unwrap_or_default();
            return Err(FitError::NoFit(format!(
                "no drive of {} can be simulated: {why}. Levels depend on shares: divide `--capacity` and every size by the same \
                 number, or name a device of that size by `--like`",
                self.base.capacity
            )));
        };
        let unit = self.base.map.unit.get() as f64;
        let addressable = f64::from(u32::MAX - 1) * unit - self.base.block_bytes().get() as f64;
        Ok((least, (LARGEST * least).min(addressable).max(least)))
    }

    /// The drive with these parameters.
    pub(super) fn drive(&self, parameters: &Parameters) -> FlashSpec {
        let mut spec = self.base.clone();
        let unit = spec.map.unit.get() as f64;
        let nanos = |seconds: f64| Nanos::new((seconds * 1e9).round().max(0.0) as u64);
        let requests = spec.controller.request + spec.controller.write_request;
        let of_requests = requests.get() as f64 / 1e9 / self.block.get() as f64;
        let block = spec.block_bytes();
        let blocks = (parameters.raw / block.get() as f64).round() as u64;
        spec.nand.raw = block * blocks.min(u64::MAX / block.get());
        spec.controller.write_unit = nanos((parameters.write - of_requests).max(0.0) * unit);
        spec.controller.gc_unit = nanos(parameters.moved * unit);
        spec.gc.policy = parameters.policy;
        if let Some(Reach { bytes, miss }) = parameters.map {
            let entries = Bytes::new((bytes / unit) as u64 * ENTRY);
            let page = spec.map.page;
            spec.map.cache = Some(entries.align_up(page).max(page * 2));
            // The controller waits for the page it has to read.
            spec.map.blocking = true;
            spec.nand.read = nanos(miss * self.block.get() as f64);
        }
        if let Some(ftl) = &mut spec.host_ftl {
            ftl.cpu_per_moved_unit = spec.controller.gc_unit;
        }
        spec
    }
}

/// A drive of which nothing is known but its capacity and the load.
fn assumed(capacity: Bytes, block: Bytes) -> FlashSpec {
    FlashSpec {
        capacity,
        nand: Nand {
            raw: capacity,
            channels: DIES,
            dies: DIES,
            page: PAGE,
            pages_per_block: PAGES_PER_BLOCK,
            read: Nanos::from_micros(10),
            program: Nanos::from_micros(20),
            erase: Nanos::from_micros(100),
            channel_rate: Bytes::new(2_000_000_000),
            pe_cycles: None,
        },
        map: Map {
            unit: if block.get().is_power_of_two() { UNIT.min(block) } else { UNIT },
            cache: None,
            blocking: false,
            page: MAP_PAGE,
        },
        controller: Controller {
            latency: Nanos::ZERO,
            request: Nanos::ZERO,
            read_unit: Nanos::from_micros(1),
            write_unit: Nanos::ZERO,
            write_request: Nanos::ZERO,
            gc_unit: Nanos::ZERO,
            gc_page: Nanos::ZERO,
            link_rate: Bytes::new(20_000_000_000),
        },
        write_buffer: WriteBuffer { size: Bytes::mib(4), protected: true, honours_flush: true },
        gc: Gc { policy: Policy::Greedy, concurrency: 8, set_point: 0.005, catch_up: None, idle: None },
        slc_cache: None,
        log_units: None,
        host_ftl: None,
    }
}
