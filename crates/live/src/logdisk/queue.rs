//! A medium that writes and reads ahead on its own threads ([`Queue`]).
//!
//! A read waits for the queued writes to its range, and a flush waits for all writes queued before it. After a write
//! or a flush has failed, the next write and all later flushes fail too, because the kernel reports an error only
//! once. If the write of a range failed, the range can no longer be read.
//!
//! # Not handled
//! The order of writes between two flushes. No medium guarantees one.

use super::FileMedium;
use lowtide_logdisk::{Aligned, Medium};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Number of threads: enough for writes to keep the drive busy while the next is prepared, and for one read-ahead.
const THREADS: usize = 5;

/// Maximum number of concurrent read-aheads. More would delay the host's reads in the drive.
const AHEAD_UNDER_WAY: usize = 1;

/// Maximum number of read-aheads that are kept. The oldest are dropped first.
const AHEAD: usize = 64;

/// Maximum number of queued bytes. Beyond it, writes wait.
const MOST_BYTES: usize = 32 << 20;

/// A medium with a write queue.
#[derive(Debug)]
pub struct Queue {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    file: FileMedium,
    state: Mutex<State>,
    /// Signals a new write, a new read-ahead, or the end.
    work: Condvar,
    /// Signals a completed write or read-ahead.
    done: Condvar,
    /// Held during a flush, because an error that one flush reports also applies to the next.
    flushing: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Write>,
    /// Read-aheads, oldest first.
    ahead: VecDeque<Ahead>,
    under_way: Vec<Extent>,
    next: u64,
    /// Number of bytes in `waiting` and `under_way`.
    bytes: usize,
    /// The first error.
    failed: Option<(io::ErrorKind, String)>,
    /// Extents whose write failed.
    unknown: Vec<Extent>,
    ended: bool,
}

#[derive(Debug)]
struct Write {
    extent: Extent,
    data: Aligned,
}

#[derive(Debug)]
struct Ahead {
    extent: Extent,
    state: AheadState,
}

#[derive(Debug)]
enum AheadState {
    Queued,
    UnderWay,
    /// `None` if the read failed; the reader then tries again.
    Complete(Option<Aligned>),
}

/// The range of a write or read, with its number in the queue.
#[derive(Debug, Clone, Copy)]
struct Extent {
    offset: u64,
    length: u64,
    number: u64,
}

impl Extent {
    fn overlaps(&self, offset: u64, length: u64) -> bool {
        self.offset < offset + length && offset < self.offset + self.length
    }
}

impl State {
    /// The extents of all writes that are not complete.
    fn extents(&self) -> impl Iterator<Item = &Extent> {
        self.under_way.iter().chain(self.waiting.iter().map(|write| &write.extent))
    }

    /// A range with the next number.
    fn extent(&mut self, offset: u64, length: usize) -> Extent {
        self.next += 1;
        Extent { offset, length: length as u64, number: self.next - 1 }
    }

    fn drop_ahead(&mut self, written: &Extent) {
        self.ahead.retain(|it| !it.extent.overlaps(written.offset, written.length));
    }

    fn next_ahead(&mut self) -> Option<Extent> {
        let under_way = self.ahead.iter().filter(|it| matches!(it.state, AheadState::UnderWay)).count();
        let queued = |it: &&mut Ahead| matches!(it.state, AheadState::Queued);
        let next = self.ahead.iter_mut().find(queued).filter(|_| under_way < AHEAD_UNDER_WAY)?;
        next.state = AheadState::UnderWay;
        Some(next.extent)
    }

    fn fail(&mut self, error: &io::Error) {
        self.failed.get_or_insert((error.kind(), error.to_string()));
    }

    fn result(&self) -> io::Result<()> {
        match &self.failed {
            None => Ok(()),
            Some((kind, what)) => Err(io::Error::new(*kind, what.clone())),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.done.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `which` is false for every incomplete write.
    fn wait_for<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        which: impl Fn(&Extent) -> bool,
    ) -> MutexGuard<'a, State> {
        while state.extents().any(&which) {
            state = self.wait(state);
        }
        state
    }

