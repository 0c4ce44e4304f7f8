//! The null engine, which completes every request at once: it measures the overhead that all engines share.
//!
//! That overhead is drawing requests, stamping data, histograms and intervals. Like [`super::uring`], the engine
//! reads the clock once per batch of `depth` requests. Neither the kernel nor a device takes part.

use super::buffer::Buffers;
use super::schedule::Schedule;
use super::worker::{Issued, ThreadSummary, Worker};
use crate::pattern;
use lowtide_core::Op;
use std::time::Duration;

/// Runs one thread of the measurement.
pub(super) fn work(
    mut worker: Worker,
    mut buffers: Buffers,
    mut schedule: Option<Schedule>,
) -> ThreadSummary {
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
    let overdue = schedule.map_or(0, |mut schedule| schedule.overdue(worker.shared.end_ns()));
    worker.finish(overdue)
}
