//! A thousand random sessions, from the greeting into the requests: the server stays, holds little memory, and serves
//! another client beside them as if they were not there.

use crate::common::Lab;
use crate::served::Served;
use lowtide_host::nbd::NbdClient;
use lowtide_host::nbd::wire::{self, command, option};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SEED: u64 = 20_261_121;
const SESSIONS: u64 = 1000;

/// What a thousand sessions may leave in memory.
const MOST_MEMORY: u64 = 256 << 20;

/// Where the client beside them writes; the others stay below.
const BESIDE: u64 = 256 << 20;

struct Random(u64);

impl Random {
    /// splitmix64
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn option(&mut self, kind: u32, data: &[u8]) -> Vec<u8> {
        let length = if self.below(30) == 0 { self.next() as u32 } else { data.len() as u32 };
        [&wire::OPTION_MAGIC.to_be_bytes()[..], &kind.to_be_bytes(), &length.to_be_bytes(), data].concat()
    }

    /// Nearly a request.
    fn request(&mut self) -> Vec<u8> {
        let magic = if self.below(40) == 0 { self.next() as u32 } else { wire::REQUEST_MAGIC };
        let flags = if self.below(3) == 0 { self.next() as u16 & 0x1f } else { 0 };
        let kind = if self.below(20) == 0 { self.next() as u16 } else { self.below(8) as u16 };
        let offset = match self.below(8) {
            0 => self.next(),
            1 => u64::MAX - self.below(10_000),
            _ => self.below(BESIDE / 4096) * 4096,
        };
        let length = match self.below(8) {
            0 => self.next() as u32,
            1 => self.below(5000) as u32,
            _ => self.below(64) as u32 * 512,
        };
        // Nobody reads so much before the end, and what others wrote stays.
        let length = if kind == command::READ { length % (1 << 20) } else { length };
        let changes = matches!(kind, command::TRIM | command::WRITE_ZEROES | command::WRITE);
        let length = if changes { length.min((BESIDE.saturating_sub(offset)) as u32) } else { length };
        let header = [
            &magic.to_be_bytes()[..],
            &flags.to_be_bytes(),
            &kind.to_be_bytes(),
            &self.next().to_be_bytes(),
            &offset.to_be_bytes(),
            &length.to_be_bytes(),
        ]
        .concat();
        let payload = if kind == command::WRITE { length.min(100_000) as usize } else { 0 };
        [header, vec![self.next() as u8; payload]].concat()
    }

    fn session(&mut self) -> Vec<u8> {
        let mut session = 3_u32.to_be_bytes().to_vec();
        if self.below(10) == 0 {
            session = (self.next() as u32).to_be_bytes().to_vec();
        }
        for _ in 0..self.below(4) {
            let length = self.below(40) * self.below(2);
            let noise: Vec<u8> = (0..length).map(|_| self.next() as u8).collect();
            let kind = self.below(14) as u32;
            session.extend(self.option(kind, &noise));
        }
        if self.below(2) == 0 {
            session.extend(self.option(option::STRUCTURED_REPLY, &[]));
            let context = b"\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation";
            session.extend(self.option(option::SET_META_CONTEXT, context));
        }
        match self.below(3) {
            0 => session.extend(self.option(option::EXPORT_NAME, b"")),
            _ => session.extend(self.option(option::GO, &[0; 6])),
        }
        for _ in 0..self.below(60) {
            session.extend(self.request());
        }
        session
    }
}

/// Writes and reads its own part of the drive until it is told to end; how often.
fn beside(path: &Path, end: &AtomicBool) -> u64 {
    let stream = UnixStream::connect(path).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let mut client = NbdClient::connect(stream, "").expect("agreed");
    let mut rounds = 0;
    while !end.load(Ordering::Relaxed) || rounds < 10 {
        let offset = BESIDE + (rounds % 64) * 65_536;
        let mut wanted = vec![rounds as u8; 65_536];
        assert_eq!(client.ask(command::WRITE, 0, offset, 65_536, &mut wanted).expect("answered"), 0);
        let mut found = vec![0xff; 65_536];
        assert_eq!(client.ask(command::READ, 0, offset, 65_536, &mut found).expect("answered"), 0);
        assert!(found == wanted, "round {rounds}: it read something else than it wrote");
        rounds += 1;
    }
    rounds
}

/// Bytes of a process in memory, at most so far.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

#[test]
fn random_sessions_harm_nobody() {
    println!("seed {SEED}");
    let lab = Lab::new();
    // The data in a file: its pages are not the server's memory.
    let served = Served::start(&lab, &["--unix", "drive.sock", "--data", "data", "--max-clients", "1000"]);
    let path = lab.path("drive.sock");
    let before = peak(served.process());
    let end = AtomicBool::new(false);
    let (mut answered, mut rounds) = (0, 0);
    std::thread::scope(|threads| {
        let client = threads.spawn(|| beside(&path, &end));
        for number in 0..SESSIONS {
            let session = Random(SEED + number).session();
            let mut stream = UnixStream::connect(&path).expect("it listens");
            stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
            let mut writing = stream.try_clone().expect("a second handle");
            let sending = threads.spawn(move || {
                // The server may be gone from a session that makes no sense.
                let _ = writing.write_all(&session).and_then(|()| writing.shutdown(Shutdown::Write));
            });
            let mut said = Vec::new();
            match stream.read_to_end(&mut said) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
                Err(error) => panic!("session {number} hangs: {error}"),
            }
            let magics = [wire::SIMPLE_REPLY_MAGIC, wire::STRUCTURED_REPLY_MAGIC].map(u32::to_be_bytes);
            answered += u64::from(said.windows(4).any(|bytes| magics.iter().any(|magic| bytes == magic)));
            sending.join().expect("no panic");
            assert!(!client.is_finished(), "the client beside them failed in session {number}");
        }
        end.store(true, Ordering::Relaxed);
        rounds = client.join().expect("no panic");
    });
    let grown = peak(served.process()) - before;
    println!(
        "{answered} sessions came to requests, {rounds} rounds beside them, {grown} bytes more in memory"
    );
    assert!(answered > SESSIONS / 4, "the sessions show nothing: {answered}");
    assert!(grown < MOST_MEMORY, "{grown} bytes more in memory");
    served.ends_well();
}

#[test]
fn clients_that_say_nothing_keep_nobody_out_and_one_too_many_is_told_so() {
    let lab = Lab::new();
    for log_disk in [false, true] {
        let place = ["--unix", "drive.sock", "--max-clients", "2"];
        let served = if log_disk {
            lab.ok(&["logdisk", "format", "disk.log", "--size", "64MiB", "--segment", "1MiB"]);
            Served::start_plain(&lab, &[&["logdisk", "serve", "disk.log"][..], &place].concat())
        } else {
            Served::start(&lab, &place)
        };
        let connect = || UnixStream::connect(lab.path("drive.sock")).expect("it listens");
        let mute: Vec<UnixStream> = (0..200).map(|_| connect()).collect();
        let mut first = NbdClient::connect(connect(), "").expect("agreed");
        let _second = NbdClient::connect(connect(), "").expect("agreed");
        let refused = NbdClient::connect(connect(), "").expect_err("one too many").to_string();
        assert!(refused.contains("the maximum of 2 clients is connected"), "{refused}");
        assert_eq!(first.ask(command::READ, 0, 0, 4096, &mut [0; 4096]).expect("answered"), 0);
        drop(mute);
        served.ends_well();
    }
}
