//! A database on a log disk on a simulated drive whose power is cut repeatedly: acknowledged writes survive, and the
//! log disk, the filesystem and the database stay consistent.
//!
//! ```text
//!   TPC-C's transactions ─► MariaDB ─┐
//!                                    ├─► XFS ─► log disk ─► drive with 16 MiB of volatile cache ◄─ power cuts
//!   stamped blocks of 4 KiB ─────────┘
//! ```
//!
//! Both writers keep a ledger of acknowledged writes in this process. After each cut, every layer is checked: the log
//! disk by `check`, the filesystem by mounting it, the stamps, and the database by its own recovery, `CHECK TABLE`,
//! the ledger and TPC-C's consistency conditions. The data fill most of the log disk, so that its cleaner works.
//! There are two cuts, or fifty with `LOWTIDE_LONG`.
#![allow(clippy::print_stdout)]

#[path = "../common/mod.rs"]
mod common;

#[path = "../common/attached.rs"]
mod attached;
#[path = "../../../host/tests/common/loopback.rs"]
mod loopback;

mod database;
mod stamps;

use attached::{Attached, can_attach};
use common::Lab;
use database::Tpcc;
use loopback::skipped;
use lowtide_core::Seed;
use lowtide_engines::tpcc::random::Random;
use stamps::Stamps;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SEED: u64 = 1;

/// The share of the log disk for stamped blocks; the database and the filesystem with its log use the other half.
const STAMPED: f64 = 0.5;

/// Minimum numbers of acknowledged transactions (drawn from this range) and stamped writes before a power cut.
const COMMITS: [u32; 2] = [50, 500];
const STAMPED_WRITES: u64 = 2_000;

/// Totals of all rounds.
#[derive(Debug, Default)]
struct Sum {
    cuts: u32,
    while_cleaning: u32,
    commits: u64,
    unknown: u64,
    stamped: u64,
    lost_by_cuts: u64,
    moved: u64,
}

/// The drive, and the log disk on it with its filesystem.
struct Stack<'a> {
    lab: &'a Lab,
    // Fields are dropped in this order: the log disk is detached before its drive.
    log: Attached<'a>,
    drive: Attached<'a>,
}

impl Stack<'_> {
    fn at(&self) -> PathBuf {
        self.lab.path("mnt")
    }

    fn attach_log(&self, more: &str) {
        let (node, name, at) = (self.drive.node(), &self.log.name, self.lab.argument("mnt"));
        self.lab.ok(&format!("logdisk attach {node} --name {name} --mount {at} -o noatime {more}"));
    }

    /// A figure of the log disk while it is served.
    fn figure(&self, key: &str) -> u64 {
        let figures = self.lab.json(&format!("logdisk stat {}", self.log.name));
        figures[key].as_u64().unwrap_or_else(|| panic!("{key}: {figures}"))
    }
}

#[test]
fn acknowledged_writes_of_a_database_and_a_file_survive_power_cuts() {
    if !can_attach() {
        return;
    }
    if !Path::new("/usr/sbin/mariadbd").exists() {
        return skipped("no server of mariadb");
    }
    let rounds = if std::env::var_os("LOWTIDE_LONG").is_some() { 50 } else { 2 };
    let begin = Instant::now();
    let lab = Lab::new();
    std::fs::set_permissions(lab.path(""), PermissionsExt::from_mode(0o755)).expect("it is ours");
    let stack = Stack { lab: &lab, log: Attached::new(&lab, "log"), drive: Attached::new(&lab, "drive") };
    make(&stack);
    let mut tpcc = Tpcc::make(&lab, &stack.at());
    let (file, seed) = (stack.at().join("stamps"), Seed::new(SEED).part("stamps", 0));
    let mut stamps = Stamps::make(&file, stamped_blocks(&stack), seed);
    let mut sum = Sum::default();
    println!("seed {SEED}, {rounds} cuts, made in {:.0} s", begin.elapsed().as_secs_f64());
    for round in 0..rounds {
        one_round(&stack, &mut tpcc, &mut stamps, round, &mut sum);
        println!("seed {SEED}, round {round}, {:.0} s: {sum:?}", begin.elapsed().as_secs_f64());
    }
    tpcc.stop();
    lab.ok(&format!("drive detach {}", stack.log.name));
    let node = stack.drive.node();
    let scrubbed = lab.json(&format!("logdisk scrub {node}"));
    assert!(scrubbed["good"] == true && scrubbed["closed_in_order"] == true, "{scrubbed}");
    lab.ok(&format!("drive detach {}", stack.drive.name));
    assert!(sum.commits >= u64::from(COMMITS[0]) * rounds && sum.moved > 0, "{sum:?}");
    // Some cuts find no volatile write.
    assert!(rounds < 10 || sum.lost_by_cuts > 0, "{sum:?}");
}

