//! What a drive says of itself and what the kernel counted: SMART and NVMe logs, bytes read and written.
//!
//! smartctl or nvme-cli ask the drive, where they are installed and the drive answers; without them nothing is said.
//! Not here: what the logs mean; `lowtide_lab::smart` reads them.

use super::disk::{Disk, line};
use super::erase::controller;
use lowtide_core::Bytes;
use std::process::{Command, Stdio};

/// What the kernel counted of a device since it was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Requests that read.
    pub reads: u64,
    /// Bytes read.
    pub read: Bytes,
    /// Requests that wrote.
    pub writes: u64,
    /// Bytes written.
    pub written: Bytes,
}

impl Traffic {
    /// What was added since `before`.
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
    /// What the kernel counted so far; `None` where it does not.
    pub fn traffic(&self) -> Option<Traffic> {
        let text = line(&self.folder.join("stat"))?;
        let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
        // Sectors of 512 bytes, whatever the device does (Documentation/block/stat.rst of the kernel).
        let sectors = |index: usize| Some(Bytes::new(fields.get(index)? * 512));
        let count = |index: usize| fields.get(index).copied();
        Some(Traffic { reads: count(0)?, read: sectors(2)?, writes: count(4)?, written: sectors(6)? })
    }

    /// The logs of the drive as JSON, as smartctl and nvme-cli print them; none where it gives none.
    pub fn logs(&self) -> Vec<serde_json::Value> {
        let whole = format!("/dev/{}", self.whole_name());
        let mut logs: Vec<serde_json::Value> =
            ask("smartctl", &["--json", "--all", &whole]).filter(answered).into_iter().collect();
        if let Some(drive) = controller(&self.whole_name()) {
            let drive = format!("/dev/{drive}");
            if logs.is_empty() {
                logs.extend(ask("nvme", &["smart-log", &drive, "--output-format=json"]));
            }
            // What the NAND took, where the drive keeps the log of the Open Compute Project.
            logs.extend(ask("nvme", &["ocp", "smart-add-log", &drive, "--output-format=json"]));
        }
        logs
    }
}

/// What a program prints as JSON, whatever it ends with: smartctl tells of old errors that way.
fn ask(program: &str, arguments: &[&str]) -> Option<serde_json::Value> {
    let output =
        Command::new(program).args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).output().ok()?;
    serde_json::from_slice(&output.stdout).ok().filter(serde_json::Value::is_object)
}

/// Whether smartctl reached a drive, and did not only say that it could not.
fn answered(json: &serde_json::Value) -> bool {
    // Bits 0 and 1 of its exit status: bad command line, device not opened.
    json["smartctl"]["exit_status"].as_u64().is_none_or(|status| status & 0b11 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_smartctl_cannot_open_says_nothing() {
        let json = |status: u64| serde_json::json!({"smartctl": {"exit_status": status}});
        assert!(answered(&json(0)) && answered(&json(64)));
        assert!(!answered(&json(2)) && !answered(&json(1)));
        assert_eq!(ask("no-such-program", &[]), None);
        assert_eq!(ask("echo", &["not json"]), None);
    }
}
