//! Extents: the mapping of the data under test to ranges on a device ([`Extents`]).
//!
//! The layout in the device crate chooses the ranges.

use crate::block::Request;

/// A contiguous piece of the data, `length` bytes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First byte within the data.
    pub data_offset: u64,
    /// First byte on the device.
    pub device_offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// The extents of the data, in order. They cover the data from byte 0 without gaps or overlaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extents(Vec<Extent>);

impl Extents {
    /// Creates the extents from `(device_offset, length)` pairs in the order of the data. Adjacent pieces are merged,
    /// and empty ones are dropped.
    pub fn new(pieces: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut extents: Vec<Extent> = Vec::new();
        let mut data_offset = 0;
        for (device_offset, length) in pieces.into_iter().filter(|(_, length)| *length > 0) {
            match extents.last_mut() {
                Some(last) if last.device_offset + last.length == device_offset => last.length += length,
                _ => extents.push(Extent { data_offset, device_offset, length }),
            }
            data_offset += length;
        }
        Extents(extents)
    }

    /// A single extent of `length` bytes at the beginning of the device.
    pub fn whole(length: u64) -> Self {
        Extents::new([(0, length)])
    }

    /// Length of the data in bytes.
    pub fn length(&self) -> u64 {
        self.0.last().map_or(0, |last| last.data_offset + last.length)
    }

    /// The extents, in the order of the data.
    pub fn pieces(&self) -> &[Extent] {
        &self.0
    }

    /// Splits a request at the boundaries of extents and calls `each` with every part, in device offsets.
    ///
    /// # Panics
    /// If there are no extents or the request reaches past the data.
    #[inline]
    pub fn split(&self, request: &Request, mut each: impl FnMut(Request)) {
        let mut index = if self.0.len() == 1 {
            0
        } else {
            self.0.partition_point(|extent| extent.data_offset <= request.offset).saturating_sub(1)
        };
        let (mut offset, mut left) = (request.offset, request.length);
        loop {
            let extent = &self.0[index];
            let within = offset - extent.data_offset;
            let length = left.min(extent.length - within);
            each(Request { offset: extent.device_offset + within, length, ..*request });
            left -= length;
            if left == 0 {
                return;
            }
            offset += length;
            index += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbours_join_and_a_crossing_request_splits() {
        let extents = Extents::new([(100, 50), (150, 50), (400, 100)]);
        assert_eq!(extents.pieces().len(), 2);
        let mut parts = Vec::new();
        extents.split(&Request::read(90, 20), |part| parts.push((part.offset, part.length)));
        assert_eq!(parts, [(190, 10), (400, 10)]);
    }

    proptest! {
        #[test]
        fn parts_cover_the_request(
            pieces in prop::collection::vec((0u64..1000, 1u64..50), 1..20), from in 0.0..1.0f64, share in 0.0..1.0f64,
        ) {
            let extents = Extents::new(pieces.iter().enumerate().map(|(n, (at, length))| (n as u64 * 2000 + at, *length)));
            let offset = (from * (extents.length() - 1) as f64) as u64;
            let length = 1 + (share * (extents.length() - offset - 1) as f64) as u64;
            let mut covered = 0;
            extents.split(&Request::write(offset, length), |part| covered += part.length);
            prop_assert_eq!(covered, length);
        }
    }
}
