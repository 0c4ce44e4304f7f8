//! The description of a simulated disk, as the table `[disk]` of a device file writes it ([`DiskSpec`]).
//!
//! What data sheets tell: sizes, speeds and three seek times. Everything else is derived from these in [`Surface`]
//! and [`SeekCurve`].

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
    /// Revolutions a minute.
    pub rpm: u32,
    /// Recording surfaces, so heads: the tracks of a cylinder.
    pub surfaces: u32,
    /// Bytes a second that a long transfer reaches on the outermost tracks, track changes included.
    pub outer_rate: Bytes,
    /// The same on the innermost tracks.
    pub inner_rate: Bytes,
    /// Zones of equally many cylinders; within one the rate is the same.
    #[serde(default = "default_zones")]
    pub zones: u32,
    /// Moving the heads.
    pub seek: Seek,
    /// The host link and the electronics.
    pub interface: Interface,
    /// What is done next.
    pub queue: Queue,
    /// Memory that reads on after a read; none when absent.
    #[serde(default)]
    pub read_ahead: Option<ReadAhead>,
    /// Memory that acknowledges writes before they are on the surface; off when absent or of no size.
    #[serde(default)]
    pub write_cache: Option<WriteCache>,
}

fn default_zones() -> u32 {
    16
}

/// Moving the heads; each time includes settling for a read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Seek {
    /// To the next cylinder.
    pub track: Nanos,
    /// Mean between two bytes of the disk at random.
    pub average: Nanos,
    /// From the outermost to the innermost cylinder.
    pub full: Nanos,
    /// What settling for a write takes more.
    #[serde(default)]
    pub write_settle: Nanos,
}

/// The host link and the electronics.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Interface {
    /// Bytes the link carries per second.
    pub rate: Bytes,
    /// From a command's arrival until work on it begins; a queued command's passes while others are served.
    pub overhead: Nanos,
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Queue {
    /// How the next command is chosen.
    pub scheduler: Scheduler,
    /// Commands it is chosen from; more wait outside in the order they came.
    pub depth: u32,
    /// A command that waited longer than this is served before all younger ones; without it, none is. Less than a
    /// full queue takes makes every command old, and the order that of arrival.
    #[serde(default)]
    pub aging: Option<Nanos>,
}

/// How the next command is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// The one that came first.
    Fifo,
    /// The next one inwards; after the innermost, the outermost (C-LOOK).
    Elevator,
    /// The one that the head reaches first, seek and turn together (Seltzer et al. 1990, Jacobson and Wilkes 1991).
    Sptf,
}

/// Memory that reads on after a read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReadAhead {
    /// Streams it can follow.
    pub segments: u32,
    /// Bytes read ahead, and kept, of each.
    pub size: Bytes,
}

/// Memory that acknowledges writes before they are on the surface. It is volatile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WriteCache {
    /// Bytes it holds.
    pub size: Bytes,
    /// Whether a flush, or forced unit access, makes writes durable; else both are answered at once, and change
    /// nothing.
    #[serde(default = "honours_flush")]
    pub honours_flush: bool,
}

fn honours_flush() -> bool {
    true
}

impl DiskSpec {
    /// What the disk keeps acknowledged writes in.
    pub(crate) fn cache(&self) -> Cache {
        match self.write_cache {
            Some(WriteCache { size, honours_flush }) if size > Bytes::ZERO => {
                Cache::Volatile { size, honours_flush }
            }
            _ => Cache::Protected,
        }
    }

    /// Gives the write cache another kind; a disk without one stays so.
    pub(crate) fn set_cache(&mut self, kind: CacheKind) {
        let honours_flush = kind != CacheKind::Lying;
        self.write_cache = match kind {
            CacheKind::Protected => None,
            _ => self.write_cache.map(|cache| WriteCache { honours_flush, ..cache }),
        };
    }

    /// Time of a revolution.
    pub fn revolution(&self) -> Nanos {
        Nanos::new(60_000_000_000 / u64::from(self.rpm.max(1)))
    }

    /// The position of each byte.
    ///
    /// # Errors
    /// [`SpecError`] if the description is inconsistent.
    pub fn surface(&self) -> Result<Surface, SpecError> {
        self.validate()?;
        Ok(Surface::new(self))
    }

    /// The seek time by distance.
    ///
    /// # Errors
    /// [`SpecError`] if the description is inconsistent.
    pub fn seek_curve(&self) -> Result<SeekCurve, SpecError> {
        let surface = self.surface()?;
        SeekCurve::new(&self.seek, &surface).or_else(|message| fail("seek.average", message))
    }

    /// The same disk, `factor` times smaller: fewer cylinders, with the same seek times over them. Memory stays.
    pub fn scaled(&self, factor: u64) -> DiskSpec {
        let mut spec = self.clone();
        if factor > 1 {
            spec.capacity = (self.capacity / factor).align_down(Bytes::new(SECTOR));
        }
        spec
    }
}
