//! Listening: obstacles to a unix socket, ports, the limit on clients, and shutdown.

use crate::client::*;
use lowtide_host::HostError;
use lowtide_host::nbd::listen::NEGOTIATING;
use lowtide_host::nbd::wire::{option, reply};
use lowtide_host::nbd::{Address, Agreed, Ended, Listener, Settings, Transport};
use std::io::Read;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn refused(path: &Path) -> String {
    let error = Listener::new(1).unix(path).expect_err("refused");
    assert!(matches!(&error, HostError::Listen { .. }));
    error.to_string()
}

/// An event of a listener, in the order of arrival.
enum Event {
    Client(Transport, Agreed),
    Ended(String, Ended),
}

/// Runs `body` concurrently with a listener for two clients, then stops the listener.
fn beside(listener: &Listener, body: impl FnOnce(&Receiver<Event>)) {
    let stop = lowtide_host::Event::new().expect("an eventfd");
    let settings = Settings { stop: Some(stop.clone()), ..Settings::default() };
    let (sender, events) = channel();
    std::thread::scope(|threads| {
        let (settings, sender) = (&settings, &sender);
        let running = threads.spawn(move || {
            listener.run(
                &exports(),
                settings,
                |transport, agreed| sender.send(Event::Client(transport, agreed)).expect("heard"),
                |peer, ended| sender.send(Event::Ended(peer.to_owned(), ended)).expect("heard"),
            )
        });
        // Stops the listener even if the body panics.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&events)));
        stop.set();
        running.join().expect("no panic").expect("stopped");
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

fn next(events: &Receiver<Event>) -> Event {
    events.recv_timeout(Duration::from_secs(20)).expect("something happens")
}

fn client(events: &Receiver<Event>) -> (Transport, Agreed) {
    match next(events) {
        Event::Client(transport, agreed) => (transport, agreed),
        Event::Ended(peer, ended) => panic!("{peer} {ended}"),
    }
}

#[test]
fn a_unix_socket_is_its_owners_and_goes_away() {
    let folder = folder();
    let path = folder.path().join("drive.sock");
    let mut listener = Listener::new(2);
    listener.unix(&path).expect("a socket");
    assert_eq!(path.metadata().expect("it is there").permissions().mode() & 0o777, 0o600);
    assert_eq!(listener.addresses().collect::<Vec<_>>(), [&Address::Unix(path.clone())]);
    beside(&listener, |events| {
        let mut it = Client::greet(UnixStream::connect(&path).expect("it listens"), FIXED_NO_ZEROES);
        it.ask(option::GO, &choice("second", &[]));
        let (transport, agreed) = client(events);
        assert_eq!((agreed.export, transport.peer()), (1, "client 1"));
    });
    drop(listener);
    assert!(!path.exists());
}

#[test]
fn what_is_in_the_way_of_a_unix_socket_is_told() {
    let folder = folder();
    let path = folder.path().join("drive.sock");
    std::fs::write(&path, "mine").expect("a file");
    assert!(refused(&path).contains("is not a socket"), "{}", refused(&path));
    assert_eq!(std::fs::read(&path).expect("it is still there"), b"mine");
    std::fs::remove_file(&path).expect("removed");

    let other = UnixListener::bind(&path).expect("a socket");
    assert!(refused(&path).contains("another server listens there"), "{}", refused(&path));
    drop(other);
    assert!(path.exists(), "its server ended and left it");
    let mut listener = Listener::new(1);
    listener.unix(&path).expect("the old socket is replaced");

    // A file of another program at the socket's path is not removed.
    std::fs::remove_file(&path).expect("removed");
    std::fs::write(&path, "mine").expect("a file");
    drop(listener);
    assert!(path.exists());

    let long = folder.path().join("x".repeat(120));
    assert!(refused(&long).contains("at most 107"), "{}", refused(&long));
    let nowhere = folder.path().join("none/drive.sock");
    assert!(refused(&nowhere).contains("No such file"), "{}", refused(&nowhere));
}

#[test]
fn a_free_port_is_told_and_a_wrong_address_too() {
    let mut listener = Listener::new(2);
    listener.tcp("127.0.0.1:0").expect("a port");
    let Some(Address::Tcp(address)) = listener.addresses().next().cloned() else { panic!("no port") };
    assert_ne!(address.port(), 0);
    beside(&listener, |events| {
        let stream = TcpStream::connect(address).expect("it listens");
        let peer = stream.local_addr().expect("an address").to_string();
        let mut it = Client::greet(stream, FIXED_NO_ZEROES);
        it.ask(option::GO, &choice("", &[]));
        let (transport, agreed) = client(events);
        assert_eq!((agreed.export, transport.peer()), (0, &*peer));
        assert!(rustix::net::sockopt::tcp_nodelay(transport.read_fd()).expect("a TCP socket"));
    });
    let taken = Listener::new(1).tcp(&address.to_string()).expect_err("taken").to_string();
    assert!(taken.contains("choose another port"), "{taken}");
    let wrong = Listener::new(1).tcp("127.0.0.1").expect_err("no port").to_string();
    assert!(wrong.contains("HOST:PORT is accepted"), "{wrong}");
}

#[test]
fn one_client_too_many_is_told_so_until_another_leaves() {
    let folder = folder();
    let path = folder.path().join("drive.sock");
    let mut listener = Listener::new(2);
    listener.unix(&path).expect("a socket");
    beside(&listener, |events| {
        let greet = || Client::greet(UnixStream::connect(&path).expect("it listens"), FIXED_NO_ZEROES);
        let enter = || {
            let mut it = greet();
            it.ask(option::GO, &choice("", &[]));
            (it, client(events))
        };
        let (first, second) = (enter(), enter());
        let mut third = greet();
        assert_eq!(third.kinds(option::LIST, &[]).len(), 4, "looking takes no place");
        let replies = third.ask(option::GO, &choice("", &[]));
        assert_eq!(replies[0].0, reply::ERR_POLICY);
        let text = String::from_utf8_lossy(&replies[0].1);
        assert!(text.contains("the maximum of 2 clients is connected"), "{text}");
        assert!(third.rest().is_empty());
        assert!(matches!(next(events), Event::Ended(peer, Ended::Full(2)) if peer == "client 3"));
        // EXPORT_NAME has no error reply, so the server closes the connection.
        let mut fourth = greet();
        fourth.send(option::EXPORT_NAME, b"");
        assert!(fourth.rest().is_empty());
        assert!(matches!(next(events), Event::Ended(_, Ended::Full(2))));
        // A slot becomes free when the server has finished with a client, not when the client disconnects.
        drop(first);
        let fifth = enter();
        drop((second, fifth));
    });
}

/// Symptom: as many silent connections as there were client slots blocked a server for a minute. Cause: connections
/// held a slot while they negotiated. Fix: negotiations have slots of their own; if these are full, the connection
/// that has been silent for the longest is closed.
#[test]
fn clients_that_say_nothing_keep_nobody_out() {
    let folder = folder();
    let path = folder.path().join("drive.sock");
    let mut listener = Listener::new(2);
    listener.unix(&path).expect("a socket");
    beside(&listener, |events| {
        let connect = || UnixStream::connect(&path).expect("it listens");
        // One client came first and speaks; many others are silent.
        let mut speaks = Client::greet(connect(), FIXED_NO_ZEROES);
        let mut mute = Vec::new();
        for number in 0..NEGOTIATING + 8 {
            mute.push(connect());
            // The server speaks first, so a greeting means that the client was accepted.
            let stream = mute.last_mut().expect("there is one");
            stream.read_exact(&mut [0; 18]).expect("a greeting");
            assert_eq!(speaks.kinds(option::LIST, &[]).len(), 4, "after {number} that say nothing");
        }
        for (number, stream) in mute.iter_mut().take(9).enumerate() {
            assert_eq!(stream.read(&mut [0; 1]).expect("the end"), 0, "the oldest goes first: {number}");
            let Event::Ended(peer, ended) = next(events) else { panic!("nobody chose an export") };
            assert!(matches!(ended, Ended::Silent(NEGOTIATING)), "{peer} {ended}");
        }
        speaks.ask(option::GO, &choice("second", &[]));
        let (transport, agreed) = client(events);
        assert_eq!((agreed.export, transport.peer()), (1, "client 1"));
    });
}

#[test]
fn ending_does_not_wait_for_clients_that_say_nothing() {
    let folder = folder();
    let path = folder.path().join("drive.sock");
    let mut listener = Listener::new(2);
    listener.unix(&path).expect("a socket");
    let mut idle = Vec::new();
    beside(&listener, |_| {
        idle.push(Client::greet(UnixStream::connect(&path).expect("it listens"), FIXED_NO_ZEROES));
    });
    assert!(idle[0].rest().is_empty());
}

#[test]
fn addresses_are_given_as_clients_write_them() {
    let unix = Address::Unix("/tmp/a drive?".into());
    assert_eq!(unix.uri(false).expect("a URI"), "nbd+unix:///?socket=/tmp/a%20drive%3F");
    let tcp = Address::Tcp("[::1]:10809".parse().expect("an address"));
    assert_eq!(tcp.uri(true).expect("a URI"), "nbds://[::1]:10809");
}
