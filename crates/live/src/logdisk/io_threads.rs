//! The threads that read, flush and write marks for the owner of a log disk ([`IoThreads`]).
//!
//! ```text
//!   LogDrive ── Read, flush ──► threads ── Completed ──► LogDrive, whose server is woken
//! ```
//!
//! `drive` decides which blocks are read and when a flush is due.

use super::Queue;
use lowtide_host::Event;
use lowtide_host::live::Ticket;
use lowtide_logdisk::log::{Expected, Job};
use lowtide_logdisk::reader::Reader;
use lowtide_logdisk::{BLOCK, Lba, LogError, Medium};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

/// Number of reader threads: the queue depth at which current drives reach their maximum rate.
const READERS: usize = 16;

#[derive(Debug, Clone)]
pub(super) struct BlockRead {
    pub(super) expected: Expected,
    pub(super) lba: Lba,
    /// The block's range in the data of the read.
    pub(super) to: Range<usize>,
    /// Offset within the block.
    pub(super) within: usize,
}

#[derive(Debug)]
pub(super) struct Read {
    pub(super) ticket: Ticket,
    pub(super) data: Vec<u8>,
    /// The blocks to read. On completion, only the blocks that failed their checksum and need a second lookup.
    pub(super) blocks: Vec<BlockRead>,
}

#[derive(Debug)]
pub(super) enum Completed {
    Read(Read, Result<(), LogError>),
    Flush(io::Result<()>),
}

/// The I/O threads. They end when this is dropped.
#[derive(Debug)]
pub(super) struct IoThreads {
    reads: Option<Sender<Read>>,
    flushes: Option<Sender<Option<Job>>>,
    completed: Receiver<Completed>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    medium: Arc<Queue>,
    reader: Reader,
    /// Set if `completed` may not be empty.
    any: AtomicBool,
    waker: OnceLock<Event>,
}

impl Shared {
    fn complete(&self, to: &Sender<Completed>, completed: Completed) {
        let _ = to.send(completed);
        // One wake-up is enough, because the server then takes all completions.
        if !self.any.swap(true, Ordering::SeqCst)
            && let Some(waker) = self.waker.get()
        {
            waker.set();
        }
    }

    fn read(&self, read: &mut Read) -> Result<(), LogError> {
        let Read { data, blocks, .. } = read;
        let wanted: Vec<(Expected, Lba)> = blocks.iter().map(|it| (it.expected, it.lba)).collect();
        let mut valid = vec![false; blocks.len()];
        self.reader.read_blocks(&*self.medium, &wanted, |n, block: &[u8]| {
            debug_assert_eq!(block.len(), BLOCK);
            let BlockRead { to, within, .. } = &blocks[n];
            data[to.clone()].copy_from_slice(&block[*within..][..to.len()]);
            valid[n] = true;
        })?;
        let mut valid = valid.into_iter();
        blocks.retain(|_| !valid.next().unwrap_or(false));
        Ok(())
    }
}

impl IoThreads {
    /// Starts the threads.
    ///
    /// # Errors
    /// No more threads can be started.
    pub(super) fn new(medium: Arc<Queue>, reader: Reader) -> io::Result<IoThreads> {
        let shared = Shared { medium, reader, any: AtomicBool::new(false), waker: OnceLock::new() };
        let shared = Arc::new(shared);
        let (to, completed) = channel();
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
                    shared.complete(&to, Completed::Read(read, result));
                }
            };
            threads.push(std::thread::Builder::new().name("log reader".to_owned()).spawn(work)?);
        }
        let own = Arc::clone(&shared);
        let work = move || {
            while let Ok(mark) = flush.recv() {
                let mark = || mark.map_or(Ok(()), |it| own.medium.write_durably(it.offset, &it.data));
                let flushed = own.medium.flush().and_then(|()| mark());
                own.complete(&to, Completed::Flush(flushed));
            }
        };
        threads.push(std::thread::Builder::new().name("log flusher".to_owned()).spawn(work)?);
        Ok(IoThreads { reads: Some(reads), flushes: Some(flushes), completed, shared, threads })
    }

    /// Sets the event that is signalled by each completion.
    pub(super) fn set_waker(&self, waker: Event) {
        let _ = self.shared.waker.set(waker);
    }

    pub(super) fn read(&self, read: Read) {
        // Sending cannot fail, because the threads live as long as `self`.
        let _ = self.reads.as_ref().map(|reads| reads.send(read));
    }

    /// Flushes the medium, then writes a mark durably.
    pub(super) fn flush(&self, mark: Option<Job>) {
        let _ = self.flushes.as_ref().map(|flushes| flushes.send(mark));
    }

    /// Whether [`IoThreads::completed`] may return something.
    pub(super) fn has_completed(&self) -> bool {
        self.shared.any.load(Ordering::Acquire)
    }

    /// Takes the completed operations.
    pub(super) fn completed(&self) -> impl Iterator<Item = Completed> + '_ {
        // Cleared before the channel is read, so that a later completion wakes the server again.
        self.shared.any.swap(false, Ordering::SeqCst);
        self.completed.try_iter()
    }

    pub(super) fn wait(&self) -> Option<Completed> {
        self.completed.recv().ok()
    }
}

impl Drop for IoThreads {
    fn drop(&mut self) {
        (self.reads, self.flushes) = (None, None);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
