//! The io_uring engine: one ring, one set of registered buffers and `depth` requests in flight per thread.
//!
//! Each iteration submits the due requests, [`BATCH`] per system call, of which the last also waits for a completion.
//! It then reads the clock once, and takes all completions.
//!
//! # Not supported
//! Polled completions (IOPOLL) and kernel-side submission (SQPOLL), which need reserved devices and cores.

#![allow(unsafe_code)]

use super::buffer::Buffers;
use super::schedule::Schedule;
use super::worker::{GRACE, Issued, Shared, ThreadSummary, Worker};
use crate::pattern;
use io_uring::types::{Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use lowtide_core::Op;
use lowtide_core::workload::Sync;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// The longest wait for a completion, which limits the delay at the end of the measurement.
const WAKE_NS: u64 = 50_000_000;

/// Requests per system call. The kernel notifies a device at the end of a batch, so large batches leave the device
/// idle meanwhile. Compared with batches of 64 at depth 64 on a virtio disk, batches of 4 gave 13 % more requests per
/// second and a 13 % shorter median latency for the same processor time. Batches of 1 gave no more and used a quarter
/// more processor time.
const BATCH: usize = 4;

/// The maximum number of requests in a ring.
pub(super) const DEPTH_MAX: u32 = 1 << 15;

/// Checks that this process can set up a suitable ring.
pub(super) fn probe() -> io::Result<()> {
    build(1).map(drop)
}

/// Sets up a ring with the cheapest form of completion that the kernel supports.
fn build(depth: u32) -> io::Result<IoUring> {
    let mut result = Err(io::Error::from_raw_os_error(libc::EINVAL));
    for level in (0..4).rev() {
        let mut builder = IoUring::builder();
        if level >= 1 {
            builder.setup_coop_taskrun(); // Linux 5.19
        }
        if level >= 2 {
            builder.setup_single_issuer().setup_defer_taskrun(); // Linux 6.1
        }
        if level >= 3 {
            builder.setup_no_sqarray(); // Linux 6.6
        }
        result = builder.build(depth);
        match &result {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            _ => break,
        }
    }
    let ring = result?;
    if !ring.params().is_feature_ext_arg() {
        // Waiting with a timeout needs Linux 5.11.
        return Err(io::Error::from(io::ErrorKind::Unsupported));
    }
    Ok(ring)
}

/// A ring and the buffers of its requests.
pub(super) struct Ring {
    ring: IoUring,
    buffers: ManuallyDrop<Buffers>,
    fixed_buffers: bool,
    in_flight: usize,
    /// Queued requests that are not submitted yet.
    queued: usize,
}

impl Ring {
    /// Sets up the ring of a thread, on that thread. Returns it with a note on what the kernel refused.
    pub(super) fn new(shared: &Shared, thread: u32) -> io::Result<(Ring, Option<String>)> {
        let workload = &shared.workload;
        let ring = build(workload.depth)?;
        let buffers = shared.buffers(workload.depth, thread)?;
        let descriptors: Vec<_> = shared.files.files.iter().map(AsRawFd::as_raw_fd).collect();
        ring.submitter().register_files(&descriptors)?;
        // SAFETY: the memory outlives the ring: `drop` frees it after the ring, or leaks it.
        let registered = unsafe { ring.submitter().register_buffers(&[buffers.memory()]) };
        // Saves a descriptor lookup in each call; Linux 5.18 and later.
        let _ = ring.submitter().register_ring_fd();
        let note = registered
            .as_ref()
            .err()
            .map(|error| format!("buffers are not registered with io_uring: {error}"));
        let ring = Ring {
            ring,
            buffers: ManuallyDrop::new(buffers),
            fixed_buffers: registered.is_ok(),
            in_flight: 0,
            queued: 0,
        };
        Ok((ring, note))
    }

    /// Queues a request in an unused `slot`, and submits a complete batch.
    #[inline]
    fn push(&mut self, slot: usize, issued: &Issued) -> io::Result<()> {
        let file = Fixed(issued.file);
        let (length, offset) = (issued.length, issued.offset);
        let entry: squeue::Entry = match issued.op {
            Op::Read => {
                let to = self.buffers.read_ptr(slot);
                if self.fixed_buffers {
                    opcode::ReadFixed::new(file, to, length, 0).offset(offset).build()
                } else {
                    opcode::Read::new(file, to, length).offset(offset).build()
                }
            }
            Op::Write { fua } => {
                let piece = &mut self.buffers.write_piece(slot)[..length as usize];
                pattern::stamp(piece, issued.data_offset, issued.number);
                let from = self.buffers.write_ptr(slot);
                let flags = if fua { libc::RWF_DSYNC } else { 0 };
                if self.fixed_buffers {
                    opcode::WriteFixed::new(file, from, length, 0).offset(offset).rw_flags(flags).build()
                } else {
                    opcode::Write::new(file, from, length).offset(offset).rw_flags(flags).build()
                }
            }
            Op::Flush => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
            Op::Trim | Op::WriteZeroes => {
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                opcode::Fallocate::new(file, u64::from(length)).offset(offset).mode(mode).build()
            }
        };
        // SAFETY: no other request uses the entry's part of `buffers` until this one completes, and `drop` keeps it
        // mapped while requests are in flight. Registered files stay open.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) };
        assert!(pushed.is_ok(), "the ring has an entry for each slot");
        self.in_flight += 1;
        self.queued += 1;
        if self.queued < BATCH {
            return Ok(());
        }
        self.queued = 0;
        self.ring.submitter().submit().map(drop).or_else(ignore_transient)
    }

    /// Submits queued requests and waits up to `wait_ns` for a completion.
    #[inline]
    fn submit_and_wait(&mut self, wait_ns: u64) -> io::Result<()> {
        let timeout = Timespec::new().sec(wait_ns / 1_000_000_000).nsec((wait_ns % 1_000_000_000) as u32);
        self.queued = 0;
        let arguments = SubmitArgs::new().timespec(&timeout);
        self.ring.submitter().submit_with_args(1, &arguments).map(drop).or_else(ignore_transient)
    }

    /// Takes all completions: slot and result.
    #[inline]
    fn reap(&mut self, mut each: impl FnMut(usize, i32)) {
        let mut taken = 0;
        for entry in self.ring.completion() {
            each(entry.user_data() as usize, entry.result());
            taken += 1;
        }
        self.in_flight -= taken;
    }

    /// Waits for the requests in flight, at most [`GRACE`].
    fn drain(&mut self) -> io::Result<()> {
        let patience = Instant::now() + GRACE;
        while self.in_flight > 0 && Instant::now() < patience {
            self.submit_and_wait(Duration::from_millis(50).as_nanos() as u64)?;
            self.reap(|_, _| {});
        }
        Ok(())
    }
}

/// Ignores timeouts, signals and full completion queues. Requests that were not submitted stay queued.
fn ignore_transient(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(()),
        _ => Err(error),
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.in_flight == 0 {
            // The kernel frees a closed ring asynchronously. Until then it would keep the files open, and the space
            // of files that are removed next.
            let _ = self.ring.submitter().unregister_files();
            let _ = self.ring.submitter().unregister_buffers();
            // SAFETY: dropped once, here. No request uses the memory, and the kernel itself holds the pages of
            // registered memory. With requests in flight the memory is leaked, so that a late completion cannot write
            // to memory that was reused.
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
        }
    }
}

