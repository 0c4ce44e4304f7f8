//! Running a campaign: every group of the plan, cell after cell, into the store.
//!
//! Groups on simulated devices run on all cores; on the host there is one group. A cell that fails fails the
//! cells after it in its group, whose history would be another, and no others. Leaves out what is shown while
//! it runs: [`Progress`] hears of it.

use crate::load::{Ended, on_drive, on_files};
use crate::plan::{Plan, PlanTarget, PlannedCell};
use crate::prepare::{Files, History};
use crate::record::Row;
use crate::store::{About, CellEnd, CellStart, Entry, Measured, Store, StoreError, Writer};
use lowtide_core::{BlockDevice, Interval};
use lowtide_host::HostError;
use lowtide_host::engine::EngineChoice;
use lowtide_host::target::TargetSpec;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

/// Hears how a campaign goes, from any thread.
pub trait Progress: Sync {
    /// A cell is being prepared or measured; `share` of it is done, 0 to 1.
    fn cell(&self, cell: &PlannedCell, stage: Stage, share: f64, last: Option<&Row>);
    /// A cell ended: measured (`None`), or failed for a reason.
    fn ended(&self, cell: &PlannedCell, failure: Option<&str>);
    /// Something the user should know.
    fn note(&self, text: &str);
}

/// What is happening to a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It is measured already, and done again for the history of the cells after it.
    Replay,
    /// Its target is being prepared.
    Prepare,
    /// It is being measured.
    Measure,
}

/// How a campaign ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its number in the store.
    pub campaign: i64,
    /// Cells that failed.
    pub failed: u32,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

/// What cannot be helped: the store, or a target that is refused.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum CampaignError {
    /// The store failed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Store(#[from] StoreError),
    /// The target was refused before anything was written.
    #[error(transparent)]
    Target(#[from] HostError),
}

/// Runs a plan into the store at `path`, which is made where there is none; with `resume`, goes on with the last
/// campaign of the same plan.
///
/// # Errors
/// [`CampaignError`] where the store fails or the target is refused. A target that is refused leaves no store;
/// what was committed stays.
pub fn run(
    plan: &Plan,
    path: &Path,
    about: &About,
    resume: bool,
    interrupt: &Arc<AtomicBool>,
    progress: &dyn Progress,
) -> Result<(Store, Outcome), CampaignError> {
    if let PlanTarget::Host(spec) = &plan.target {
        check_host(plan, spec)?;
    }
    let (store, campaign, done) = if resume {
        let mut store = Store::open_to_resume(path)?;
        let (campaign, done) = store.resume(plan)?;
        (store, campaign, done)
    } else {
        let mut store = Store::open(path)?;
        let campaign = store.begin(plan, about)?;
        (store, campaign, vec![false; plan.cells.len()])
    };
    plan.ignored().iter().for_each(|line| progress.note(line));
    let writer = Writer::start(store, campaign, Arc::clone(interrupt));
    let sender = writer.sender();
    let failed: u32 = plan
        .groups
        .par_iter()
        .map_with(sender, |sender, group| {
            let run = Group { plan, done: &done, interrupt, progress, sender };
            run.run(group)
        })
        .sum();
    let interrupted = interrupt.load(Ordering::Relaxed);
    let store = writer.finish()?;
    Ok((store, Outcome { campaign, failed, interrupted }))
}

/// Sets how many groups run at the same time; the first call counts, and without one it is a group per core.
pub fn set_jobs(jobs: usize) {
    // A second call finds the pool made, and it stays as it is.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(jobs).build_global();
}

/// Refuses a target of the host before anything is written.
fn check_host(plan: &Plan, spec: &TargetSpec) -> Result<(), HostError> {
    plan.cells.iter().try_for_each(|cell| lowtide_host::target::examine(spec, cell.files()?).map(drop))
}

/// A group of cells being run.
struct Group<'a> {
    plan: &'a Plan,
    done: &'a [bool],
    interrupt: &'a AtomicBool,
    progress: &'a dyn Progress,
    sender: &'a SyncSender<Entry>,
}

