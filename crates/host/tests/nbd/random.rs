//! A thousand random sessions, and a thousand in which random bytes replace the TLS handshake. No session may panic,
//! hang or hold much memory, and every reply must be well-formed.
//!
//! The client sends the entire session before the server reads its first byte, so every run is the same.

use crate::allocations::most_held;
use crate::client::{choice, exports, message, queries, string};
use crate::tls::Authority;
use lowtide_host::nbd::tls::read_certificates;
use lowtide_host::nbd::wire::{self, option};
use lowtide_host::nbd::{Ended, Settings, Tls, Transport, negotiate};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

const SEED: u64 = 20_261_121;
const SESSIONS: u64 = 1000;

/// Maximum size of all buffers of one negotiation: an option of 64 KiB with its queries, and the replies.
const MOST_HELD: isize = 1 << 20;

struct Random(Xoshiro256PlusPlus);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).expect("an index")].clone()
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.below(most + 1)).expect("a length")];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    /// Data that is valid, nearly valid, or random.
    fn data(&mut self) -> Vec<u8> {
        let name = self.one_of(&["", "first", "second", "coarse", "nothing", "\0", "ä"]);
        let query = self.one_of(&["base:allocation", "base:", "x:", "", "none", "ä:\u{ffff}"]);
        let mut data = match self.below(7) {
            0 => Vec::new(),
            1 => choice(name, &[1, 2, 3]),
            2 => choice(name, &[]),
            3 => queries(name, &[query, "base:allocation"]),
            4 => queries(name, &[]),
            5 => string(name.as_bytes()),
            _ => self.bytes(300),
        };
        if self.below(3) == 0 && !data.is_empty() {
            let at = usize::try_from(self.below(data.len() as u64)).expect("an index");
            match self.below(3) {
                0 => data[at] = self.one_of(&[0, 1, 0x7f, 0x80, 0xff]),
                1 => data.truncate(at),
                _ => data.insert(at, 0xff),
            }
        }
        data
    }

    fn session(&mut self) -> Vec<u8> {
        let flags = if self.below(20) == 0 {
            self.0.next_u32()
        } else {
            self.one_of(&[3_u32, 3, 3, 3, 3, 3, 1, 1, 2, 0])
        };
        let mut session = flags.to_be_bytes().to_vec();
        for _ in 0..self.below(40) {
            let kind = match self.below(10) {
                0 => self.0.next_u32(),
                // These two options end a session, so they are rarer.
                1 => self.one_of(&[option::EXPORT_NAME, option::ABORT]),
                _ => 3 + u32::try_from(self.below(9)).expect("an option"),
            };
            let data = self.data();
            session.extend(message(kind, &data));
        }
        // Corrupts a length, a magic number or any other byte.
        if self.below(4) == 0 {
            let at = usize::try_from(self.below(session.len() as u64)).expect("an index");
            session[at] ^= self.one_of(&[1, 0x80, 0xff]);
        }
        session
    }
}

#[test]
fn random_sessions_end_and_their_replies_are_well_formed() {
    println!("seed {SEED}");
    let (mut agreed, mut violated, mut replies) = (0, 0, 0);
    for number in 0..SESSIONS {
        let session = Random(Xoshiro256PlusPlus::seed_from_u64(SEED + number)).session();
        let (mut ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        ours.write_all(&session).expect("room in the socket");
        ours.shutdown(Shutdown::Write).expect("shut");
        let held = most_held(|| {
            let transport = Transport::socket(theirs.into(), "test").expect("a socket");
            match negotiate(transport, &exports(), &Settings::default()) {
                Ok(_) => agreed += 1,
                Err(Ended::Violation(_) | Ended::Refused(_)) => violated += 1,
                Err(Ended::Aborted | Ended::Left) => {}
                Err(ended) => panic!("session {number}: {ended}"),
            }
        });
        assert!(held < MOST_HELD, "session {number} held {held} bytes");
        let mut said = Vec::new();
        ours.read_to_end(&mut said).or_else(|error| reset(&error)).expect("what the server said");
        replies += count(&said, number);
    }
    println!("{agreed} agreed, {violated} broken off, {replies} replies");
    // Guards against a test in which all sessions end at their first byte.
    assert!(agreed > 50 && violated > 50 && replies > 5000);
}

#[test]
fn noise_in_place_of_tls_ends_the_session() {
    println!("seed {SEED}");
    let authority = Authority::new();
    let tls = Tls::Offered(read_certificates(authority.path(), false).expect("certificates"));
    for number in 0..SESSIONS {
        let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(SEED + number));
        let mut noise = random.bytes(2000);
        if random.below(2) == 0 && noise.len() > 5 {
            // The header of a TLS record of any type, with the correct length.
            let length = u16::try_from(noise.len() - 5).expect("short").to_be_bytes();
            noise[..5].copy_from_slice(&[random.one_of(&[20, 21, 22, 23]), 3, 1, length[0], length[1]]);
        }
        let session = [&[0, 0, 0, 3][..], &message(option::STARTTLS, &[]), &noise].concat();
        let (mut ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        ours.write_all(&session).expect("room in the socket");
        ours.shutdown(Shutdown::Write).expect("shut");
        let settings = Settings { tls: tls.clone(), ..Settings::default() };
        let held = most_held(|| {
            let transport = Transport::socket(theirs.into(), "test").expect("a socket");
            let ended =
                negotiate(transport, &exports(), &settings).map(drop).expect_err("no client says noise");
            assert!(matches!(ended, Ended::Tls(_) | Ended::Left), "session {number}: {ended}");
        });
        assert!(held < MOST_HELD, "session {number} held {held} bytes");
    }
}

/// Treats a reset as the end of the stream: the kernel resets a connection if the server left bytes unread.
fn reset(error: &std::io::Error) -> std::io::Result<usize> {
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    Ok(0)
}

/// Parses the server's output: the greeting, whole replies, and possibly the reply to EXPORT_NAME. Counts the
/// replies.
fn count(said: &[u8], session: u64) -> u64 {
    let mut rest = said.strip_prefix(b"NBDMAGICIHAVEOPT\0\x03").expect("a greeting");
    let mut replies = 0;
    while let Some(reply) = rest.strip_prefix(&wire::OPTION_REPLY_MAGIC.to_be_bytes()) {
        let length = u32::from_be_bytes(reply[8..12].try_into().expect("four bytes")) as usize;
        assert!(length <= 2 * wire::MAX_STRING, "session {session}: a reply of {length} bytes");
        rest = &reply[12 + length..];
        replies += 1;
    }
    assert!(matches!(rest.len(), 0 | 10 | 134), "session {session}: {} bytes at the end", rest.len());
    replies
}
