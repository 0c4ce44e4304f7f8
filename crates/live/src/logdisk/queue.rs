//! A medium whose writes are done by other threads, several at a time, and what is read soon is read ahead ([`Queue`]).
//!
//! What was taken is read only once it is written, and a flush waits for all that was taken before it. A write or a flush that fails is
//! told with the next write, and with every flush from then on: the system tells it once. Where a write failed nothing is read any more. Not here: the order of writes; a medium has none between flushes.

use super::FileMedium;
use lowtide_logdisk::{Aligned, Medium};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Threads: writes that are under way at a time, so that the drive is at work while the next one is prepared; and one that reads ahead
/// when the others write.
const THREADS: usize = 5;

/// Reads ahead that are under way at a time: with more of them, reads of the host's wait in the drive.
const AHEAD_UNDER_WAY: usize = 1;

/// Reads ahead that are kept; the oldest go first.
const AHEAD: usize = 64;

/// Bytes that may wait to be written.
const MOST_BYTES: usize = 32 << 20;

/// A medium with threads that write.
#[derive(Debug)]
pub struct Queue {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    file: FileMedium,
    state: Mutex<State>,
    /// There is something to be written, or the end has come.
    work: Condvar,
    /// Something was written.
    done: Condvar,
    /// One flush at a time: what one is told of counts for the next.
    flushing: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Write>,
    /// What will be read soon.
    ahead: VecDeque<Ahead>,
    under_way: Vec<Place>,
    /// The number of the next write.
    next: u64,
    /// Bytes that wait.
    bytes: usize,
    failed: Option<(io::ErrorKind, String)>,
    /// Where writes failed: nobody knows what is there.
    unknown: Vec<Place>,
    ended: bool,
}

#[derive(Debug)]
struct Write {
    place: Place,
    data: Aligned,
}

/// Something that is read before it is asked for.
#[derive(Debug)]
struct Ahead {
    place: Place,
    read: Reading,
}

#[derive(Debug)]
enum Reading {
    Waits,
    UnderWay,
    /// `None` where it could not be read, and whoever asks for it tries again.
    Here(Option<Aligned>),
}

/// Where a write or a read goes, and its number.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: u64,
    length: u64,
    number: u64,
}

impl Place {
    fn is_over(&self, offset: u64, length: u64) -> bool {
        self.offset < offset + length && offset < self.offset + self.length
    }
}