/// Runs one thread of the measurement.
pub(super) fn work(
    mut worker: Worker,
    mut ring: Ring,
    mut schedule: Option<Schedule>,
) -> io::Result<ThreadSummary> {
    let depth = worker.shared.workload.depth as usize;
    let flushes = worker.shared.workload.sync == Sync::Flush;
    let mut slots = vec![Issued::NONE; depth];
    // Writes that complete with their flush, and writes whose flush is not queued yet.
    let (mut flushing, mut to_flush) = (vec![false; depth], Vec::new());
    let mut free: Vec<u32> = (0..depth as u32).rev().collect();
    let mut now_ns = worker.now_ns();
    loop {
        while let Some(slot) = free.last().map(|slot| *slot as usize) {
            let start_ns = match &mut schedule {
                None => now_ns,
                Some(schedule) => match schedule.take_due(now_ns) {
                    Some(start_ns) => start_ns,
                    None => break,
                },
            };
            let Some(issued) = worker.next(start_ns) else { break };
            free.pop();
            slots[slot] = issued;
            ring.push(slot, &slots[slot])?;
        }
        let wait_ns = match &schedule {
            Some(schedule) if !free.is_empty() => schedule.peek().saturating_sub(now_ns).min(WAKE_NS),
            _ => WAKE_NS,
        };
        ring.submit_and_wait(wait_ns)?;
        now_ns = worker.now_ns();
        if !worker.pass(now_ns) {
            break;
        }
        ring.reap(|slot, result| {
            let issued = &slots[slot];
            let moved = issued.moves() as i32;
            if flushes && result == moved && matches!(issued.op, Op::Write { .. }) && !flushing[slot] {
                to_flush.push(slot);
                return;
            }
            let flushed = std::mem::take(&mut flushing[slot]) && result == 0;
            worker.complete(issued, now_ns, if flushed { moved } else { result });
            free.push(slot as u32);
        });
        for slot in to_flush.drain(..) {
            flushing[slot] = true;
            ring.push(slot, &Issued { op: Op::Flush, ..slots[slot] })?;
        }
    }
    let end_ns = worker.shared.end_ns();
    let unfinished = schedule.map_or(0, |mut schedule| schedule.overdue(end_ns) + ring.in_flight as u64);
    let summary = worker.finish(unfinished);
    ring.drain()?;
    Ok(summary)
}
