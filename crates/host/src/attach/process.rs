//! [`Process`]: the identity of a process that may have ended.
//!
//! The kernel reuses process numbers, so the start time is part of the identity.

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::{Duration, Instant};

/// A process, identified by its number and start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Process {
    pub(super) number: u32,
    /// The start time of the process, in clock ticks since the machine was booted.
    began: u64,
}

impl Process {
    /// The process that has this number now.
    pub(super) fn find(number: u32) -> Option<Process> {
        let (_, began) = state_and_begin(number)?;
        Some(Process { number, began })
    }

    /// Returns whether the process runs. A zombie does not.
    pub(super) fn runs(self) -> bool {
        state_and_begin(self.number)
            .is_some_and(|(state, began)| began == self.began && state != "Z" && state != "X")
    }

    /// Sends a signal to the process, if it runs.
    pub(super) fn signal(self, signal: Signal) {
        let number = i32::try_from(self.number).ok().and_then(Pid::from_raw);
        if let Some(number) = number.filter(|_| self.runs()) {
            let _ = kill_process(number, signal);
        }
    }

    /// Waits up to `patience` for its end, and returns whether it has ended.
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

/// State and start time from `/proc/PID/stat` (proc(5)). The name before them may contain any character.
fn state_and_begin(number: u32) -> Option<(String, u64)> {
    let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(((*fields.first()?).to_owned(), fields.get(19)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_an_ended_process_nor_a_later_one_with_its_number_runs() {
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
