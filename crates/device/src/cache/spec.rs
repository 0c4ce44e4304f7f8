//! The description of a cache, as the table `[cache]` of a device file writes it ([`CacheParameters`]), with the two
//! devices that it joins ([`CacheSpec`]).
//!
//! Leaves out the names of the devices and how they are found, see `lowtide_files::device`.

use crate::spec::durability::Cache;
use crate::spec::{DeviceSpec, SpecError, check_times, fail};
use lowtide_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

const SMALLEST_LINE: Bytes = Bytes::kib(4);
const LARGEST_LINE: Bytes = Bytes::mib(1);
const MOST_DEPTH: u32 = 1024;

/// A cache with the devices that it joins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheSpec {
    /// How it caches.
    pub parameters: CacheParameters,
    /// What holds the lines.
    pub flash: Box<DeviceSpec>,
    /// What holds everything else.
    pub backing: Box<DeviceSpec>,
}

/// Everything about a cache but its devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CacheParameters {
    /// When a write is acknowledged.
    pub mode: Mode,
    /// Bytes that are found and evicted together; a power of two from 4 KiB to 1 MiB.
    #[serde(default = "default_line")]
    pub line: Bytes,
    /// The share of lines above which dirty ones are written back.
    #[serde(default = "default_threshold")]
    pub dirty_threshold: f64,
    /// Lines that are written back at a time.
    #[serde(default = "default_depth")]
    pub write_back_depth: u32,
    /// Whether what is read from the backing device is put into the cache.
    #[serde(default = "default_promote")]
    pub promote: bool,
    /// Streams of at least so many bytes are not put into the cache; none are left out when absent.
    #[serde(default)]
    pub bypass_sequential: Option<Bytes>,
    /// Added to every request.
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

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// When the flash has it; the backing device gets it later.
    WriteBack,
    /// When flash and backing device have it.
    WriteThrough,
}

impl CacheParameters {
    /// The part of a line that is valid or not, dirty or not: there are at most 64 in a line.
    pub(super) fn block(&self) -> u64 {
        (self.line.get() / 64).max(SMALLEST_LINE.get())
    }
}

impl CacheSpec {
    /// What the host may address: the backing device, in whole blocks.
    pub fn capacity(&self) -> Bytes {
        let block = self.parameters.block();
        Bytes::new(self.backing.capacity().get() / block * block)
    }

    /// What the two devices keep acknowledged writes in. Without write-back, all that the flash holds is a copy.
    pub(crate) fn cache(&self) -> Cache {
        match self.parameters.mode {
            Mode::WriteThrough => self.backing.cache(),
            Mode::WriteBack => self.flash.cache().beside(self.backing.cache()),
        }
    }

    /// Checks the description.
    ///
    /// # Errors
    /// [`SpecError`] names the key that does not fit; of a device, behind `flash` or `backing`.
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

    /// The same cache of devices `factor` times smaller; lines and timings stay.
    pub fn scaled(&self, factor: u64) -> CacheSpec {
        CacheSpec {
            parameters: self.parameters.clone(),
            flash: Box::new(self.flash.scaled(factor)),
            backing: Box::new(self.backing.scaled(factor)),
        }
    }
}
