//! [`Process`]: a process that may be gone, and another in its place.
//!
//! A number is given to another process some day; with the instant at which it began it is not. Not here: children,
//! which cannot be taken for others.

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::{Duration, Instant};

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Process {
    pub(super) number: u32,
    /// Ticks of the kernel from its own start to that of the process.
    began: u64,
}

impl Process {
    /// The one that has a number now.
    pub(super) fn find(number: u32) -> Option<Process> {
        let (_, began) = state_and_begin(number)?;
        Some(Process { number, began })
    }

    /// Whether it runs. One that has ended and that nobody has asked after, does not.
    pub(super) fn runs(self) -> bool {
        state_and_begin(self.number)
            .is_some_and(|(state, began)| began == self.began && state != "Z" && state != "X")
    }

    /// Sends it a signal; one that is gone needs none.
    pub(super) fn signal(self, signal: Signal) {
        let number = i32::try_from(self.number).ok().and_then(Pid::from_raw);
        if let Some(number) = number.filter(|_| self.runs()) {
            let _ = kill_process(number, signal);
        }
    }

    /// Waits until it has ended; whether it has.
    pub(super) fn ends_within(self, patience: Duration) -> bool {
        let begin = Instant::now();
        while self.runs() {
            if begin.elapsed() > patience {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

/// Two of the fields of `/proc/PID/stat` (proc(5)). The name before them may hold anything.
fn state_and_begin(number: u32) -> Option<(String, u64)> {
    let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(((*fields.first()?).to_owned(), fields.get(19)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_does_not_run_and_neither_does_another_with_its_number() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("started");
        let process = Process::find(child.id()).expect("it runs");
        assert!(process.runs());
        assert!(!Process { began: process.began + 1, ..process }.runs());
        process.signal(Signal::KILL);
        assert!(process.ends_within(Duration::from_secs(60)), "a zombie does not run");
        child.wait().expect("waited");
        assert!(!process.runs());
    }
}
