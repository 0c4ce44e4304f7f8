//! A server for a test, its clients in this process, and other programs as clients.

use crate::common::{Lab, Running, Words};
use crate::loopback::skipped;
use lowtide_host::nbd::NbdClient;
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

/// A small drive that takes writes of any size.
pub const DRIVE: &str = "intel-320-160gb";

/// Options of every server of drives.
pub const SMALL: &str = "--scale 1/256 --no-delay";

/// A server of lowtide, killed when dropped.
pub struct Served {
    running: Running,
    /// The URIs of the server's sockets.
    pub uris: Vec<String>,
    stderr: Option<JoinHandle<String>>,
}

impl Served {
    /// Runs `drive serve` with [`DRIVE`], [`SMALL`] and `more`.
    pub fn start(lab: &Lab, more: &str) -> Served {
        Served::by(lab, &format!("drive serve {DRIVE} {SMALL} {more}"))
    }

    /// Runs a serving command, and waits until it listens.
    pub fn by(lab: &Lab, command: &str) -> Served {
        let mut running = lab.start(command);
        let stderr = BufReader::new(running.0.stderr.take().expect("a pipe"));
        let (sender, uris) = channel();
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            for line in stderr.lines() {
                let line = line.expect("lowtide prints UTF-8");
                if let Some(uri) = line.strip_prefix("serving at ") {
                    // The receiver is gone once the test has all URIs.
                    let _ = sender.send(uri.to_owned());
                }
                text += &line;
                text.push('\n');
            }
            text
        });
        let mut served = Served { running, uris: Vec::new(), stderr: Some(stderr) };
        let wanted = command.words().into_iter().filter(|word| matches!(*word, "--unix" | "--tcp")).count();
        while served.uris.len() < wanted {
            match uris.recv_timeout(Duration::from_secs(60)) {
                Ok(uri) => served.uris.push(uri),
                Err(_) => panic!("it does not listen: {}", served.end().1),
            }
        }
        served
    }

    /// The URI of an export at the first socket.
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

    /// Ends the server with SIGTERM; returns its exit code and standard error.
    pub fn end(&mut self) -> (Option<i32>, String) {
        self.ends_by(Signal::TERM)
    }

    /// Ends the server with a signal; returns its exit code and standard error.
    pub fn ends_by(&mut self, signal: Signal) -> (Option<i32>, String) {
        if !self.running.has_ended() {
            self.running.signal(signal);
        }
        let code = self.running.wait();
        let text = self.stderr.take().map(|thread| thread.join().expect("no panic")).unwrap_or_default();
        assert!(!text.contains("panicked"), "{text}");
        (code, text)
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.running.signal(Signal::KILL);
        assert_eq!(self.end().0, None);
    }

    /// Ends the server with SIGTERM, and checks for exit code 0.
    pub fn ends_well(mut self) {
        let (code, text) = self.end();
        assert_eq!(code, Some(0), "{text}");
    }
}

/// Connects to `drive.sock` and chooses the default export.
pub fn connect(lab: &Lab) -> NbdClient<UnixStream> {
    let stream = UnixStream::connect(lab.path("drive.sock")).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    NbdClient::connect(stream, "").expect("agreed")
}

/// Runs a program in the lab's directory; `None`, with a message, if it is missing.
pub fn real(lab: &Lab, program: &str, arguments: &(impl Words + ?Sized)) -> Option<Output> {
    let mut command = Command::new(program);
    // Some programs start lowtide.
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_lowtide")).parent().expect("a folder");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    command.args(arguments.words()).current_dir(lab.path("")).env("PATH", path);
    match within(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()), program) {
        Ok(output) => Some(output),
        Err(error) => {
            skipped(&format!("{program} cannot be run: {error}"));
            None
        }
    }
}

/// Runs a program, which succeeds; returns its standard output, or `None` if it is missing.
pub fn ok(lab: &Lab, program: &str, arguments: &(impl Words + ?Sized)) -> Option<String> {
    let output = real(lab, program, arguments)?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {}\n{out}\n{err}", arguments.words().join(" "));
    Some(out.into_owned())
}

/// Runs qemu-io with these commands, which succeed; returns its standard output, or `None` if it is missing.
pub fn qemu_io(lab: &Lab, uri: &str, commands: &[&str]) -> Option<String> {
    let mut arguments = vec!["-f", "raw"];
    commands.iter().for_each(|command| arguments.extend(["-c", command]));
    arguments.push(uri);
    ok(lab, "qemu-io", &arguments)
}

/// Runs a program, and kills it after two minutes, because a client may wait forever for an answer.
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
        if running.has_ended() {
            let status = running.0.wait()?;
            let bytes = |thread: JoinHandle<std::io::Result<Vec<u8>>>| thread.join().expect("no panic");
            return Ok(Output { status, stdout: bytes(out)?, stderr: bytes(err)? });
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{program} does not end");
}
