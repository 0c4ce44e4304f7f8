//! What is done beside the thread that owns a log disk: reading slots, flushing the medium and marking that ([`Beside`]).
//!
//! ```text
//!   LogDrive ── Read, Flush ──► threads ── Done ──► LogDrive, whose loop is rung
//! ```
//!
//! Not here: what is read and when is flushed (`drive`).

use super::Queue;
use lowtide_host::live::{Ring, Ticket};
use lowtide_logdisk::log::{Expected, Job};
use lowtide_logdisk::reader::Reader;
use lowtide_logdisk::{BLOCK, Lba, LogError, Medium};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

/// Threads that read: as many reads as a drive of today needs to be at work.
const READERS: usize = 16;

/// A block of a read that is to be had from the medium.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) expected: Expected,
    pub(super) lba: Lba,
    /// Where its bytes belong in the answer.
    pub(super) to: Range<usize>,
    /// The first of the block's bytes that are asked for.
    pub(super) within: usize,
}

/// A read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) ticket: Ticket,
    pub(super) data: Vec<u8>,
    /// What is to be read; afterwards what was not what it should be, and has to be looked up once more.
    pub(super) parts: Vec<Part>,
}

/// What was done.
#[derive(Debug)]
pub(super) enum Done {
    Read(Read, Result<(), LogError>),
    Flushed(io::Result<()>),
}

/// The threads.
#[derive(Debug)]
pub(super) struct Beside {
    reads: Option<Sender<Read>>,
    flushes: Option<Sender<Option<Job>>>,
    done: Receiver<Done>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    medium: Arc<Queue>,
    reader: Reader,
    /// Something was done since it was asked last.
    any: AtomicBool,
    ring: OnceLock<Ring>,
}

impl Shared {
    fn tell(&self, to: &Sender<Done>, done: Done) {
        let _ = to.send(done);
        // One ring is enough for all that is done before it is heard.
        if !self.any.swap(true, Ordering::SeqCst)
            && let Some(ring) = self.ring.get()
        {
            ring.ring();
        }
    }

    fn read(&self, read: &mut Read) -> Result<(), LogError> {
        let Read { data, parts, .. } = read;
        let blocks: Vec<(Expected, Lba)> = parts.iter().map(|part| (part.expected, part.lba)).collect();
        let mut whole = vec![false; parts.len()];
        self.reader.read_blocks(&*self.medium, &blocks, |n, block: &[u8]| {
            debug_assert_eq!(block.len(), BLOCK);
            let Part { to, within, .. } = &parts[n];
            data[to.clone()].copy_from_slice(&block[*within..][..to.len()]);
            whole[n] = true;
        })?;
        let mut whole = whole.into_iter();
        parts.retain(|_| !whole.next().unwrap_or(false));
        Ok(())
    }
}

impl Beside {
    /// Threads beside the owner of a log on this medium.
    ///
    /// # Errors
    /// Where the system has no more threads.
    pub(super) fn new(medium: Arc<Queue>, reader: Reader) -> io::Result<Beside> {
        let shared = Arc::new(Shared { medium, reader, any: AtomicBool::new(false), ring: OnceLock::new() });
        let (to, done) = channel();
        let (reads, wanted) = channel::<Read>();
        let (flushes, flush) = channel::<Option<Job>>();
        let wanted = Arc::new(Mutex::new(wanted));
        let mut threads = Vec::new();
        for _ in 0..READERS {
            let (shared, to, wanted) = (Arc::clone(&shared), to.clone(), Arc::clone(&wanted));
            let work = move || {
                loop {
                    let next = wanted.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(mut read) = next else { return };
                    let result = shared.read(&mut read);
                    shared.tell(&to, Done::Read(read, result));
                }
            };
            threads.push(std::thread::Builder::new().name("log reader".to_owned()).spawn(work)?);
        }
        let own = Arc::clone(&shared);
        let work = move || {
            while let Ok(mark) = flush.recv() {
                let mark = || mark.map_or(Ok(()), |it| own.medium.write_durably(it.offset, &it.data));
                let flushed = own.medium.flush().and_then(|()| mark());
                own.tell(&to, Done::Flushed(flushed));
            }
        };
        threads.push(std::thread::Builder::new().name("log flusher".to_owned()).spawn(work)?);
        Ok(Beside { reads: Some(reads), flushes: Some(flushes), done, shared, threads })
    }

    /// Has the loop woken by this when something is done.
    pub(super) fn ring_by(&self, ring: Ring) {
        let _ = self.shared.ring.set(ring);
    }
    pub(super) fn read(&self, read: Read) {
        // The threads end with this only.
        let _ = self.reads.as_ref().map(|reads| reads.send(read));
    }
    /// Flushes the medium, and makes a mark durable after that.
    pub(super) fn flush(&self, mark: Option<Job>) {
        let _ = self.flushes.as_ref().map(|flushes| flushes.send(mark));
    }
    /// Whether something was done.
    pub(super) fn is_done(&self) -> bool {
        self.shared.any.load(Ordering::Acquire)
    }
    /// What was done.
    pub(super) fn done(&self) -> impl Iterator<Item = Done> + '_ {
        // Before the first is looked for: what comes after it rings again.
        self.shared.any.swap(false, Ordering::SeqCst);
        self.done.try_iter()
    }
    /// Waits until something is done.
    pub(super) fn wait(&self) -> Option<Done> {
        self.done.recv().ok()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        (self.reads, self.flushes) = (None, None);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
