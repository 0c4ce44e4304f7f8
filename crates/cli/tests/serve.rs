//! `run --serve`: the growing report over HTTP, by a client of a few lines.

mod common;

use common::{Lab, Running, assert_says, done_and_begun, wait_until};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

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

/// The status line with headers, and the body.
fn ask(address: &str, method: &str, path: &str, host: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
        .expect("it takes a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers in UTF-8");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), body.to_owned())
}

#[test]
fn the_report_grows_while_the_campaign_runs_and_ends_with_it() {
    let lab = Lab::new();
    lab.write("long.toml", LONG);
    let run = ["run", "./long.toml", "--scale", "1/256", "--jobs", "1", "--serve", "0"];
    let mut child = Running(lab.command(&run).spawn().expect("lowtide starts"));
    let mut line = String::new();
    let mut error = BufReader::new(child.0.stderr.take().expect("standard error is a pipe"));
    error.read_line(&mut line).expect("it says where it serves");
    let address = line.trim().rsplit_once("http://").expect("an address").1.trim_end_matches('/').to_owned();
    std::thread::spawn(move || std::io::copy(&mut error, &mut std::io::sink()));
    assert!(address.starts_with("127.0.0.1:"), "{line}");
    let store = lab.path("lowtide.db");
    assert!(wait_until(&mut child, || done_and_begun(&store).0 >= 1), "a cell is done");

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
    assert!(ask(&address, "GET", "/", "evil.example").0.starts_with("HTTP/1.1 403"));
    let done = |json: &serde_json::Value| json["facts"]["cells"].as_str().expect("a fact").to_owned();
    let before = done(&first);
    let grown = wait_until(&mut child, || {
        let json = ask(&address, "GET", "/report.json", &address).1;
        done(&serde_json::from_str(&json).expect("JSON")) != before
    });
    assert!(grown, "the report grows");
    child.signal(Signal::INT);
    assert_eq!(child.wait(), Some(130));
    assert!(TcpStream::connect(&address).is_err(), "the server ended with the run");
}

#[test]
fn a_port_that_is_taken_is_an_error_before_anything_is_written() {
    let lab = Lab::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it has an address").to_string();
    let error = lab.refuses(&["run", "./reads.toml", "--scale", "1/256", "--serve", &address], 2);
    assert_says(&error, &["nothing can be served at 127.0.0.1:", "0 takes any that is free"]);
    let error = lab.refuses(&["run", "./reads.toml", "--serve", "localhost:x"], 2);
    assert_says(&error, &["write a port such as `8080`"]);
}

#[test]
fn without_a_terminal_watching_is_plain_progress() {
    let lab = Lab::new();
    let (_, error) = lab.ends(&["run", "./reads.toml", "--scale", "1/256", "--watch"], 0);
    assert_says(&error, &["--watch draws on a terminal of 80 columns", "[1/1] cell 0:"]);
}
