//! The server loop with a drive of the simplest kind: requests, connecting and leaving clients, and power cuts.
//!
//! Negotiation is tested in `nbd`, models in `lowtide-device`.

use lowtide_core::{Op, Request};
use lowtide_host::live::contents::{Memory, Run};
use lowtide_host::live::{Clock, Contents, Drive, Handle, Server, Ticket};
use lowtide_host::nbd::wire::{command, error, flag};
use lowtide_host::nbd::{Agreed, Export, NbdClient, Transport};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread::JoinHandle;

const SIZE: u64 = 64 << 20;

/// A drive that answers in order, at once or after a delay.
struct Plain {
    export: Export,
    contents: Contents,
    delay_ns: u64,
    due: VecDeque<(u64, Ticket)>,
    life: u64,
    asked: Vec<Request>,
}

impl Plain {
    fn new(delay_ns: u64, read_only: bool) -> Plain {
        let export = Export {
            name: "plain".to_owned(),
            description: String::new(),
            size: SIZE,
            minimum_block: 512,
            preferred_block: 4096,
            read_only,
            rotational: false,
        };
        let contents = Contents::Memory(Memory::new(SIZE).expect("small"));
        Plain { export, contents, delay_ns, due: VecDeque::new(), life: 0, asked: Vec::new() }
    }
}

impl Drive for Plain {
    fn export(&self) -> &Export {
        &self.export
    }
    fn keeps_time(&self) -> bool {
        self.delay_ns > 0
    }
    fn life(&self) -> u64 {
        self.life
    }
    fn submit(&mut self, now_ns: u64, ticket: Ticket, request: Request, data: &[u8]) {
        match request.op {
            Op::Write { .. } => self.contents.write(request.offset, data).expect("memory"),
            Op::Trim | Op::WriteZeroes => {
                self.contents.clear(request.offset, request.length).expect("memory")
            }
            Op::Read | Op::Flush => {}
        }
        self.asked.push(request);
        self.due.push_back((now_ns + self.delay_ns, ticket));
    }
    fn next_due(&self) -> Option<u64> {
        self.due.front().map(|due| due.0)
    }
    fn due(&mut self, now_ns: u64) -> Option<(Ticket, Result<(), i32>)> {
        self.next_due().filter(|due_ns| *due_ns <= now_ns)?;
        self.due.pop_front().map(|(_, ticket)| (ticket, Ok(())))
    }
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), i32> {
        self.contents.read(offset, into).map_err(|_| libc::EIO)
    }
    fn run(&self, offset: u64, length: u64) -> Result<Run, i32> {
        self.contents.run(offset, length).map_err(|_| libc::EIO)
    }
}

struct Running {
    handle: Handle<Plain>,
    thread: Option<JoinHandle<Vec<Plain>>>,
}

impl Running {
    fn new(drive: Plain) -> Running {
        let (server, handle) = Server::new(vec![drive], Clock::new()).expect("starts");
        Running { handle, thread: Some(std::thread::spawn(move || server.run())) }
    }

    fn raw(&self, structured: bool) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let agreed = Agreed { export: 0, structured, base_allocation: structured, block_sizes: true };
        self.handle.serve(Transport::socket(theirs.into(), "a client").expect("a socket"), agreed);
        ours
    }

    fn client(&self) -> NbdClient<UnixStream> {
        NbdClient::begun(self.raw(false), SIZE)
    }

    fn end(mut self) -> Plain {
        self.handle.stop();
        self.thread.take().expect("it runs").join().expect("no panic").remove(0)
    }
}

#[test]
fn what_is_written_is_read_and_errors_are_answered() {
    let server = Running::new(Plain::new(0, false));
    let mut client = server.client();
    let mut data = vec![7u8; 8192];
    assert_eq!(client.ask(command::WRITE, flag::FUA, 4096, 8192, &mut data).expect("an answer"), 0);
    let mut found = vec![0; 16_384];
    assert_eq!(client.ask(command::READ, 0, 0, 16_384, &mut found).expect("an answer"), 0);
    assert!(found[..4096].iter().all(|byte| *byte == 0) && found[4096..12_288].iter().all(|byte| *byte == 7));
    // The payload of a refused write is skipped, so that later requests are understood.
    assert_eq!(client.ask(command::WRITE, 0, SIZE, 8192, &mut data).expect("an answer"), error::ENOSPC);
    assert_eq!(client.ask(command::READ, 0, SIZE, 512, &mut found[..512]).expect("an answer"), error::EINVAL);
    assert_eq!(client.ask(command::TRIM, flag::FUA, 4096, 4096, &mut []).expect("an answer"), 0);
    assert_eq!(client.ask(command::WRITE_ZEROES, flag::NO_HOLE, 0, 3 << 20, &mut []).expect("an answer"), 0);
    assert_eq!(client.ask(command::FLUSH, 0, 0, 0, &mut []).expect("an answer"), 0);
    let drive = server.end();
    let ops: Vec<Op> = drive.asked.iter().map(|request| request.op).collect();
    let zeroes = Op::Write { fua: false };
    let expected =
        [Op::Write { fua: true }, Op::Read, Op::Trim, Op::Flush, zeroes, zeroes, zeroes, Op::Flush];
    assert_eq!(ops, expected, "a trim with FUA is flushed; zeroes without a hole are written");
}

