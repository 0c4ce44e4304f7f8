//! The description of a cache ([`CacheSpec`]): its two devices, and the table `[cache]` of a device file
//! ([`CacheParameters`]).
//!
//! `lowtide_files::device` resolves the names of the devices.

use crate::spec::durability::Cache;
use crate::spec::{DeviceSpec, SpecError, check_times, fail};
use lowtide_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

const SMALLEST_LINE: Bytes = Bytes::kib(4);
const LARGEST_LINE: Bytes = Bytes::mib(1);
const MOST_DEPTH: u32 = 1024;

/// A cache with its two devices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheSpec {
    /// The parameters of the cache.
    pub parameters: CacheParameters,
    /// The device with the lines.
    pub flash: Box<DeviceSpec>,
    /// The device behind the cache.
    pub backing: Box<DeviceSpec>,
}

/// The parameters of a cache, without its devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CacheParameters {
    /// The instant at which a write is acknowledged.
    pub mode: Mode,
    /// Bytes of a line, the unit of lookup and eviction; a power of two from 4 KiB to 1 MiB.
    #[serde(default = "default_line")]
    pub line: Bytes,
    /// The share of dirty lines above which lines are written back.
    #[serde(default = "default_threshold")]
    pub dirty_threshold: f64,
    /// The most lines written back concurrently.
    #[serde(default = "default_depth")]
    pub write_back_depth: u32,
    /// True if data read from the backing device is promoted to the cache.
    #[serde(default = "default_promote")]
    pub promote: bool,
    /// Minimum length in bytes of a sequential stream that bypasses the cache. If absent, no stream does.
    #[serde(default)]
    pub bypass_sequential: Option<Bytes>,
    /// Latency added to every request.
    #[serde(default)]
    pub latency: Nanos,
}

fn default_line() -> Bytes {
    Bytes::kib(64)
}

fn default_threshold() -> f64 {
    0.5
}

fn default_depth() -> u32 {
    16
}

fn default_promote() -> bool {
    true
}

/// The instant at which a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// When the write is on the flash. It is written to the backing device later.
    WriteBack,
    /// When the write is on the flash and on the backing device.
    WriteThrough,
}

impl CacheParameters {
    /// Bytes of a block, the unit of valid and dirty bits. A line has at most 64 blocks.
    pub(super) fn block(&self) -> u64 {
        (self.line.get() / 64).max(SMALLEST_LINE.get())
    }
}

impl CacheSpec {
    /// Bytes the host may address: the backing device, in whole blocks.
    pub fn capacity(&self) -> Bytes {
        let block = self.parameters.block();
        Bytes::new(self.backing.capacity().get() / block * block)
    }

    /// The write caches of the two devices. Without write-back, the flash holds copies only.
    pub(crate) fn cache(&self) -> Cache {
        match self.parameters.mode {
            Mode::WriteThrough => self.backing.cache(),
            Mode::WriteBack => self.flash.cache().beside(self.backing.cache()),
        }
    }

    /// Checks the description.
    ///
    /// # Errors
    /// [`SpecError`] names the invalid key. Keys of the devices begin with `flash` or `backing`.
    pub fn validate(&self) -> Result<(), SpecError> {
        let CacheParameters { line, dirty_threshold, write_back_depth, bypass_sequential, latency, .. } =
            self.parameters;
        if !line.get().is_power_of_two() || line < SMALLEST_LINE || line > LARGEST_LINE {
            return fail(
                "line",
                format!("{line} is not a power of two from {SMALLEST_LINE} to {LARGEST_LINE}"),
            );
        }
        if !(0.0..1.0).contains(&dirty_threshold) {
            return fail("dirty-threshold", format!("{dirty_threshold} is not a share below 1"));
        }
        if write_back_depth == 0 || write_back_depth > MOST_DEPTH {
            return fail("write-back-depth", format!("needs from 1 to {MOST_DEPTH}"));
        }
        if bypass_sequential == Some(Bytes::ZERO) {
            return fail("bypass-sequential", "needs at least a byte; leave it out to bypass nothing");
        }
        check_times([("latency", latency)])?;
        self.flash.validate().map_err(|error| error.within("flash"))?;
        self.backing.validate().map_err(|error| error.within("backing"))?;
        let lines = self.flash.capacity().get() / line.get();
        if lines == 0 || lines >= u64::from(u32::MAX) {
            return fail("flash", format!("{} holds {lines} lines of {line}", self.flash.capacity()));
        }
        if self.capacity() == Bytes::ZERO {
            return fail("backing", format!("{} holds no block of a line", self.backing.capacity()));
        }
        Ok(())
    }

    /// The cache with devices at `1 / factor` of their size, and the same lines and timings.
    pub fn scaled(&self, factor: u64) -> CacheSpec {
        CacheSpec {
            parameters: self.parameters.clone(),
            flash: Box::new(self.flash.scaled(factor)),
            backing: Box::new(self.backing.scaled(factor)),
        }
    }
}