impl Group<'_> {
    /// Runs the cells of a group in order; how many failed.
    fn run(&self, group: &[usize]) -> u32 {
        // Cells after the last one to measure need not be done again.
        let Some(last) = group.iter().rposition(|&index| !self.done[index]) else { return 0 };
        let mut histories: BTreeMap<String, History> = BTreeMap::new();
        let mut host = match &self.plan.target {
            PlanTarget::Host(spec) => Some(Host { files: Files::new(spec), spec, said: BTreeSet::new() }),
            PlanTarget::Simulated(_) => None,
        };
        let mut broken: Option<String> = None;
        let mut failed = 0;
        for &index in &group[..=last] {
            let cell = &self.plan.cells[index];
            if self.interrupt.load(Ordering::Relaxed) {
                break;
            }
            if self.done[index] && matches!(self.plan.target, PlanTarget::Host(_)) {
                continue;
            }
            let outcome = match (&broken, &mut host) {
                (Some(reason), _) => Err(format!("the history it needs is missing: {reason}")),
                (None, None) => self.simulated(cell, &mut histories),
                (None, Some(host)) => self.host(cell, host),
            };
            match outcome {
                Ok(Ended::Interrupted) => break,
                Ok(Ended::Complete(_)) => self.progress.ended(cell, None),
                Err(reason) => {
                    failed += 1;
                    self.progress.ended(cell, Some(&reason));
                    self.send(Entry::End(cell.index, CellEnd::Failed(reason.clone())));
                    if matches!(self.plan.target, PlanTarget::Simulated(_)) {
                        broken = Some(format!("cell {} failed", cell.index));
                    }
                }
            }
        }
        if let Some(Err(error)) = host.map(|host| host.files.finish()) {
            self.progress.note(&error.to_string());
        }
        failed
    }

    /// A writer that failed has set the interrupt flag, so nothing is lost by ignoring that it hung up.
    fn send(&self, entry: Entry) {
        let _ = self.sender.send(entry);
    }

    fn simulated(
        &self,
        cell: &PlannedCell,
        histories: &mut BTreeMap<String, History>,
    ) -> Result<Ended, String> {
        let PlanTarget::Simulated(devices) = &self.plan.target else { unreachable!("a simulated cell") };
        let name = cell.settings.device.clone().expect("a simulated target names its device");
        let replay = self.done[cell.index as usize];
        let stage = |stage| if replay { Stage::Replay } else { stage };
        self.progress.cell(cell, stage(Stage::Prepare), 0.0, None);
        let seed = self.plan.cell_seed(cell);
        let history = histories
            .entry(name.clone())
            .or_insert_with(|| History::new(&devices[&name].spec, seed.part("device", 0)));
        let prepared = history.prepare(cell, seed).map_err(|error| error.to_string())?;
        if !replay {
            let start = CellStart {
                raw_capacity: prepared.drive.raw_capacity(),
                written_before: Some(prepared.written_before),
                counters: Some(prepared.drive.counters()),
            };
            self.send(Entry::Start(cell.index, start));
        }
        let each =
            &mut |interval: &Interval, share| self.interval(cell, stage(Stage::Measure), interval, share);
        let load = &cell.settings.load;
        let ended = on_drive(prepared, load, seed.part("load", 0), self.interrupt, each);
        let ended = ended.map_err(|error| error.to_string())?;
        if let (Ended::Complete(verdict), false) = (&ended, replay) {
            let wear = wear(&history.drive().erase_counts());
            self.send(Entry::End(cell.index, CellEnd::Done { verdict: verdict.clone(), wear }));
        }
        Ok(ended)
    }

    fn host(&self, cell: &PlannedCell, host: &mut Host<'_>) -> Result<Ended, String> {
        let seed = self.plan.cell_seed(cell);
        let filling = &mut |progress: lowtide_host::target::Progress| {
            let share = progress.done.get() as f64 / progress.total.get().max(1) as f64;
            self.progress.cell(cell, Stage::Prepare, share, None);
        };
        let prepared = match host.files.prepare(cell, seed, self.interrupt, filling) {
            Err(HostError::Interrupted { .. }) => return Ok(Ended::Interrupted),
            prepared => prepared.map_err(|error| error.to_string())?,
        };
        self.send(Entry::Start(
            cell.index,
            CellStart { raw_capacity: None, written_before: None, counters: None },
        ));
        let each = &mut |interval: &Interval, share| self.interval(cell, Stage::Measure, interval, share);
        let load = &cell.settings.load;
        let loaded =
            on_files(&prepared, load, EngineChoice::Auto, seed.part("load", 0), self.interrupt, each);
        // Files that a load could not use, or that a thread given up may still write to, serve no other cell.
        if !loaded.as_ref().is_ok_and(|(_, summary)| summary.stuck_threads == 0) {
            host.files.remove().map_err(|error| error.to_string())?;
        }
        let (ended, summary) = loaded.map_err(|error| error.to_string())?;
        let path = host.spec.path();
        let cached = (!summary.direct && !lowtide_host::environment::in_memory(path))
            .then(|| format!("{} does not take O_DIRECT: numbers include the page cache", path.display()));
        for note in summary.notes.iter().cloned().chain(cached) {
            if host.said.insert(note.clone()) {
                self.progress.note(&note);
            }
        }
        if let Some(failure) = &summary.first_failure {
            self.progress.note(&format!("{} requests failed; the first: {failure}", summary.errors));
        }
        if let Ended::Complete(verdict) = &ended {
            self.send(Entry::End(cell.index, CellEnd::Done { verdict: verdict.clone(), wear: Vec::new() }));
        }
        Ok(ended)
    }

    fn interval(&self, cell: &PlannedCell, stage: Stage, interval: &Interval, share: f64) {
        let measured = Measured::of(interval);
        self.progress.cell(cell, stage, share, Some(&measured.row));
        if stage == Stage::Measure {
            self.send(Entry::Interval(cell.index, Box::new(measured)));
        }
    }
}

/// A campaign on files of the host.
struct Host<'a> {
    spec: &'a TargetSpec,
    files: Files<'a>,
    /// What the user was told, to be told once.
    said: BTreeSet<String>,
}

/// Erase counts as a histogram.
fn wear(erases: &[u32]) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    erases.iter().for_each(|&erases| *counts.entry(u64::from(erases)).or_default() += 1);
    counts.into_iter().collect()
}