impl State {
    fn places(&self) -> impl Iterator<Item = &Place> {
        self.under_way.iter().chain(self.waiting.iter().map(|write| &write.place))
    }
    /// What is to be read ahead now.
    fn next_ahead(&mut self) -> Option<Place> {
        let under_way = self.ahead.iter().filter(|it| matches!(it.read, Reading::UnderWay)).count();
        let waits = |it: &&mut Ahead| matches!(it.read, Reading::Waits);
        let next = self.ahead.iter_mut().find(waits).filter(|_| under_way < AHEAD_UNDER_WAY)?;
        next.read = Reading::UnderWay;
        Some(next.place)
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
    /// Waits until no write is left of which this is so.
    fn wait_for<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        which: impl Fn(&Place) -> bool,
    ) -> MutexGuard<'a, State> {
        while state.places().any(&which) {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// Writes and reads ahead until the end.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            let may_write = state.under_way.len() + AHEAD_UNDER_WAY < THREADS;
            if may_write && let Some(write) = state.waiting.pop_front() {
                state = self.write(state, write);
            } else if let Some(place) = state.next_ahead() {
                state = self.read_ahead(state, place);
            } else if state.ended {
                return;
            } else {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn write<'a>(&'a self, mut state: MutexGuard<'a, State>, write: Write) -> MutexGuard<'a, State> {
        let Write { place, data } = write;
        state.under_way.push(place);
        drop(state);
        let result = self.file.write(place.offset, &data);
        state = self.lock();
        state.bytes -= data.len();
        state.under_way.retain(|other| other.number != place.number);
        if let Err(error) = result {
            state.failed.get_or_insert((error.kind(), error.to_string()));
            state.unknown.push(place);
        }
        self.done.notify_all();
        state
    }

    fn read_ahead<'a>(&'a self, state: MutexGuard<'a, State>, place: Place) -> MutexGuard<'a, State> {
        drop(state);
        let mut bytes = Aligned::zeroes(place.length as usize);
        let read = self.file.read(place.offset, &mut bytes);
        let mut state = self.lock();
        // It is gone where the place was written meanwhile.
        if let Some(ahead) = state.ahead.iter_mut().find(|it| it.place.number == place.number) {
            ahead.read = Reading::Here(read.is_ok().then_some(bytes));
        }
        self.done.notify_all();
        state
    }

    /// What was read ahead of exactly these bytes, once it is there.
    fn taken_ahead(&self, offset: u64, length: usize) -> Option<Aligned> {
        let mut state = self.lock();
        loop {
            let same = |it: &Ahead| it.place.offset == offset && it.place.length == length as u64;
            let at = state.ahead.iter().position(same)?;
            if !matches!(state.ahead[at].read, Reading::UnderWay) {
                return match state.ahead.remove(at)?.read {
                    Reading::Here(bytes) => bytes,
                    Reading::Waits | Reading::UnderWay => None,
                };
            }
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Queue {
    /// Threads that write to a file.
    ///
    /// # Errors
    /// Where the system has no more threads.
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
    /// What was taken is written.
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
        if let Some(bytes) = self.shared.taken_ahead(offset, into.len()) {
            into.copy_from_slice(&bytes);
            return Ok(());
        }
        let length = into.len() as u64;
        let state = self.shared.wait_for(self.shared.lock(), |it| it.is_over(offset, length));
        // What was there before would be old data.
        if state.unknown.iter().any(|it| it.is_over(offset, length)) {
            return state.result();
        }
        drop(state);
        self.shared.file.read(offset, into)
    }
    fn will_read(&self, offset: u64, length: usize) {
        let mut state = self.shared.lock();
        // What is still to be written is read when it is needed.
        if state.places().chain(&state.unknown).any(|it| it.is_over(offset, length as u64)) {
            return;
        }
        let place = Place { offset, length: length as u64, number: state.next };
        state.next += 1;
        if state.ahead.len() >= AHEAD {
            state.ahead.pop_front();
        }
        state.ahead.push_back(Ahead { place, read: Reading::Waits });
        drop(state);
        self.shared.work.notify_one();
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_owned(offset, Aligned::copy_of(data))
    }
    fn write_owned(&self, offset: u64, data: Aligned) -> io::Result<()> {
        let mut state = self.shared.lock();
        while state.bytes > MOST_BYTES {
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.result()?;
        let length = data.len() as u64;
        // Two writes of the same place come in their order.
        state = self.shared.wait_for(state, |it| it.is_over(offset, length));
        state.ahead.retain(|it| !it.place.is_over(offset, length));
        let place = Place { offset, length, number: state.next };
        state.next += 1;
        state.bytes += data.len();
        state.waiting.push_back(Write { place, data });
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
        self.shared.file.flush().inspect_err(|error| {
            self.shared.lock().failed.get_or_insert((error.kind(), error.to_string()));
        })
    }
    fn write_durably(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let length = data.len() as u64;
        let mut state = self.shared.wait_for(self.shared.lock(), |it| it.is_over(offset, length));
        state.result()?;
        state.ahead.retain(|it| !it.place.is_over(offset, length));
        let number = state.next;
        state.next += 1;
        drop(state);
        // It may be told of what another write lost.
        let _alone = self.shared.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.file.write_durably(offset, data).inspect_err(|error| {
            let mut state = self.shared.lock();
            state.failed.get_or_insert((error.kind(), error.to_string()));
            state.unknown.push(Place { offset, length, number });
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
    fn what_was_taken_is_read_as_it_was_written_last() {
        let (_folder, queue) = queue(1 << 20, true);
        for round in 0..200u64 {
            let offset = round % 8 * 4096;
            queue.write(offset, &[round as u8; 4096]).expect("taken");
            let mut block = [0; 4096];
            queue.read(offset, &mut block).expect("read");
            assert_eq!(block, [round as u8; 4096]);
        }
        queue.flush().expect("flushed");
    }

    #[test]
    fn what_was_read_ahead_is_as_it_was_written_last() {
        let (_folder, queue) = queue(1 << 20, true);
        let mut block = [0; 8192];
        for round in 1..200u64 {
            let offset = round % 8 * 8192;
            queue.write(offset, &[round as u8; 8192]).expect("taken");
            queue.will_read(offset, 8192);
            if round % 3 == 0 {
                // Written to while it is read ahead.
                queue.write(offset + 4096, &[!(round as u8); 4096]).expect("taken");
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
    fn a_write_that_failed_is_told_by_every_flush_after_it() {
        let (_folder, queue) = queue(1 << 20, false);
        queue.write(0, &[1; 4096]).expect("taken: nobody knows yet");
        for _ in 0..3 {
            assert!(queue.flush().is_err());
        }
        assert!(queue.write(0, &[1; 4096]).is_err(), "nothing is taken any more");
        assert!(queue.write_durably(0, &[1; 4096]).is_err(), "nor at once");
        assert!(queue.read(0, &mut [0; 4096]).is_err(), "what was there before is old");
        assert!(queue.read(4096, &mut [0; 4096]).is_ok());
    }
}
