//! Health logs of a drive (SMART, NVMe), and the kernel's counters of reads and writes.
//!
//! smartctl and nvme-cli read the logs. The logs are empty if these programs are missing or the drive does not
//! answer. `lowtide_lab::smart` interprets them.

use super::disk::{Disk, line};
use super::erase::controller;
use lowtide_core::Bytes;
use std::process::{Command, Stdio};

/// The kernel's I/O counters of a device, counted since the device appeared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Completed reads.
    pub reads: u64,
    /// Bytes read.
    pub read: Bytes,
    /// Completed writes.
    pub writes: u64,
    /// Bytes written.
    pub written: Bytes,
}

impl Traffic {
    /// The increase since `before`.
    pub fn since(self, before: Traffic) -> Traffic {
        Traffic {
            reads: self.reads.saturating_sub(before.reads),
            read: self.read.saturating_sub(before.read),
            writes: self.writes.saturating_sub(before.writes),
            written: self.written.saturating_sub(before.written),
        }
    }
}

impl Disk {
    /// The counters now; `None` if the kernel does not provide them.
    pub fn traffic(&self) -> Option<Traffic> {
        let text = line(&self.folder.join("stat"))?;
        let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
        // Sectors have 512 bytes, independent of the device (Documentation/block/stat.rst of the kernel).
        let sectors = |index: usize| Some(Bytes::new(fields.get(index)? * 512));
        let count = |index: usize| fields.get(index).copied();
        Some(Traffic { reads: count(0)?, read: sectors(2)?, writes: count(4)?, written: sectors(6)? })
    }

    /// The logs of the drive in the JSON of smartctl and nvme-cli; empty if it has none.
    pub fn logs(&self) -> Vec<serde_json::Value> {
        let whole = format!("/dev/{}", self.whole_name());
        let mut logs: Vec<serde_json::Value> =
            ask("smartctl", &["--json", "--all", &whole]).filter(answered).into_iter().collect();
        if let Some(drive) = controller(&self.whole_name()) {
            let drive = format!("/dev/{drive}");
            if logs.is_empty() {
                logs.extend(ask("nvme", &["smart-log", &drive, "--output-format=json"]));
            }
            // NAND writes, if the drive keeps the log of the Open Compute Project.
            logs.extend(ask("nvme", &["ocp", "smart-add-log", &drive, "--output-format=json"]));
        }
        logs
    }
}

/// The JSON output of a program. The exit status is ignored, because smartctl reports old errors in it.
fn ask(program: &str, arguments: &[&str]) -> Option<serde_json::Value> {
    let output =
        Command::new(program).args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).output().ok()?;
    serde_json::from_slice(&output.stdout).ok().filter(serde_json::Value::is_object)
}

/// Returns whether smartctl could open the drive.
fn answered(json: &serde_json::Value) -> bool {
    // Bits 0 and 1 of its exit status: bad command line, device not opened.
    json["smartctl"]["exit_status"].as_u64().is_none_or(|status| status & 0b11 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_for_a_drive_that_smartctl_cannot_open_is_ignored() {
        let json = |status: u64| serde_json::json!({"smartctl": {"exit_status": status}});
        assert!(answered(&json(0)) && answered(&json(64)));
        assert!(!answered(&json(2)) && !answered(&json(1)));
        assert_eq!(ask("no-such-program", &[]), None);
        assert_eq!(ask("echo", &["not json"]), None);
    }
}
