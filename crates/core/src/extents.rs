//! Extents: where the data under test lies on a device.
//!
//! Offsets into the data are mapped to offsets on the device, piece by piece. Leaves out how the pieces were
//! chosen: that is the layout's work.

use crate::block::Request;

/// A piece of the data: `length` bytes at `data_offset` lie at `device_offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First byte within the data.
    pub data_offset: u64,
    /// First byte on the device.
    pub device_offset: u64,
    /// Bytes.
    pub length: u64,
}

/// The pieces of the data in order; they cover it without gap or overlap, from byte 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extents(Vec<Extent>);

impl Extents {
    /// Pieces of the given `(device_offset, length)`, in the order of the data; neighbours are joined.
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

    /// All data in one piece from the beginning of the device.
    pub fn whole(length: u64) -> Self {
        Extents::new([(0, length)])
    }

    /// Bytes of data.
    pub fn length(&self) -> u64 {
        self.0.last().map_or(0, |last| last.data_offset + last.length)
    }

    /// The pieces.
    pub fn pieces(&self) -> &[Extent] {
        &self.0
    }

    /// Calls `each` with the parts of a request on the device: one, unless it crosses from one piece to the
    /// next.
    ///
    /// # Panics
    /// Where the request reaches past the data.
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
