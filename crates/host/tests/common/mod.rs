//! Helpers that the integration tests share: target files, loads, and a run on each engine.
#![allow(dead_code, clippy::print_stdout)]

pub mod loopback;
pub mod ways;

pub use loopback::skipped;

use lowtide_core::workload::Access;
use lowtide_core::{Bytes, Interval, Nanos, Seed, Workload};
use lowtide_host::HostError;
use lowtide_host::engine::{Control, EngineChoice, Load, Summary, run};
use lowtide_host::target::{Layout, Order, Preparation, Target, TargetSpec, TestData};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The seed of every test; a failure prints it.
pub const SEED: Seed = Seed::new(20_261_121);

/// An interrupt flag that is never set.
pub static GOES_ON: AtomicBool = AtomicBool::new(false);

/// Runs `body` on both engines. If io_uring is refused (as in some containers), prints a message and tests only the
/// other engine.
pub fn each_engine(body: impl Fn(EngineChoice)) {
    println!("seed {SEED:?}");
    for engine in [EngineChoice::Uring, EngineChoice::Sync] {
        if engine == EngineChoice::Uring && lowtide_host::engine::available().to_string() != "uring" {
            skipped("uring: io_uring is not available here");
            continue;
        }
        println!("engine {engine}");
        body(engine);
    }
}

/// A directory in memory, so that a busy disk does not delay the test. An ordinary directory if `/dev/shm` is
/// missing.
pub fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}

/// A target of `files` filled files of `size_each` in `directory`.
pub fn target(directory: &Path, files: u32, size_each: Bytes) -> Target {
    let spec = TargetSpec::Directory(directory.to_owned());
    let layout = Layout::split(size_each * u64::from(files), files, Bytes::kib(4)).expect("a valid layout");
    let how = Preparation {
        spec: &spec,
        layout,
        order: Order::Sequential,
        seed: SEED,
        keep: false,
        interrupt: &GOES_ON,
    };
    Target::prepare(&how, &mut |_| ()).expect("prepared")
}

pub fn workload(read_share: f64, access: Access, threads: u32, depth: u32) -> Workload {
    Workload { access, read_share, threads, depth, ..Workload::random_write(Bytes::kib(4)) }
}

pub fn load<'a>(data: &'a TestData, workload: &'a Workload, engine: EngineChoice, ms: u64) -> Load<'a> {
    Load {
        data,
        workload,
        replay: None,
        seed: SEED,
        interval: Nanos::from_millis(100),
        duration: Some(Nanos::from_millis(ms)),
        requests: None,
        engine,
        interrupt: &GOES_ON,
    }
}

/// Runs a load to its end and returns all intervals.
pub fn run_all(load: &Load<'_>) -> (Result<Summary, HostError>, Vec<Interval>) {
    let mut intervals = Vec::new();
    let result = run(load, &mut |interval| {
        intervals.push(interval);
        Control::Continue
    });
    (result, intervals)
}

/// A tmpfs of `size` (in the syntax of mount(8)), unmounted when dropped. `None`, with a message, if mounting is not
/// permitted.
pub struct SmallFilesystem {
    directory: tempfile::TempDir,
}

impl SmallFilesystem {
    pub fn mount(size: &str) -> Option<SmallFilesystem> {
        let directory = tempfile::tempdir().expect("a directory");
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "lowtide-test"])
            .arg(directory.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(SmallFilesystem { directory }),
            other => {
                skipped(&format!("mounting a tmpfs is not permitted here: {other:?}"));
                None
            }
        }
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

impl Drop for SmallFilesystem {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.directory.path()).status();
    }
}
