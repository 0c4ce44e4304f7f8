//! Reading slots while the log continues ([`Reader`]).
//!
//! A slot may have been rewritten since its lookup. Its checksum and block then differ, and the block needs another
//! lookup. A slot that is older than its segment's current generation remains from a lost write, and counts as
//! damaged. Module `log` looks up blocks.

use crate::Medium;
use crate::error::LogError;
use crate::format::geometry::SLOTS_PER_FRAME;
use crate::format::slot::{HEADER, SLOT};
use crate::format::{BLOCK, Header, Kind, Lba, Seq, Slot, Superblock};
use crate::log::{Expected, Log};
use crate::scan;

/// The maximum number of slots in a read.
const AT_ONCE: usize = 64;

/// Reads and verifies slots.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    superblock: Superblock,
}

impl Reader {
    pub(crate) const fn new(superblock: Superblock) -> Reader {
        Reader { superblock }
    }

    /// Reads the payload of a slot. Returns false, and leaves `into` unchanged, if the slot is not the expected one.
    ///
    /// # Errors
    /// [`LogError::Medium`].
    pub fn read_slot(
        &self,
        medium: &impl Medium,
        expected: Expected,
        kind: Kind,
        lba: Lba,
        into: &mut [u8],
    ) -> Result<bool, LogError> {
        let (bytes, skip) = scan::read_around(medium, self.superblock.geometry.offset(expected.slot), SLOT)?;
        Ok(self.take(&bytes[skip..][..SLOT], expected.oldest, kind, lba, into))
    }

    /// Copies the payload from the bytes of a slot. Returns false if the slot is not the expected one.
    pub(crate) fn take(&self, slot: &[u8], oldest: Seq, kind: Kind, lba: Lba, into: &mut [u8]) -> bool {
        self.payload(slot, oldest, kind, lba).map(|payload| into.copy_from_slice(payload)).is_some()
    }

    fn payload<'a>(&self, slot: &'a [u8], oldest: Seq, kind: Kind, lba: Lba) -> Option<&'a [u8]> {
        let header = Header::open_since(self.superblock.salt, slot, oldest)?;
        (header.kind == kind && header.lba == lba).then(|| &slot[HEADER..])
    }

    /// Reads blocks of data; adjacent slots are read together. `take` gets each valid block with its index in
    /// `blocks`.
    ///
    /// # Errors
    /// [`LogError::Medium`].
    pub fn read_blocks(
        &self,
        medium: &impl Medium,
        blocks: &[(Expected, Lba)],
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<(), LogError> {
        let mut at = 0;
        while at < blocks.len() {
            let first = blocks[at].0.slot;
            let left_in_frame = (SLOTS_PER_FRAME - first.get() % SLOTS_PER_FRAME) as usize;
            let run = blocks[at..].iter().take(AT_ONCE.min(left_in_frame)).zip(first.get()..);
            let count = run.take_while(|((expected, _), next)| expected.slot.get() == *next).count();
            let (bytes, skip) =
                scan::read_around(medium, self.superblock.geometry.offset(first), count * SLOT)?;
            for (n, &(expected, lba)) in blocks[at..at + count].iter().enumerate() {
                let slot = &bytes[skip + n * SLOT..][..SLOT];
                if let Some(payload) = self.payload(slot, expected.oldest, Kind::Data, lba) {
                    take(at + n, payload);
                }
            }
            at += count;
        }
        Ok(())
    }
}

/// Loads pages of the map, in the order of their slots.
pub(crate) fn load_pages(medium: &impl Medium, log: &mut Log, pages: Vec<u32>) -> Result<(), LogError> {
    let mut places: Vec<(Slot, u32)> =
        pages.into_iter().filter_map(|page| Some((log.map().place(page)?, page))).collect();
    places.sort_unstable();
    for (slot, page) in places {
        if log.map().has(page) {
            continue;
        }
        let reader = Reader::new(*log.superblock());
        let mut payload = [0; BLOCK];
        let expected = log.expected(slot);
        let take = |bytes: &[u8], into: &mut [u8]| reader.take(bytes, expected.oldest, Kind::Map, page, into);
        let in_memory = log.in_memory(slot).is_some_and(|bytes| take(bytes, &mut payload));
        let read = in_memory || reader.read_slot(medium, expected, Kind::Map, page, &mut payload)?;
        if !read {
            log.count_bad();
        }
        log.map().load(page, read.then_some(&payload[..]));
    }
    Ok(())
}
