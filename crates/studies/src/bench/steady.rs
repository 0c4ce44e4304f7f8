//! Tests steady-state rules against runs ten times longer.
//!
//! The simulated Intel 320 is filled to several sizes and overwritten at random until lowtide's rule stops. The run
//! then continues to ten times that length. The reference is the mean from the stop to the end. The rules of SNIA and
//! fio are applied to the same series.
//!
//! # Not measured
//!
//! Real drives, because their true level is unknown.

use lowtide_core::{
    BlockDevice, Bytes, Control, Extents, Interval, Nanos, Request, Seed, VirtualTime, Workload, virtual_load,
};
use lowtide_device::DeviceSpec;
use lowtide_record::Row;
use lowtide_record::analysis::{Context, Criterion, Estimate, FioSlope, Medium, Online, Snia};
use rayon::prelude::*;

/// Maximum relative error of a correct answer.
const WITHIN: f64 = 0.03;
/// Maximum intervals of a run that does not stop: 100 h at 10 s.
const MOST_INTERVALS: usize = 36_000;

/// The results of all rules for one file size, over all seeds.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Judged {
    /// File size in GiB, on the full-size drive.
    pub file_size_gib: u64,
    /// Number of runs, each with its own seed.
    pub runs: usize,
    /// Results of lowtide's rule.
    pub lowtide: Rule,
    /// Results of the rule in the SNIA performance test specification.
    pub snia: Rule,
    /// Results of fio's limit on the slope.
    pub fio_slope: Rule,
}

/// The results of one rule.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
pub struct Rule {
    /// Runs in which the rule stopped.
    pub stopped: usize,
    /// Runs in which the rule stopped with an error of at most 3 %.
    pub within_3_percent: usize,
    /// Runs in which its window began before the host had written as many bytes as the drive has raw NAND.
    pub in_honeymoon: usize,
    /// Mean absolute error, in percent.
    pub mean_error_percent: f64,
    /// Largest absolute error, in percent.
    pub largest_error_percent: f64,
    /// Mean time of the stop, in seconds on the full-size drive.
    pub mean_stop_s: f64,
}

/// The answer of one rule in one run.
struct Said {
    error: f64,
    honeymoon: bool,
    stop_s: f64,
}

/// The answers of all rules in one run. `None` for a rule that did not stop.
struct Run([Option<Said>; 3]);

/// Tests the rules on `spec` at `sizes` (GiB on the full-size drive), with `seeds` runs each, scaled down by `scale`.
///
/// # Panics
/// Panics if the description is invalid at that scale.
pub fn steady(spec: &DeviceSpec, sizes: &[u64], seeds: u64, scale: u64) -> Vec<Judged> {
    let spec = spec.scaled(scale);
    sizes
        .iter()
        .map(|&gib| {
            let runs: Vec<Run> =
                (1..=seeds).into_par_iter().map(|seed| run(&spec, gib, seed, scale)).collect();
            let rule = |index: usize| {
                let said: Vec<&Said> = runs.iter().filter_map(|run| run.0[index].as_ref()).collect();
                let share = |sum: f64| if said.is_empty() { 0.0 } else { sum / said.len() as f64 };
                Rule {
                    stopped: said.len(),
                    within_3_percent: said.iter().filter(|said| said.error.abs() <= WITHIN).count(),
                    in_honeymoon: said.iter().filter(|said| said.honeymoon).count(),
                    mean_error_percent: 100.0 * share(said.iter().map(|said| said.error.abs()).sum()),
                    largest_error_percent: 100.0
                        * said.iter().map(|said| said.error.abs()).fold(0.0, f64::max),
                    mean_stop_s: share(said.iter().map(|said| said.stop_s).sum()),
                }
            };
            Judged {
                file_size_gib: gib,
                runs: runs.len(),
                lowtide: rule(0),
                snia: rule(1),
                fio_slope: rule(2),
            }
        })
        .collect()
}

fn run(spec: &DeviceSpec, gib: u64, seed: u64, scale: u64) -> Run {
    let seed = Seed::new(seed).part("steady", gib);
    let mut drive = spec.build(seed).expect("the description is valid");
    let data = Bytes::gib(gib) / scale;
    let chunk = Bytes::mib(1).get();
    let now = (0..data.get() / chunk)
        .fold(VirtualTime::START, |now, n| drive.submit(now, &Request::write(n * chunk, chunk)).at);
    let context = Context {
        capacity: drive.capacity(),
        raw_capacity: drive.raw_capacity(),
        data,
        read_only: false,
        medium: Medium::Flash,
        written_before: Some(data),
    };
    let mut online = Online::new(context, Criterion::default());
    let mut stop: Option<(Estimate, usize)> = None;
    let mut rows: Vec<Row> = Vec::new();
    let each = &mut |interval: Interval| {
        rows.push(Row::of(&interval));
        match stop {
            None => {
                let answer = online.push(&rows[rows.len() - 1]).expect("intervals follow each other");
                stop = answer.map(|estimate| (estimate, rows.len()));
                if rows.len() >= MOST_INTERVALS { Control::Stop } else { Control::Continue }
            }
            Some((_, stopped)) if rows.len() >= 10 * stopped => Control::Stop,
            Some(_) => Control::Continue,
        }
    };
    let interval = Nanos::from_secs(10) / scale;
    let workload = Workload::random_write(Bytes::kib(16));
    let extents = Extents::whole(data.get());
    virtual_load::run(&mut drive, &extents, &workload, seed.part("load", 0), now, interval, each)
        .expect("in range");

    let from = stop.map_or(rows.len() / 2, |(_, stopped)| stopped);
    let truth = rows[from..].iter().map(Row::mib_per_s).sum::<f64>() / (rows.len() - from) as f64;
    let raw = drive.raw_capacity().expect("flash has raw capacity");
    let said = |answer: Estimate| {
        let before = rows.iter().take_while(|row| row.start_ns < answer.from_ns);
        let before = before.map(|row| row.write_bytes).sum::<u64>();
        Said {
            error: answer.mean / truth - 1.0,
            honeymoon: data.get() + before < raw.get(),
            stop_s: answer.to_ns as f64 / 1e9 * scale as f64,
        }
    };
    let series = online.series();
    // The other rules use fixed times, which are scaled like everything else.
    let snia = Snia::default();
    let snia = Snia { round_ns: snia.round_ns / scale, ..snia };
    let slope = FioSlope::default();
    let slope = FioSlope { window_ns: slope.window_ns / scale, ..slope };
    Run([
        stop.map(|(estimate, _)| said(estimate)),
        snia.answer(series).map(said),
        slope.answer(series).map(said),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_waits_for_the_honeymoon_to_end_and_others_do_not() {
        let spec = lowtide_files::device::find("intel-320-160gb").expect("in the catalogue").spec;
        let judged = steady(&spec, &[60, 120], 2, 64);
        for judged in judged {
            println!("{judged:?}");
            assert_eq!(judged.lowtide.stopped, judged.runs);
            assert_eq!(judged.lowtide.in_honeymoon, 0);
            assert_eq!(judged.lowtide.within_3_percent, judged.runs);
            assert!(judged.snia.in_honeymoon > 0 && judged.fio_slope.in_honeymoon > 0);
        }
    }
}
