//! Drives and log disks that a test attaches: each has a unique name, and is detached when the test ends.

// Every test file is a separate program and uses a part of this module.
#![allow(dead_code)]

use crate::common::{Lab, json};
use crate::loopback::skipped;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Returns whether filesystems can be mounted here; reports a skipped test if not.
pub fn can_mount() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped("mounting needs root");
    }
    root
}

/// Returns whether drives can be attached here; reports a skipped test if not.
pub fn can_attach() -> bool {
    let opens = |node: &&str| OpenOptions::new().read(true).write(true).open(node).is_ok();
    if let Some(node) = ["/dev/fuse", "/dev/loop-control"].iter().find(|node| !opens(node)) {
        skipped(&format!("{node} cannot be opened"));
        return false;
    }
    can_mount()
}

/// The name of a drive or log disk, which is detached when this value is dropped.
pub struct Attached<'a> {
    lab: &'a Lab,
    pub name: String,
}

impl<'a> Attached<'a> {
    /// A unique name that begins with `kind`; nothing is attached yet.
    pub fn new(lab: &'a Lab, kind: &str) -> Attached<'a> {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Attached { lab, name: format!("{kind}-{}-{number}-test", std::process::id()) }
    }

    /// The line of `lowtide drive attach --list` for this drive or log disk.
    pub fn listed(&self) -> serde_json::Value {
        let list = self.lab.ok("drive attach --list --format json");
        let of_it = |line: &&str| line.contains(&format!("\"{}\"", self.name));
        json(list.lines().find(of_it).unwrap_or_else(|| panic!("{} is not in {list}", self.name)))
    }

    /// Its block device.
    pub fn node(&self) -> String {
        self.listed()["node"].as_str().expect("a node").to_owned()
    }

    /// The server process.
    pub fn process(&self) -> rustix::process::Pid {
        let number = self.listed()["process"].as_i64().expect("a process");
        rustix::process::Pid::from_raw(number as i32).expect("above 0")
    }

    /// Its run directory plus `ending`.
    pub fn path(&self, ending: &str) -> PathBuf {
        PathBuf::from(format!("/run/lowtide/attached/{}{ending}", self.name))
    }
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        if self.path(".journal").exists() {
            let _ = self.lab.run(&format!("drive detach {} --force", self.name));
        }
    }
}
