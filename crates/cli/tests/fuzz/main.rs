//! Fuzzing of untrusted files: experiments, device files, tables to fit, lists of prices, fio's output, traces,
//! stores and parts of campaigns. No case may cause a panic, take more than ten seconds or 2 GiB of memory, or end
//! with an undocumented exit code.
//!
//! ```text
//!   valid samples ─► mutate ─► a case ─┬─► worker: this program again, case after case; reports panics, hangs and aborts
//!                                      └─► the command itself, every 25th case
//! ```
//!
//! A case is identified by its kind, the seed and its number. `cargo test` runs a few hundred,
//! `LOWTIDE_LONG=1` a hundred thousand; `LOWTIDE_FUZZ_CASES`, `LOWTIDE_FUZZ_SEED` and
//! `LOWTIDE_FUZZ_ONLY=KIND[:NUMBER]` select other cases. The input of a failure is kept in a folder that the message
//! names.
//! Inputs over networks are in `tests/nbd`, log disks in `crates/logdisk/tests`.
#![allow(clippy::print_stdout)]

#[path = "../common/mod.rs"]
mod common;

mod databases;
mod entries;
mod kinds;
mod mutate;
mod worker;

use kinds::{Case, Kind, Samples};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Processor time limit of a case.
const LONGEST: Duration = Duration::from_secs(10);
/// Wall time limit of a case, since other programs may take the processors.
const PATIENCE: Duration = Duration::from_secs(120);
/// Address space, in KiB.
const MEMORY_KIB: u64 = 2 << 20;
/// One case in this many runs the command.
const COMMAND_EVERY: u64 = 25;
/// Exit codes that `lowtide --help` documents, without 130 for an interruption.
const EXIT_CODES: [i32; 6] = [0, 1, 2, 3, 4, 5];
/// Number of cases without and with `LOWTIDE_LONG=1`.
const CASES: u64 = 300;
const CASES_LONG: u64 = 100_000;

/// A program limited to [`MEMORY_KIB`] of address space, which must not depend on the number of processors.
fn limited(program: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit -v {MEMORY_KIB} && exec \"$0\" \"$@\"")).arg(program);
    // Each thread of each processor reserves address space.
    command.env("RAYON_NUM_THREADS", "2").env("MALLOC_ARENA_MAX", "2");
    command.env("NO_COLOR", "1").env("RUST_BACKTRACE", "0").stdin(Stdio::null());
    command
}

/// A failure, and the case that shows it.
struct Finding {
    kind: Kind,
    number: u64,
    what: String,
}

