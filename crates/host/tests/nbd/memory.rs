//! The memory that all clients share: its limit, waiting clients, requests larger than the budget, and unaligned
//! requests.

use lowtide_core::rng::below;
use lowtide_core::{Bytes, Op, Request, Seed};
use lowtide_host::live::contents::{Memory, Run};
use lowtide_host::live::{Buffers, Clock, Contents, Drive, Handle, Server, Ticket, Usage};
use lowtide_host::nbd::request::Header;
use lowtide_host::nbd::wire::{STRUCTURED_REPLY_MAGIC, chunk, command, error, flag};
use lowtide_host::nbd::{Agreed, Export, NbdClient, Transport};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const SIZE: u64 = 64 << 20;
const LARGEST: u32 = 32 << 20;
const MIB: u32 = 1 << 20;

/// The pattern byte at an offset, so that a read can be checked without a write before it.
fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 | 1
}

/// A drive that answers at once. If `patterned`, unwritten bytes are [`byte_at`]. Reads that include byte `bad` fail.
struct Plain {
    export: Export,
    contents: Option<Contents>,
    bad: Option<u64>,
    done: VecDeque<(Ticket, Result<(), i32>)>,
    longest: u64,
}

impl Drive for Plain {
    fn export(&self) -> &Export {
        &self.export
    }
    fn life(&self) -> u64 {
        0
    }
    fn submit(&mut self, _: u64, ticket: Ticket, request: Request, data: &[u8]) {
        let Request { op, offset, length } = request;
        assert!(offset + length <= SIZE);
        self.longest = self.longest.max(length);
        let bad = self.bad.is_some_and(|bad| offset <= bad && bad < offset + length);
        match (op, &mut self.contents) {
            (Op::Write { .. }, Some(contents)) => contents.write(offset, data).expect("memory"),
            (Op::Trim | Op::WriteZeroes, Some(contents)) => contents.clear(offset, length).expect("memory"),
            _ => {}
        }
        let failed = bad && matches!(op, Op::Read | Op::Write { .. });
        self.done.push_back((ticket, if failed { Err(libc::EIO) } else { Ok(()) }));
    }
    fn next_due(&self) -> Option<u64> {
        (!self.done.is_empty()).then_some(0)
    }
    fn due(&mut self, _: u64) -> Option<(Ticket, Result<(), i32>)> {
        self.done.pop_front()
    }
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), i32> {
        match &self.contents {
            Some(contents) => contents.read(offset, into).map_err(|_| libc::EIO),
            None => {
                (offset..).zip(into).for_each(|(offset, byte)| *byte = byte_at(offset));
                Ok(())
            }
        }
    }
    fn run(&self, _: u64, length: u64) -> Result<Run, i32> {
        Ok(Run { length, allocated: true })
    }
}

struct Running {
    handle: Handle<Plain>,
    thread: JoinHandle<Vec<Plain>>,
}

impl Running {
    fn new(buffers: Buffers, empty: bool, bad: Option<u64>) -> Running {
        let export = Export {
            name: "plain".to_owned(),
            description: String::new(),
            size: SIZE,
            minimum_block: 512,
            preferred_block: 4096,
            read_only: false,
            rotational: false,
        };
        let contents = empty.then(|| Contents::Memory(Memory::new(SIZE).expect("small")));
        let drive = Plain { export, contents, bad, done: VecDeque::new(), longest: 0 };
        let (server, handle) = Server::new(vec![drive], Clock::new()).expect("a loop");
        let server = server.with_buffers(buffers);
        Running { handle, thread: std::thread::spawn(move || server.run()) }
    }

