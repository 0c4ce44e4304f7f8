//! `run --watch` on a terminal: the view is drawn, and the terminal is restored.
//!
//! Unit tests of `watch::draw` cover the layout.

mod common;

use common::{Lab, Running, names};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";
const SHOW_CURSOR: &str = "\u{1b}[?25h";

/// A pseudo-terminal, and everything written to it so far.
struct Terminal {
    keyboard: File,
    line: File,
    screen: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn new(columns: u16, lines: u16) -> Terminal {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal can be made");
        grantpt(&keyboard).expect("it is ours");
        unlockpt(&keyboard).expect("it can be opened");
        let name = ptsname(&keyboard, Vec::new()).expect("it has a name");
        let name = name.to_str().expect("a plain name").to_owned();
        let line = File::options().read(true).write(true).open(name).expect("it opens");
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&line, size).expect("it has a size");
        let keyboard = File::from(keyboard);
        let screen: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (mut written, kept) = (keyboard.try_clone().expect("it can be shared"), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = written.read(&mut bytes) {
                kept.lock().expect("no thread panics while holding it").extend(&bytes[..count]);
            }
        });
        Terminal { keyboard, line, screen }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().expect("no thread panics while holding it")).into_owned()
    }

    /// Returns whether the terminal edits and echoes lines, as a shell expects.
    fn is_cooked(&self) -> bool {
        let modes = tcgetattr(&self.line).expect("it has modes").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Watches the campaign of [`lab`] on the terminal.
    fn watch(&self, lab: &Lab) -> Running {
        let end = || Stdio::from(self.line.try_clone().expect("it can be shared"));
        let mut command = lab.command("run ./files.toml --watch");
        Running::start(command.stdin(end()).stderr(end()).env("TERM", "xterm"))
    }
}

/// A directory with an experiment of two cells on files, each measured for `seconds`.
fn lab(seconds: u32) -> Lab {
    let lab = Lab::new();
    lab.make_directory("data");
    lab.write(
        "files.toml",
        format!(
            "name = \"files\"\ntarget.directory = \"data\"\n[workload]\npattern = \"random-read\"\nblock = \"4KiB\"\n\
             duration = \"{seconds}s\"\ninterval = \"100ms\"\n[sweep]\nfile_size = [\"1MiB\", \"2MiB\"]\n"
        ),
    );
    lab
}

#[test]
fn the_view_is_drawn_and_the_terminal_is_restored_at_the_end() {
    let (lab, terminal) = (lab(1), Terminal::new(80, 24));
    let mut child = terminal.watch(&lab);
    assert_eq!(child.wait(), Some(0), "{}", terminal.text());
    let text = terminal.text();
    // Only changes are drawn, so a phrase may arrive in pieces.
    for wanted in ["lowtide: files, dir:data", "┌throughput,", "p99,", "file_size 1MiB", "Ctrl-C"] {
        assert!(text.contains(wanted), "`{wanted}` is not in:\n{text:?}");
    }
    let (enter, leave) = (text.find(ENTER).expect("the other screen"), text.rfind(LEAVE).expect("and back"));
    assert!(enter < leave && text[leave..].contains(SHOW_CURSOR), "{text:?}");
    assert!(terminal.is_cooked(), "lines are edited again");
}

#[test]
fn ctrl_c_restores_the_terminal_and_ends_the_campaign_cleanly() {
    let (lab, mut terminal) = (lab(60), Terminal::new(100, 30));
    let mut child = terminal.watch(&lab);
    let drawn = common::wait_until(&mut child, || terminal.text().contains("measuring"));
    assert!(drawn && !terminal.is_cooked(), "it is drawn");
    terminal.keyboard.write_all(b"\x03").expect("a key is pressed");
    assert_eq!(child.wait(), Some(130), "{}", terminal.text());
    assert!(terminal.is_cooked(), "lines are edited again");
    let is_advised =
        || terminal.text().rsplit_once(LEAVE).is_some_and(|(_, after)| after.contains("resume with:"));
    assert!((0..500).any(|_| is_advised() || {
        std::thread::sleep(std::time::Duration::from_millis(10));
        false
    }));
    assert!(names(&lab.path("data")).is_empty(), "no file is left");
}

#[test]
fn a_terminal_that_is_too_small_gets_plain_progress() {
    let (lab, terminal) = (lab(1), Terminal::new(60, 20));
    let mut child = terminal.watch(&lab);
    assert_eq!(child.wait(), Some(0));
    let text = terminal.text();
    let note = "--watch needs a terminal of at least 80 columns";
    assert!(!text.contains(ENTER) && text.contains(note), "{text:?}");
}
