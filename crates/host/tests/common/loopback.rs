//! A loop device over a file, as a real block device for tests.
#![allow(dead_code, clippy::print_stdout)]

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Allows one loop device at a time: a program that one test starts briefly inherits the open files of concurrent
/// tests.
static ONE: Mutex<()> = Mutex::new(());

/// A loop device over a file. Both are removed when this is dropped.
pub struct Loop {
    pub node: PathBuf,
    pub file: PathBuf,
    _directory: tempfile::TempDir,
    _one: MutexGuard<'static, ()>,
}

impl Loop {
    /// A loop device of `mib` MiB; `None`, with a message, if loop devices are not available.
    pub fn new(mib: u64, options: &[&str]) -> Option<Loop> {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("disk.img");
        File::create(&file).and_then(|file| file.set_len(mib << 20)).expect("a sparse file");
        let node = attach(&file, options)?;
        Some(Loop { node, file, _directory: directory, _one: one })
    }

    /// Attaches the same node to another file of the same size.
    pub fn swap_file(&mut self, mib: u64) {
        run("losetup", &["--detach", self.node.to_str().expect("plain")]);
        let file = self.file.with_file_name("other.img");
        File::create(&file).and_then(|file| file.set_len(mib << 20)).expect("a sparse file");
        run("losetup", &[self.node.to_str().expect("plain"), file.to_str().expect("plain")]);
    }

    /// Writes bytes to the backing file.
    pub fn put(&self, offset: u64, bytes: &[u8]) {
        let file = OpenOptions::new().write(true).open(&self.file).expect("opened");
        file.write_all_at(bytes, offset).expect("written");
    }

    /// Checksum of the backing file.
    pub fn checksum(&self) -> String {
        run("sync", &[self.file.to_str().expect("plain")]);
        run("cksum", &[self.file.to_str().expect("plain")])
    }

    /// The serial that a user would type.
    pub fn serial(&self) -> String {
        self.file.to_str().expect("plain").to_owned()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.node).status();
    }
}

/// Reports a skipped test. Fails if `LOWTIDE_REQUIRE_REAL` is set.
pub fn skipped(why: &str) {
    assert!(std::env::var_os("LOWTIDE_REQUIRE_REAL").is_none(), "LOWTIDE_REQUIRE_REAL is set, but {why}");
    println!("skipped: {why}");
}

/// Attaches a loop device to a file. The caller detaches it. `None`, with a message, if loop devices are not
/// available.
pub fn attach(file: &Path, options: &[&str]) -> Option<PathBuf> {
    let output = Command::new("losetup").args(options).args(["--find", "--show"]).arg(file).output();
    match output {
        Ok(output) if output.status.success() => {
            Some(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
        }
        other => {
            skipped(&format!("there are no loop devices here: {other:?}"));
            None
        }
    }
}

/// Runs a program that must succeed, and returns its output.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
