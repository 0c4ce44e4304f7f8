//! The payload of a slot of unmapped ranges: pairs of first block and number of blocks, ended by a number of 0.

use super::fields::{put_u32, u32_at};
use super::{BLOCK, FormatError, Lba};

/// The maximum number of ranges in a slot.
pub const RANGES: usize = BLOCK / 8;

/// Encodes up to [`RANGES`] non-empty ranges.
pub fn write(ranges: &[(Lba, u32)], payload: &mut [u8]) {
    assert!(ranges.len() <= RANGES && ranges.iter().all(|&(_, count)| count > 0), "ranges that fit");
    payload.fill(0);
    for (at, &(first, count)) in ranges.iter().enumerate() {
        put_u32(payload, at * 8, first);
        put_u32(payload, at * 8 + 4, count);
    }
}

/// Decodes the ranges of a log disk with `blocks`.
///
/// # Errors
/// [`FormatError::Value`] for a range past the end of the log disk.
pub fn read(payload: &[u8], blocks: u32) -> Result<Vec<(Lba, u32)>, FormatError> {
    let pairs = payload.chunks_exact(8).map(|pair| (u32_at(pair, 0), u32_at(pair, 4)));
    let mut all = 0;
    pairs
        .take_while(|&(_, count)| count > 0)
        .map(|(first, count)| {
            all += u64::from(count);
            let end = (u64::from(first) + u64::from(count)).max(all);
            let past = || FormatError::Value {
                what: "slot of unmapped ranges",
                name: "end",
                value: end,
                why: "past the end of the disk, or more than it has",
            };
            if end <= u64::from(blocks) { Ok((first, count)) } else { Err(past()) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_decoded_and_refused_past_the_end() {
        let mut payload = [1; BLOCK];
        for ranges in [vec![], vec![(0, 1)], (0..RANGES as u32).map(|n| (n, n + 1)).collect()] {
            write(&ranges, &mut payload);
            assert_eq!(read(&payload, 1 << 20).as_deref(), Ok(ranges.as_slice()));
        }
        assert!(read(&payload, 1000).is_err());
    }
}