/// Settings and results of all cases.
struct Run {
    seed: u64,
    /// The folder of the samples and the cases.
    folder: PathBuf,
    /// Number of cases for each kind and outcome.
    counts: BTreeMap<(&'static str, String), u64>,
    findings: Vec<Finding>,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

#[test]
fn changed_inputs_are_accepted_or_refused() {
    let is_long = std::env::var_os("LOWTIDE_LONG").is_some();
    let cases = number("LOWTIDE_FUZZ_CASES").unwrap_or(if is_long { CASES_LONG } else { CASES });
    let seed = number("LOWTIDE_FUZZ_SEED").unwrap_or(1);
    let only = std::env::var("LOWTIDE_FUZZ_ONLY").ok();
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    println!("{cases} cases, seed {seed}");
    kinds::prepare(folder.path());
    let mut run =
        Run { seed, folder: folder.path().to_owned(), counts: BTreeMap::new(), findings: Vec::new() };
    for (kind, share) in Kind::ALL {
        let range = match only.as_deref().map(|only| only.split_once(':').unwrap_or((only, ""))) {
            Some((name, _)) if Kind::from_name(name) != Some(kind) => continue,
            Some((_, "")) => 0..cases,
            Some((_, one)) => {
                let one: u64 = one.parse().expect("LOWTIDE_FUZZ_ONLY=KIND:NUMBER");
                one..one + 1
            }
            None => 0..(cases * share).div_ceil(100),
        };
        let begin = Instant::now();
        run.cases(kind, range.clone());
        println!(
            "{}: {} cases in {:.1} s",
            kind.name(),
            range.end - range.start,
            begin.elapsed().as_secs_f64()
        );
    }
    for ((kind, how), count) in &run.counts {
        println!("{kind:>12}  {how:<20} {count}");
    }
    let text: Vec<String> = run.findings.iter().map(|finding| run.keep(finding)).collect();
    assert!(text.is_empty(), "{} findings\n\n{}", text.len(), text.join("\n\n"));
}

impl Run {
    fn cases(&mut self, kind: Kind, range: std::ops::Range<u64>) {
        let samples = Samples::read(kind, &self.folder);
        for (number, ended) in worker::all(self, kind, range.clone()) {
            self.count(kind, ended.as_ref().map_or("finding", |how| how.as_str()));
            if let Err(what) = ended {
                self.findings.push(Finding { kind, number, what });
            }
        }
        for number in range.filter(|number| is_for_command(*number)) {
            let folder = self.folder.join("command");
            let case = fresh(&samples, self.seed, number, &folder);
            match command(&case, &folder) {
                Ok(code) => self.count(kind, &format!("exit code {code}")),
                Err(what) => {
                    self.count(kind, "finding");
                    self.findings.push(Finding { kind, number, what });
                }
            }
        }
    }

    fn count(&mut self, kind: Kind, how: &str) {
        *self.counts.entry((kind.name(), how.to_owned())).or_default() += 1;
    }

    /// Keeps the input of a finding; returns its description.
    fn keep(&self, finding: &Finding) -> String {
        let Finding { kind, number, what } = finding;
        let name = format!("fuzz-{}-{}-{number}", kind.name(), self.seed);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let case = fresh(&Samples::read(*kind, &self.folder), self.seed, *number, &folder);
        let asked = case.arguments.join(" ");
        format!(
            "{} {number} with seed {}: {what}\ncommand: lowtide {asked}\ninput: {}\nagain: LOWTIDE_FUZZ_SEED={} LOWTIDE_FUZZ_ONLY={}:{number} cargo test -p \
             lowtide-cli --test fuzz",
            kind.name(),
            self.seed,
            folder.join(&case.files[0]).display(),
            self.seed,
            kind.name(),
        )
    }
}

/// Returns whether this case runs the command itself.
fn is_for_command(number: u64) -> bool {
    number % COMMAND_EVERY == COMMAND_EVERY / 2
}

/// Makes a case in an empty folder.
fn fresh(samples: &Samples, seed: u64, number: u64, folder: &Path) -> Case {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{}: {error}", folder.display()),
        _ => {}
    }
    std::fs::create_dir_all(folder).expect("a folder can be made");
    samples.make(seed, number, folder)
}

/// Processor time used by a process.
fn processor(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // After the name in brackets: user and system time in hundredths of a second.
    let ticks: u64 = stat.rsplit(')').next().map_or(0, |rest| {
        rest.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum()
    });
    Duration::from_millis(ticks * 10)
}

/// Returns whether a process has used too much processor time, or waited too long since `begin`.
fn is_over_limit(process: u32, before: Duration, begin: Instant) -> bool {
    processor(process).saturating_sub(before) > LONGEST || begin.elapsed() > PATIENCE
}

/// Runs the command; returns its exit code.
fn command(case: &Case, folder: &Path) -> Result<i32, String> {
    let log = folder.join("stderr");
    let mut child = limited(Path::new(env!("CARGO_BIN_EXE_lowtide")))
        .args(&case.arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(File::create(&log).expect("the folder can be written"))
        .spawn()
        .expect("lowtide starts");
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().expect("the child can be waited for") {
            Some(status) => break status,
            None if begin.elapsed() > LONGEST && is_over_limit(child.id(), Duration::ZERO, begin) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it took more than {LONGEST:?}"));
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let errors = text_of(&log);
    let begin: String = errors.chars().take(1500).collect();
    match status.code() {
        Some(code) if EXIT_CODES.contains(&code) && !errors.contains("panicked at") => Ok(code),
        Some(code) => Err(format!("exit code {code}\n{begin}")),
        None => Err(format!("{status}\n{begin}")),
    }
}

/// A file as text; empty if it cannot be read.
fn text_of(path: &Path) -> String {
    std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
