//! Processor time and I/O of a process and its descendants.
//!
//! The usage of a child that has ended counts as its parent's: a server may have a process for each session.
//! Processes that have ended without a parent waiting for them are not counted.

use lowtide_core::{Bytes, Nanos};
use std::fs;

/// The maximum number of attempts to read a process and its children without a change in between.
const READINGS: usize = 3;

/// Resources that processes have used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// Processor time in user and kernel mode.
    pub cpu: Nanos,
    /// Bytes read from devices for these processes.
    pub read: Bytes,
    /// Bytes written to devices for these processes.
    pub written: Bytes,
}

impl Used {
    /// The usage of a process and its descendants; zero if the process does not exist.
    pub fn by(process: u32) -> Used {
        let mut own = Used::of(process).unwrap_or_default();
        for _ in 0..READINGS {
            let children = Used::by_children(process);
            let after = Used::of(process).unwrap_or(own);
            if after == own {
                return own.and(children);
            }
            // The process may have reaped a child in between. The child would be left out or counted twice.
            own = after;
        }
        own.and(Used::by_children(process))
    }

    fn by_children(process: u32) -> Used {
        let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
        let children = children.unwrap_or_default();
        let numbers = children.split_whitespace().filter_map(|child| child.parse().ok());
        numbers.map(Used::by).fold(Used::default(), Used::and)
    }

    /// The sum of both.
    pub fn and(self, other: Used) -> Used {
        Used {
            cpu: self.cpu + other.cpu,
            read: self.read + other.read,
            written: self.written + other.written,
        }
    }

    /// The usage since `before`.
    pub fn since(self, before: Used) -> Used {
        Used {
            cpu: Nanos::new(self.cpu.get().saturating_sub(before.cpu.get())),
            read: self.read.saturating_sub(before.read),
            written: self.written.saturating_sub(before.written),
        }
    }

    fn of(process: u32) -> Option<Used> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name is in brackets and may contain any character. Fields 12 to 15 after it are `utime`,
        // `stime` and the same of ended children. In `io` the kernel includes ended children.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: u64 = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
        let per_second = rustix::param::clock_ticks_per_second();
        let cpu = Nanos::new((u128::from(ticks) * 1_000_000_000 / u128::from(per_second)) as u64);
        let io = fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default();
        let bytes = |name: &str| {
            let line = io.lines().find_map(|line| line.strip_prefix(name));
            Bytes::new(line.and_then(|line| line.trim().parse().ok()).unwrap_or(0))
        };
        Some(Used { cpu, read: bytes("read_bytes:"), written: bytes("write_bytes:") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// The usage of a shell once its script has printed a line; the script then waits.
    fn used_by(script: &str) -> Used {
        let shell =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut shell = shell.expect("a shell");
        let mut line = String::new();
        let out = shell.stdout.take().expect("piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("read");
        let used = Used::by(shell.id());
        shell.kill().expect("killed");
        shell.wait().expect("waited");
        used
    }

    #[test]
    fn children_that_have_ended_count_too() {
        let used = used_by("sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; echo done; read x");
        assert!(used.cpu > Nanos::from_millis(10), "{used:?}");
    }

    #[test]
    fn running_children_count_and_unknown_processes_do_not() {
        // The child spends the time and keeps running. A shell gives background programs an empty input, so the child
        // reads the input of the shell.
        let script = "exec 3<&0; \
            sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; read x <&3' & wait";
        let used = used_by(script);
        assert!(used.cpu > Nanos::from_millis(10), "{used:?}");
        assert_eq!(Used::by(u32::MAX), Used::default());
    }
}
