//! The metadata of the filesystem on the drive: names, lengths and blocks of all files, written to several slots in
//! rotation.
//!
//! The newest copy with a correct checksum is valid. The module `filesystem` chooses the times of writes.

use super::drive::{BLOCK, Drive};

/// The number of slots.
const SLOTS: u64 = 8;
/// Blocks per slot.
const SLOT: u64 = 10;
/// Blocks with metadata, at the beginning of the drive.
pub(super) const BLOCKS: u32 = (SLOTS * SLOT) as u32;
/// Bytes of the header: checksum, length of the list of files, sequence number.
const HEADER: usize = 16;

/// The blocks of a file, as runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Extents {
    /// Length of the file in bytes.
    pub(super) size: u64,
    /// First block and number of blocks. The first block of a hole is 0.
    runs: Vec<(u32, u32)>,
}

impl Extents {
    /// Builds extents from the block of each page, 0 for a hole.
    pub(super) fn of(size: u64, blocks: &[u32]) -> Extents {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for block in blocks {
            match runs.last_mut() {
                Some((0, count)) if *block == 0 => *count += 1,
                Some((first, count)) if *first != 0 && *first + *count == *block => *count += 1,
                _ => runs.push((*block, 1)),
            }
        }
        Extents { size, runs }
    }

    /// The block of each page.
    pub(super) fn blocks(&self) -> Vec<u32> {
        let run = |(first, count): &(u32, u32)| {
            let (first, step) = (*first, u32::from(*first != 0));
            (0..*count).map(move |n| first + n * step)
        };
        self.runs.iter().flat_map(run).collect()
    }
}

/// A copy of all metadata.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Metadata {
    /// The sequence number, from 1.
    pub(super) sequence: u64,
    /// The files by name.
    pub(super) files: Vec<(String, Extents)>,
}

/// Writes metadata without waiting.
pub(super) fn write(drive: &mut Drive, metadata: &Metadata, fua: bool) {
    let mut bytes = encode(metadata);
    bytes.resize(bytes.len().next_multiple_of(BLOCK as usize), 0);
    assert!(bytes.len() as u64 <= SLOT * BLOCK, "{} bytes of metadata", bytes.len());
    drive.write(metadata.sequence % SLOTS * SLOT * BLOCK, &bytes, fua);
}

/// Reads the newest metadata with a correct checksum; `None` if no copy is valid.
pub(super) fn find(drive: &mut Drive) -> Option<Metadata> {
    let mut newest: Option<Metadata> = None;
    for slot in 0..SLOTS {
        let offset = slot * SLOT * BLOCK;
        let mut bytes = drive.read(offset, BLOCK).to_vec();
        let length = HEADER as u64 + u64::from(u32_at(&bytes, 4)?);
        if length > SLOT * BLOCK {
            continue;
        }
        if length > BLOCK {
            let more = (length - BLOCK).next_multiple_of(BLOCK);
            bytes.extend_from_slice(drive.read(offset + BLOCK, more));
        }
        let metadata = decode(&bytes[..length as usize]);
        let best = newest.as_ref().map_or(0, |it| it.sequence);
        newest = metadata.filter(|it| it.sequence > best).or(newest);
    }
    newest
}

fn encode(metadata: &Metadata) -> Vec<u8> {
    let mut out = vec![0; HEADER];
    for (name, extents) in &metadata.files {
        put(&mut out, name.len() as u32);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&extents.size.to_le_bytes());
        put(&mut out, extents.runs.len() as u32);
        for (first, count) in &extents.runs {
            put(&mut out, *first);
            put(&mut out, *count);
        }
    }
    let length = (out.len() - HEADER) as u32;
    out[4..8].copy_from_slice(&length.to_le_bytes());
    out[8..16].copy_from_slice(&metadata.sequence.to_le_bytes());
    let sum = crc32c::crc32c(&out[4..]);
    out[..4].copy_from_slice(&sum.to_le_bytes());
    out
}

fn decode(bytes: &[u8]) -> Option<Metadata> {
    if u32_at(bytes, 0)? != crc32c::crc32c(bytes.get(4..)?) {
        return None;
    }
    let sequence = u64::from_le_bytes(bytes.get(8..HEADER)?.try_into().ok()?);
    let (mut rest, mut files) = (&bytes[HEADER..], Vec::new());
    while !rest.is_empty() {
        let length = take_u32(&mut rest)?;
        let name = String::from_utf8(take(&mut rest, length as usize)?.to_vec()).ok()?;
        let size = u64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?);
        let count = take_u32(&mut rest)?;
        let run = |_| Some((take_u32(&mut rest)?, take_u32(&mut rest)?));
        let runs = (0..count).map(run).collect::<Option<Vec<_>>>()?;
        files.push((name, Extents { size, runs }));
    }
    Some(Metadata { sequence, files })
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    rest.split_off(..count)
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    u32_at(take(rest, 4)?, 0)
}

fn put(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_reads_back_and_damage_is_detected() {
        let blocks = [vec![5, 6, 7, 0, 0, 9], vec![], vec![0, 3]];
        let named = |(number, blocks): (usize, &Vec<u32>)| {
            (format!("file-{number}"), Extents::of(number as u64 * 4_000, blocks))
        };
        let files: Vec<_> = blocks.iter().enumerate().map(named).collect();
        for ((_, extents), blocks) in files.iter().zip(&blocks) {
            assert_eq!(&extents.blocks(), blocks);
        }
        let metadata = Metadata { sequence: 77, files };
        let bytes = encode(&metadata);
        assert_eq!(decode(&bytes).as_ref(), Some(&metadata));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged), None, "byte {at}");
        }
    }
}
