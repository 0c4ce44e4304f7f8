//! Writes of the InnoDB engine: page batches, doublewrite buffer, syncs of data files, redo log.

use super::*;

impl Engine<'_, '_> {
    /// The checkpoint age: bytes of redo that recovery would need.
    pub(super) fn age(&self) -> u64 {
        let oldest = self.pool.oldest_dirty().map_or(u64::MAX, |(_, at)| at);
        let oldest = self.batch.as_ref().map_or(oldest, |batch| oldest.min(batch.oldest));
        self.redo.lsn().saturating_sub(oldest)
    }

    /// Flushes pages regardless of `io_capacity` if the checkpoint age is above a limit.
    pub(super) fn flush_for_age(&mut self) {
        let age = self.age();
        let past = |limit: u64| age.saturating_sub(limit);
        let full = 2 * past(self.redo.sync_limit());
        let by = full.max(past(self.redo.async_limit()));
        if by > 0 {
            let until = self.redo.lsn() - age + by;
            self.cleaner.flush_until(&self.pool, until + 1);
        }
    }

    pub(super) fn tick(&mut self) -> Result<(), DeviceError> {
        self.time.at(self.time.now_ns + TENTH, Event::Tick);
        self.tenth += 1;
        let (lsn, age) = (self.redo.lsn(), self.age());
        let (async_limit, capacity) = (self.redo.async_limit(), self.redo.capacity());
        self.cleaner.tick(&self.pool, self.tenth, lsn, age, async_limit, capacity);
        self.flush_for_age();
        self.free_ahead();
        self.write_pages()?;
        if self.tenth.is_multiple_of(10) {
            if self.model.durability != Durability::Full {
                self.write_log()?;
            }
            self.merge()?;
        }
        self.resume_frame_waiters()?;
        self.resume_age_waiters()
    }

    /// Reads pages to merge their change-buffer entries: a twentieth of `io_capacity`, as InnoDB's master thread does
    /// every second.
    pub(super) fn merge(&mut self) -> Result<(), DeviceError> {
        let count = (self.model.io_capacity / 20).max(1) as usize;
        let pages: Vec<Page> = self.buffered.entries.keys().copied().take(count).collect();
        for page in pages {
            if matches!(self.pool.find(page), Lookup::Absent)
                && self.frame_waiters.is_empty()
                && self.has_frame()
                && let Some(frame) = self.pool.take(page, true)
            {
                self.read(page, MERGE | Tag::from(frame))?;
            }
        }
        Ok(())
    }

    /// Starts the next batch of dirty pages, unless one is being written.
    pub(super) fn write_pages(&mut self) -> Result<(), DeviceError> {
        if self.batch.is_some() {
            return Ok(());
        }
        let Some(batch) = self.cleaner.next_batch(&mut self.pool) else { return Ok(()) };
        self.latch.take(self.time.now_ns, 0, self.cleaner.take_scanned());
        let pages = batch.frames.len() as u64;
        self.batch = Some(batch);
        if !self.model.doublewrite {
            return self.write_runs();
        }
        self.ask(Request::write(self.system.offset, pages * PAGE), self.system.device, DOUBLEWRITE)
    }

    /// Submits writes of the batch until the maximum number is in flight.
    pub(super) fn write_runs(&mut self) -> Result<(), DeviceError> {
        loop {
            let most = self.model.writes;
            let batch = self.batch.as_mut().expect("a batch is being written");
            if batch.in_flight >= most || batch.next == batch.runs.len() {
                return Ok(());
            }
            let (first, count) = batch.runs[batch.next];
            batch.next += 1;
            batch.in_flight += 1;
            let (device, offset) = self.place(first);
            self.ask(Request::write(offset, u64::from(count) * PAGE), device, PAGES)?;
        }
    }

