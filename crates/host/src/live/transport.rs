//! What a request and its answer take on their way ([`transport_ns`], [`through_device_ns`]): system calls, copies, and
//! threads that wake.
//!
//! A client measures it too, so a drive that is to take 80 µs must be answered that much earlier. It is measured with a drive
//! that takes a while, because threads that have just slept wake differently. Leaves out networks: the
//! way to another machine is not known before somebody comes from there.

use super::contents::Run;
use super::{Clock, Drive, Server, Ticket};
use crate::nbd::wire::command;
use crate::nbd::{Agreed, Export, NbdClient, Transport};
use crate::region::Region;
use lowtide_core::Request;
use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const BLOCK: u32 = 4096;

/// How long it is measured, and how often at least.
const LONG_ENOUGH: Duration = Duration::from_millis(100);
const OFTEN_ENOUGH: usize = 100;

/// How long the drive takes while the way is measured, in nanoseconds.
pub const TAKES_NS: u64 = 100_000;

/// Answers after a while, with nothing.
struct Empty {
    export: Export,
    waiting: VecDeque<(u64, Ticket)>,
}

impl Drive for Empty {
    fn export(&self) -> &Export {
        &self.export
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
        self.waiting.pop_front_if(|(due_ns, _)| *due_ns <= now_ns).map(|(_, ticket)| (ticket, Ok(())))
    }
    fn read(&mut self, _: u64, into: &mut [u8]) -> Result<(), i32> {
        into.fill(0);
        Ok(())
    }
    fn run(&self, _: u64, length: u64) -> Result<Run, i32> {
        Ok(Run { length, allocated: true })
    }
}

/// Nanoseconds from reading a block device to its data, without the [`TAKES_NS`] that its drive takes meanwhile: the median.
///
/// # Errors
/// What the device says.
pub fn through_device_ns(path: &Path) -> io::Result<u64> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)?;
    let mut memory = Region::new(BLOCK as usize)?;
    median_ns(|| file.read_exact_at(&mut memory.bytes()[..BLOCK as usize], 0))
}

/// The median time of something that takes [`TAKES_NS`] and its way.
fn median_ns(mut ask: impl FnMut() -> io::Result<()>) -> io::Result<u64> {
    let (begin, mut spans) = (Instant::now(), Vec::new());
    while spans.len() < OFTEN_ENOUGH || begin.elapsed() < LONG_ENOUGH {
        let asked = Instant::now();
        ask()?;
        spans.push(asked.elapsed().as_nanos() as u64);
    }
    let middle = spans.len() / 2;
    Ok(spans.select_nth_unstable(middle).1.saturating_sub(TAKES_NS))
}

/// Nanoseconds from asking a drive, over a unix socket of this machine, to its answer, without what the drive takes: the
/// median.
///
/// # Errors
/// Where there are no sockets or threads to be had.
pub fn transport_ns(clock: Clock) -> io::Result<u64> {
    let export = Export {
        name: String::new(),
        description: String::new(),
        size: u64::from(BLOCK),
        minimum_block: BLOCK,
        preferred_block: BLOCK,
        read_only: true,
        rotational: false,
    };
    let (server, handle) = Server::new(vec![Empty { export, waiting: VecDeque::new() }], clock)?;
    let (ours, theirs) = UnixStream::pair()?;
    let agreed = Agreed { export: 0, structured: false, base_allocation: false };
    handle.serve(Transport::socket(theirs.into(), "the measuring client")?, agreed);
    let thread = std::thread::Builder::new().spawn(move || server.run())?;
    let mut client = NbdClient::begun(ours, u64::from(BLOCK));
    let mut data = [0; BLOCK as usize];
    let found = median_ns(|| client.ask(command::READ, 0, 0, BLOCK, &mut data).map(drop));
    handle.stop();
    thread.join().map_err(|_| io::Error::other("the measuring thread failed"))?;
    found
}
