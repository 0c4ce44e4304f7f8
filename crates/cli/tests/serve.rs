//! `run --serve` and `serve --metrics`: pages over HTTP, by a client of a few lines, and by clients that mean no good. What they do
//! is the same in every run, and no test asserts how fast anything is: waits have limits of a minute.

mod common;

use common::{Lab, Running, assert_says, done_and_begun, wait_until};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Signal};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Cells that take far longer than the test.
const LONG: &str = r#"name = "long"
target.device = "intel-320-160gb"
[before-each-cell]
purge = "secure-erase"
fill = "sequential"
[workload]
pattern = "random-write"
block = "16KiB"
interval = "10min"
requests = 600000000
[sweep]
file_size = ["10GiB", "20GiB", "30GiB", "40GiB", "50GiB", "60GiB", "70GiB", "80GiB"]
[repeat]
times = 40
"#;

/// How long a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// Descriptors that a server may have beside the campaign's.
const BUDGET: usize = 64;

/// The status line with headers, and the body.
fn ask(address: &str, method: &str, path: &str, host: &str) -> (String, String) {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    tell(address, request.as_bytes()).expect("it answers")
}

/// What comes back for these bytes until the server closes.
fn tell(address: &str, request: &[u8]) -> std::io::Result<(String, String)> {
    let mut stream = connect(address)?;
    stream.write_all(request)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8(answer).expect("it answers in UTF-8");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(ErrorKind::UnexpectedEof)?;
    Ok((head.to_owned(), body.to_owned()))
}

