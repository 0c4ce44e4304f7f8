//! A log disk that becomes larger with its medium ([`grow`]).
//!
//! Segments and the places of the checkpoints stay where they are; what is new is behind them. Whenever the power goes, the log disk is as
//! it was, or as it is to be. Leaves out making it smaller.

use crate::error::LogError;
use crate::format::checkpoint::{NOWHERE, SegmentState, Use};
use crate::format::{BLOCK, Geometry, Superblock};
use crate::{Disk, Medium, disk::Running};
use std::io;

/// Makes the log disk of a medium as large as the medium is now; with another reserve, where one is given.
///
/// # Errors
/// [`LogError::Geometry`], before anything is written; [`LogError`].
pub fn grow<M: Medium>(medium: M, reserve: Option<f64>) -> Result<Geometry, LogError> {
    let bytes = medium.bytes();
    let mut disk = Disk::open(medium, Running::default())?;
    let superblock = *disk.log().superblock();
    // One of version 2 gets its marks on the way.
    let before = superblock.geometry.upgraded().unwrap_or(superblock.geometry);
    let geometry = before.grown(bytes, reserve)?;
    if geometry == before {
        // The power may have gone between the two superblocks.
        write_superblocks(&disk.into_medium(), superblock)?;
        return Ok(geometry);
    }
    // As it was: whole, for whoever finds the old superblock.
    disk.checkpoint(true)?;
    debug_assert_eq!(*disk.geometry(), before);
    let mut checkpoint = disk.begin_checkpoint(true)?;
    let free = SegmentState { used: Use::Free, live: 0, newest: 0, begun: 0 };
    checkpoint.segments.resize(geometry.segments as usize, free);
    checkpoint.pages.resize(geometry.pages() as usize, NOWHERE);
    let medium = disk.into_medium();
    let failed = |source: io::Error| LogError::Medium { what: "growing", source };
    medium.flush().map_err(failed)?;
    // The other place still holds the one before, which goes with the old superblock; this one only goes with the new.
    let place = geometry.checkpoint((checkpoint.generation % 2) as usize);
    medium.write(place.start, &checkpoint.write(superblock.salt)).map_err(failed)?;
    medium.flush().map_err(failed)?;
    write_superblocks(&medium, Superblock { geometry, ..superblock })?;
    Ok(geometry)
}

/// One after the other, so that one is always whole.
fn write_superblocks(medium: &impl Medium, superblock: Superblock) -> Result<(), LogError> {
    let block = superblock.write();
    for at in 0..2 {
        let written = medium.write(at * BLOCK as u64, &block).and_then(|()| medium.flush());
        written.map_err(|source| LogError::Medium { what: "growing", source })?;
    }
    Ok(())
}
