//! The family of drives that a fit searches. A few parameters vary; the remaining ones are known or assumed.
//!
//! Without `--like`, the controller is the bottleneck: it spends a fixed time per written unit and per moved unit,
//! and the assumed NAND is fast enough not to matter. With `--like`, all other parameters come from a device file.
//!
//! # Not modelled
//!
//! Arrays, disks, and drives with log units or an SLC cache: their levels follow other laws.

use super::simulate::small;
use super::{COST_UNIT, FitError};
use lowtide_core::{Bytes, Nanos};
use lowtide_device::DeviceSpec;
use lowtide_device::flash::FlashSpec;
use lowtide_device::flash::spec::{Controller, Gc, Map, Nand, Policy, WriteBuffer};
use lowtide_files::device::{self, Device};
use std::path::PathBuf;

/// Default map unit.
const UNIT: Bytes = COST_UNIT;
/// Geometry of the assumed NAND: as in drives of the studies, with blocks small enough for scaled-down models.
const PAGE: Bytes = Bytes::kib(16);
const PAGES_PER_BLOCK: u32 = 128;
const DIES: u32 = 32;
/// Bytes of one entry of the mapping table.
const ENTRY: u64 = 4;
/// Step of the search for the least raw NAND, as a share of the capacity.
const STEP: f64 = 0.002;
/// Maximum number of steps of this search.
const STEPS: u32 = 1000;
/// Upper limit on raw NAND, as a multiple of the least that works.
const LARGEST: f64 = 3.0;
/// Page of the mapping table: one NAND read loads this much of it.
const MAP_PAGE: Bytes = Bytes::new(512);

/// The fitted parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// Raw NAND for data, in bytes.
    pub raw: f64,
    /// Seconds per written byte: the reciprocal of the peak rate.
    pub write: f64,
    /// Additional seconds per moved byte.
    pub moved: f64,
    /// The policy that chooses the victim blocks.
    pub policy: Policy,
    /// The reach and miss cost of the map cache. `None` if it covers all data.
    pub map: Option<Reach>,
}

/// A map cache that does not cover all data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reach {
    /// Bytes of data that it covers.
    pub bytes: f64,
    /// Additional seconds per byte on a miss.
    pub miss: f64,
}

/// The `--like` device. It supplies all parameters that are not fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Like {
    /// Name in the catalogue, or path of the device file.
    pub name: String,
    /// Files outside the catalogue that the device file refers to.
    pub files: Vec<PathBuf>,
    spec: FlashSpec,
}

impl Like {
    /// Reads a device by its name or path.
    ///
    /// # Errors
    /// [`FitError::Like`] if it is not a single page-mapped flash drive.
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

/// The parameters that all drives of a family have in common.
#[derive(Debug, Clone)]
pub(super) struct Family {
    base: FlashSpec,
    /// Name of the `--like` device.
    pub like: Option<String>,
    /// Bytes per request of the load.
    pub block: Bytes,
    pub threads: u32,
}

impl Family {
    /// # Errors
    /// [`FitError`] if the request size is not a multiple of the family's map unit.
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

    /// The base device, for messages.
    pub(super) fn words(&self) -> String {
        self.like.as_ref().map_or("the assumed drive".to_owned(), |like| format!("`{like}`"))
    }

    /// The least seconds per written byte, which the link rate limits.
    pub(super) fn least_write(&self) -> f64 {
        1.0 / self.base.controller.link_rate.get().max(1) as f64
    }

    /// The minimum data size: after a drive with `raw` bytes of NAND is scaled down, the data must still hold one request.
    pub(super) fn least_data(&self, raw: f64) -> Bytes {
        let parameters = Parameters { raw, write: 1e-9, moved: 1e-9, policy: Policy::Greedy, map: None };
        self.block * small(&self.drive(&parameters)).0
    }

    /// The reason that no drive with `raw` bytes of NAND can be simulated. `None` if one can.
    pub(super) fn objection(&self, raw: f64) -> Option<String> {
        let parameters = Parameters { raw, write: 1e-9, moved: 1e-9, policy: Policy::Greedy, map: None };
        let drive = self.drive(&parameters);
        let why = drive.validate().and_then(|()| small(&drive).1.validate()).err()?;
        Some(why.to_string())
    }

    /// Map units per erase block.
    pub(super) fn units_per_block(&self) -> u64 {
        self.base.units_per_block()
    }

    /// The range of raw NAND to search, in bytes. It begins at the smallest raw capacity with which such a drive can work.
    ///
    /// # Errors
    /// [`FitError::NoFit`] with the reason if no drive of the capacity works.
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
            // On a miss the controller waits for the table page to be read.
            spec.map.blocking = true;
            spec.nand.read = nanos(miss * self.block.get() as f64);
        }
        if let Some(ftl) = &mut spec.host_ftl {
            ftl.cpu_per_moved_unit = spec.controller.gc_unit;
        }
        spec
    }
}

/// The base drive without `--like`: only its capacity and its load are known.
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
