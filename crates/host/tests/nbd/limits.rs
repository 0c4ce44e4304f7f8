//! Limits on the time, options and bytes that one client may use.

use crate::client::*;
use lowtide_host::Event;
use lowtide_host::nbd::wire::{self, option, reply};
use lowtide_host::nbd::{Ended, Settings};
use std::io::Write;
use std::time::Duration;

/// Long enough for a few bytes, short enough for a test to wait.
const MOMENT: Duration = Duration::from_millis(200);

#[test]
fn a_client_that_says_nothing_is_dropped() {
    let settings = Settings { first_option: MOMENT, ..Settings::default() };
    for flags in [None, Some(FIXED_NO_ZEROES)] {
        let (mut stream, server) = Server::start(settings.clone());
        if let Some(flags) = flags {
            stream.write_all(&flags.to_be_bytes()).expect("sent");
        }
        assert!(matches!(server.ended(), Ended::TimedOut(MOMENT)));
    }
}

#[test]
fn a_client_that_dribbles_is_dropped() {
    let settings = Settings { all_options: MOMENT, ..Settings::default() };
    let (mut client, server) = session(settings);
    client.kinds(option::LIST, &[]);
    // Sends an endless sequence of options byte by byte. Each option takes far less time than the limit for all of
    // them.
    let endless = message(99, &[]).into_iter().cycle();
    for byte in endless {
        // Fails once the server has closed the connection.
        if client.stream.write_all(&[byte]).is_err() {
            break;
        }
        std::thread::sleep(MOMENT / 40);
    }
    assert!(matches!(server.ended(), Ended::TimedOut(MOMENT)));
}

#[test]
fn a_client_that_does_not_read_is_dropped() {
    let settings = Settings { all_options: MOMENT, ..Settings::default() };
    let (stream, server) = Server::start(settings);
    // The replies to 250 options do not fit into the socket buffer, but 250 options are within the limit.
    rustix::net::sockopt::set_socket_send_buffer_size(&stream, 1 << 20).expect("a size");
    let mut client = Client::greet(stream, FIXED_NO_ZEROES);
    let asked = message(option::GO, &choice(&"z".repeat(4000), &[]));
    let whole: Vec<u8> = asked.iter().copied().cycle().take(asked.len() * 250).collect();
    // Fails if the server closes the connection before it has read everything.
    let _ = client.stream.write_all(&whole);
    let ended = server.ended();
    assert!(matches!(ended, Ended::TimedOut(_)), "{ended}");
}

#[test]
fn a_server_that_ends_ends_its_negotiations() {
    let stop = Event::new().expect("an eventfd");
    assert!(!stop.is_set());
    let (mut client, server) = session(Settings { stop: Some(stop.clone()), ..Settings::default() });
    client.kinds(option::LIST, &[]);
    stop.set();
    assert!(stop.is_set());
    assert!(matches!(server.ended(), Ended::Stopping));
    assert!(client.rest().is_empty());
}

#[test]
fn options_are_counted() {
    let (mut client, server) = session(Settings::default());
    for _ in 0..256 {
        assert_eq!(client.kinds(99, &[]), [reply::ERR_UNSUP]);
    }
    assert!(client.rest().is_empty());
    assert!(matches!(server.ended(), Ended::Violation(_)));
}

#[test]
fn announced_bytes_are_limited() {
    for (option, length) in [(99, (1 << 20) + 1), (option::GO, u32::MAX), (option::EXPORT_NAME, 1 << 31)] {
        let (mut client, server) = session(Settings::default());
        let header =
            [wire::OPTION_MAGIC.to_be_bytes().to_vec(), [option, length].map(u32::to_be_bytes).concat()];
        client.stream.write_all(&header.concat()).expect("sent");
        let ended = server.ended();
        assert!(matches!(&ended, Ended::Violation(_)), "{ended}");
        assert!(client.rest().is_empty());
    }
}
