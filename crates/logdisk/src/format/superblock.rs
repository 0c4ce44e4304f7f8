//! The superblock: identity, version and sizes ([`Superblock`]). Blocks 0 and 1 hold copies of it.
//!
//! ```text
//!    0  16 bytes  "lowtide log disk"
//!   16  u32       version
//!   20  u32       CRC-32C of the block, with these four bytes set to 0
//!   24  u32       frames of a segment
//!   28  u32       segments
//!   32  u32       capacity in blocks
//!   36  u32       salt of all other checksums
//!   40  u64       first byte of segment 0
//!   48  16 bytes  identity, random
//!   64            0
//! ```

use super::fields::{put_u32, put_u64, u32_at, u64_at};
use super::geometry::{FRAME, Geometry, SEGMENT_FRAMES, SPARE_SEGMENTS};
use super::{BLOCK, FormatError, VERSION, WITHOUT_MARKS};

const MAGIC: &[u8; 16] = b"lowtide log disk";
const CRC: usize = 20;

/// The superblock of a log disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Superblock {
    /// Sizes and positions.
    pub geometry: Geometry,
    /// The random identity.
    pub id: [u8; 16],
    /// The initial value of all other checksums, so that slots of another log are invalid.
    pub salt: u32,
}

impl Superblock {
    /// Encodes the superblock as a block.
    pub fn write(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        block[..16].copy_from_slice(MAGIC);
        put_u32(&mut block, 16, if self.geometry.marks { VERSION } else { WITHOUT_MARKS });
        put_u32(&mut block, 24, self.geometry.segment_frames);
        put_u32(&mut block, 28, self.geometry.segments);
        put_u32(&mut block, 32, self.geometry.blocks);
        put_u32(&mut block, 36, self.salt);
        put_u64(&mut block, 40, self.geometry.start);
        block[48..64].copy_from_slice(&self.id);
        let crc = crc32c::crc32c(&block);
        put_u32(&mut block, CRC, crc);
        block
    }

    /// Decodes a block of a medium of `bytes`.
    ///
    /// # Errors
    /// [`FormatError`] if it is not a superblock, of an unknown version, damaged, or of a larger medium.
    pub fn read(block: &[u8], bytes: u64) -> Result<Superblock, FormatError> {
        if block.len() < BLOCK || &block[..16] != MAGIC {
            return Err(FormatError::NotOurs);
        }
        // Checked before the checksum, which another version may store elsewhere.
        let version = u32_at(block, 16);
        if version != VERSION && version != WITHOUT_MARKS {
            return Err(FormatError::Version(version));
        }
        let mut plain = [0; BLOCK];
        plain.copy_from_slice(&block[..BLOCK]);
        put_u32(&mut plain, CRC, 0);
        if crc32c::crc32c(&plain) != u32_at(block, CRC) {
            return Err(FormatError::Checksum("superblock"));
        }
        let geometry = Geometry {
            segment_frames: u32_at(block, 24),
            segments: u32_at(block, 28),
            blocks: u32_at(block, 32),
            start: u64_at(block, 40),
            marks: version == VERSION,
        };
        let wrong = |name, value, why| Err(FormatError::Value { what: "superblock", name, value, why });
        if !SEGMENT_FRAMES.contains(&geometry.segment_frames) {
            return wrong("segment frames", geometry.segment_frames.into(), "1 to 64");
        }
        let slots = u64::from(geometry.segments) * u64::from(geometry.segment_slots());
        if geometry.segments <= SPARE_SEGMENTS || slots > u64::from(u32::MAX) {
            return wrong("segments", geometry.segments.into(), "too few, or more than addresses reach");
        }
        let data = u64::from(geometry.segments - SPARE_SEGMENTS) * u64::from(geometry.data_slots());
        if geometry.blocks == 0 || u64::from(geometry.blocks) > data {
            return wrong("blocks", geometry.blocks.into(), "none, or more than the segments hold");
        }
        if !geometry.start.is_multiple_of(FRAME) || geometry.needs() > geometry.checkpoint_bytes() {
            return wrong(
                "start",
                geometry.start,
                "a multiple of 1 MiB, with room for the checkpoints before it",
            );
        }
        match geometry.start.checked_add(u64::from(geometry.segments) * geometry.segment_bytes()) {
            Some(end) if end <= bytes => {}
            _ => return wrong("segments", geometry.segments.into(), "past the end of the medium"),
        }
        Ok(Superblock {
            geometry,
            id: block[48..64].try_into().expect("sixteen bytes"),
            salt: u32_at(block, 36),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Superblock {
        let geometry = Geometry::new(1 << 30, 4 << 20, 0.1).expect("it can be");
        Superblock { geometry, id: [3; 16], salt: 0xdead_beef }
    }

    #[test]
    fn a_superblock_is_decoded_as_encoded() {
        assert_eq!(Superblock::read(&example().write(), 1 << 30), Ok(example()));
    }

    #[test]
    fn invalid_superblocks_are_refused_with_the_reason() {
        let good = example().write();
        assert_eq!(Superblock::read(&[0; BLOCK], 1 << 30), Err(FormatError::NotOurs));
        let mut old = example();
        old.geometry.marks = false;
        assert_eq!(Superblock::read(&old.write(), 1 << 30), Ok(old), "version 2");
        let mut other = good;
        other[16] = 9;
        assert_eq!(Superblock::read(&other, 1 << 30), Err(FormatError::Version(9)));
        let mut rotten = good;
        rotten[100] ^= 1;
        assert_eq!(Superblock::read(&rotten, 1 << 30), Err(FormatError::Checksum("superblock")));
        let error = Superblock::read(&good, 1 << 29).expect_err("half a medium");
        assert!(error.to_string().contains("past the end of the medium"), "{error}");
        let mut odd = example();
        odd.geometry.blocks = u32::MAX;
        assert!(matches!(
            Superblock::read(&odd.write(), 1 << 30),
            Err(FormatError::Value { name: "blocks", .. })
        ));
    }
}
