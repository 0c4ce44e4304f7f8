//! The insert engine: connections take turns inserting at the right edge of the index. The log and the checkpoint
//! write in the background.

use super::allocation::Files;
use super::checkpoint::Dirty;
use super::log::LogWriter;
use super::{EXTENT, EXTENT_PAGES, Inserts, PAGE};
use lowtide_core::Control;
use lowtide_core::rng::{Rng, Seed, below};
use lowtide_core::storage::{Place, Requests, Storage};
use lowtide_core::{DeviceError, Request, Tag};
use lowtide_core::{Interval, Recorder};
use lowtide_core::{Nanos, VirtualTime};
use std::collections::VecDeque;

/// Bit that marks the tags of log writes. The tag of a data write is its number of bytes.
const LOG: Tag = 1 << 63;

/// A connection.
#[derive(Debug, Clone, Copy)]
struct Connection {
    rows_left: u64,
    uncommitted: u64,
    /// The file of the connection's current extent.
    file: Option<usize>,
    /// Time at which the connection began to wait for a turn or for the log.
    since_ns: u64,
}

/// Runs the inserts from `start` to the last commit and returns the end time. `each` receives every interval and can
/// stop the run early. At the end of a turn, each of its rows is counted as a write of one page.
///
/// # Errors
/// The first [`DeviceError`] of a write, which ends the run.
pub fn run(
    inserts: &Inserts,
    storage: Storage<'_>,
    seed: Seed,
    start: VirtualTime,
    interval: Nanos,
    each: &mut dyn FnMut(Interval) -> Control,
) -> Result<VirtualTime, DeviceError> {
    let start_ns = start.as_nanos();
    let connection = Connection { rows_left: inserts.rows, uncommitted: 0, file: None, since_ns: start_ns };
    let count = inserts.connections as usize;
    let mut engine = Engine {
        inserts,
        storage,
        in_flight: Requests::default(),
        files: Files::new(inserts.data_files),
        log: LogWriter::new(&inserts.log),
        dirty: Dirty::new(&inserts.checkpoint, inserts.data_files),
        changed: vec![0; inserts.data_files as usize],
        file_size: inserts.file_size().get(),
        connections: vec![connection; count],
        ready: (0..count).map(|connection| (start_ns, connection)).collect(),
        turn: None,
        edge_ns: start_ns,
        at_work: count,
        rng: seed.part("inserts", 0).stream(),
        released: Vec::new(),
    };
    let ended = engine.run(start_ns, Recorder::new(interval), each);
    // Drain after an error too, so that a later load finds no request in the queue.
    engine.storage.drain();
    ended.map(VirtualTime::from_nanos)
}

struct Engine<'a, 's> {
    inserts: &'a Inserts,
    storage: Storage<'s>,
    in_flight: Requests,
    files: Files,
    log: LogWriter,
    dirty: Dirty,
    /// Filled bytes of each file, in whole extents.
    changed: Vec<u64>,
    file_size: u64,
    connections: Vec<Connection>,
    /// Connections that wait for a turn, ordered by the time at which they are ready.
    ready: VecDeque<(u64, usize)>,
    /// The current turn: its end, connection, file and number of rows.
    turn: Option<(u64, usize, usize, u64)>,
    /// Time at which the right edge becomes free.
    edge_ns: u64,
    at_work: usize,
    rng: Rng,
    /// Reused buffer of the connections whose commit has completed.
    released: Vec<usize>,
}

impl Engine<'_, '_> {
    fn run(
        &mut self,
        start_ns: u64,
        mut recorder: Recorder,
        each: &mut dyn FnMut(Interval) -> Control,
    ) -> Result<u64, DeviceError> {
        let mut now_ns = start_ns;
        while self.at_work > 0 {
            self.begin_turn(now_ns);
            let turn_ns = self.turn.map_or(u64::MAX, |turn| turn.0);
            let done = self.in_flight.next_done(&mut self.storage, turn_ns)?;
            now_ns = done.map_or(turn_ns, |(at_ns, _)| at_ns);
            assert!(now_ns < u64::MAX, "an active connection waits for an event");
            let since_ns = now_ns - start_ns;
            if since_ns >= recorder.interval_end_ns() {
                let counters = self.storage.counters();
                while let Some(ended) = recorder.take_ended(since_ns, Some(counters)) {
                    if each(ended) == Control::Stop {
                        return self.drain(now_ns);
                    }
                }
            }
            match done {
                Some((_, tag)) => self.complete(now_ns, tag),
                None => self.end_turn(&mut recorder),
            }
            self.write(now_ns)?;
        }
        if let Some(last) = recorder.finish(now_ns - start_ns, Some(self.storage.counters())) {
            each(last);
        }
        self.drain(now_ns)
    }

