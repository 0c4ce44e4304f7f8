//! The transport time of a request and its answer ([`transport_ns`]): system calls, copies, and two thread wake-ups.
//!
//! A client's latency includes the transport time, so a drive with a latency of 80 µs must answer that much earlier.
//! The measurement uses a drive with a latency, because threads that have slept take longer to wake.
//!
//! # Not measured
//! Networks: the transport time to another machine is unknown before a client connects from there.

use super::contents::Run;
use super::{Clock, Drive, Handle, Server, Ticket};
use crate::nbd::wire::command;
use crate::nbd::{Agreed, Export, NbdClient, Transport};
use lowtide_core::Request;
use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Size of the slow drive and of a request to it, in bytes.
pub(crate) const BLOCK: u32 = 4096;

/// Rounds of the measurement.
const ROUNDS: usize = 6;
/// Minimum length of a round.
const LEAST_TIME: Duration = Duration::from_millis(30);
/// Minimum number of requests in a round.
const LEAST_REQUESTS: usize = 20;

/// Latency of the slow drive.
const LATENCY_NS: u64 = 100_000;

/// A drive of one block that reads as zeroes.
struct SlowDrive {
    export: Export,
    waiting: VecDeque<(u64, Ticket)>,
}

impl Drive for SlowDrive {
    fn export(&self) -> &Export {
        &self.export
    }
    fn keeps_time(&self) -> bool {
        true
    }
    fn life(&self) -> u64 {
        0
    }
    fn submit(&mut self, now_ns: u64, ticket: Ticket, _: Request, _: &[u8]) {
        self.waiting.push_back((now_ns + LATENCY_NS, ticket));
    }
    fn next_due(&self) -> Option<u64> {
        self.waiting.front().map(|(due_ns, _)| *due_ns)
    }
    fn due(&mut self, now_ns: u64) -> Option<(Ticket, Result<(), i32>)> {
        let (_, ticket) = *self.waiting.front().filter(|(due_ns, _)| *due_ns <= now_ns)?;
        self.waiting.pop_front();
        Some((ticket, Ok(())))
    }
    fn read(&mut self, _: u64, into: &mut [u8]) -> Result<(), i32> {
        into.fill(0);
        Ok(())
    }
    fn run(&self, _: u64, length: u64) -> Result<Run, i32> {
        Ok(Run { length, allocated: true })
    }
}

/// A server of a drive of one block with a latency of [`LATENCY_NS`].
pub(crate) fn slow(clock: Clock) -> io::Result<(Server<impl Drive>, Handle<impl Drive>)> {
    let export = Export {
        name: String::new(),
        description: String::new(),
        size: u64::from(BLOCK),
        minimum_block: BLOCK,
        preferred_block: BLOCK,
        read_only: true,
        rotational: false,
    };
    Server::new(vec![SlowDrive { export, waiting: VecDeque::new() }], clock)
}

/// Returns the transport time in nanoseconds: the latency of `ask` beyond the slow drive's own. This is the median of
/// the fastest of several rounds.
///
/// While other programs keep the processors busy, every step takes twice as long, so the fastest rounds count. If the
/// transport time is too small, the drive answers late, which lowtide reports; if it is too large, the drive answers
/// too early.
pub(crate) fn measure(mut ask: impl FnMut() -> io::Result<()>) -> io::Result<u64> {
    let mut least = u64::MAX;
    for _ in 0..ROUNDS {
        let (begin, mut spans) = (Instant::now(), Vec::new());
        while spans.len() < LEAST_REQUESTS || begin.elapsed() < LEAST_TIME {
            let asked = Instant::now();
            ask()?;
            spans.push(asked.elapsed().as_nanos() as u64);
        }
        let middle = spans.len() / 2;
        least = least.min(*spans.select_nth_unstable(middle).1);
    }
    Ok(least.saturating_sub(LATENCY_NS))
}

/// Measures the transport time over a unix socket of this machine, in nanoseconds.
///
/// # Errors
/// If the system has no more sockets or threads.
pub fn transport_ns(clock: Clock) -> io::Result<u64> {
    let (server, handle) = slow(clock)?;
    let (ours, theirs) = UnixStream::pair()?;
    let agreed = Agreed { export: 0, structured: false, base_allocation: false, block_sizes: true };
    handle.serve(Transport::socket(theirs.into(), "the measuring client")?, agreed);
    let thread = std::thread::Builder::new().spawn(move || server.run())?;
    let mut client = NbdClient::begun(ours, u64::from(BLOCK));
    let mut data = [0; BLOCK as usize];
    let taken = measure(|| client.ask(command::READ, 0, 0, BLOCK, &mut data).map(drop));
    handle.stop();
    thread.join().map_err(|_| io::Error::other("the measuring thread failed"))?;
    taken
}
