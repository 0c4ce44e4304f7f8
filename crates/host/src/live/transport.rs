//! What a request and its answer take on their way ([`transport_ns`]): system calls, copies, and two threads that wake.
//!
//! A client measures it too, so a drive that is to take 80 µs must be answered that much earlier. It is measured with a drive
//! that takes a while, because threads that have just slept wake differently. Not here: networks; the
//! way to another machine is not known before somebody comes from there.

use super::contents::Run;
use super::{Clock, Drive, Handle, Server, Ticket};
use crate::nbd::wire::command;
use crate::nbd::{Agreed, Export, NbdClient, Transport};
use lowtide_core::Request;
use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Bytes of the slow drive and of a request to it.
pub(crate) const BLOCK: u32 = 4096;

/// Rounds of measuring; how long each lasts, and how many requests it has at least.
const ROUNDS: usize = 6;
const LONG_ENOUGH: Duration = Duration::from_millis(30);
const OFTEN_ENOUGH: usize = 20;

/// How long the drive takes.
const TAKES_NS: u64 = 100_000;

/// Answers after a while, with nothing.
struct Empty {
    export: Export,
    waiting: VecDeque<(u64, Ticket)>,
}

impl Drive for Empty {
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
        self.waiting.push_back((now_ns + TAKES_NS, ticket));
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

/// A loop that serves a drive of one block which answers after [`TAKES_NS`].
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
    Server::new(vec![Empty { export, waiting: VecDeque::new() }], clock)
}

/// How much longer than the slow drive takes a request to it does, in nanoseconds: the median of the quickest of several
/// rounds. `ask` asks once.
///
/// While other programs keep the processors busy, everything takes twice as long; what is taken off then would be missing
/// later, and drives that are too fast are worse than drives that are late.
pub(crate) fn measure(mut ask: impl FnMut() -> io::Result<()>) -> io::Result<u64> {
    let mut least = u64::MAX;
    for _ in 0..ROUNDS {
        let (begin, mut spans) = (Instant::now(), Vec::new());
        while spans.len() < OFTEN_ENOUGH || begin.elapsed() < LONG_ENOUGH {
            let asked = Instant::now();
            ask()?;
            spans.push(asked.elapsed().as_nanos() as u64);
        }
        let middle = spans.len() / 2;
        least = least.min(*spans.select_nth_unstable(middle).1);
    }
    Ok(least.saturating_sub(TAKES_NS))
}

/// Nanoseconds from asking a drive, over a unix socket of this machine, to its answer, without what the drive takes: the
/// median.
///
/// # Errors
/// Where there are no sockets or threads to be had.
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