    /// Starts a turn for the connection that was ready first.
    #[inline]
    fn begin_turn(&mut self, now_ns: u64) {
        if self.turn.is_some() || self.dirty.is_full() {
            return;
        }
        let Some((ready_ns, one)) = self.ready.pop_front() else { return };
        let connection = &mut self.connections[one];
        if let Some(file) = connection.file.take() {
            self.files.leave(file);
        }
        let (file, shared) = self.files.take();
        connection.file = Some(file);
        let rows = connection.rows_left.min(EXTENT_PAGES);
        let cost = &self.inserts.row;
        let row_ns = cost.insert.get() + if shared { cost.hand_off.get() } else { 0 };
        let begin_ns = self.edge_ns.max(ready_ns).max(now_ns);
        self.turn = Some((begin_ns + rows * row_ns, one, file, rows));
    }

    #[inline]
    fn end_turn(&mut self, recorder: &mut Recorder) {
        let Some((now_ns, one, file, rows)) = self.turn.take() else { return };
        self.edge_ns = now_ns;
        self.changed[file] += EXTENT;
        self.dirty.add(EXTENT);
        self.log.append(rows * self.inserts.row.log.get());
        let connection = &mut self.connections[one];
        recorder.record_writes(rows, PAGE, Nanos::new((now_ns - connection.since_ns) / rows));
        connection.since_ns = now_ns;
        connection.rows_left -= rows;
        connection.uncommitted += rows;
        if connection.uncommitted >= self.inserts.commit || connection.rows_left == 0 {
            connection.uncommitted = 0;
            if connection.rows_left == 0
                && let Some(file) = connection.file.take()
            {
                self.files.leave(file);
            }
            self.log.commit(one);
        } else {
            self.think(now_ns, one, rows);
        }
    }

    /// Schedules the next turn of a connection. Its preparation takes half to one and a half times the mean.
    #[inline]
    fn think(&mut self, now_ns: u64, one: usize, rows: u64) {
        let mean_ns = self.inserts.row.connection.get() * rows;
        let ready_ns = now_ns + mean_ns / 2 + below(&mut self.rng, mean_ns + 1);
        let mut place = self.ready.len();
        while place > 0 && self.ready[place - 1].0 > ready_ns {
            place -= 1;
        }
        self.ready.insert(place, (ready_ns, one));
    }

    #[inline]
    fn complete(&mut self, now_ns: u64, tag: Tag) {
        if tag & LOG == 0 {
            self.dirty.complete(tag);
            return;
        }
        let mut released = std::mem::take(&mut self.released);
        self.log.complete(tag & !LOG, &mut released);
        for one in released.drain(..) {
            if self.connections[one].rows_left == 0 {
                self.at_work -= 1;
            } else {
                self.think(now_ns, one, EXTENT_PAGES);
            }
        }
        self.released = released;
    }

    /// Submits all writes that are due.
    #[inline]
    fn write(&mut self, now_ns: u64) -> Result<(), DeviceError> {
        while let Some(write) = self.log.next_write() {
            let Place { device, offset } = self.storage.log;
            let request = Request::write(offset + write.offset, write.length);
            self.in_flight.begin(&mut self.storage, now_ns, device, &request, LOG | write.number)?;
        }
        while let Some(write) = self.dirty.next_write(&self.changed) {
            let Place { device, offset } = self.storage.data;
            let at = offset + write.file as u64 * self.file_size + write.offset;
            let request = Request::write(at, write.length);
            self.in_flight.begin(&mut self.storage, now_ns, device, &request, write.length)?;
        }
        Ok(())
    }

    /// Waits for all requests in flight. Returns `now_ns`.
    fn drain(&mut self, now_ns: u64) -> Result<u64, DeviceError> {
        while self.in_flight.next_done(&mut self.storage, u64::MAX)?.is_some() {}
        Ok(now_ns)
    }
}