#[test]
fn a_read_only_drive_takes_no_change() {
    let server = Running::new(Plain::new(0, true));
    let mut client = server.client();
    for kind in [command::WRITE, command::TRIM, command::WRITE_ZEROES] {
        assert_eq!(client.ask(kind, 0, 0, 512, &mut [1; 512]).expect("an answer"), error::EPERM);
    }
    assert_eq!(client.ask(command::READ, 0, 0, 512, &mut [1; 512]).expect("an answer"), 0);
    assert_eq!(server.end().asked.len(), 1);
}

#[test]
fn clients_that_leave_in_the_middle_disturb_nobody() {
    let server = Running::new(Plain::new(200_000, false));
    let mut stays = server.client();
    for n in 0..200u64 {
        let mut leaves = server.raw(n % 2 == 0);
        let request = |kind: u16, length: u32| {
            lowtide_host::nbd::request::Header { flags: 0, kind, cookie: n, offset: 0, length }.bytes()
        };
        match n % 4 {
            0 => leaves.write_all(&request(command::READ, 4096)).expect("sent"),
            1 => leaves.write_all(&request(command::WRITE, 1 << 20)).expect("sent"),
            2 => leaves.write_all(b"nonsense that is longer than a request").expect("sent"),
            _ => {}
        }
        drop(leaves);
        let mut data = vec![n as u8; 4096];
        assert_eq!(stays.ask(command::WRITE, 0, 1 << 20, 4096, &mut data).expect("an answer"), 0);
        data.fill(!(n as u8));
        assert_eq!(stays.ask(command::READ, 0, 1 << 20, 4096, &mut data).expect("an answer"), 0);
        assert_eq!(data, vec![n as u8; 4096]);
    }
    // A disconnect request closes the connection, after all earlier requests are answered.
    stays.send_reads([0, 4096, 8192], 4096).expect("sent");
    stays.send(command::DISC, 0, 0, 0, &[]).expect("sent");
    for _ in 0..3 {
        assert_eq!(stays.receive(&mut [0; 4096]).expect("an answer").1, 0);
    }
    assert_eq!(stays.stream().read(&mut [0; 1]).expect("the end"), 0);
    server.end();
}

#[test]
fn a_client_that_reads_no_answers_is_held_back() {
    let server = Running::new(Plain::new(0, false));
    let mut greedy = server.raw(false);
    greedy.set_nonblocking(true).expect("a socket");
    let header = lowtide_host::nbd::request::Header {
        flags: 0,
        kind: command::READ,
        cookie: 1,
        offset: 0,
        length: 32 << 20,
    };
    // Without a limit, the server would accept all of the requests and hold 64 GiB.
    let mut sent = 0;
    while sent < 2048 && greedy.write_all(&header.bytes()).is_ok() {
        sent += 1;
    }
    let mut other = server.client();
    for _ in 0..100 {
        assert_eq!(other.ask(command::READ, 0, 0, 4096, &mut [0; 4096]).expect("an answer"), 0);
    }
    let drive = server.end();
    let taken = drive.asked.iter().filter(|request| request.length == 32 << 20).count();
    assert!((1..=3).contains(&taken), "{taken} large reads were taken");
}

#[test]
fn a_power_cut_ends_every_connection_and_every_request_of_that_life() {
    let server = Running::new(Plain::new(3_600_000_000_000, false));
    let mut client = server.client();
    client.send_reads([0], 4096).expect("sent");
    let port = server.handle.port(0, SIZE, 512);
    let (to, from) = mpsc::channel();
    let ask = |life| {
        let to = to.clone();
        port.submit(
            life,
            Request::flush(),
            Vec::new(),
            Box::new(move |outcome| to.send(outcome).expect("heard")),
        );
    };
    ask(0);
    let asked = |drives: &mut [Plain], _: u64| drives[0].due.len();
    while server.handle.call(asked).expect("it runs") < 2 {}
    let cut = |drives: &mut [Plain], _: u64| {
        drives[0].life += 1;
        drives[0].due.clear();
        drives[0].delay_ns = 0;
    };
    server.handle.call(cut).expect("it runs");
    assert_eq!(from.recv().expect("an answer"), Err(libc::EIO), "what was in flight");
    assert!(client.receive(&mut [0; 4096]).is_err(), "the connection is gone");
    ask(0);
    assert_eq!(from.recv().expect("an answer"), Err(libc::EIO), "a handle of the life before");
    assert_eq!(port.life(), 1);
    ask(1);
    assert_eq!(from.recv().expect("an answer"), Ok(Vec::new()));
    assert_eq!(server.client().ask(command::READ, 0, 0, 512, &mut [0; 512]).expect("an answer"), 0);
    server.end();
}
