//! Fuzzes an entire NBD session: client flags, options, and requests to a drive in memory. The server must end once
//! the client has sent all its bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowtide_core::{Op, Request};
use lowtide_host::live::contents::{Memory, Run};
use lowtide_host::live::{Clock, Contents, Drive, Server, Ticket};
use lowtide_host::nbd::wire;
use lowtide_host::nbd::{Ended, Export, Settings, Transport, negotiate};
use std::collections::VecDeque;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;

const SIZE: u64 = 16 << 20;

/// A drive that completes requests immediately and in order.
struct Plain {
    export: Export,
    contents: Contents,
    done: VecDeque<Ticket>,
}

impl Drive for Plain {
    fn export(&self) -> &Export {
        &self.export
    }
    fn life(&self) -> u64 {
        0
    }
    fn submit(&mut self, _now_ns: u64, ticket: Ticket, request: Request, data: &[u8]) {
        let end = request.offset.checked_add(request.length).expect("requests were checked");
        assert!(end <= SIZE, "{request:?}");
        match request.op {
            Op::Write { .. } => {
                assert_eq!(data.len() as u64, request.length);
                self.contents.write(request.offset, data).expect("memory");
            }
            Op::Trim | Op::WriteZeroes => {
                self.contents.clear(request.offset, request.length).expect("memory")
            }
            Op::Read | Op::Flush => assert!(data.is_empty()),
        }
        self.done.push_back(ticket);
    }
    fn next_due(&self) -> Option<u64> {
        self.done.front().map(|_| 0)
    }
    fn due(&mut self, _now_ns: u64) -> Option<(Ticket, Result<(), i32>)> {
        self.done.pop_front().map(|ticket| (ticket, Ok(())))
    }
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), i32> {
        self.contents.read(offset, into).map_err(|_| 5)
    }
    fn run(&self, offset: u64, length: u64) -> Result<Run, i32> {
        self.contents.run(offset, length).map_err(|_| 5)
    }
}

fn drive() -> Plain {
    let export = Export {
        name: "drive".to_owned(),
        description: String::new(),
        size: SIZE,
        minimum_block: 512,
        preferred_block: 4096,
        read_only: false,
        rotational: false,
    };
    let contents = Contents::Memory(Memory::new(SIZE).expect("small"));
    Plain { export, contents, done: VecDeque::new() }
}

/// Returns the bytes that the client sends after the greeting. If the first byte is odd, the usual client flags and
/// the option GO come first, so that the input reaches the request phase.
fn session(data: &[u8]) -> Vec<u8> {
    match data.split_first() {
        Some((first, rest)) if first & 1 == 1 => {
            let go = [&wire::OPTION_MAGIC.to_be_bytes()[..], &[0, 0, 0, 7, 0, 0, 0, 6], &[0; 6]].concat();
            [&3_u32.to_be_bytes()[..], &go, rest].concat()
        }
        Some((_, rest)) => rest.to_vec(),
        None => Vec::new(),
    }
}

fuzz_target!(|data: &[u8]| {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    let clock = *CLOCK.get_or_init(Clock::new);
    let (mut ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let mut reading = ours.try_clone().expect("a second handle");
    std::thread::scope(|threads| {
        let sends = threads.spawn(move || {
            // Writing may fail, because the server resets invalid connections.
            let _ = ours.write_all(&session(data)).and_then(|()| ours.shutdown(Shutdown::Write));
        });
        let reads = threads.spawn(move || {
            let _ = std::io::copy(&mut reading, &mut std::io::sink());
        });
        let transport = Transport::socket(theirs.into(), "fuzzer").expect("a socket");
        let drive = drive();
        match negotiate(transport, std::slice::from_ref(&drive.export), &Settings::default()) {
            Ok((transport, agreed)) => {
                let (server, handle) = Server::new(vec![drive], clock).expect("a loop");
                handle.serve(transport, agreed);
                server.ending_alone().run();
            }
            Err(ended @ (Ended::TimedOut(_) | Ended::Io(_))) => panic!("{ended}"),
            Err(_) => {}
        }
        // Join the threads, because memory that a thread frees later would count as a leak.
        sends.join().expect("no panic");
        reads.join().expect("no panic");
    });
});
