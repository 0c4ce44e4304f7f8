//! A file of stamped blocks ([`Stamps`]): written at random, synced from time to time, and verified after a power
//! cut.
//!
//! Each block contains its number and its version. One thread writes, and waits for each write. Of the unsynced
//! writes, a prefix must survive a cut, and no block may be torn.

use lowtide_core::Seed;
use lowtide_engines::tpcc::random::Random;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Scope;

pub const BLOCK: usize = 4096;

/// Maximum number of writes between two syncs.
const UNSYNCED: u32 = 1024;
/// Blocks in one request of the initial writes and of the verification.
const RUN: usize = 16;

/// The file, and the ledger of its writes.
pub struct Stamps {
    path: PathBuf,
    /// The synced version of each block.
    durable: Vec<u64>,
    /// Writes since the last sync, in order: block and version.
    later: Vec<(u32, u64)>,
    /// Number of writes synced since the last verification.
    synced: u64,
}

/// The bytes of a version of a block.
fn stamp(block: u32, version: u64) -> [u8; BLOCK] {
    let mut bytes = [0; BLOCK];
    let mut word = (u64::from(block) << 40) ^ version;
    for (n, chunk) in bytes.chunks_exact_mut(8).enumerate() {
        let value = match n % 64 {
            // Repeated in each sector.
            0 => u64::from(block),
            1 => version,
            _ => {
                word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                word
            }
        };
        chunk.copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

/// A buffer aligned for direct I/O.
struct Aligned {
    memory: Vec<u8>,
    skip: usize,
}

impl Aligned {
    fn new() -> Aligned {
        let memory = vec![0; (RUN + 1) * BLOCK];
        let skip = memory.as_ptr().align_offset(BLOCK);
        Aligned { memory, skip }
    }
    fn blocks(&mut self, count: usize) -> &mut [u8] {
        &mut self.memory[self.skip..][..count * BLOCK]
    }
}

fn open(path: &Path) -> File {
    let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
    OpenOptions::new().read(true).write(true).custom_flags(direct).open(path).expect("opened")
}

impl Stamps {
    /// Makes and syncs a file, written once in order and then once at random, so that the free space of the log disk
    /// is fragmented.
    pub fn make(path: &Path, blocks: u32, seed: Seed) -> Stamps {
        let mut all = Stamps { path: path.to_owned(), durable: Vec::new(), later: Vec::new(), synced: 0 };
        all.durable = vec![0; blocks as usize];
        File::create(path).expect("made");
        let (file, mut memory, mut random) = (open(path), Aligned::new(), Random::new(seed));
        let runs = blocks / RUN as u32;
        let again = (0..runs).map(|_| random.between(0, runs - 1));
        for run in (0..blocks.div_ceil(RUN as u32)).chain(again) {
            let first = run as usize * RUN;
            let versions = all.durable.iter_mut().enumerate().skip(first).take(RUN);
            let bytes: Vec<u8> = versions
                .flat_map(|(block, version)| {
                    *version += 1;
                    stamp(block as u32, *version)
                })
                .collect();
            let count = bytes.len() / BLOCK;
            memory.blocks(count).copy_from_slice(&bytes);
            file.write_all_at(memory.blocks(count), (first * BLOCK) as u64).expect("written");
        }
        file.sync_all().expect("synced");
        all
    }

    /// Writes blocks at random on a thread until a write fails; returns the counter of synced writes.
    pub fn write<'scope>(
        &'scope mut self,
        scope: &'scope Scope<'scope, '_>,
        seed: Seed,
        over: &'scope AtomicBool,
    ) -> Arc<AtomicU64> {
        let synced = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&synced);
        let mut random = Random::new(seed.part("stamps", 0));
        let file = open(&self.path);
        scope.spawn(move || {
            let mut memory = Aligned::new();
            while !over.load(Ordering::Relaxed) {
                for _ in 0..random.between(1, UNSYNCED) {
                    let block = random.between(0, self.durable.len() as u32 - 1);
                    let before = self.later.iter().rev().find(|(later, _)| *later == block);
                    let version = 1 + before.map_or(self.durable[block as usize], |(_, version)| *version);
                    memory.blocks(1).copy_from_slice(&stamp(block, version));
                    // The write is recorded before it is made, because even a failed write may reach the medium.
                    self.later.push((block, version));
                    if file.write_all_at(memory.blocks(1), u64::from(block) * BLOCK as u64).is_err() {
                        return;
                    }
                }
                if file.sync_data().is_err() {
                    return;
                }
                self.synced += self.later.len() as u64;
                synced.store(self.synced, Ordering::Relaxed);
                for (block, version) in self.later.drain(..) {
                    self.durable[block as usize] = version;
                }
            }
        });
        counter
    }

    /// Verifies every block against the ledger; returns the number of writes synced since the last verification.
    pub fn verify(&mut self) -> u64 {
        let (file, mut memory) = (open(&self.path), Aligned::new());
        let mut found = Vec::with_capacity(self.durable.len());
        for (run, durable) in self.durable.chunks(RUN).enumerate() {
            let first = run * RUN;
            file.read_exact_at(memory.blocks(durable.len()), (first * BLOCK) as u64).expect("read");
            let bytes = memory.blocks(durable.len()).chunks(BLOCK);
            for (block, (bytes, durable)) in (first..).zip(bytes.zip(durable)) {
                let version = u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes"));
                assert!(bytes == stamp(block as u32, version), "block {block} is torn or misplaced");
                assert!(version >= *durable, "block {block}: version {durable} was synced, {version} found");
                found.push(version);
            }
        }
        let survived = |(block, version): &(u32, u64)| found[*block as usize] >= *version;
        let first = self.later.iter().take_while(|write| survived(write)).count();
        let (lost, later) = self.later.split_at(first);
        let gap = later.iter().find(|write| survived(write));
        assert_eq!(gap, None, "{} of {} writes survived, and a later one", lost.len(), self.later.len());
        let newest = |block: usize| self.later.iter().rev().find(|it| it.0 as usize == block).map(|it| it.1);
        for (block, version) in found.iter().enumerate() {
            let most = newest(block).unwrap_or(self.durable[block]);
            assert!(*version <= most, "block {block}: {version} was never written, {most} was");
        }
        self.durable = found;
        self.later.clear();
        std::mem::take(&mut self.synced)
    }
}
