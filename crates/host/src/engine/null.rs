//! The null engine: every request completes at once, untouched. It measures what the other engines share: drawing
//! requests, stamping what is written, histograms, intervals.
//!
//! Works in batches of `depth` like [`super::uring`], which reads the clock once for each. Not here: the kernel and
//! every device; nothing real is measured with it.

use super::buffer::Buffers;
use super::schedule::Schedule;
use super::worker::{Done, Issued, Shared, Worker};
use crate::pattern;
use lowtide_core::Op;
use std::io;
use std::time::Duration;

/// The buffers of a thread, as for [`super::uring`].
pub(super) fn buffers(shared: &Shared, thread: u32) -> io::Result<Buffers> {
    let workload = &shared.workload;
    let (reads, writes) = (workload.read_share > 0.0, !workload.reads_only());
    let seed = shared.seed.part("write-data", u64::from(thread));
    Buffers::new(workload.depth as usize, workload.block.get() as usize, reads, writes, seed)
}

/// Runs one thread's part of the measurement.
pub(super) fn work(mut worker: Worker, mut buffers: Buffers, mut schedule: Option<Schedule>) -> Done {
    let depth = worker.shared.workload.depth as usize;
    let mut slots = vec![Issued::NONE; depth];
    let mut now_ns = worker.now_ns();
    loop {
        let mut in_flight = 0;
        while in_flight < depth {
            let start_ns = match &mut schedule {
                None => now_ns,
                Some(schedule) => match schedule.take_due(now_ns) {
                    Some(start_ns) => start_ns,
                    None => break,
                },
            };
            let Some(issued) = worker.next(start_ns) else { break };
            if let Op::Write { .. } = issued.op {
                let piece = &mut buffers.write_piece(in_flight)[..issued.length as usize];
                pattern::stamp(piece, issued.data_offset, issued.number);
            }
            slots[in_flight] = issued;
            in_flight += 1;
        }
        if let (0, Some(schedule)) = (in_flight, &schedule) {
            let wait_ns = schedule.peek().saturating_sub(now_ns).min(1_000_000);
            std::thread::sleep(Duration::from_nanos(wait_ns));
        }
        now_ns = worker.now_ns();
        if !worker.pass(now_ns) {
            break;
        }
        slots[..in_flight].iter().for_each(|issued| worker.complete(issued, now_ns, issued.moves() as i32));
    }
    let end_ns = worker.shared.end_ns.load(std::sync::atomic::Ordering::Relaxed);
    worker.finish(schedule.map_or(0, |mut schedule| schedule.overdue(end_ns)))
}