    fn raw(&self, structured: bool, block_sizes: bool) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        ours.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let agreed = Agreed { export: 0, structured, base_allocation: false, block_sizes };
        self.handle.serve(Transport::socket(theirs.into(), "a client").expect("a socket"), agreed);
        ours
    }

    fn client(&self) -> NbdClient<UnixStream> {
        NbdClient::begun(self.raw(false, true), SIZE)
    }

    fn wait_for(&self, what: &str, so: impl Fn(Usage) -> bool) -> Usage {
        let begin = Instant::now();
        loop {
            // The numbers are current after one iteration of the server loop.
            self.handle.call(|_, _| ()).expect("it runs");
            let usage = self.handle.usage();
            if so(usage) {
                return usage;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{what}: {usage:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn end(self) -> Plain {
        self.handle.stop();
        self.thread.join().expect("no panic").remove(0)
    }
}

/// The smallest accepted budget: only the bytes reserved for each client remain.
fn scarce() -> Buffers {
    Buffers::new(Some(Bytes::mib(64)), 128).expect("the least")
}

fn header(kind: u16, flags: u16, offset: u64, length: u32) -> [u8; 28] {
    Header { flags, kind, cookie: 7, offset, length }.bytes()
}

/// Symptom: 60 clients that sent reads and took no replies made the server hold 4.8 GB. Cause: each client had a
/// limit of its own, but there was no common limit. Fix: one budget for all clients.
#[test]
fn clients_that_take_nothing_hold_no_more_than_the_budget_and_others_are_served() {
    let server = Running::new(Buffers::default(), false, None);
    let mut mute: Vec<NbdClient<UnixStream>> = (0..128).map(|_| server.client()).collect();
    for client in &mut mute {
        client.send_reads((0..64).map(|n| n << 20), MIB).expect("sent");
    }
    let usage = server.wait_for("all wait", |usage| usage.waiting == 128);
    assert_eq!((usage.connected, usage.buffers_bytes), (128, 256 << 20));
    assert!(usage.buffers_used_bytes <= usage.buffers_bytes, "{usage:?}");
    let mut other = server.client();
    let mut spans = Vec::new();
    for n in 0..2000 {
        let (begin, offset) = (Instant::now(), n % 1000 * 4096);
        let mut data = [0; 4096];
        assert_eq!(other.ask(command::READ, 0, offset, 4096, &mut data).expect("an answer"), 0);
        spans.push(begin.elapsed());
        assert!((offset..).zip(data).all(|(offset, byte)| byte == byte_at(offset)));
    }
    spans.sort_unstable();
    println!("4 KiB reads beside them: p50 {:?}, p99 {:?}", spans[1000], spans[1980]);
    // Requests of the maximum length succeed too.
    let mut data = vec![0; LARGEST as usize];
    assert_eq!(other.ask(command::READ, 0, 0, LARGEST, &mut data).expect("an answer"), 0);
    assert!((0..).zip(&data).all(|(offset, byte)| *byte == byte_at(offset)));
    assert_eq!(other.ask(command::WRITE, 0, 0, LARGEST, &mut data).expect("an answer"), 0);
    // A client that resumes taking replies receives all of them.
    let mut data = vec![0; MIB as usize];
    for n in 0..64 {
        assert_eq!(mute[5].receive(&mut data).expect("an answer"), (n + 1, 0));
        assert!((n << 20..).zip(&data).all(|(offset, byte)| *byte == byte_at(offset)));
    }
    drop(mute);
    let usage = server.wait_for("all have left", |usage| usage.connected == 1);
    assert!(usage.buffers_used_bytes < 4 << 20, "what clients held is given back: {usage:?}");
    server.end();
}

#[test]
fn writes_that_never_come_to_an_end_hold_no_more_than_the_budget() {
    let server = Running::new(Buffers::default(), false, None);
    let stuck: Vec<UnixStream> = (0..128)
        .map(|_| {
            let mut stream = server.raw(false, true);
            stream.write_all(&header(command::WRITE, 0, 0, LARGEST)).expect("sent");
            stream.write_all(&[1; 100_000]).expect("sent");
            stream
        })
        .collect();
    let usage = server.wait_for("all are here", |usage| usage.connected == 128);
    assert!(usage.buffers_used_bytes <= usage.buffers_bytes, "{usage:?}");
    let mut other = server.client();
    let mut data = vec![3; LARGEST as usize];
    assert_eq!(other.ask(command::WRITE, 0, 0, LARGEST, &mut data).expect("an answer"), 0);
    drop(stuck);
    server.end();
}

#[test]
fn what_does_not_fit_is_carried_out_in_pieces() {
    let server = Running::new(scarce(), true, None);
    let mut client = server.client();
    let mut written: Vec<u8> = (0..u64::from(LARGEST)).map(byte_at).collect();
    let at = 512;
    assert_eq!(client.ask(command::WRITE, flag::FUA, at, LARGEST, &mut written).expect("an answer"), 0);
    let mut found = vec![0; LARGEST as usize];
    assert_eq!(client.ask(command::READ, 0, at, LARGEST, &mut found).expect("an answer"), 0);
    assert!(found == written);
    assert_eq!(client.ask(command::CACHE, 0, at, LARGEST, &mut []).expect("an answer"), 0);
    // Several large requests at once, with small ones among them, are answered one after another.
    for n in 0..20 {
        client.send_reads([at + n * 512], if n % 3 == 0 { 3 * MIB } else { 512 }).expect("sent");
    }
    for n in 0..20_usize {
        let length = if n % 3 == 0 { 3 << 20 } else { 512 };
        assert_eq!(client.receive(&mut found[..length]).expect("an answer").1, 0);
        assert!(found[..length] == written[n * 512..][..length], "read {n}");
    }
    // The reply has several chunks if the client accepts them, or one chunk with DF.
    for flags in [0, flag::DF] {
        let mut stream = server.raw(true, true);
        stream.write_all(&header(command::READ, flags, at, 5 * MIB)).expect("sent");
        let (mut found, mut chunks) = (vec![0; 5 << 20], 0);
        loop {
            let mut head = [0; 20];
            stream.read_exact(&mut head).expect("a chunk");
            let number =
                |from: usize, to: usize| head[from..to].iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
            assert_eq!(number(0, 4), u64::from(STRUCTURED_REPLY_MAGIC));
            assert_eq!((number(6, 8), number(8, 16)), (u64::from(chunk::OFFSET_DATA), 7));
            let mut place = [0; 8];
            stream.read_exact(&mut place).expect("a place");
            let from = (u64::from_be_bytes(place) - at) as usize;
            stream.read_exact(&mut found[from..][..number(16, 20) as usize - 8]).expect("data");
            chunks += 1;
            if number(4, 6) == u64::from(chunk::DONE) {
                break;
            }
        }
        assert!(found == written[..5 << 20]);
        assert_eq!(chunks == 1, flags == flag::DF, "{chunks} chunks");
    }
    let usage = server.wait_for("it is counted", |usage| usage.connected > 0);
    assert!(usage.buffers_used_bytes <= usage.buffers_bytes, "{usage:?}");
    assert_eq!(server.end().longest, 64 << 10);
}

#[test]
fn a_piece_that_fails_is_an_error_or_the_end_but_never_other_bytes() {
    let bad = 3 << 20;
    let server = Running::new(scarce(), false, Some(bad));
    let mut data = vec![0; LARGEST as usize];
    // The first piece fails: the client gets an error, and the connection continues.
    let mut client = server.client();
    assert_eq!(client.ask(command::READ, 0, bad, MIB, &mut data[..1 << 20]).expect("an answer"), error::EIO);
    // A write fails: the client gets an error, and the remaining payload is not read as a request.
    assert_eq!(
        client.ask(command::WRITE, 0, bad - 100 * 512, 8 * MIB, &mut data[..8 << 20]).expect("one"),
        error::EIO
    );
    assert_eq!(client.ask(command::READ, 0, 0, 4096, &mut data[..4096]).expect("an answer"), 0);
    // A later piece fails after the reply has begun: the reply can no longer report an error.
    assert!(client.ask(command::READ, 0, 0, LARGEST, &mut data).is_err());
    // Structured replies can still report it.
    let mut stream = server.raw(true, true);
    stream.write_all(&header(command::READ, 0, 0, LARGEST)).expect("sent");
    stream.write_all(&header(command::DISC, 0, 0, 0)).expect("sent");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("the end");
    let last = &all[all.len() - 26..];
    assert_eq!(last[..4], STRUCTURED_REPLY_MAGIC.to_be_bytes());
    assert_eq!(last[6..8], chunk::ERROR.to_be_bytes());
    assert_eq!(last[20..24], error::EIO.to_be_bytes());
    assert_eq!(all.len(), 48 * ((64 << 10) + 28) + 26, "48 pieces are good");
    server.end();
}

#[test]
fn clients_that_were_not_told_the_size_of_a_block_may_ask_for_any_bytes() {
    let seed = 5;
    println!("seed {seed}");
    let mut rng = Seed::new(seed).stream();
    for buffers in [Buffers::default(), scarce()] {
        let server = Running::new(buffers, true, None);
        let mut client = NbdClient::begun(server.raw(false, false), SIZE);
        let mut plain = vec![0u8; SIZE as usize];
        for n in 0..400 {
            let length = 1 + below(&mut rng, if n % 20 == 0 { 3 << 20 } else { 5000 });
            let offset = below(&mut rng, SIZE - length);
            let range = offset as usize..(offset + length) as usize;
            let mut data = vec![n as u8; range.len()];
            let kind = [command::WRITE, command::READ, command::WRITE_ZEROES, command::TRIM][n % 4];
            assert_eq!(client.ask(kind, 0, offset, length as u32, &mut data).expect("an answer"), 0, "{n}");
            match kind {
                command::WRITE => plain[range].copy_from_slice(&data),
                command::READ => assert!(data == plain[range], "read {n}"),
                command::WRITE_ZEROES => plain[range].fill(0),
                _ => {
                    // Only whole blocks are trimmed, because the rest of a partial block may be in use.
                    let (first, end) = (range.start.next_multiple_of(512), range.end / 512 * 512);
                    plain[first.min(end)..end].fill(0);
                }
            }
        }
        let mut data = vec![0; 1 << 20];
        for offset in (0..SIZE).step_by(1 << 20) {
            assert_eq!(client.ask(command::READ, 0, offset, MIB, &mut data).expect("an answer"), 0);
            assert!(data == plain[offset as usize..][..1 << 20], "the MiB at {offset}");
        }
        // A client that knows the block size must keep to it.
        let mut told = server.client();
        assert_eq!(told.ask(command::READ, 0, 1, 512, &mut data[..512]).expect("an answer"), error::EINVAL);
        server.end();
    }
}