/// A connection that waits for nothing longer than [`PATIENCE`].
fn connect(address: &str) -> std::io::Result<TcpStream> {
    let address: SocketAddr = address.parse().expect("an address");
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Asks until the answer is whole: whoever has many enemies may be cut off.
fn insist(address: &str) -> String {
    let begin = Instant::now();
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    loop {
        match tell(address, request.as_bytes()) {
            Ok((head, body)) if head.starts_with("HTTP/1.1 200") => return body,
            other => assert!(begin.elapsed() < PATIENCE, "{other:?}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A run that is looked at, and where; it may have as many descriptors as said.
struct Served {
    run: Running,
    address: String,
}

impl Served {
    /// Starts a run of `experiment`, with `more`, and with `--serve 0` where that does not say otherwise.
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
        let mut run = Running(command.spawn().expect("it starts"));
        let mut error = BufReader::new(run.0.stderr.take().expect("standard error is a pipe"));
        let mut line = String::new();
        while !line.contains(before) {
            line.clear();
            assert_ne!(
                error.read_line(&mut line).expect("it says where it serves"),
                0,
                "it ended before it served"
            );
        }
        std::thread::spawn(move || std::io::copy(&mut error, &mut std::io::sink()));
        let address = line.trim().rsplit_once(before).expect("an address").1;
        let address = address.split('/').next().expect("there is one").to_owned();
        Served { run, address }
    }

    /// Waits for the first cell that is done.
    fn first_cell(&mut self, lab: &Lab) {
        let store = lab.path("lowtide.db");
        assert!(wait_until(&mut self.run, || done_and_begun(&store).0 >= 1), "a cell is done");
    }

    fn descriptors(&self) -> usize {
        let path = format!("/proc/{}/fd", self.run.0.id());
        std::fs::read_dir(path).expect("the run is there").count()
    }

    /// Resident memory in MiB.
    fn memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.run.0.id());
        let status = std::fs::read_to_string(path).expect("the run is there");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
        line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") / 1024
    }

    fn interrupt(mut self) {
        self.run.signal(Signal::INT);
        assert_eq!(self.run.wait(), Some(130));
    }
}

/// What a client does wrong.
#[derive(Clone, Copy)]
enum Attack {
    /// Connects, and that is all.
    HalfOpen,
    /// Asks for the page again and again, and reads nothing.
    NoReader,
    /// Sends its headers a byte at a time.
    SlowHead,
    /// Sends headers without end.
    EndlessHead,
    /// Announces a body, and sends a part of it.
    UnfinishedPost,
}

const ATTACKS: [Attack; 5] =
    [Attack::HalfOpen, Attack::NoReader, Attack::SlowHead, Attack::EndlessHead, Attack::UnfinishedPost];

/// Many clients that do something wrong, and come back when they are thrown out.
struct Crowd {
    leave: Arc<AtomicBool>,
    came: Arc<AtomicUsize>,
    count: usize,
    threads: Vec<JoinHandle<()>>,
}

impl Crowd {
    /// As many clients, of all kinds.
    fn of(count: usize, address: &str) -> Crowd {
        let mut limit = rustix::process::getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        rustix::process::setrlimit(Resource::Nofile, limit).expect("as many as may be");
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
                        came.fetch_add(usize::from(client.go_on(address)), Ordering::Relaxed);
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
            })
        };
        let threads = clients.chunks(25).map(group).collect();
        Crowd { leave, came, count, threads }
    }

    /// Waits until all have been connected.
    fn is_there(&self) {
        let begin = Instant::now();
        while self.came.load(Ordering::Relaxed) < self.count {
            assert!(
                begin.elapsed() < PATIENCE,
                "{} of {} came",
                self.came.load(Ordering::Relaxed),
                self.count
            );
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

    /// Connects where it is not connected, and does a bit of what it does; whether it came for the first time.
    fn go_on(&mut self, address: SocketAddr) -> bool {
        self.stream = self.stream.take().filter(is_open);
        if let Some(stream) = &mut self.stream {
            let bytes = match self.attack {
                Attack::HalfOpen | Attack::UnfinishedPost => Vec::new(),
                Attack::NoReader => b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(8),
                Attack::SlowHead => b"x".to_vec(),
                Attack::EndlessHead => vec![b'x'; 64 << 10],
            };
            // What does not fit is not sent.
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

/// Whether the other side has not closed.
fn is_open(stream: &TcpStream) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready == 0)
}

#[test]
fn the_report_grows_while_the_campaign_runs_and_ends_with_it() {
    let lab = Lab::new();
    lab.write("long.toml", LONG);
    let mut served = Served::start(&lab, "./long.toml", 1024, &[]);
    let address = served.address.clone();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    served.first_cell(&lab);

    let (head, page) = ask(&address, "GET", "/", &address);
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/html"), "{head}");
    assert!(page.contains("<h1>long</h1>") && page.contains("setInterval"), "{page}");
    let (head, json) = ask(&address, "GET", "/report.json?x=1", &address);
    assert!(head.contains("application/json"), "{head}");
    let first: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(first["tables"]["cells"]["rows"].is_array());
    let (head, body) = ask(&address, "HEAD", "/", &address);
    assert!(head.starts_with("HTTP/1.1 200") && body.is_empty(), "{head}\n{body}");
    assert!(ask(&address, "GET", "/etc/passwd", &address).0.starts_with("HTTP/1.1 404"));
    let (head, _) = ask(&address, "POST", "/", &address);
    assert!(head.starts_with("HTTP/1.1 405") && head.contains("Allow: GET, HEAD"), "{head}");
    let done = |json: &serde_json::Value| json["facts"]["cells"].as_str().expect("a fact").to_owned();
    let before = done(&first);
    let grown = wait_until(&mut served.run, || {
        let json = ask(&address, "GET", "/report.json", &address).1;
        done(&serde_json::from_str(&json).expect("JSON")) != before
    });
    assert!(grown, "the report grows");
    served.interrupt();
    assert!(TcpStream::connect(&address).is_err(), "the server ended with the run");
}

#[test]
fn a_connection_is_used_again() {
    let lab = Lab::new();
    lab.write("long.toml", LONG);
    let mut served = Served::start(&lab, "./long.toml", 1024, &[]);
    served.first_cell(&lab);
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
            assert_ne!(
                stream.read_line(&mut head).expect("a line of its head"),
                0,
                "{method} {path}: {head}"
            );
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
fn what_is_no_small_request_is_refused() {
    let lab = Lab::new();
    lab.write("long.toml", LONG);
    let served = Served::start(&lab, "./long.toml", 1024, &[]);
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nA: {}\r\n\r\n", "a".repeat(20_000));
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", "413"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", "413"),
        ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", "405"),
        (long.as_str(), "431"),
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("\u{16}\u{3}\u{1}", "400"),
    ] {
        let (head, _) = tell(&served.address, request.as_bytes()).expect("it answers");
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
        // A store of its own: the page of a campaign begins with its first cell.
        let lab = Lab::new();
        lab.write("long.toml", LONG);
        let mut served =
            Served::start(&lab, "./long.toml", 1024, &["--serve", bound, "--accept-host", "lab.example"]);
        let address = served.address.replace("0.0.0.0", "127.0.0.1");
        served.first_cell(&lab);
        for host in own {
            assert!(ask(&address, "GET", "/", host).0.starts_with("HTTP/1.1 200"), "{bound}: {host}");
        }
        for host in ["evil.example", "10.99.99.99", "localhost.evil.example", "a.lab.example"] {
            let (head, body) = ask(&address, "GET", "/", host);
            assert!(
                head.starts_with("HTTP/1.1 403") && body.contains("--accept-host"),
                "{bound}: {host}: {head}"
            );
        }
        served.interrupt();
    }
    let lab = Lab::new();
    let error = lab.refuses(&["run", "./reads.toml", "--serve", "0", "--accept-host", "a:80"], 2);
    assert_says(&error, &["a name or an address without a port"]);
}

#[test]
fn counters_have_the_same_rule_and_the_same_limits() {
    let lab = Lab::new();
    let mut command = lab.command(&["drive", "serve", "intel-320-160gb", "--scale", "1/256", "--no-delay"]);
    command.args(["--unix", "drive.sock", "--metrics", "0", "--accept-host", "lab.example"]);
    command.stdout(Stdio::null());
    let served = Served::of(command, "Prometheus: http://");
    let before = served.descriptors();
    let crowd = Crowd::of(200, &served.address);
    crowd.is_there();
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

// Symptom: 532 connections that sent nothing failed cells with "too many open files". Cause: two descriptors for each, kept for
// ever. Fix: a budget, and deadlines.
#[test]
fn connections_that_send_nothing_leave_the_campaign_its_descriptors() {
    let lab = Lab::new();
    lab.write("long.toml", LONG);
    let mut served = Served::start(&lab, "./long.toml", 256, &[]);
    served.first_cell(&lab);
    let before = served.descriptors();
    let connections: Vec<TcpStream> =
        (0..300).map(|_| connect(&served.address).expect("it listens, or the kernel does")).collect();
    let page = insist(&served.address);
    assert!(page.contains("<h1>long</h1>"), "{page}");
    assert!(served.descriptors() <= before + BUDGET, "{} after {before}", served.descriptors());
    // Each is closed by the server.
    for mut stream in connections {
        let ended = stream.read(&mut [0]);
        let reset = |error: &std::io::Error| error.kind() == ErrorKind::ConnectionReset;
        assert!(matches!(ended, Ok(0)) || ended.as_ref().is_err_and(reset), "{ended:?}");
    }
    served.interrupt();
}

// Symptom: a run that has only a few descriptors left lost them to its page. Fix: nothing is accepted while half are in use.
#[test]
fn a_page_takes_no_descriptor_where_they_are_scarce() {
    let lab = Lab::new();
    let [scale, share] = common::SCALE;
    lab.write("tiny.toml", common::TINY.replace("40min", "4h"));
    lab.ok(&["run", "./tiny.toml", scale, share, "--store", "calm.db"]);
    let mut served = Served::start(&lab, "./tiny.toml", 32, &[]);
    let connections: Vec<TcpStream> = (0..100).map_while(|_| connect(&served.address).ok()).collect();
    assert_eq!(served.run.wait(), Some(0));
    drop(connections);
    assert!(lab.exports("lowtide.db") == lab.exports("calm.db"));
}

// Symptom: headers of 400 MiB were kept in memory. Fix: 16 KiB, then 431.
#[test]
fn headers_without_end_are_not_kept() {
    let lab = Lab::new();
    lab.write("long.toml", LONG);
    let mut served = Served::start(&lab, "./long.toml", 1024, &[]);
    served.first_cell(&lab);
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

// Symptom: a client that read nothing kept the page from all others. Cause: one thread wrote all answers and waited for each.
#[test]
fn clients_that_read_nothing_block_nobody() {
    let lab = Lab::new();
    lab.write("long.toml", LONG);
    let mut served = Served::start(&lab, "./long.toml", 1024, &[]);
    served.first_cell(&lab);
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut deaf: Vec<TcpStream> = (0..3).map(|_| connect(&served.address).expect("it listens")).collect();
    for stream in &mut deaf {
        stream.set_nonblocking(true).expect("a socket can be set so");
    }
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {
        for stream in &mut deaf {
            let _ = stream.write(&request.repeat(100));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let (head, _) = ask(&served.address, "GET", "/", "localhost");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    served.interrupt();
}

// Symptom: one POST whose body did not come kept the page from all others. Cause: the body was waited for.
#[test]
fn an_unfinished_post_blocks_nobody() {
    let lab = Lab::new();
    lab.write("long.toml", LONG);
    let mut served = Served::start(&lab, "./long.toml", 1024, &[]);
    served.first_cell(&lab);
    let mut posts = Vec::new();
    for _ in 0..3 {
        let mut stream = connect(&served.address).expect("it listens");
        write!(stream, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nabc")
            .expect("sent");
        posts.push(stream);
    }
    let (head, _) = ask(&served.address, "GET", "/", "localhost");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    for mut stream in posts {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer, although the body is not there");
        assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    }
    served.interrupt();
}

// Symptom: connections stayed for as long as their clients liked. Fix: deadlines for every state.
#[test]
fn slow_clients_are_given_up() {
    let lab = Lab::new();
    lab.write("long.toml", LONG);
    let served = Served::start(&lab, "./long.toml", 1024, &[]);
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
    slow.read_exact(&mut answer).expect("the server answers before the request is there");
    assert_eq!(&answer, b"HTTP/1.1 408");
    served.interrupt();
}

#[test]
fn a_thousand_enemies_change_no_row_and_keep_nobody_out() {
    let lab = Lab::new();
    lab.write("rows.toml", LONG.replace("times = 40", "times = 4"));
    let [scale, share] = common::SCALE;
    lab.ok(&["run", "./rows.toml", scale, share, "--jobs", "1", "--store", "calm.db"]);
    let mut served = Served::start(&lab, "./rows.toml", 1024, &[]);
    served.first_cell(&lab);
    let (descriptors, memory) = (served.descriptors(), served.memory());
    let crowd = Crowd::of(1000, &served.address);
    crowd.is_there();
    for _ in 0..3 {
        assert!(insist(&served.address).contains("<h1>long</h1>"));
        let now = served.descriptors();
        assert!(now <= descriptors + BUDGET, "{now} descriptors, {descriptors} before");
        let now = served.memory();
        assert!(now < memory + 200, "{now} MiB, {memory} MiB before");
    }
    assert!(!served.run.ended(), "the run was over before the crowd was there: make it longer");
    crowd.leave();
    // The server's own connections to the store come and go.
    let begin = Instant::now();
    while served.descriptors() > descriptors + 4 {
        assert!(begin.elapsed() < PATIENCE, "{} descriptors, {descriptors} before", served.descriptors());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(served.run.wait(), Some(0));
    assert!(lab.exports("lowtide.db") == lab.exports("calm.db"), "a row is another one");
}

#[test]
fn a_port_that_is_taken_is_an_error_before_anything_is_written() {
    let lab = Lab::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it has an address").to_string();
    let error = lab.refuses(&["run", "./reads.toml", "--scale", "1/256", "--serve", &address], 2);
    assert_says(&error, &["cannot listen at 127.0.0.1:", "0 takes any that is free"]);
    let error = lab.refuses(&["run", "./reads.toml", "--serve", "localhost:x"], 2);
    assert_says(&error, &["write a port such as `8080`"]);
}

#[test]
fn without_a_terminal_watching_is_plain_progress() {
    let lab = Lab::new();
    let (_, error) = lab.ends(&["run", "./reads.toml", "--scale", "1/256", "--watch"], 0);
    assert_says(&error, &["--watch needs a terminal of at least 80 columns", "[1/1] cell 0:"]);
}
