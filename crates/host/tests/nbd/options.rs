//! Every option, with valid and invalid data. After an error, the session continues.

use crate::client::*;
use lowtide_host::nbd::wire::{info, option, reply, transmission};
use lowtide_host::nbd::{Agreed, Ended, Settings};
use std::io::Write;
use std::net::Shutdown;

/// A row: description, option, data, and the kinds of the replies.
type Row = (&'static str, u32, Vec<u8>, Vec<u32>);

#[test]
fn options_get_their_replies_and_the_session_goes_on() {
    use reply::*;
    let go = |data: &[u8]| data.to_vec();
    let long = string(&[b'x'; 4097]);
    let rows: Vec<Row> = vec![
        ("LIST", option::LIST, vec![], vec![SERVER, SERVER, SERVER, ACK]),
        ("LIST takes no data", option::LIST, vec![0], vec![ERR_INVALID]),
        ("STRUCTURED_REPLY takes no data", option::STRUCTURED_REPLY, vec![1, 2, 3], vec![ERR_INVALID]),
        ("STRUCTURED_REPLY", option::STRUCTURED_REPLY, vec![], vec![ACK]),
        ("STRUCTURED_REPLY again changes nothing", option::STRUCTURED_REPLY, vec![], vec![ACK]),
        ("STARTTLS where TLS is off", option::STARTTLS, vec![], vec![ERR_POLICY]),
        ("STARTTLS takes no data", option::STARTTLS, vec![0], vec![ERR_INVALID]),
        ("PEEK_EXPORT was withdrawn", 4, vec![], vec![ERR_UNSUP]),
        ("EXTENDED_HEADERS is not known here", option::EXTENDED_HEADERS, vec![], vec![ERR_UNSUP]),
        ("an unknown option with data", 0xffff_ffff, vec![7; 5000], vec![ERR_UNSUP]),
        ("an unknown option with much data", 77, vec![7; 1 << 20], vec![ERR_UNSUP]),
        ("INFO", option::INFO, choice("first", &[]), vec![INFO, ACK]),
        ("INFO on the default export", option::INFO, choice("", &[]), vec![INFO, ACK]),
        (
            "INFO with every request",
            option::INFO,
            choice("second", &[0, 1, 2, 3]),
            vec![INFO, INFO, INFO, INFO, ACK],
        ),
        ("INFO with unknown requests", option::INFO, choice("second", &[9, 0xffff]), vec![INFO, ACK]),
        ("INFO with a request twice", option::INFO, choice("second", &[1, 1]), vec![INFO, INFO, ACK]),
        ("INFO on no export", option::INFO, choice("frist", &[]), vec![ERR_UNKNOWN]),
        ("GO on no export", option::GO, choice("none", &[]), vec![ERR_UNKNOWN]),
        (
            "INFO on large blocks, not asked for",
            option::INFO,
            choice("coarse", &[]),
            vec![INFO, ERR_BLOCK_SIZE_REQD],
        ),
        (
            "GO on large blocks, not asked for",
            option::GO,
            choice("coarse", &[1]),
            vec![INFO, ERR_BLOCK_SIZE_REQD],
        ),
        ("INFO on large blocks", option::INFO, choice("coarse", &[3]), vec![INFO, INFO, ACK]),
        ("GO without data", option::GO, vec![], vec![ERR_INVALID]),
        ("GO with a length past its end", option::GO, go(&[0, 0, 0, 9, b'x', 0, 0]), vec![ERR_INVALID]),
        ("GO with the longest length", option::GO, go(&[0xff; 6]), vec![ERR_INVALID]),
        ("GO without its requests", option::GO, string(b"first"), vec![ERR_INVALID]),
        (
            "GO with too few requests",
            option::GO,
            [string(b"first"), vec![0, 2, 0, 1]].concat(),
            vec![ERR_INVALID],
        ),
        ("GO with bytes left over", option::GO, [choice("first", &[]), vec![0]].concat(), vec![ERR_INVALID]),
        ("GO with half a request", option::GO, [choice("first", &[1]), vec![0]].concat(), vec![ERR_INVALID]),
        ("GO with a NUL", option::GO, choice("fir\0st", &[]), vec![ERR_INVALID]),
        ("GO with no UTF-8", option::GO, [string(&[0xc3]), vec![0, 0]].concat(), vec![ERR_INVALID]),
        ("GO with a long name", option::GO, [long, vec![0, 0]].concat(), vec![ERR_TOO_BIG]),
        ("GO with very much data", option::GO, vec![0; (64 << 10) + 1], vec![ERR_TOO_BIG]),
        ("GO with the most data", option::GO, vec![0; 64 << 10], vec![ERR_INVALID]),
    ];
    let (mut client, server) = session(Settings::default());
    for (what, option, data, wanted) in rows {
        assert_eq!(client.kinds(option, &data), wanted, "{what}");
    }
    assert_eq!(client.kinds(option::GO, &choice("second", &[])), [INFO, ACK]);
    assert_eq!(
        server.agreed(),
        Agreed { export: 1, structured: true, base_allocation: false, block_sizes: false }
    );
}

#[test]
fn list_tells_names_and_descriptions() {
    let (mut client, _server) = session(Settings::default());
    let listed = client.ask(option::LIST, &[]);
    let described = |name: &str| [string(name.as_bytes()), format!("the drive {name}").into_bytes()].concat();
    let wanted = ["first", "second", "coarse"].map(|name| (reply::SERVER, described(name)));
    assert_eq!(listed[..3], wanted);
    assert_eq!(listed[3], (reply::ACK, vec![]));
}

#[test]
fn information_is_what_the_export_is() {
    let (mut client, server) = session(Settings::default());
    let replies = client.ask(option::INFO, &choice("", &[info::NAME, info::DESCRIPTION, info::BLOCK_SIZE]));
    let with = |kind: u16, data: &[u8]| (reply::INFO, [&kind.to_be_bytes()[..], data].concat());
    // Flags as in doc/proto.md: has flags, flush, FUA, trim, write zeroes, multi-conn, cache, fast zero.
    let flags = 0b1101_0110_1101;
    let wanted = [
        with(3, &[512_u32, 4096, 32 << 20].map(u32::to_be_bytes).concat()),
        with(1, b"first"),
        with(2, b"the drive first"),
        (reply::INFO, export_info(flags)),
        (reply::ACK, vec![]),
    ];
    assert_eq!(replies, wanted);
    // With structured replies, a client may ask for unfragmented reads (DF).
    structured(&mut client);
    let replies = client.ask(option::GO, &choice("first", &[]));
    assert_eq!(replies[0], (reply::INFO, export_info(flags | transmission::SEND_DF)));
    assert_eq!(
        server.agreed(),
        Agreed { export: 0, structured: true, base_allocation: false, block_sizes: true }
    );
}

#[test]
fn an_unknown_export_is_told_with_the_nearest_name() {
    let (mut client, _server) = session(Settings::default());
    let replies = client.ask(option::GO, &choice("frist", &[]));
    let text = String::from_utf8_lossy(&replies[0].1).into_owned();
    assert_eq!(text, "there is no export \"frist\": did you mean \"first\"?");
    // The error fits into a string even for the longest names.
    for name in ["z".repeat(4096), "ä".repeat(2048)] {
        assert_eq!(client.kinds(option::INFO, &choice(&name, &[])), [reply::ERR_UNKNOWN]);
    }
}

#[test]
fn an_export_by_name_answers_with_and_without_zeroes() {
    for (flags, name, export, zeroes) in
        [(3, "second", 1, 0), (1, "", 0, 124), (2, "first", 0, 0), (0, "", 0, 124)]
    {
        let (stream, server) = Server::start(Settings::default());
        let mut client = Client::greet(stream, flags);
        client.send(option::EXPORT_NAME, name.as_bytes());
        let agreed = server.agreed();
        assert_eq!(agreed, Agreed { export, structured: false, base_allocation: false, block_sizes: false });
        let wanted = [&export_info(0b1101_0110_1101)[2..], &vec![0; zeroes]].concat();
        assert_eq!(client.rest(), wanted, "flags {flags}");
    }
}

#[test]
fn an_export_by_a_wrong_name_ends_the_session_without_a_word() {
    // An invalid name violates the protocol. An unknown name does not, nor does an export whose block size the client
    // does not know; these are refused.
    let rows = [
        (&b"nothing"[..], false),
        (b"coarse", false),
        (b"\xff", true),
        (b"fir\0st", true),
        (&[b'x'; 4097], true),
    ];
    for (name, violation) in rows {
        let (mut client, server) = session(Settings::default());
        client.send(option::EXPORT_NAME, name);
        let ended = server.ended();
        assert_eq!(matches!(&ended, Ended::Violation(_)), violation, "{ended}");
        assert!(violation || matches!(&ended, Ended::Refused(_)), "{ended}");
        assert!(client.rest().is_empty());
    }
}

#[test]
fn abort_is_answered_and_ends_the_session() {
    for data in [&[][..], &[1, 2, 3]] {
        let (mut client, server) = session(Settings::default());
        assert_eq!(client.ask(option::ABORT, data), [(reply::ACK, vec![])]);
        assert!(client.rest().is_empty());
        assert!(matches!(server.ended(), Ended::Aborted));
    }
    // A client that does not wait for the reply has aborted too.
    let (mut client, server) = session(Settings::default());
    client.send(option::ABORT, &[]);
    drop(client);
    assert!(matches!(server.ended(), Ended::Aborted | Ended::Left));
}

#[test]
fn wrong_greetings_and_magics_end_the_session() {
    for flags in [4, 0x8000_0003, 0xffff_ffff] {
        let (stream, server) = Server::start(Settings::default());
        let mut client = Client::greet(stream, flags);
        assert!(matches!(server.ended(), Ended::Violation(_)), "flags {flags:#x}");
        assert!(client.rest().is_empty());
    }
    let (mut client, server) = session(Settings::default());
    client.stream.write_all(b"GET / HTTP/1.1\r\n").expect("sent");
    let ended = server.ended();
    assert!(matches!(&ended, Ended::Violation(_)), "{ended}");
    assert!(client.rest().is_empty());
}

#[test]
fn a_client_without_fixed_newstyle_may_only_name_an_export() {
    for option in [option::LIST, option::ABORT, option::GO, option::STARTTLS, 99] {
        let (stream, server) = Server::start(Settings::default());
        let mut client = Client::greet(stream, 2);
        client.send(option, &[]);
        assert!(matches!(server.ended(), Ended::Violation(_)), "option {option}");
        assert!(client.rest().is_empty());
    }
}

#[test]
fn a_client_may_leave_at_any_byte() {
    let session = [
        &FIXED_NO_ZEROES.to_be_bytes()[..],
        &message(option::STRUCTURED_REPLY, &[]),
        &message(option::INFO, &choice("first", &[1])),
        &message(option::EXPORT_NAME, b"first"),
    ]
    .concat();
    for length in 0..session.len() {
        let (mut stream, server) = Server::start(Settings::default());
        stream.write_all(&session[..length]).expect("sent");
        stream.shutdown(Shutdown::Write).expect("shut");
        let ended = server.ended();
        assert!(matches!(&ended, Ended::Left), "after {length} bytes: {ended}");
    }
}

#[test]
fn what_is_sent_early_is_not_lost() {
    let session = [
        &FIXED_NO_ZEROES.to_be_bytes()[..],
        &message(option::STRUCTURED_REPLY, &[]),
        &message(option::GO, &choice("second", &[])),
        b"the first request",
    ]
    .concat();
    let (mut stream, server) = Server::start(Settings::default());
    stream.write_all(&session).expect("sent");
    let (mut transport, agreed) = server.outcome().expect("agreed");
    assert_eq!(agreed, Agreed { export: 1, structured: true, base_allocation: false, block_sizes: false });
    let mut buffer = [0; 64];
    let read = transport.read(&mut buffer).expect("bytes");
    assert_eq!(&buffer[..read], b"the first request");
    let nothing = transport.read(&mut buffer).expect_err("no more");
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
    stream.shutdown(Shutdown::Write).expect("shut");
    assert_eq!(transport.read(&mut buffer).expect("the end"), 0);
}

#[test]
fn a_client_that_was_told_the_size_of_a_block_is_known_by_that() {
    let told = |ask: &dyn Fn(&mut Client<std::os::unix::net::UnixStream>)| {
        let (mut client, server) = session(Settings::default());
        ask(&mut client);
        server.agreed().block_sizes
    };
    let by_name = |client: &mut Client<_>| client.send(option::EXPORT_NAME, b"first");
    assert!(!told(&by_name));
    assert!(!told(&|client| drop(client.ask(option::GO, &choice("first", &[])))));
    assert!(told(&|client| drop(client.ask(option::GO, &choice("first", &[info::BLOCK_SIZE])))));
    let asked = |name: &'static str| {
        move |client: &mut Client<_>| {
            client.ask(option::INFO, &choice(name, &[info::BLOCK_SIZE]));
            by_name(client);
        }
    };
    assert!(told(&asked("first")));
    assert!(!told(&asked("second")), "that was another export");
}
