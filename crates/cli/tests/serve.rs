//! `run --serve` and `drive serve --metrics`: pages over HTTP for well-behaved and for hostile clients. Clients
//! behave identically in every run. No test asserts a speed: each wait has a limit of a minute.

mod common;

use common::{Lab, Running, assert_says, done_and_begun, memory_kib};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Signal};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// An experiment whose cells take far longer than a test.
const LONG: &str = common::experiment!(
    "long",
    "secure-erase",
    "pattern = 'random-write'\nblock = '16KiB'\ninterval = '10min'\nrequests = 600000000\n\
     [sweep]\nfile_size = { from = '10GiB', to = '80GiB', step = '10GiB' }\n[repeat]\ntimes = 40\n"
);

/// Limit of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Descriptors that a server may use in addition to the campaign's.
const BUDGET: usize = 64;

/// Sends a request; returns the status line with the headers, and the body.
fn ask(address: &str, method: &str, path: &str, host: &str) -> (String, String) {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    exchange(address, request.as_bytes()).expect("it answers")
}

/// Sends bytes; returns the head and the body of everything received until the server closes.
fn exchange(address: &str, request: &[u8]) -> std::io::Result<(String, String)> {
    let mut stream = connect(address)?;
    stream.write_all(request)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8(answer).expect("it answers in UTF-8");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(ErrorKind::UnexpectedEof)?;
    Ok((head.to_owned(), body.to_owned()))
}

