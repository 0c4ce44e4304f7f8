//! A minimal client for the tests: sends options and reads replies.

use lowtide_host::nbd::wire::{self, info, option, reply};
use lowtide_host::nbd::{Agreed, Ended, Export, Settings, Transport, negotiate};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

/// The client flags "fixed newstyle" and "no zeroes".
pub const FIXED_NO_ZEROES: u32 = 3;

/// The exports of the tests.
pub fn exports() -> Vec<Export> {
    let disk = |name: &str, minimum_block| Export {
        name: name.to_owned(),
        description: format!("the drive {name}"),
        size: 1 << 30,
        minimum_block,
        preferred_block: 4096,
        read_only: false,
        rotational: false,
    };
    vec![disk("first", 512), disk("second", 512), disk("coarse", 4096)]
}

/// A negotiation on a thread of its own, with its result.
pub struct Server(JoinHandle<Result<(Transport, Agreed), Ended>>);

impl Server {
    /// Starts to negotiate with a client. Returns the client's end of the connection.
    pub fn start(settings: Settings) -> (UnixStream, Server) {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        // If the server says too little, the test fails instead of hanging.
        ours.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let transport = Transport::socket(theirs.into(), "test").expect("a socket");
        (ours, Server(std::thread::spawn(move || negotiate(transport, &exports(), &settings))))
    }

    pub fn outcome(self) -> Result<(Transport, Agreed), Ended> {
        self.0.join().expect("no panic")
    }

    pub fn agreed(self) -> Agreed {
        self.outcome().expect("agreed").1
    }

    pub fn ended(self) -> Ended {
        self.outcome().map(|(_, agreed)| agreed).expect_err("ended")
    }
}

/// A reply to an option: its kind and its data.
pub type Reply = (u32, Vec<u8>);

/// The client end of a session.
pub struct Client<S> {
    pub stream: S,
}

impl<S: Read + Write> Client<S> {
    /// Reads the greeting and answers with `flags`.
    pub fn greet(mut stream: S, flags: u32) -> Client<S> {
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).expect("a greeting");
        assert_eq!(&greeting, b"NBDMAGICIHAVEOPT\0\x03");
        stream.write_all(&flags.to_be_bytes()).expect("sent");
        Client { stream }
    }

    pub fn send(&mut self, option: u32, data: &[u8]) {
        self.stream.write_all(&message(option, data)).expect("sent");
    }

    /// Sends an option and returns all replies, including the final one.
    pub fn ask(&mut self, option: u32, data: &[u8]) -> Vec<Reply> {
        self.send(option, data);
        let mut replies = Vec::new();
        loop {
            let (to, kind, data) = self.reply();
            assert_eq!(to, option, "a reply names its option");
            replies.push((kind, data));
            if kind == reply::ACK || kind >> 31 == 1 {
                return replies;
            }
        }
    }

    /// Sends an option and returns the kinds of the replies.
    pub fn kinds(&mut self, option: u32, data: &[u8]) -> Vec<u32> {
        self.ask(option, data).into_iter().map(|(kind, _)| kind).collect()
    }

    pub fn reply(&mut self) -> (u32, u32, Vec<u8>) {
        assert_eq!(self.bytes(8), wire::OPTION_REPLY_MAGIC.to_be_bytes());
        let mut number = || u32::from_be_bytes(self.bytes(4).try_into().expect("four bytes"));
        let (option, kind, length) = (number(), number(), number());
        let data = self.bytes(length as usize);
        if kind >> 31 == 1 {
            let text = std::str::from_utf8(&data).expect("errors have a text");
            assert!(!text.is_empty() && text.len() <= wire::MAX_STRING, "{text:?}");
        }
        (option, kind, data)
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).expect("more bytes from the server");
        bytes
    }

    /// Reads until the server closes the connection.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        // A reset also ends the connection.
        let _ = self.stream.read_to_end(&mut rest);
        rest
    }
}

/// Starts a session, and returns it with its server.
pub fn session(settings: Settings) -> (Client<UnixStream>, Server) {
    let (stream, server) = Server::start(settings);
    (Client::greet(stream, FIXED_NO_ZEROES), server)
}

/// Encodes an option with its data.
pub fn message(option: u32, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).expect("short");
    [&wire::OPTION_MAGIC.to_be_bytes()[..], &option.to_be_bytes(), &length.to_be_bytes(), data].concat()
}

/// Encodes a string with its length in front.
pub fn string(text: &[u8]) -> Vec<u8> {
    [&u32::try_from(text.len()).expect("short").to_be_bytes()[..], text].concat()
}

/// Encodes the data of INFO and GO.
pub fn choice(name: &str, requests: &[u16]) -> Vec<u8> {
    let mut data = string(name.as_bytes());
    data.extend(u16::try_from(requests.len()).expect("few").to_be_bytes());
    requests.iter().for_each(|request| data.extend(request.to_be_bytes()));
    data
}

/// Encodes the data of the metadata-context options.
pub fn queries(export: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = string(export.as_bytes());
    data.extend(u32::try_from(queries.len()).expect("few").to_be_bytes());
    queries.iter().for_each(|query| data.extend(string(query.as_bytes())));
    data
}

/// Negotiates structured replies.
pub fn structured<S: Read + Write>(client: &mut Client<S>) {
    assert_eq!(client.kinds(option::STRUCTURED_REPLY, &[]), [reply::ACK]);
}

/// The reply to INFO with size and flags of the export `first`.
pub fn export_info(flags: u16) -> Vec<u8> {
    [&info::EXPORT.to_be_bytes()[..], &(1_u64 << 30).to_be_bytes(), &flags.to_be_bytes()].concat()
}