/// A drive of half a gigabyte, a log disk on it, and XFS on that.
fn make(stack: &Stack<'_>) {
    let lab = stack.lab;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices/mtron-32gb.toml");
    let device = std::fs::read_to_string(path).expect("the device is there");
    // The drive has a larger buffer than usual, so that cuts lose more writes.
    let large = device.replace("size      = \"256KiB\"", "size      = \"16MiB\"");
    assert_ne!(large, device, "the device has another buffer now");
    lab.write("drive.toml", large);
    // The log disk has to survive torn writes with sectors of 512 bytes.
    lab.ok(&format!(
        "drive attach drive.toml --block 512 --name {} --scale 1/64 --no-delay --cache volatile --seed {SEED}",
        stack.drive.name
    ));
    let (node, serial) = (stack.drive.node(), stack.drive.path("/disk"));
    lab.ok(&format!("logdisk format {node} --segment 1MiB --destroy {}", serial.display()));
    stack.attach_log("--mkfs xfs");
}

fn stamped_blocks(stack: &Stack<'_>) -> u32 {
    (stack.figure("offered_bytes") as f64 * STAMPED / stamps::BLOCK as f64) as u32
}

/// Writes until the power is cut, restarts every layer, and verifies the ledgers. In every second round the database
/// stops before the cut. Its commits would flush the drive; without commits the cache holds more volatile writes.
fn one_round(stack: &Stack<'_>, tpcc: &mut Tpcc, stamps: &mut Stamps, round: u64, sum: &mut Sum) {
    let (lab, seed) = (stack.lab, Seed::new(SEED).part("round", round));
    let mut random = Random::new(seed.part("cut", 0));
    let commits = u64::from(random.between(COMMITS[0], COMMITS[1]));
    let tear = ["512", "4096"][random.between(0, 1) as usize];
    let is_silent = round % 2 == 1;
    let longest = if is_silent { 1500 } else { 300 };
    let pause = Duration::from_millis(random.between(0, longest).into());
    let (silent, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let moved = std::thread::scope(|scope| {
        // Stops the writers even if this thread panics.
        let _end = (Sets(&silent), Sets(&over));
        let done = tpcc.write(scope, seed, &silent);
        let stamped = stamps.write(scope, seed, &over);
        let begin = Instant::now();
        while done.load(Ordering::Relaxed) < commits || stamped.load(Ordering::Relaxed) < STAMPED_WRITES {
            assert!(begin.elapsed() < Duration::from_secs(600), "seed {SEED}: nothing is written");
            std::thread::sleep(Duration::from_millis(10));
        }
        let before = stack.figure("blocks_moved");
        silent.store(is_silent, Ordering::Relaxed);
        std::thread::sleep(pause);
        let after = stack.figure("blocks_moved");
        let text = lab.ok(&format!("drive powercut {} --stay-off --tear {tear}", stack.drive.name));
        sum.lost_by_cuts += numbers(&text, &["dropped", "torn"]);
        over.store(true, Ordering::Relaxed);
        tpcc.kill();
        (before, after)
    });
    sum.cuts += 1;
    sum.while_cleaning += u32::from(moved.1 > moved.0);
    sum.moved += moved.1;
    lab.ends(&format!("drive detach {} --force", stack.log.name), 0);
    lab.ok(&format!("drive power-on {}", stack.drive.name));
    lab.ok(&format!("drive attach --again {}", stack.drive.name));
    let checked = lab.json(&format!("logdisk check {}", stack.drive.node()));
    assert!(checked["good"] == true, "seed {SEED}: {checked}");
    stack.attach_log("");
    sum.stamped += stamps.verify();
    let (committed, unknown) = tpcc.verify();
    sum.commits += committed;
    sum.unknown += unknown;
}

/// Sets a flag when dropped.
struct Sets<'a>(&'a AtomicBool);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The sum of the numbers in front of some words: `3 dropped`.
fn numbers(text: &str, words: &[&str]) -> u64 {
    let text: Vec<&str> = text.split([' ', ',', ';']).filter(|word| !word.is_empty()).collect();
    let of = |pair: &[&str]| words.contains(&pair[1]).then(|| pair[0].parse::<u64>().ok()).flatten();
    text.windows(2).filter_map(of).sum()
}
