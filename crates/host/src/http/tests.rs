//! The server with clients on loopback: rendering, permitted hosts, replacement of connections.

use super::head::Host;
use super::{CONNECTIONS, Hosts, Page, Rendering, Server, Site};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

const PAGES: [Page; 2] = [
    Page { path: "/", kind: "text/plain" },
    // Rendering blocks until the test continues it.
    Page { path: "/slow", kind: "text/plain" },
];

/// A site that counts its renderings.
struct Counting {
    made: Arc<AtomicUsize>,
    go_on: Receiver<()>,
    bytes: usize,
}

impl Site for Counting {
    fn pages(&self) -> &'static [Page] {
        &PAGES
    }

    fn render(&mut self, page: &Page) -> Result<Rendering, String> {
        self.made.fetch_add(1, Ordering::Relaxed);
        if page.path == "/slow" {
            self.go_on.recv().map_err(|_| "the test has ended".to_owned())?;
        }
        Ok(Rendering::New(vec![b'x'; self.bytes]))
    }
}

struct Fixture {
    server: Server,
    made: Arc<AtomicUsize>,
    /// Continues the rendering of the slow page.
    go_on: std::sync::mpsc::SyncSender<()>,
}

fn start(bytes: usize) -> Fixture {
    let made = Arc::<AtomicUsize>::default();
    let (go_on, goes_on) = sync_channel(8);
    let site = Counting { made: Arc::clone(&made), go_on: goes_on, bytes };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let hosts = Hosts::new(&[Host::Name("lab.example".to_owned())], "--accept-host");
    let server = Server::start(listener, hosts, site).expect("it starts");
    Fixture { server, made, go_on }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket can be set so");
    stream
}

fn ask(stream: &mut TcpStream, path: &str) {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("sent");
}

/// The answer up to the end of the connection.
fn answer(stream: &mut TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn a_page_is_rendered_once_for_all_clients_within_a_second() {
    let fixture = start(1000);
    let begin = Instant::now();
    let clients: Vec<_> = (0..400)
        .map(|_| {
            let mut stream = connect(fixture.server.address());
            ask(&mut stream, "/");
            stream
        })
        .collect();
    for mut stream in clients {
        let answer = answer(&mut stream);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("xxxx"), "{answer:.200}");
    }
    let most = 2 + begin.elapsed().as_secs() as usize;
    let made = fixture.made.load(Ordering::Relaxed);
    assert!((1..=most).contains(&made), "{made} times, at most {most} were expected");
}

#[test]
fn a_slow_page_does_not_delay_others() {
    let fixture = start(10);
    let mut other = connect(fixture.server.address());
    ask(&mut other, "/");
    assert!(answer(&mut other).starts_with("HTTP/1.1 200"));
    let mut slow = connect(fixture.server.address());
    ask(&mut slow, "/slow");
    let mut refused = connect(fixture.server.address());
    ask(&mut refused, "/nothing");
    assert!(answer(&mut refused).starts_with("HTTP/1.1 404"));
    // While the slow page is rendered, clients of other pages get the old version.
    let mut again = connect(fixture.server.address());
    ask(&mut again, "/");
    assert!(answer(&mut again).starts_with("HTTP/1.1 200"));
    fixture.go_on.send(()).expect("it waits");
    assert!(answer(&mut slow).starts_with("HTTP/1.1 200"));
    drop(fixture.go_on);
}

#[test]
fn clients_that_read_nothing_are_replaced() {
    // More than the socket buffers of all clients.
    let fixture = start(8 << 20);
    let mut deaf: Vec<_> = (0..2 * CONNECTIONS).map(|_| connect(fixture.server.address())).collect();
    deaf.iter_mut().for_each(|stream| {
        // Replaced clients cannot be written to.
        let _ = write!(stream, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    });
    let mut stream = connect(fixture.server.address());
    ask(&mut stream, "/");
    let answer = answer(&mut stream);
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert_eq!(body.len(), 8 << 20);
}

#[test]
fn idle_connections_are_replaced_and_hosts_are_checked() {
    let fixture = start(10);
    let idle: Vec<_> = (0..4 * CONNECTIONS).map(|_| connect(fixture.server.address())).collect();
    for (host, status) in [("localhost", 200), ("lab.example:80", 200), ("evil.example", 403), ("a b", 400)] {
        let mut stream = connect(fixture.server.address());
        write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("sent");
        let answer = answer(&mut stream);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {answer}");
    }
    drop(idle);
}

#[test]
fn a_server_that_ends_closes_its_port_and_its_connections() {
    let fixture = start(10);
    let address = fixture.server.address();
    let mut stream = connect(address);
    drop(fixture.server);
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    assert!(TcpStream::connect(address).is_err());
}
