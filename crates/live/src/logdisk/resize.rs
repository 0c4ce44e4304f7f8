//! Grows a log disk to the size of its block device, or grows its file first ([`resize`]).
//!
//! The log itself grows in `lowtide_logdisk::resize`. Shrinking is not supported.

use super::{Backing, BackingError, FileMedium};
use lowtide_core::Bytes;
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::format::Geometry;
use lowtide_logdisk::format::geometry::GeometryError;
use lowtide_logdisk::{Disk, LogError, resize::grow};
use std::fs::File;
use std::path::Path;

/// The reason why a log disk cannot grow.
#[derive(Debug, thiserror::Error)]
pub enum ResizeError {
    /// The file or block device cannot be used.
    #[error(transparent)]
    Backing(#[from] BackingError),
    /// The log cannot grow.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Grows a log disk to the size of its block device. If `size` is given, the log disk is in a file, which first grows
/// to `size`. A `reserve` replaces the current one.
///
/// # Errors
/// [`ResizeError`]. If the log cannot have that size, the file is unchanged.
pub fn resize(path: &Path, size: Option<Bytes>, reserve: Option<f64>) -> Result<Geometry, ResizeError> {
    let backing = Backing::open(path, false)?;
    if let Some(size) = size {
        let before = backing.length()?;
        let geometry = geometry_of(path)?;
        if size.get() < before {
            return Err(LogError::from(GeometryError::Shrunk { from: geometry.capacity() }).into());
        }
        // Fails before the file is changed.
        geometry.grown(size.get(), reserve).map_err(LogError::from)?;
        backing.grow(size.get())?;
    }
    Ok(grow(backing.medium()?, reserve)?)
}

/// The geometry of the log disk at `path`.
fn geometry_of(path: &Path) -> Result<Geometry, ResizeError> {
    let file = File::open(path).map_err(BackingError::file(path))?;
    let medium = FileMedium::new(file, false).map_err(BackingError::file(path))?;
    Ok(*Disk::open(medium, Running::default())?.geometry())
}