/// Connects with timeouts of [`PATIENCE`].
fn connect(address: &str) -> std::io::Result<TcpStream> {
    let address: SocketAddr = address.parse().expect("an address");
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Requests the page until the answer is complete, because the server may drop connections during an attack.
fn insist(address: &str) -> String {
    let begin = Instant::now();
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    loop {
        match exchange(address, request.as_bytes()) {
            Ok((head, body)) if head.starts_with("HTTP/1.1 200") => return body,
            other => assert!(begin.elapsed() < PATIENCE, "{other:?}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A run with a server, and the server's address.
struct Served {
    run: Running,
    address: String,
}

impl Served {
    /// Starts a run of [`LONG`], and waits until its first cell is done.
    fn long() -> (Lab, Served) {
        let lab = Lab::with(&[("long.toml", LONG)]);
        let mut served = Served::start(&lab, "./long.toml", 1024, &[]);
        served.first_cell(&lab);
        (lab, served)
    }

    /// Starts a run of `experiment` with a limit of descriptors, with `more` and, unless `more` has `--serve`,
    /// `--serve 0`.
    fn start(lab: &Lab, experiment: &str, descriptors: usize, more: &[&str]) -> Served {
        let mut run = vec!["run", experiment, "--scale", "1/256", "--jobs", "1"];
        if !more.contains(&"--serve") {
            run.extend(["--serve", "0"]);
        }
        let limit = format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &limit, env!("CARGO_BIN_EXE_lowtide")]).args(run).args(more);
        command.current_dir(lab.path(".")).env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Served::of(command, "http://")
    }

    fn of(mut command: Command, before: &str) -> Served {
        let mut run = Running::start(&mut command);
        let mut error = BufReader::new(run.0.stderr.take().expect("standard error is a pipe"));
        let mut line = String::new();
        while !line.contains(before) {
            line.clear();
            assert_ne!(error.read_line(&mut line).expect("UTF-8"), 0, "it ended before it served");
        }
        std::thread::spawn(move || std::io::copy(&mut error, &mut std::io::sink()));
        let address = line.trim().rsplit_once(before).expect("an address").1;
        let address = address.split('/').next().expect("there is one").to_owned();
        Served { run, address }
    }

    /// Waits for the first cell that is done.
    fn first_cell(&mut self, lab: &Lab) {
        let store = lab.path("lowtide.db");
        self.run.reaches("a cell is done", || done_and_begun(&store).0 >= 1);
    }

    fn descriptors(&self) -> usize {
        let path = format!("/proc/{}/fd", self.run.0.id());
        std::fs::read_dir(path).expect("the run is there").count()
    }

    /// Resident memory in MiB.
    fn memory(&self) -> u64 {
        memory_kib(self.run.0.id(), "VmRSS").expect("it runs") / 1024
    }

    fn interrupt(mut self) {
        self.run.interrupt();
    }
}

/// Misbehaviour of a client.
#[derive(Clone, Copy)]
enum Attack {
    /// Connects, and sends nothing.
    HalfOpen,
    /// Requests the page again and again, and reads nothing.
    NoReader,
    /// Sends its headers a byte at a time.
    SlowHead,
    /// Sends headers without end.
    EndlessHead,
    /// Announces a body, and sends only its beginning.
    UnfinishedPost,
}

const ATTACKS: [Attack; 5] =
    [Attack::HalfOpen, Attack::NoReader, Attack::SlowHead, Attack::EndlessHead, Attack::UnfinishedPost];

/// Many misbehaving clients, which reconnect when they are disconnected.
struct Crowd {
    leave: Arc<AtomicBool>,
    /// Clients that have been connected at least once.
    came: Arc<AtomicUsize>,
    count: usize,
    threads: Vec<JoinHandle<()>>,
}

impl Crowd {
    /// `count` clients, with every kind of attack.
    fn of(count: usize, address: &str) -> Crowd {
        let mut limit = rustix::process::getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        rustix::process::setrlimit(Resource::Nofile, limit).expect("the soft limit can be raised");
        let address: SocketAddr = address.parse().expect("an address");
        let (leave, came) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let clients: Vec<usize> = (0..count).collect();
        let group = |clients: &[usize]| {
            let (leave, came) = (Arc::clone(&leave), Arc::clone(&came));
            let mut group: Vec<Client> =
                clients.iter().map(|number| Client::new(ATTACKS[number % ATTACKS.len()])).collect();
            std::thread::spawn(move || {
                while !leave.load(Ordering::Relaxed) {
                    for client in &mut group {
                        came.fetch_add(usize::from(client.attack(address)), Ordering::Relaxed);
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
            })
        };
        let threads = clients.chunks(25).map(group).collect();
        Crowd { leave, came, count, threads }
    }

    /// Waits until all clients have been connected.
    fn wait(&self) {
        let begin = Instant::now();
        let came = || self.came.load(Ordering::Relaxed);
        while came() < self.count {
            assert!(begin.elapsed() < PATIENCE, "{} of {} connected", came(), self.count);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn leave(mut self) {
        self.leave.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a client does not panic");
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.leave.store(true, Ordering::Relaxed);
    }
}

struct Client {
    attack: Attack,
    stream: Option<TcpStream>,
    came: bool,
}

impl Client {
    fn new(attack: Attack) -> Client {
        Client { attack, stream: None, came: false }
    }

    /// Reconnects if necessary, or continues the attack; returns true after the client's first connection.
    fn attack(&mut self, address: SocketAddr) -> bool {
        self.stream = self.stream.take().filter(is_open);
        if let Some(stream) = &mut self.stream {
            let bytes = match self.attack {
                Attack::HalfOpen | Attack::UnfinishedPost => Vec::new(),
                Attack::NoReader => b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(8),
                Attack::SlowHead => b"x".to_vec(),
                Attack::EndlessHead => vec![b'x'; 64 << 10],
            };
            // Bytes that do not fit the socket's buffer are not sent.
            let _ = stream.write(&bytes);
            false
        } else if let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(2)) {
            let bytes: &[u8] = match self.attack {
                Attack::HalfOpen | Attack::NoReader => b"",
                Attack::SlowHead | Attack::EndlessHead => b"GET / HTTP/1.1\r\nHost: localhost\r\nA: ",
                Attack::UnfinishedPost => {
                    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\nabc"
                }
            };
            stream.set_nonblocking(true).expect("a socket can be set so");
            let _ = stream.write(bytes);
            self.stream = Some(stream);
            !std::mem::replace(&mut self.came, true)
        } else {
            false
        }
    }
}

/// Returns whether the connection is open at the server's end.
fn is_open(stream: &TcpStream) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready == 0)
}

#[test]
fn the_report_grows_while_the_campaign_runs_and_ends_with_it() {
    let lab = Lab::with(&[("long.toml", LONG)]);
    let mut served = Served::start(&lab, "./long.toml", 1024, &[]);
    let address = served.address.clone();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    served.first_cell(&lab);

    let (head, page) = ask(&address, "GET", "/", &address);
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/html"), "{head}");
    assert!(page.contains("<h1>long</h1>") && page.contains("setInterval"), "{page}");
    let (head, json) = ask(&address, "GET", "/report.json?x=1", &address);
    assert!(head.contains("application/json"), "{head}");
    let first = common::json(&json);
    assert!(first["tables"]["cells"]["rows"].is_array());
    let (head, body) = ask(&address, "HEAD", "/", &address);
    assert!(head.starts_with("HTTP/1.1 200") && body.is_empty(), "{head}\n{body}");
    assert!(ask(&address, "GET", "/etc/passwd", &address).0.starts_with("HTTP/1.1 404"));
    let (head, _) = ask(&address, "POST", "/", &address);
    assert!(head.starts_with("HTTP/1.1 405") && head.contains("Allow: GET, HEAD"), "{head}");
    let done = |json: &serde_json::Value| json["facts"]["cells"].as_str().expect("a fact").to_owned();
    let before = done(&first);
    let now = || done(&common::json(&ask(&address, "GET", "/report.json", &address).1));
    served.run.reaches("the report grows", || now() != before);
    served.interrupt();
    assert!(TcpStream::connect(&address).is_err(), "the server ended with the run");
}

#[test]
fn a_connection_serves_several_requests() {
    let (_lab, served) = Served::long();
    let mut stream = BufReader::new(connect(&served.address).expect("it listens"));
    for (method, path, status) in [
        ("GET", "/", "200"),
        ("HEAD", "/", "200"),
        ("GET", "/nothing", "404"),
        ("DELETE", "/", "405"),
        ("GET", "/report.json", "200"),
    ] {
        write!(stream.get_mut(), "{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .expect("it takes a request");
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let from = head.len();
            assert_ne!(stream.read_line(&mut head).expect("a line"), 0, "{method} {path}: {head}");
            if let Some(value) = head[from..].strip_prefix("Content-Length: ") {
                length = value.trim().parse().expect("a number");
            }
        }
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{method} {path}: {head}");
        assert!(head.contains("Connection: keep-alive") && head.contains("Date: ") && length > 0, "{head}");
        if method != "HEAD" {
            let mut body = vec![0; length];
            stream.read_exact(&mut body).expect("a body as long as announced");
        }
    }
    served.interrupt();
}

#[test]
fn malformed_and_large_requests_are_refused() {
    let (_lab, served) = Served::long();
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nA: {}\r\n\r\n", "a".repeat(20_000));
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", "413"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", "413"),
        ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", "405"),
        (long.as_str(), "431"),
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("\u{16}\u{3}\u{1}", "400"),
    ] {
        let (head, _) = exchange(&served.address, request.as_bytes()).expect("it answers");
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{request:.60}: {head}");
        assert!(head.contains("Connection: close"), "{head}");
    }
    served.interrupt();
}

#[test]
fn requests_for_other_hosts_are_refused_at_every_address() {
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let own = ["localhost", "127.0.0.1:80", "[::1]:8080", "lab.example", &machine];
    for bound in ["127.0.0.1:0", "0.0.0.0:0"] {
        let lab = Lab::with(&[("long.toml", LONG)]);
        let mut served =
            Served::start(&lab, "./long.toml", 1024, &["--serve", bound, "--accept-host", "lab.example"]);
        let address = served.address.replace("0.0.0.0", "127.0.0.1");
        served.first_cell(&lab);
        for host in own {
            assert!(ask(&address, "GET", "/", host).0.starts_with("HTTP/1.1 200"), "{bound}: {host}");
        }
        for host in ["evil.example", "10.99.99.99", "localhost.evil.example", "a.lab.example"] {
            let (head, body) = ask(&address, "GET", "/", host);
            let is_refused = head.starts_with("HTTP/1.1 403") && body.contains("--accept-host");
            assert!(is_refused, "{bound}: {host}: {head}");
        }
        served.interrupt();
    }
    let lab = Lab::new();
    lab.refuses("run ./reads.toml --serve 0 --accept-host a:80", 2, &["a name or an address without a port"]);
}

#[test]
fn counters_have_the_same_rule_and_the_same_limits() {
    let lab = Lab::new();
    let mut command = lab.command(
        "drive serve intel-320-160gb --scale 1/256 --no-delay --unix drive.sock --metrics 0 \
         --accept-host lab.example",
    );
    command.stdout(Stdio::null());
    let served = Served::of(command, "Prometheus: http://");
    let before = served.descriptors();
    let crowd = Crowd::of(200, &served.address);
    crowd.wait();
    assert!(served.descriptors() <= before + BUDGET, "{} after {before}", served.descriptors());
    crowd.leave();
    for host in ["localhost", "127.0.0.1", "lab.example:9100"] {
        let (head, body) = ask(&served.address, "GET", "/metrics", host);
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("version=0.0.4"), "{host}: {head}");
        assert!(body.contains("# TYPE lowtide_"), "{body}");
    }
    assert!(ask(&served.address, "GET", "/metrics", "evil.example").0.starts_with("HTTP/1.1 403"));
    assert!(ask(&served.address, "GET", "/", "localhost").0.starts_with("HTTP/1.1 404"));
    assert!(ask(&served.address, "POST", "/metrics", "localhost").0.starts_with("HTTP/1.1 405"));
    served.run.signal(Signal::TERM);
}

/// Symptom: with 532 silent connections, cells failed with "too many open files". Cause: each connection kept two
/// descriptors without a time limit. Fix: a budget, and deadlines.
#[test]
fn silent_connections_leave_the_campaign_its_descriptors() {
    let lab = Lab::with(&[("long.toml", LONG)]);
    let mut served = Served::start(&lab, "./long.toml", 256, &[]);
    served.first_cell(&lab);
    let before = served.descriptors();
    let connections: Vec<TcpStream> =
        (0..300).map(|_| connect(&served.address).expect("the kernel accepts")).collect();
    let page = insist(&served.address);
    assert!(page.contains("<h1>long</h1>"), "{page}");
    assert!(served.descriptors() <= before + BUDGET, "{} after {before}", served.descriptors());
    // The server closes each connection.
    for mut stream in connections {
        let ended = stream.read(&mut [0]);
        let reset = |error: &std::io::Error| error.kind() == ErrorKind::ConnectionReset;
        assert!(matches!(ended, Ok(0)) || ended.as_ref().is_err_and(reset), "{ended:?}");
    }
    served.interrupt();
}

/// Symptom: the page of a run with few descriptors used all of them. Fix: no connection is accepted while half of the
/// descriptors are in use.
#[test]
fn a_page_takes_no_descriptor_if_they_are_scarce() {
    let lab = Lab::new();
    lab.write("tiny.toml", common::TINY.replace("40min", "4h"));
    lab.ok("run ./tiny.toml --scale 1/256 --store calm.db");
    let mut served = Served::start(&lab, "./tiny.toml", 32, &[]);
    let connections: Vec<TcpStream> = (0..100).map_while(|_| connect(&served.address).ok()).collect();
    assert_eq!(served.run.wait(), Some(0));
    drop(connections);
    assert!(lab.exports("lowtide.db") == lab.exports("calm.db"));
}

/// Symptom: headers of 400 MiB were kept in memory. Fix: after 16 KiB the answer is 431.
#[test]
fn endless_headers_are_not_kept() {
    let (_lab, served) = Served::long();
    let before = served.memory();
    let mut stream = connect(&served.address).expect("it listens");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nA: ").expect("it takes a request");
    let part = vec![b'a'; 1 << 20];
    let sent = (0..400).take_while(|_| stream.write_all(&part).is_ok()).count();
    assert!(sent < 64, "{sent} MiB were taken");
    let after = served.memory();
    assert!(after < before + 100, "{before} MiB, then {after} MiB");
    served.interrupt();
}

/// Symptom: a client that read nothing, or sent a POST without its body, blocked all other clients. Cause: one thread
/// wrote all answers and waited for each, and the server waited for the body.
#[test]
fn stalled_clients_do_not_block_others() {
    let (_lab, served) = Served::long();
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut streams: Vec<TcpStream> = (0..3).map(|_| connect(&served.address).expect("it listens")).collect();
    for stream in &streams {
        stream.set_nonblocking(true).expect("a socket can be set so");
    }
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {
        for stream in &mut streams {
            let _ = stream.write(&request.repeat(100));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let assert_served = || {
        let (head, _) = ask(&served.address, "GET", "/", "localhost");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    };
    assert_served();
    drop(streams);
    let post = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nabc";
    let mut posts: Vec<TcpStream> = (0..3).map(|_| connect(&served.address).expect("it listens")).collect();
    posts.iter_mut().for_each(|stream| stream.write_all(post).expect("sent"));
    assert_served();
    for mut stream in posts {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer without waiting for the body");
        assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    }
    served.interrupt();
}

/// Symptom: clients could keep connections without a time limit. Fix: a deadline for every state.
#[test]
fn slow_clients_are_disconnected() {
    let (_lab, served) = Served::long();
    let mut silent = connect(&served.address).expect("it listens");
    let mut slow = connect(&served.address).expect("it listens");
    let mut drips = slow.try_clone().expect("a second descriptor");
    std::thread::spawn(move || {
        for byte in b"GET / HTTP/1.1\r\nHost: ".iter().chain(std::iter::repeat_n(&b'a', 600)) {
            if drips.write(&[*byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    assert_eq!(silent.read(&mut [0]).expect("the server closes"), 0);
    let mut answer = [0; 12];
    slow.read_exact(&mut answer).expect("an answer before the end of the request");
    assert_eq!(&answer, b"HTTP/1.1 408");
    served.interrupt();
}

#[test]
fn a_thousand_attackers_change_no_row_and_lock_out_no_client() {
    let lab = Lab::new();
    lab.write("rows.toml", LONG.replace("times = 40", "times = 4"));
    lab.ok("run ./rows.toml --scale 1/256 --jobs 1 --store calm.db");
    let mut served = Served::start(&lab, "./rows.toml", 1024, &[]);
    served.first_cell(&lab);
    let (descriptors, memory) = (served.descriptors(), served.memory());
    let crowd = Crowd::of(1000, &served.address);
    crowd.wait();
    for _ in 0..3 {
        assert!(insist(&served.address).contains("<h1>long</h1>"));
        let now = served.descriptors();
        assert!(now <= descriptors + BUDGET, "{now} descriptors, {descriptors} before");
        let now = served.memory();
        assert!(now < memory + 200, "{now} MiB, {memory} MiB before");
    }
    assert!(!served.run.has_ended(), "the run ended before the crowd was connected: make it longer");
    crowd.leave();
    // The server opens and closes connections to the store by itself.
    let begin = Instant::now();
    while served.descriptors() > descriptors + 4 {
        assert!(begin.elapsed() < PATIENCE, "{} descriptors, {descriptors} before", served.descriptors());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(served.run.wait(), Some(0));
    assert!(lab.exports("lowtide.db") == lab.exports("calm.db"), "a row differs");
}

#[test]
fn a_port_in_use_is_an_error_before_anything_is_written() {
    let lab = Lab::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it has an address").to_string();
    lab.refuses(
        &format!("run ./reads.toml --scale 1/256 --serve {address}"),
        2,
        &["cannot listen at 127.0.0.1:", "0 takes any free port"],
    );
    lab.refuses("run ./reads.toml --serve localhost:x", 2, &["write a port such as `8080`"]);
}

#[test]
fn without_a_terminal_watch_is_plain_progress() {
    let lab = Lab::new();
    let (_, error) = lab.ends("run ./reads.toml --scale 1/256 --watch", 0);
    assert_says(&error, &["--watch needs a terminal of at least 80 columns", "[1/1] cell 0:"]);
}
