//! A log disk that becomes larger, with its file or within its block device ([`resize`]).
//!
//! Not here: how the log grows (`lowtide_logdisk::resize`).

use super::place::failed;
use super::{FileMedium, Place, PlaceError};
use lowtide_core::Bytes;
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::format::Geometry;
use lowtide_logdisk::format::geometry::GeometryError;
use lowtide_logdisk::{Disk, LogError, resize::grow};
use std::fs::File;
use std::path::Path;

/// Why it cannot be made larger.
#[derive(Debug, thiserror::Error)]
pub enum ResizeError {
    /// The file or block device cannot be had.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The log cannot grow.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Makes a log disk larger: its file first, where a size is given; with another reserve, where one is. A block device has the size it
/// has, and may have become larger.
///
/// # Errors
/// [`ResizeError`]; where the log cannot be of that size, the file is as it was.
pub fn resize(path: &Path, size: Option<Bytes>, reserve: Option<f64>) -> Result<Geometry, ResizeError> {
    let place = Place::open(path, false)?;
    if let Some(size) = size {
        let before = place.length()?;
        let now = geometry_of(path)?;
        if size.get() < before {
            return Err(LogError::from(GeometryError::Shrunk { from: now.capacity() }).into());
        }
        // Before anything is changed.
        now.grown(size.get(), reserve).map_err(LogError::from)?;
        place.enlarge(size.get())?;
    }
    Ok(grow(place.medium()?, reserve)?)
}

/// The sizes of the log disk that is there, if it can be opened.
fn geometry_of(path: &Path) -> Result<Geometry, ResizeError> {
    let file = File::open(path).map_err(|source| failed(path, source))?;
    let medium = FileMedium::new(file, false).map_err(|source| failed(path, source))?;
    Ok(*Disk::open(medium, Running::default())?.geometry())
}
