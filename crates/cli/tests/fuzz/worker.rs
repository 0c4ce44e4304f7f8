//! A worker: another process of this program, with a memory limit, which runs one case after another and reports
//! each.
//!
//! A worker reports on standard output, in lines: `@case 12`, `@accepted`, `@refused`, `@panic …`. If a worker is
//! silent for too long, or ends during a case (stack overflow, out of memory), this case is a finding, and another
//! worker continues with the next case. `main` runs the command.

use super::entries::Outcome;
use super::kinds::{Kind, Samples};
use super::{LONGEST, Run, fresh, is_for_command, is_over_limit, limited, processor, text_of};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The arguments of a worker: kind, seed, first and last number, folder.
const ORDER: &str = "LOWTIDE_FUZZ_WORKER";
/// Findings of a kind after which its search ends.
const MOST_FINDINGS: usize = 20;

/// Runs the cases of a range that are not for the command; returns the outcome or the finding of each.
pub fn all(run: &Run, kind: Kind, range: Range<u64>) -> Vec<(u64, Result<String, String>)> {
    let mut ended = Vec::new();
    let mut next = range.start;
    while next < range.end {
        next = one_worker(run, kind, next..range.end, &mut ended);
        if ended.iter().filter(|(_, how)| how.is_err()).count() >= MOST_FINDINGS {
            println!("{}: stopped after {MOST_FINDINGS} findings", kind.name());
            break;
        }
    }
    ended
}

/// Runs cases until a worker ends; returns the number of the next case.
fn one_worker(
    run: &Run,
    kind: Kind,
    range: Range<u64>,
    ended: &mut Vec<(u64, Result<String, String>)>,
) -> u64 {
    let log = run.folder.join("worker.stderr");
    let order =
        format!("{} {} {} {} {}", kind.name(), run.seed, range.start, range.end, run.folder.display());
    let mut child = limited(&std::env::current_exe().expect("it runs"))
        .args(["worker::order", "--exact", "--nocapture", "--test-threads=1"])
        .env(ORDER, order)
        .stdout(Stdio::piped())
        .stderr(File::create(&log).expect("the folder can be written"))
        .spawn()
        .expect("it starts");
    let (lines, text) = mpsc::channel();
    let out = BufReader::new(child.stdout.take().expect("a pipe"));
    let reader = std::thread::spawn(move || {
        for line in out.split(b'\n').map_while(Result::ok) {
            if lines.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    let mut at = None;
    let (mut began, mut before) = (Instant::now(), Duration::ZERO);
    let mut is_done = false;
    let problem = loop {
        let line = match text.recv_timeout(LONGEST) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Timeout) if !is_over_limit(child.id(), before, began) => continue,
            Err(mpsc::RecvTimeoutError::Timeout) => break Some(format!("it took more than {LONGEST:?}")),
            Err(mpsc::RecvTimeoutError::Disconnected) => break None,
        };
        // The test harness writes to standard output, too.
        let Some(word) = line.split('@').nth(1) else { continue };
        match (word.split_once(' ').unwrap_or((word, "")), at) {
            (("case", number), _) => {
                at = number.parse::<u64>().ok();
                began = Instant::now();
                before = processor(child.id());
            }
            (("panic", what), Some(number)) => ended.push((number, Err(format!("panic: {what}")))),
            (("end", _), _) => is_done = true,
            ((how, _), Some(number)) => ended.push((number, Ok(how.to_owned()))),
            (_, None) => {}
        }
    };
    let _ = child.kill();
    let status = child.wait().expect("the child can be waited for");
    let _ = reader.join();
    if is_done {
        return range.end;
    }
    let errors: String = text_of(&log).chars().take(1500).collect();
    let Some(at) = at else { panic!("a worker for {} does not begin: {status}\n{errors}", kind.name()) };
    ended.push((at, Err(problem.unwrap_or_else(|| format!("{status}\n{errors}")))));
    at + 1
}

/// The main function of a worker. Does nothing in other processes.
#[test]
fn order() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let words: Vec<&str> = order.splitn(5, ' ').collect();
    let [kind, seed, from, to, folder] = words[..] else { panic!("no order: {order}") };
    let kind = Kind::from_name(kind).expect("a kind");
    let [seed, from, to] = [seed, from, to].map(|text| text.parse::<u64>().expect("a number"));
    let samples = Samples::read(kind, Path::new(folder));
    let place = Path::new(folder).join("worker");
    let last = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&last);
    panic::set_hook(Box::new(move |info| {
        let text = info.to_string().replace('\n', " ").replace('@', "(at)");
        if let Ok(mut kept) = kept.lock() {
            *kept = text;
        }
    }));
    let say = |line: &str| {
        let mut out = std::io::stdout().lock();
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        written.expect("standard output is open");
    };
    say("");
    for number in (from..to).filter(|number| !is_for_command(*number)) {
        say(&format!("@case {number}"));
        let case = fresh(&samples, seed, number, &place);
        match panic::catch_unwind(AssertUnwindSafe(|| samples.run(&case, &place))) {
            Ok(Outcome::Accepted) => say("@accepted"),
            Ok(Outcome::Refused) => say("@refused"),
            Err(_) => say(&format!("@panic {}", last.lock().map(|text| text.clone()).unwrap_or_default())),
        }
    }
    say("@end");
}
