//! The plain engine: pread and pwrite, one thread per request in flight.
//!
//! For kernels without io_uring, and to compare. Costs more processor time per request. Not here:
//! preadv2's flags.

use super::buffer::Buffers;
use super::schedule::Schedule;
use super::worker::{Done, Issued, Shared, Worker};
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

/// The longest sleep: the end of the measurement is noticed at least this often.
const WAKE_NS: u64 = 20_000_000;

/// Threads that the engine starts at most.
pub(super) const THREADS_MAX: u32 = 4096;

/// The schedule of an open loop, shared by the workers that stand for one thread of the workload: whoever is
/// free takes the next start.
pub(super) type Turns = Arc<Mutex<Schedule>>;

/// Memory for one request of worker `worker`.
pub(super) fn buffers(shared: &Shared, worker: u32) -> io::Result<Buffers> {
    let workload = &shared.workload;
    let seed = shared.seed.part("write-data", u64::from(worker));
    Buffers::new(1, workload.block.get() as usize, workload.read_share > 0.0, !workload.reads_only(), seed)
}

/// Runs one worker's part of the measurement.
pub(super) fn work(mut worker: Worker, mut buffers: Buffers, turns: Option<Turns>) -> Done {
    let shared = Arc::clone(&worker.shared);
    let flushes = shared.workload.sync == Sync::Flush;
    let mut now_ns = worker.now_ns();
    let mut lost = 0;
    while worker.pass(now_ns) {
        let mut issued = match &turns {
            None => worker.next(now_ns),
            // The start and the request of a trace belong together.
            Some(turns) => {
                let mut schedule = turns.lock().unwrap_or_else(PoisonError::into_inner);
                worker.next(schedule.take())
            }
        };
        // After the last request of a trace there is only the end to wait for.
        let start_ns = issued.map_or(u64::MAX, |issued| issued.start_ns);
        if turns.is_some() || issued.is_none() {
            now_ns = sleep_until(start_ns, &mut worker);
            // A gap during the sleep is not a gap during the request.
            issued = issued.map(|issued| worker.begun(issued));
            if !worker.pass(now_ns) {
                lost = u64::from(start_ns < end_ns(&shared));
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
            // It completed after the end.
            lost = u64::from(turns.is_some());
            break;
        }
        worker.complete(&issued, now_ns, result);
    }
    let overdue = turns
        .map_or(0, |turns| turns.lock().unwrap_or_else(PoisonError::into_inner).overdue(end_ns(&shared)));
    worker.finish(overdue + lost)
}

fn end_ns(shared: &Shared) -> u64 {
    shared.end_ns.load(std::sync::atomic::Ordering::Relaxed)
}

/// Sleeps until `at_ns` or the end of the measurement; the time then.
fn sleep_until(at_ns: u64, worker: &mut Worker) -> u64 {
    loop {
        let now_ns = worker.now_ns();
        if now_ns >= at_ns || !worker.pass(now_ns) {
            return now_ns;
        }
        std::thread::sleep(Duration::from_nanos((at_ns - now_ns).min(WAKE_NS)));
    }
}

/// Bytes moved, or a negated error number.
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
