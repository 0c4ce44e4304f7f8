//! The synchronous engine: pread(2) and pwrite(2), with one thread per request in flight.
//!
//! For kernels without io_uring, and for comparisons. It uses more processor time per request than io_uring.

use super::buffer::Buffers;
use super::schedule::Schedule;
use super::worker::{Issued, ThreadSummary, Worker};
use crate::pattern;
use lowtide_core::Op;
use lowtide_core::workload::Sync;
use rustix::fs::FallocateFlags;
use rustix::io::{ReadWriteFlags, pwritev2};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The longest sleep, which limits the delay at the end of the measurement.
const WAKE_NS: u64 = 20_000_000;

pub(super) const THREADS_MAX: u32 = 4096;

/// The schedule of an open loop. The workers of one thread of the workload share it.
pub(super) type SharedSchedule = Arc<Mutex<Schedule>>;

/// Runs one worker of the measurement.
pub(super) fn work(
    mut worker: Worker,
    mut buffers: Buffers,
    schedule: Option<SharedSchedule>,
) -> ThreadSummary {
    let shared = Arc::clone(&worker.shared);
    let flushes = shared.workload.sync == Sync::Flush;
    let mut now_ns = worker.now_ns();
    let mut lost = 0;
    while worker.pass(now_ns) {
        let mut issued = match &schedule {
            None => worker.next(now_ns),
            // The lock ensures that a worker takes the start and the request of the same entry of a trace.
            Some(schedule) => {
                let mut schedule = schedule.lock().unwrap_or_else(PoisonError::into_inner);
                worker.next(schedule.take())
            }
        };
        // After the last request of a trace, the worker waits for the end.
        let start_ns = issued.map_or(u64::MAX, |issued| issued.start_ns);
        if schedule.is_some() || issued.is_none() {
            now_ns = sleep_until(start_ns, &mut worker);
            // A gap during the sleep is not a gap during the request.
            issued = issued.map(|issued| worker.begun(issued));
            if !worker.pass(now_ns) {
                lost = u64::from(start_ns < shared.end_ns());
                break;
            }
        }
        let Some(issued) = issued else { continue };
        let file = &shared.files.files[issued.file as usize];
        let mut result = perform(file, &issued, &mut buffers);
        if flushes && result > 0 && matches!(issued.op, Op::Write { .. }) {
            let flush = Issued { op: Op::Flush, ..issued };
            result = match perform(file, &flush, &mut buffers) {
                0 => result,
                failed => failed,
            };
        }
        now_ns = worker.now_ns();
        if !worker.pass(now_ns) {
            // The request completed after the end.
            lost = u64::from(schedule.is_some());
            break;
        }
        worker.complete(&issued, now_ns, result);
    }
    let overdue = schedule.map_or(0, |schedule| {
        schedule.lock().unwrap_or_else(PoisonError::into_inner).overdue(shared.end_ns())
    });
    worker.finish(overdue + lost)
}

/// Sleeps until `at_ns` or the end of the measurement, and returns the time.
fn sleep_until(at_ns: u64, worker: &mut Worker) -> u64 {
    loop {
        let now_ns = worker.now_ns();
        if now_ns >= at_ns || !worker.pass(now_ns) {
            return now_ns;
        }
        std::thread::sleep(Duration::from_nanos((at_ns - now_ns).min(WAKE_NS)));
    }
}

/// Carries out a request. Returns the bytes moved, or a negated error number.
fn perform(file: &File, issued: &Issued, buffers: &mut Buffers) -> i32 {
    loop {
        let length = issued.length as usize;
        let moved = match issued.op {
            Op::Read => file.read_at(&mut buffers.read_piece(0)[..length], issued.offset),
            Op::Write { fua } => {
                let piece = &mut buffers.write_piece(0)[..length];
                pattern::stamp(piece, issued.data_offset, issued.number);
                if fua {
                    let pieces = [io::IoSlice::new(piece)];
                    pwritev2(file, &pieces, issued.offset, ReadWriteFlags::DSYNC).map_err(io::Error::from)
                } else {
                    file.write_at(piece, issued.offset)
                }
            }
            Op::Flush => file.sync_data().map(|()| 0),
            Op::Trim | Op::WriteZeroes => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let punched = rustix::fs::fallocate(file, flags, issued.offset, u64::from(issued.length));
                punched.map(|()| 0).map_err(io::Error::from)
            }
        };
        match moved {
            Ok(bytes) => return bytes as i32,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return -error.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}
