//! Builds a campaign from runs: settings that differ become factors, and time series get a verdict.
//!
//! Factors have the names and values of lowtide's experiments, so that `compare` can match cells. If the settings of
//! runs are equal, the factor `job` distinguishes them. Runs of the same job are repetitions.
//! `lowtide_record::analysis` holds the rules for verdicts.

use super::error::ImportError;
use super::run::Run;
use super::{Imported, Options};
use crate::experiment::untyped;
use crate::store::Measured;
use lowtide_core::Bytes;
use lowtide_record::analysis::{Confidence, Context, Criterion, Medium, Series, Verdict, steady};
use lowtide_record::{Campaign, Cell, FactorLevel, Status};
use std::path::PathBuf;

/// The settings that may be factors, in the order in which an experiment would vary them.
const SETTINGS: [&str; 7] = ["pattern", "file_size", "block", "mix", "rate", "threads", "depth"];

/// The reason why totals have no steady state.
const ONE_NUMBER: &str = "one number for the whole run has no steady state: it takes a time series (fio: \
                          `write_bw_log` and `log_avg_msec`; sysbench: `--report-interval`)";
/// The reason why writes to data of unknown size have no steady state.
const NO_SIZE: &str = "nothing says how much data was written to, so a fresh drive cannot be told from a settled one: \
                       say it with `--size`";

/// The campaign of these runs.
pub(super) fn of(
    mut runs: Vec<Run>,
    paths: &[PathBuf],
    options: &Options,
    notes: Vec<String>,
) -> Result<Imported, ImportError> {
    let Some(first) = runs.first() else {
        let path = paths.first().cloned().unwrap_or_default();
        return Err(ImportError::file(&path, "there is no run in it", "name what a run wrote"));
    };
    let (program, title) = (first.program, format!("Imported from {}", first.program));
    for run in &mut runs {
        run.data = run.data.or(options.size);
    }
    let factors = factors(&runs);
    let mut cells: Vec<Cell> = Vec::new();
    for (run, factors) in runs.iter().zip(factors) {
        let repetition = 1 + cells.iter().filter(|cell| cell.factors == factors).count() as u32;
        cells.push(cell(run, cells.len() as u32, factors, repetition));
    }
    let name = options.name.clone().unwrap_or_else(|| name_of(&paths[0]));
    let campaign = Campaign {
        name,
        title,
        experiment: String::new(),
        resolved: None,
        target: same(runs.iter().map(|run| run.target.clone()))
            .flatten()
            .unwrap_or_else(|| program.to_owned()),
        devices: Vec::new(),
        seed: 0,
        scale: 1,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: runs.iter().filter_map(|run| run.started_at.clone()).min().unwrap_or_default(),
        command: options.command.clone(),
        environment: environment(&runs, &cells, paths),
        cells,
    };
    let measured = runs.into_iter().map(|run| run.measured).collect();
    Ok(Imported { campaign, measured, notes })
}

/// The name of a campaign: `job` for `results/job.json`.
fn name_of(path: &std::path::Path) -> String {
    let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    super::kind::Log::of_name(&format!("{stem}.log")).map_or(stem, |(job, _)| job)
}

/// The common value, if all values are equal.
fn same<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

/// The factors of each run: the settings that differ between runs.
fn factors(runs: &[Run]) -> Vec<Vec<FactorLevel>> {
    let value = |run: &Run, name: &str| {
        run.settings.iter().find(|(setting, _)| *setting == name).map(|(_, value)| value.clone())
    };
    let varied: Vec<&str> =
        SETTINGS.into_iter().filter(|name| same(runs.iter().map(|run| value(run, name))).is_none()).collect();
    let of_settings = |run: &Run| -> Vec<FactorLevel> {
        varied.iter().filter_map(|name| Some(untyped(name, value(run, name)?))).collect()
    };
    let mut all: Vec<Vec<FactorLevel>> = runs.iter().map(of_settings).collect();
    let alike = |a: usize, b: usize| a != b && all[a] == all[b] && runs[a].job != runs[b].job;
    let told_apart = (0..runs.len()).all(|a| (0..runs.len()).all(|b| !alike(a, b)));
    if !told_apart {
        for (factors, run) in all.iter_mut().zip(runs) {
            factors.insert(0, FactorLevel::word("job", &run.job));
        }
    }
    all
}

fn cell(run: &Run, index: u32, factors: Vec<FactorLevel>, repetition: u32) -> Cell {
    let operations = |pick: fn(&Measured) -> u64| run.measured.iter().map(pick).fold(0, u64::saturating_add);
    let (read, written) = (operations(|m| m.row.read_bytes), operations(|m| m.row.write_bytes));
    let whole = read.saturating_add(written);
    let read_share = if whole == 0 { 0.0 } else { share_of_reads(run).unwrap_or(read as f64 / whole as f64) };
    let failed = run.failure.is_some();
    Cell {
        index,
        factors,
        repetition,
        status: if failed { Status::Failed } else { Status::Done },
        failure: run.failure.clone(),
        data: run.data.unwrap_or_default(),
        // No file contains the capacity of the target.
        capacity: Bytes::ZERO,
        threads: run.threads.max(1),
        read_share,
        verdict: (!failed).then(|| verdict(run, written == 0)),
        ..Cell::default()
    }
}

/// The share of reads by number of operations, if known.
fn share_of_reads(run: &Run) -> Option<f64> {
    let sum = |pick: fn(&Measured) -> u64| run.measured.iter().map(pick).fold(0, u64::saturating_add) as f64;
    let (reads, writes) = (sum(|m| m.row.reads), sum(|m| m.row.writes));
    (reads + writes > 0.0).then(|| reads / (reads + writes))
}

fn verdict(run: &Run, read_only: bool) -> Verdict {
    let none = |reason: &str| Verdict::NoSteadyState { reason: reason.to_owned() };
    let data = match (run.is_series, run.data) {
        (false, _) => return none(ONE_NUMBER),
        (true, None) if !read_only => return none(NO_SIZE),
        (true, data) => data.unwrap_or_default(),
    };
    let context = Context {
        // The capacity is unknown. The data is a lower bound.
        capacity: data,
        raw_capacity: None,
        data,
        read_only,
        medium: Medium::Unknown,
        written_before: None,
    };
    let mut series = Series::new(context);
    for measured in &run.measured {
        if let Err(error) = series.push(&measured.row) {
            return none(&format!("its rows are no time series: {error}"));
        }
    }
    steady(&series, &Criterion::Confidence(Confidence::fixed_duration()))
}

/// The facts of all runs. Facts that differ between runs name their cell.
fn environment(runs: &[Run], cells: &[Cell], paths: &[PathBuf]) -> Vec<(String, String)> {
    let files: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let mut facts = vec![("imported from".to_owned(), files.join(", "))];
    let value = |run: &Run, name: &str| {
        run.facts.iter().find(|(fact, _)| fact == name).map(|(_, value)| value.clone())
    };
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in runs.iter().flat_map(|run| &run.facts) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    for name in names {
        match same(runs.iter().map(|run| value(run, name))) {
            Some(text) => facts.extend(text.map(|text| (name.to_owned(), text))),
            None => {
                facts.extend(runs.iter().zip(cells).filter_map(|(run, cell)| {
                    Some((format!("{name} ({})", cell.label()), value(run, name)?))
                }))
            }
        }
    }
    facts
}
