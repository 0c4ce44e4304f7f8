//! What a process and those it started have used: processor time, and bytes of files.
//!
//! What a child used that has ended is its parent's from then on: a server may have a process for each session. Not here:
//! processes that have ended and that nobody waited for.

use lowtide_core::{Bytes, Nanos};
use std::fs;

/// How often a process is read until two readings in a row are the same.
const READINGS: usize = 3;

/// What processes have used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// Processor time, in the program and in the kernel for it.
    pub cpu: Nanos,
    /// Bytes that were read from devices for them.
    pub read: Bytes,
    /// Bytes that they caused to be written to devices.
    pub written: Bytes,
}

impl Used {
    /// What the process and its children have used; nothing for one that is not there.
    pub fn by(process: u32) -> Used {
        let mut own = Used::of(process).unwrap_or_default();
        for _ in 0..READINGS {
            let children = Used::by_children(process);
            let after = Used::of(process).unwrap_or(own);
            if after == own {
                return own.and(children);
            }
            // A child may have been waited for in between: it would be left out, or counted twice.
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

    /// Both together.
    pub fn and(self, other: Used) -> Used {
        Used {
            cpu: self.cpu + other.cpu,
            read: self.read + other.read,
            written: self.written + other.written,
        }
    }

    /// What was used since `before`.
    pub fn since(self, before: Used) -> Used {
        Used {
            cpu: Nanos::new(self.cpu.get().saturating_sub(before.cpu.get())),
            read: self.read.saturating_sub(before.read),
            written: self.written.saturating_sub(before.written),
        }
    }

    fn of(process: u32) -> Option<Used> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name stands in brackets and may hold anything; `utime` and `stime` are the 12th and 13th field after it, and
        // those of ended children follow. In `io` the kernel adds them by itself.
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

    /// What a shell has used when its script says that it is done; the script then waits.
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
    fn children_count_and_strangers_do_not() {
        // Time is burnt in a child that lives on: a shell gives what it starts with `&` an empty input, so it reads ours.
        let script = "exec 3<&0; \
            sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; read x <&3' & wait";
        let used = used_by(script);
        assert!(used.cpu > Nanos::from_millis(10), "{used:?}");
        assert_eq!(Used::by(u32::MAX), Used::default());
    }
}