    /// Syncs the next data file. After the last file, the batch ends.
    pub(super) fn sync_next(&mut self) -> Result<(), DeviceError> {
        let batch = self.batch.as_mut().expect("a batch is being written");
        if batch.synced == FILES {
            return self.written();
        }
        batch.synced += 1;
        self.sync(JOURNAL)
    }

    /// Syncs a file: commits the filesystem's journal if the sync requires a commit, and flushes the drive.
    pub(super) fn sync(&mut self, file: Tag) -> Result<(), DeviceError> {
        match self.model.journal {
            true => self.commit_journal(file, 0),
            false => self.committed(file),
        }
    }

    /// Device of a file, and tag of the file's flush.
    pub(super) fn of_file(&self, file: Tag) -> (usize, Tag) {
        match file {
            JOURNAL => (self.time.storage.data.device, PAGES_FLUSH),
            LOG_JOURNAL => (self.time.storage.log.device, LOG_FLUSH),
            _ => (self.system.device, DOUBLEWRITE_FLUSH),
        }
    }

    /// Issues the next write of a journal commit.
    pub(super) fn commit_journal(&mut self, file: Tag, write: usize) -> Result<(), DeviceError> {
        let (device, _) = self.of_file(file);
        let next = self.journals[device].and_then(|journal| Some((journal, *journal.commit.get(write)?)));
        let Some((Journal { offset, length, .. }, bytes)) = next else { return self.committed(file) };
        let journaled = &mut self.journaled[device];
        if *journaled % length + bytes > length {
            *journaled = journaled.next_multiple_of(length);
        }
        let place = offset + *journaled % length;
        *journaled += bytes;
        self.ask(Request::write(place, bytes), device, file | write as Tag)
    }

    /// Flushes the drive after a journal commit, if barriers are on.
    pub(super) fn committed(&mut self, file: Tag) -> Result<(), DeviceError> {
        let (device, flush) = self.of_file(file);
        match self.model.barrier {
            true => self.ask(Request::flush(), device, flush),
            false => self.done(flush),
        }
    }

    /// Ends the current batch, whose pages are now durable.
    pub(super) fn written(&mut self) -> Result<(), DeviceError> {
        let batch = self.batch.take().expect("a batch was being written");
        for frame in &batch.frames {
            self.pool.written(*frame);
            if self.cleaner.take_evict(*frame) {
                self.pool.evict(*frame);
            }
        }
        let over = !self.cleaner.is_urgent();
        self.write_pages()?;
        if over {
            for terminal in std::mem::take(&mut self.margin_waiters) {
                self.go(terminal)?;
            }
        }
        self.resume_age_waiters()?;
        self.resume_frame_waiters()
    }

    /// Retries terminals that wait for a frame.
    pub(super) fn resume_frame_waiters(&mut self) -> Result<(), DeviceError> {
        for _ in 0..self.frame_waiters.len() {
            let Some(terminal) = self.frame_waiters.pop_front() else { break };
            self.fetch(terminal)?;
        }
        Ok(())
    }

    /// Resumes terminals that wait for space in the log.
    pub(super) fn resume_age_waiters(&mut self) -> Result<(), DeviceError> {
        while self.age() < self.redo.sync_limit()
            && let Some(terminal) = self.age_waiters.pop_front()
        {
            self.lock(terminal)?;
        }
        Ok(())
    }

    pub(super) fn write_log(&mut self) -> Result<(), DeviceError> {
        match self.redo.begin(self.time.storage.log.offset) {
            Some(request) => self.ask(request, self.time.storage.log.device, LOG),
            None => Ok(()),
        }
    }

    /// Completes a log write: ends the transactions that waited for it, and starts the next write if needed.
    pub(super) fn log_written(&mut self) -> Result<(), DeviceError> {
        let mut who = std::mem::take(&mut self.woken);
        self.redo.end(&mut who);
        for terminal in &who {
            self.end(*terminal)?;
        }
        self.woken = who;
        if self.redo.is_wanted() { self.write_log() } else { Ok(()) }
    }
}