    /// Writes and reads ahead until the queue ends.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            let may_write = state.under_way.len() + AHEAD_UNDER_WAY < THREADS;
            if may_write && let Some(write) = state.waiting.pop_front() {
                state = self.write(state, write);
            } else if let Some(extent) = state.next_ahead() {
                state = self.read_ahead(state, extent);
            } else if state.ended {
                return;
            } else {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn write<'a>(&'a self, mut state: MutexGuard<'a, State>, write: Write) -> MutexGuard<'a, State> {
        let Write { extent, data } = write;
        state.under_way.push(extent);
        drop(state);
        let result = self.file.write(extent.offset, &data);
        state = self.lock();
        state.bytes -= data.len();
        state.under_way.retain(|other| other.number != extent.number);
        if let Err(error) = result {
            state.fail(&error);
            state.unknown.push(extent);
        }
        self.done.notify_all();
        state
    }

    fn read_ahead<'a>(&'a self, state: MutexGuard<'a, State>, extent: Extent) -> MutexGuard<'a, State> {
        drop(state);
        let mut bytes = Aligned::zeroes(extent.length as usize);
        let read = self.file.read(extent.offset, &mut bytes);
        let mut state = self.lock();
        // If the range was written in the meantime, the entry is gone.
        if let Some(ahead) = state.ahead.iter_mut().find(|it| it.extent.number == extent.number) {
            ahead.state = AheadState::Complete(read.is_ok().then_some(bytes));
        }
        self.done.notify_all();
        state
    }

    /// Takes the bytes of a read-ahead with exactly this range. Waits for the read-ahead if it is under way.
    fn take_ahead(&self, offset: u64, length: usize) -> Option<Aligned> {
        let mut state = self.lock();
        loop {
            let same = |it: &Ahead| it.extent.offset == offset && it.extent.length == length as u64;
            let at = state.ahead.iter().position(same)?;
            if !matches!(state.ahead[at].state, AheadState::UnderWay) {
                return match state.ahead.remove(at)?.state {
                    AheadState::Complete(bytes) => bytes,
                    AheadState::Queued | AheadState::UnderWay => None,
                };
            }
            state = self.wait(state);
        }
    }
}

impl Queue {
    /// Starts the threads.
    ///
    /// # Errors
    /// No more threads can be started.
    pub fn new(file: FileMedium) -> io::Result<Queue> {
        let shared = Arc::new(Shared {
            file,
            state: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
            flushing: Mutex::new(()),
        });
        let mut queue = Queue { shared, threads: Vec::new() };
        for _ in 0..THREADS {
            let shared = Arc::clone(&queue.shared);
            let thread = std::thread::Builder::new().name("log writer".to_owned());
            queue.threads.push(thread.spawn(move || shared.work())?);
        }
        Ok(queue)
    }
}

impl Drop for Queue {
    /// Completes all queued writes.
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Medium for Queue {
    fn bytes(&self) -> u64 {
        self.shared.file.bytes()
    }
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        if let Some(bytes) = self.shared.take_ahead(offset, into.len()) {
            into.copy_from_slice(&bytes);
            return Ok(());
        }
        let length = into.len() as u64;
        let state = self.shared.wait_for(self.shared.lock(), |it| it.overlaps(offset, length));
        // The write of newer data failed, so the medium holds older data there.
        if state.unknown.iter().any(|it| it.overlaps(offset, length)) {
            return state.result();
        }
        drop(state);
        self.shared.file.read(offset, into)
    }
    fn will_read(&self, offset: u64, length: usize) {
        let mut state = self.shared.lock();
        // A read-ahead now would return older data.
        if state.extents().chain(&state.unknown).any(|it| it.overlaps(offset, length as u64)) {
            return;
        }
        let extent = state.extent(offset, length);
        if state.ahead.len() >= AHEAD {
            state.ahead.pop_front();
        }
        state.ahead.push_back(Ahead { extent, state: AheadState::Queued });
        drop(state);
        self.shared.work.notify_one();
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_owned(offset, Aligned::copy_of(data))
    }
    fn write_owned(&self, offset: u64, data: Aligned) -> io::Result<()> {
        let mut state = self.shared.lock();
        while state.bytes > MOST_BYTES {
            state = self.shared.wait(state);
        }
        state.result()?;
        let length = data.len() as u64;
        // Overlapping writes keep their order.
        state = self.shared.wait_for(state, |it| it.overlaps(offset, length));
        let extent = state.extent(offset, data.len());
        state.drop_ahead(&extent);
        state.bytes += data.len();
        state.waiting.push_back(Write { extent, data });
        drop(state);
        self.shared.work.notify_one();
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        let state = self.shared.lock();
        let before = state.next;
        drop(self.shared.wait_for(state, |it| it.number < before));
        let _alone = self.shared.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.lock().result()?;
        self.shared.file.flush().inspect_err(|error| self.shared.lock().fail(error))
    }
    fn write_durably(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let length = data.len() as u64;
        let mut state = self.shared.wait_for(self.shared.lock(), |it| it.overlaps(offset, length));
        state.result()?;
        let extent = state.extent(offset, data.len());
        state.drop_ahead(&extent);
        drop(state);
        // The durable write may report the error of another write.
        let _alone = self.shared.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.file.write_durably(offset, data).inspect_err(|error| {
            let mut state = self.shared.lock();
            state.fail(error);
            state.unknown.push(extent);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn queue(bytes: u64, write: bool) -> (tempfile::TempDir, Queue) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("medium");
        File::create(&path).and_then(|file| file.set_len(bytes)).expect("made");
        let file = File::options().read(true).write(write).open(&path).expect("open");
        (folder, Queue::new(FileMedium::new(file, false).expect("a size")).expect("threads"))
    }

    #[test]
    fn a_read_returns_the_newest_queued_write() {
        let (_folder, queue) = queue(1 << 20, true);
        for round in 0..200u64 {
            let offset = round % 8 * 4096;
            queue.write(offset, &[round as u8; 4096]).expect("queued");
            let mut block = [0; 4096];
            queue.read(offset, &mut block).expect("read");
            assert_eq!(block, [round as u8; 4096]);
        }
        queue.flush().expect("flushed");
    }

    #[test]
    fn a_read_ahead_never_returns_older_data() {
        let (_folder, queue) = queue(1 << 20, true);
        let mut block = [0; 8192];
        for round in 1..200u64 {
            let offset = round % 8 * 8192;
            queue.write(offset, &[round as u8; 8192]).expect("queued");
            queue.will_read(offset, 8192);
            if round % 3 == 0 {
                // A write to the range during its read-ahead.
                queue.write(offset + 4096, &[!(round as u8); 4096]).expect("queued");
            }
            queue.read(offset, &mut block).expect("read");
            let second = if round % 3 == 0 { !(round as u8) } else { round as u8 };
            assert!(block[..4096] == [round as u8; 4096] && block[4096..] == [second; 4096], "round {round}");
            if round % 5 == 0 {
                queue.flush().expect("flushed");
                queue.will_read(offset, 8192);
            }
        }
    }

    #[test]
    fn a_failed_write_fails_every_later_flush() {
        let (_folder, queue) = queue(1 << 20, false);
        queue.write(0, &[1; 4096]).expect("queued: the error comes later");
        for _ in 0..3 {
            assert!(queue.flush().is_err());
        }
        assert!(queue.write(0, &[1; 4096]).is_err(), "no more writes are queued");
        assert!(queue.write_durably(0, &[1; 4096]).is_err(), "nor written durably");
        assert!(queue.read(0, &mut [0; 4096]).is_err(), "the medium holds older data");
        assert!(queue.read(4096, &mut [0; 4096]).is_ok());
    }
}
