//! Hostile clients: during a thousand random sessions the server keeps running, uses little memory, and serves
//! another client correctly.

use crate::common::{Lab, memory_kib};
use crate::served::{Served, connect};
use lowtide_core::Seed;
use lowtide_core::rng::{Rng, below};
use lowtide_host::nbd::NbdClient;
use lowtide_host::nbd::wire::{self, command, option};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SEED: u64 = 20_261_121;
const SESSIONS: u64 = 1000;

/// Limit of the growth of peak memory, in KiB.
const MAX_GROWTH_KIB: u64 = 256 << 10;

/// Offset at which the correct client writes; random sessions write below it.
const CORRECT_FROM: u64 = 256 << 20;

struct Random(Rng);

impl Random {
    fn next(&mut self) -> u64 {
        self.below(u64::MAX)
    }

    fn below(&mut self, end: u64) -> u64 {
        below(&mut self.0, end)
    }

    fn option(&mut self, kind: u32, data: &[u8]) -> Vec<u8> {
        let length = if self.below(30) == 0 { self.next() as u32 } else { data.len() as u32 };
        [&wire::OPTION_MAGIC.to_be_bytes()[..], &kind.to_be_bytes(), &length.to_be_bytes(), data].concat()
    }

    /// A request, often with an invalid field.
    fn request(&mut self) -> Vec<u8> {
        let magic = if self.below(40) == 0 { self.next() as u32 } else { wire::REQUEST_MAGIC };
        let flags = if self.below(3) == 0 { self.next() as u16 & 0x1f } else { 0 };
        let kind = if self.below(20) == 0 { self.next() as u16 } else { self.below(8) as u16 };
        let offset = match self.below(8) {
            0 => self.next(),
            1 => u64::MAX - self.below(10_000),
            _ => self.below(CORRECT_FROM / 4096) * 4096,
        };
        let length = match self.below(8) {
            0 => self.next() as u32,
            1 => self.below(5000) as u32,
            _ => self.below(64) as u32 * 512,
        };
        // Reads are short, since the sender reads no reply before the end; writes stay below the other client's data.
        let length = if kind == command::READ { length % (1 << 20) } else { length };
        let changes = matches!(kind, command::TRIM | command::WRITE_ZEROES | command::WRITE);
        let length = if changes { length.min((CORRECT_FROM.saturating_sub(offset)) as u32) } else { length };
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

/// Writes and reads its own part of the drive until `end` is set; returns the number of rounds.
fn correct_client(lab: &Lab, end: &AtomicBool) -> u64 {
    let mut client = connect(lab);
    let mut rounds = 0;
    while !end.load(Ordering::Relaxed) || rounds < 10 {
        let offset = CORRECT_FROM + (rounds % 64) * 65_536;
        let mut wanted = vec![rounds as u8; 65_536];
        assert_eq!(client.ask(command::WRITE, 0, offset, 65_536, &mut wanted).expect("answered"), 0);
        let mut found = vec![0xff; 65_536];
        assert_eq!(client.ask(command::READ, 0, offset, 65_536, &mut found).expect("answered"), 0);
        assert!(found == wanted, "round {rounds}: the read differs from the write");
        rounds += 1;
    }
    rounds
}

#[test]
fn random_sessions_affect_no_other_client() {
    println!("seed {SEED}");
    let lab = Lab::new();
    // The data are in a file, whose pages do not count as the server's memory.
    let served = Served::start(&lab, "--unix drive.sock --data data --max-clients 1000");
    let path = lab.path("drive.sock");
    let peak_kib = || memory_kib(served.process(), "VmHWM").expect("it runs");
    let before = peak_kib();
    let end = AtomicBool::new(false);
    let (mut answered, mut rounds) = (0, 0);
    std::thread::scope(|threads| {
        let client = threads.spawn(|| correct_client(&lab, &end));
        for number in 0..SESSIONS {
            let session = Random(Seed::new(SEED).part("session", number).stream()).session();
            let mut stream = UnixStream::connect(&path).expect("it listens");
            stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
            let mut writing = stream.try_clone().expect("a second handle");
            let sending = threads.spawn(move || {
                // The server may close a session with invalid requests.
                let _ = writing.write_all(&session).and_then(|()| writing.shutdown(Shutdown::Write));
            });
            let mut received = Vec::new();
            match stream.read_to_end(&mut received) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
                Err(error) => panic!("session {number} hangs: {error}"),
            }
            let magics = [wire::SIMPLE_REPLY_MAGIC, wire::STRUCTURED_REPLY_MAGIC].map(u32::to_be_bytes);
            answered += u64::from(received.windows(4).any(|bytes| magics.iter().any(|magic| bytes == magic)));
            sending.join().expect("no panic");
            assert!(!client.is_finished(), "the correct client failed in session {number}");
        }
        end.store(true, Ordering::Relaxed);
        rounds = client.join().expect("no panic");
    });
    let grown_kib = peak_kib() - before;
    println!("{answered} sessions sent requests, {rounds} correct rounds, {grown_kib} KiB more memory");
    assert!(answered > SESSIONS / 4, "too few sessions reach the requests: {answered}");
    assert!(grown_kib < MAX_GROWTH_KIB, "{grown_kib} KiB more memory");
    served.ends_well();
}

#[test]
fn silent_clients_lock_out_no_other_and_one_too_many_is_refused() {
    let lab = Lab::new();
    lab.ok("logdisk format disk.log --size 64MiB --segment 1MiB");
    for serve in ["logdisk serve disk.log", "drive serve intel-320-160gb --scale 1/256 --no-delay"] {
        let served = Served::by(&lab, &format!("{serve} --unix drive.sock --max-clients 2"));
        let connect = || UnixStream::connect(lab.path("drive.sock")).expect("it listens");
        let silent: Vec<UnixStream> = (0..200).map(|_| connect()).collect();
        let mut first = NbdClient::connect(connect(), "").expect("agreed");
        let _second = NbdClient::connect(connect(), "").expect("agreed");
        let refused = NbdClient::connect(connect(), "").expect_err("one too many").to_string();
        assert!(refused.contains("the maximum of 2 clients is connected"), "{refused}");
        assert_eq!(first.ask(command::READ, 0, 0, 4096, &mut [0; 4096]).expect("answered"), 0);
        drop(silent);
        served.ends_well();
    }
}
