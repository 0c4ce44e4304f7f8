//! Growing a log disk after its medium has grown ([`grow`]).
//!
//! Segments and checkpoints keep their positions; new segments follow. A power cut at any moment leaves the old or
//! the new size. A log disk cannot shrink.

use crate::error::LogError;
use crate::format::checkpoint::{SegmentState, UNWRITTEN, Use};
use crate::format::{BLOCK, Geometry, Superblock};
use crate::{Disk, Medium, disk::Running};
use std::io;

/// Grows the log disk to the size of its medium. A given `reserve` replaces the present reserve.
///
/// # Errors
/// [`LogError::Geometry`], before anything is written, or another [`LogError`].
pub fn grow<M: Medium>(medium: M, reserve: Option<f64>) -> Result<Geometry, LogError> {
    let bytes = medium.bytes();
    let mut disk = Disk::open(medium, Running::default())?;
    let superblock = *disk.log().superblock();
    // A log disk of version 2 is upgraded first.
    let before = superblock.geometry.upgraded().unwrap_or(superblock.geometry);
    let geometry = before.grown(bytes, reserve)?;
    if geometry == before {
        // An earlier power cut may have left two different superblocks.
        write_superblocks(&disk.into_medium(), superblock)?;
        return Ok(geometry);
    }
    // A complete checkpoint of the old size, for the old superblock.
    disk.checkpoint(true)?;
    debug_assert_eq!(*disk.geometry(), before);
    let mut checkpoint = disk.begin_checkpoint(true)?;
    let free = SegmentState { used: Use::Free, live: 0, newest: 0, begun: 0 };
    checkpoint.segments.resize(geometry.segments as usize, free);
    checkpoint.pages.resize(geometry.pages() as usize, UNWRITTEN);
    let medium = disk.into_medium();
    let failed = |source: io::Error| LogError::Medium { what: "growing", source };
    medium.flush().map_err(failed)?;
    // The other checkpoint belongs to the old superblock, and this one to the new.
    let range = geometry.checkpoint((checkpoint.generation % 2) as usize);
    medium.write(range.start, &checkpoint.write(superblock.salt)).map_err(failed)?;
    medium.flush().map_err(failed)?;
    write_superblocks(&medium, Superblock { geometry, ..superblock })?;
    Ok(geometry)
}

/// Writes both superblocks, one after the other, so that one is always intact.
fn write_superblocks(medium: &impl Medium, superblock: Superblock) -> Result<(), LogError> {
    let block = superblock.write();
    for at in 0..2 {
        let written = medium.write(at * BLOCK as u64, &block).and_then(|()| medium.flush());
        written.map_err(|source| LogError::Medium { what: "growing", source })?;
    }
    Ok(())
}
