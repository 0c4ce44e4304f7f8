//! A log disk that becomes larger, with its file or within its block device ([`resize`]).
//!
//! Leaves out how the log grows (`lowtide_logdisk::resize`).

use super::{Place, PlaceError};
use lowtide_core::Bytes;
use lowtide_logdisk::format::Geometry;
use lowtide_logdisk::format::geometry::GeometryError;
use lowtide_logdisk::{LogError, resize::grow};
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
    let before = match size {
        Some(size) => {
            let before = place.enlarge(size.get())?;
            if size.get() < before {
                return Err(LogError::from(GeometryError::Shrunk { from: before }).into());
            }
            Some(before)
        }
        None => None,
    };
    let file = place.same_file()?;
    let grown = grow(place.medium()?, reserve);
    if let (Err(LogError::Geometry(_)), Some(before)) = (&grown, before) {
        file.set_len(before).map_err(|source| PlaceError::File { path: path.to_owned(), source })?;
    }
    Ok(grown?)
}
