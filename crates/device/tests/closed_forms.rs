//! Steady write amplification against the closed forms in `published/write_amplification_theory.txt`.
//!
//! The table's ρ is live pages over pages in circulation: blocks kept erased or being filled do not count.

mod common;

use common::{fill, overwrite, plain};
use lowtide_core::{BlockDevice, Seed, VirtualTime};
use lowtide_device::SimulatedSsd;
use lowtide_device::flash::spec::Policy;

const THEORY: &str = include_str!("../../../published/write_amplification_theory.txt");
const TOLERANCE: f64 = 0.02;

/// The row of `rho` in the section that begins with `heading`.
fn row(heading: &str, rho: f64) -> &'static str {
    let section = THEORY.split_once(heading).expect("the section is there").1;
    let wanted = format!("{rho:.2}");
    section.lines().skip(1).find(|line| line.starts_with(&wanted)).expect("the row is there")
}

fn published(policy: Policy, rho: f64, block_units: u32) -> f64 {
    let by_block = |heading| {
        let key = format!("b{block_units}:");
        let row: &str = row(heading, rho);
        row.split_whitespace().find_map(|word| word.strip_prefix(&key)).expect("the block size is there")
    };
    let text = match policy {
        Policy::Greedy => by_block("greedy all b"),
        Policy::DChoices(2) => by_block("d-choices d=2"),
        Policy::Random => row("rho   random", rho).split_whitespace().nth(1).expect("a column"),
        Policy::Fifo => row("rho   random", rho).split_whitespace().nth(2).expect("a column"),
        _ => unreachable!("no closed form is kept for {policy:?}"),
    };
    // Some rows glue block size and number: `b64:1.2389`; others put a space between.
    let text = if text.is_empty() {
        let row = row(if policy == Policy::Greedy { "greedy all b" } else { "d-choices d=2" }, rho);
        let mut words = row.split_whitespace();
        words.find(|word| *word == format!("b{block_units}:"));
        words.next().expect("a number")
    } else {
        text
    };
    text.parse().expect("a number")
}

/// The number of victims that a measurement averages over. Victims of the random and d-choices policies differ widely in
/// their valid units. With a quarter of these victims, single seeds had errors of up to 2.0 %. With all of them, eight seeds
/// had errors of −0.3 ± 0.3 %, at most 1.0 %, which is half of the tolerance. Greedy and FIFO victims hardly differ.
fn victims(policy: Policy) -> f64 {
    match policy {
        Policy::Random => 64_000.0,
        Policy::DChoices(_) => 32_000.0,
        _ => 5_000.0,
    }
}

fn simulated(policy: Policy, rho: f64, block_units: u32, seed: u64, theory: f64) -> f64 {
    // The spare area has at least 100 blocks, so one block of reserve changes it by at most 1 %.
    let blocks = if rho > 0.9 { 4096 } else { 1024 };
    let spec = plain(blocks, block_units, rho, policy);
    let mut drive = SimulatedSsd::new(&spec, Seed::new(seed)).expect("valid");
    let capacity = drive.capacity().get();
    let now = fill(&mut drive, VirtualTime::START);
    // The erased blocks are used up first; then cleaning settles.
    let unused = capacity as f64 * (1.0 - rho) / rho;
    let settling = capacity as f64 * 0.8;
    let now = overwrite(&mut drive, (1.2 * unused + settling) as u64, Seed::new(seed).part("warm", 0), now);
    let before = drive.counters();
    // A reclaimed victim has room for (block size / write amplification) bytes of host data.
    let measured = victims(policy) * spec.block_bytes().get() as f64 / theory;
    overwrite(&mut drive, measured as u64, Seed::new(seed).part("measure", 0), now);
    drive.counters().write_amplification_since(&before).expect("wrote")
}

fn check(policy: Policy, block_units: u32) {
    let seed = 20_26;
    for rho in [0.5, 0.7, 0.8, 0.9, 0.95] {
        let theory = published(policy, rho, block_units);
        let model = simulated(policy, rho, block_units, seed, theory);
        let error = model / theory - 1.0;
        println!(
            "{policy:?} b {block_units} rho {rho}: model {model:.4}, theory {theory:.4}, {:+.2} %",
            error * 100.0
        );
        assert!(
            error.abs() < TOLERANCE,
            "seed {seed}: {policy:?} b {block_units} rho {rho}: {model} against {theory}"
        );
    }
}

#[test]
fn greedy_64() {
    check(Policy::Greedy, 64);
}
#[test]
fn greedy_256() {
    check(Policy::Greedy, 256);
}
#[test]
fn fifo_64() {
    check(Policy::Fifo, 64);
}
#[test]
fn fifo_256() {
    check(Policy::Fifo, 256);
}
#[test]
fn random_64() {
    check(Policy::Random, 64);
}
#[test]
fn random_256() {
    check(Policy::Random, 256);
}
#[test]
fn two_choices_64() {
    check(Policy::DChoices(2), 64);
}
#[test]
fn two_choices_256() {
    check(Policy::DChoices(2), 256);
}

/// Write amplification before the steady state: the drive is filled in order, overwritten at random, and checked after each
/// quarter of a drive write.
#[test]
fn history_of_a_full_size_drive_filled_in_order() {
    let seed = 7;
    // ρ is 0.9 of all 160 GiB of NAND, open and erased blocks included.
    let mut spec = plain(160 << 10, 256, 1.0, Policy::Greedy);
    spec.capacity = lowtide_core::Bytes::gib(144);
    let mut drive = SimulatedSsd::new(&spec, Seed::new(seed)).expect("valid");
    let quarter = drive.capacity().get() / 4;
    let mut now = fill(&mut drive, VirtualTime::START);
    for (n, expected) in [3.685, 5.037, 5.085].into_iter().enumerate() {
        let before = drive.counters();
        now = overwrite(&mut drive, quarter, Seed::new(seed).part("quarter", n as u64), now);
        let model = drive.counters().write_amplification_since(&before).expect("wrote");
        println!("quarter {}: {model:.4}, expected {expected}", n + 1);
        assert!((model / expected - 1.0).abs() < TOLERANCE, "seed {seed}, quarter {}: {model}", n + 1);
    }
}
