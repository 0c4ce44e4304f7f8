//! A server that runs beside a test, and the programs that meet it.

use crate::common::{Lab, Running};
use crate::loopback::skipped;
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

/// A small drive that takes writes of any size.
pub const DRIVE: &str = "intel-320-160gb";

/// What every server is started with.
pub const SMALL: [&str; 3] = ["--scale", "1/256", "--no-delay"];

/// `lowtide drive serve`, until it is dropped.
pub struct Served {
    running: Running,
    /// Where it says it listens.
    pub uris: Vec<String>,
    stderr: Option<JoinHandle<String>>,
}

impl Served {
    /// Serves [`DRIVE`] as well as `arguments` say, and waits until clients can come.
    pub fn start(lab: &Lab, arguments: &[&str]) -> Served {
        let all = [&["drive", "serve", DRIVE], arguments].concat();
        Served::start_all(lab, &all)
    }

    /// The same, where the drives are named in `arguments` too.
    pub fn start_all(lab: &Lab, arguments: &[&str]) -> Served {
        Served::start_plain(lab, &[arguments, &SMALL].concat())
    }

    /// What `arguments` say and no more.
    pub fn start_plain(lab: &Lab, arguments: &[&str]) -> Served {
        let mut child = lab.command(arguments).spawn().expect("lowtide starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (sender, uris) = channel();
        let stderr = std::thread::spawn(move || {
            let mut said = String::new();
            for line in stderr.lines() {
                let line = line.expect("lowtide prints UTF-8");
                if let Some(uri) = line.strip_prefix("serving at ") {
                    // The test may have what it wants already.
                    let _ = sender.send(uri.to_owned());
                }
                said += &line;
                said.push('\n');
            }
            said
        });
        let mut served = Served { running: Running(child), uris: Vec::new(), stderr: Some(stderr) };
        let wanted = arguments.iter().filter(|it| matches!(**it, "--unix" | "--tcp")).count();
        while served.uris.len() < wanted {
            match uris.recv_timeout(Duration::from_secs(60)) {
                Ok(uri) => served.uris.push(uri),
                Err(_) => panic!("it does not listen: {}", served.end().1),
            }
        }
        served
    }

    /// The URI of an export at the first place it listens.
    pub fn uri(&self, export: &str) -> String {
        let uri = &self.uris[0];
        match uri.split_once("///") {
            Some((scheme, socket)) => format!("{scheme}///{export}{socket}"),
            None => format!("{uri}/{export}"),
        }
    }

    pub fn process(&self) -> u32 {
        self.running.0.id()
    }

    pub fn running(&self) -> &Running {
        &self.running
    }

    /// Asks it to end; its exit code, and what it said.
    pub fn end(&mut self) -> (Option<i32>, String) {
        self.ends_by(Signal::TERM)
    }

    /// The same, with a signal.
    pub fn ends_by(&mut self, signal: Signal) -> (Option<i32>, String) {
        if !self.running.ended() {
            self.running.signal(signal);
        }
        let code = self.running.wait();
        let said = self.stderr.take().map(|thread| thread.join().expect("no panic")).unwrap_or_default();
        assert!(!said.contains("panicked"), "{said}");
        (code, said)
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        self.running.signal(Signal::KILL);
        assert_eq!(self.end().0, None);
    }

    /// Ends it, which goes well.
    pub fn ends_well(mut self) {
        let (code, said) = self.end();
        assert_eq!(code, Some(0), "{said}");
    }
}

/// Runs a program in the lab's directory; `None`, with a message, where there is none.
pub fn real(lab: &Lab, program: &str, arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new(program);
    // lowtide, for programs that start it.
    let found = std::path::Path::new(env!("CARGO_BIN_EXE_lowtide")).parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    command.args(arguments).current_dir(lab.path("")).env("PATH", format!("{}:{path}", found.display()));
    // A peer that is never answered must not stop the tests.
    match within(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()), program) {
        Ok(output) => Some(output),
        Err(error) => {
            skipped(&format!("{program} cannot be run: {error}"));
            None
        }
    }
}

/// The same, for a program that ends well; what it printed.
pub fn ok(lab: &Lab, program: &str, arguments: &[&str]) -> Option<String> {
    let output = real(lab, program, arguments)?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {arguments:?}\n{out}\n{err}");
    Some(out.into_owned())
}

/// Runs a program that is ended after two minutes.
fn within(command: &mut Command, program: &str) -> std::io::Result<Output> {
    let mut child = command.spawn()?;
    let read = |mut pipe: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).map(|_| bytes)
        })
    };
    let out = read(Box::new(child.stdout.take().expect("a pipe")));
    let err = read(Box::new(child.stderr.take().expect("a pipe")));
    let mut running = Running(child);
    for _ in 0..12_000 {
        if running.ended() {
            let status = running.0.wait()?;
            let bytes = |thread: JoinHandle<std::io::Result<Vec<u8>>>| thread.join().expect("no panic");
            return Ok(Output { status, stdout: bytes(out)?, stderr: bytes(err)? });
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{program} waits for ever");
}
