//! The data that lowtide writes: incompressible random bytes, with a stamp in each 4 KiB page.
//!
//! The stamp is the page's offset in the test data and a number that never repeats in a run. It defeats
//! deduplication, and tests use it to check that data reached its offset. Refreshing a buffer costs two stores per
//! page. There are no checksums, because lowtide measures drives and does not verify them.

use lowtide_core::rng::Rng;
use rand_xoshiro::rand_core::RngCore;

/// Bytes between stamps.
pub(crate) const PAGE: usize = 4096;

/// Fills `buffer` with random bytes.
pub(crate) fn randomise(buffer: &mut [u8], rng: &mut Rng) {
    rng.fill_bytes(buffer);
}

/// Stamps each page of `buffer`, which will be written at `offset` of the test data, with its offset and `number`.
#[inline]
pub(crate) fn stamp(buffer: &mut [u8], offset: u64, number: u64) {
    for (page, bytes) in buffer.chunks_mut(PAGE).enumerate() {
        if let Some(head) = bytes.first_chunk_mut::<16>() {
            let at = offset + (page * PAGE) as u64;
            head[..8].copy_from_slice(&at.to_le_bytes());
            head[8..].copy_from_slice(&number.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;

    #[test]
    fn every_page_has_its_stamp_and_its_other_bytes_stay_random() {
        let mut buffer = vec![0; 3 * PAGE];
        randomise(&mut buffer, &mut Seed::new(1).stream());
        let before = buffer.clone();
        stamp(&mut buffer, 8192, 7);
        for page in 0..3 {
            let head = &buffer[page * PAGE..];
            assert_eq!(u64::from_le_bytes(head[..8].try_into().unwrap()), 8192 + (page * PAGE) as u64);
            assert_eq!(u64::from_le_bytes(head[8..16].try_into().unwrap()), 7);
            assert_eq!(head[16..PAGE], before[page * PAGE + 16..(page + 1) * PAGE]);
        }
    }
}
