//! The description of a simulated disk ([`DiskSpec`]): the table `[disk]` of a device file.
//!
//! The description holds data-sheet values: sizes, speeds and three seek times. [`Surface`] and [`SeekCurve`] derive
//! everything else.

mod validate;

use super::{SECTOR, SeekCurve, Surface};
pub use crate::spec::SpecError;
use crate::spec::durability::{Cache, CacheKind};
use crate::spec::fail;
use lowtide_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// A simulated disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DiskSpec {
    /// Bytes the host may address.
    pub capacity: Bytes,
    /// Revolutions per minute.
    pub rpm: u32,
    /// Recording surfaces, each with its head. A cylinder has one track per surface.
    pub surfaces: u32,
    /// Rate of long transfers on the outermost tracks, in bytes per second, track changes included.
    pub outer_rate: Bytes,
    /// Rate of long transfers on the innermost tracks, in bytes per second, track changes included.
    pub inner_rate: Bytes,
    /// Number of zones. All zones have the same number of cylinders, and the rate is constant within a zone.
    #[serde(default = "default_zones")]
    pub zones: u32,
    /// The seek times.
    pub seek: Seek,
    /// The host link and the electronics.
    pub interface: Interface,
    /// The command queue.
    pub queue: Queue,
    /// Read-ahead memory; none if absent.
    #[serde(default)]
    pub read_ahead: Option<ReadAhead>,
    /// Volatile write cache; off if absent or of size 0.
    #[serde(default)]
    pub write_cache: Option<WriteCache>,
}

fn default_zones() -> u32 {
    16
}

/// Seek times. Each includes settling for a read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Seek {
    /// Seek to the next cylinder.
    pub track: Nanos,
    /// Mean seek between two random bytes of the disk.
    pub average: Nanos,
    /// Seek from the outermost to the innermost cylinder.
    pub full: Nanos,
    /// Additional settling time before a write.
    #[serde(default)]
    pub write_settle: Nanos,
}

/// The host link and the electronics.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Interface {
    /// Rate of the link, in bytes per second.
    pub rate: Bytes,
    /// Time from the arrival of a command until work on it begins. The overhead of a queued command overlaps with the
    /// service of others.
    pub overhead: Nanos,
}

/// The command queue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Queue {
    /// Policy that chooses the next command.
    pub scheduler: Scheduler,
    /// Number of commands that the scheduler chooses from. Further commands wait outside in order of arrival.
    pub depth: u32,
    /// Waiting time after which the oldest command is served next; no limit if absent. If the limit is shorter than
    /// the service of a full queue, every command becomes overdue and the order is that of arrival.
    #[serde(default)]
    pub aging: Option<Nanos>,
}

/// Policy that chooses the next command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// The command that arrived first.
    Fifo,
    /// The next command inwards; after the innermost, the outermost (C-LOOK).
    Elevator,
    /// The command with the shortest positioning time, seek and rotation together (Seltzer et al. 1990, Jacobson and
    /// Wilkes 1991).
    Sptf,
}

/// Read-ahead memory: after a read, the disk continues to read the following bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReadAhead {
    /// Number of streams that the memory follows.
    pub segments: u32,
    /// Bytes read ahead and kept for each stream.
    pub size: Bytes,
}

/// Volatile write cache: acknowledges writes before they are on the surface.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WriteCache {
    /// Capacity of the cache.
    pub size: Bytes,
    /// True if a flush or forced unit access makes writes durable. If false, both are acknowledged at once and have
    /// no effect.
    #[serde(default = "honours_flush")]
    pub honours_flush: bool,
}

fn honours_flush() -> bool {
    true
}

impl DiskSpec {
    /// The write cache, as a power cut sees it.
    pub(crate) fn cache(&self) -> Cache {
        match self.write_cache {
            Some(WriteCache { size, honours_flush }) if size > Bytes::ZERO => {
                Cache::Volatile { size, honours_flush }
            }
            _ => Cache::Protected,
        }
    }

    /// Changes the kind of the write cache. A disk without a write cache is not changed.
    pub(crate) fn set_cache(&mut self, kind: CacheKind) {
        let honours_flush = kind != CacheKind::Lying;
        self.write_cache = match kind {
            CacheKind::Protected => None,
            _ => self.write_cache.map(|cache| WriteCache { honours_flush, ..cache }),
        };
    }

    /// Time of one revolution.
    pub fn revolution(&self) -> Nanos {
        Nanos::new(60_000_000_000 / u64::from(self.rpm.max(1)))
    }

    /// Derives the position of each byte.
    ///
    /// # Errors
    /// [`SpecError`] if the description is inconsistent.
    pub fn surface(&self) -> Result<Surface, SpecError> {
        self.validate()?;
        Ok(Surface::new(self))
    }

    /// Derives the seek time by distance.
    ///
    /// # Errors
    /// [`SpecError`] if the description is inconsistent.
    pub fn seek_curve(&self) -> Result<SeekCurve, SpecError> {
        let surface = self.surface()?;
        SeekCurve::new(&self.seek, &surface).or_else(|message| fail("seek.average", message))
    }

    /// The same disk, `factor` times smaller. It has fewer cylinders; seek times and memory sizes are unchanged.
    pub fn scaled(&self, factor: u64) -> DiskSpec {
        let mut spec = self.clone();
        if factor > 1 {
            spec.capacity = (self.capacity / factor).align_down(Bytes::new(SECTOR));
        }
        spec
    }
}
