//! Runs campaigns: measures every group of a plan, cell after cell, and stores the results.
//!
//! Groups on simulated devices run on all cores; on the host there is one group. If a cell on a model fails,
//! the later cells of its group fail too, because their history is missing. Cells of rounds that are not needed
//! ([`Rounds`]) are skipped, and removed from the store. The display is an implementation of [`Progress`].

mod databases;
mod jobs;
mod modelled;
mod named;
mod on_host;
mod simulated;
mod target;

use crate::cell_error::CellError;
use crate::load::Ended;
use crate::plan::{Plan, PlanTarget, PlannedCell};
use crate::rounds::Rounds;
use crate::store::{About, CellEnd, Entry, Measured, Sender, Store, StoreError, Writer};
pub use jobs::{on_all_cores, set_jobs, with_jobs};
use lowtide_core::Nanos;
use lowtide_core::measure::Gap;
use lowtide_files::output::{self, CommandFiles, OutputError, Role};
use lowtide_host::HostError;
use lowtide_host::target::TargetSpec;
use lowtide_record::analysis::Verdict;
use lowtide_record::fact::{self, Fact};
use lowtide_record::{Predicted, Row};
pub use named::Named;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use target::{CellTarget, HeldTarget};

/// Receives the progress of a campaign, on any thread.
pub trait Progress: Sync {
    /// A cell is being prepared or measured. `share` is its progress, 0 to 1; `last` is the last interval.
    fn cell(&self, cell: &PlannedCell, stage: Stage, share: f64, last: Option<&Row>);
    /// A cell was measured, or failed. `failure` is the reason for a failure.
    fn ended(&self, cell: &PlannedCell, failure: Option<&str>);
    /// A cell occupied its device for `took`, preparation included.
    fn took(&self, _cell: &PlannedCell, _took: Nanos) {}
    /// `cells` cells will not be measured: their step was steady before their round, or their level is predicted.
    fn spared(&self, _cells: usize) {}
    /// A note for the user.
    fn note(&self, text: &str);
    /// A campaign was added to the store under this number, or resumed.
    fn begun(&self, _campaign: i64) {}
    /// `judge` computes the verdict on the intervals measured so far. It is slow, so call it rarely.
    fn so_far(&self, _cell: &PlannedCell, _judge: &dyn Fn() -> Verdict) {}
    /// The verdict on a cell, before [`Progress::ended`].
    fn judged(&self, _cell: &PlannedCell, _verdict: &Verdict) {}
}

/// The stage of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The cell was measured in an earlier run, and runs again for the history of later cells.
    Replay,
    /// The target of the cell is being prepared.
    Prepare,
    /// The cell is being measured.
    Measure,
}

/// The outcome of a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Number of the campaign in the store.
    pub campaign: i64,
    /// Cells that failed.
    pub failed: u32,
    /// Whether the campaign was interrupted.
    pub interrupted: bool,
}

/// An error that ends a campaign.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum CampaignError {
    /// The store failed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Store(#[from] StoreError),
    /// The store or the file under test must not be written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Output(#[from] OutputError),
    /// The target was refused before anything was written.
    #[error(transparent)]
    Target(#[from] HostError),
}

/// Runs a plan and stores the results at `path`, in a new store if there is none. With `resume`, continues the last
/// campaign of the same plan.
///
/// # Errors
/// [`CampaignError`] if the store fails or the target is refused. If the target is refused, no store is created.
/// Committed results are kept after any error.
pub fn run(
    plan: &Plan,
    path: &Path,
    about: &About,
    resume: bool,
    interrupt: &Arc<AtomicBool>,
    progress: &dyn Progress,
) -> Result<(Store, Outcome), CampaignError> {
    let running = Running::begin(plan, path, about, resume, interrupt, progress)?;
    on_all_cores(&plan.groups, |group| running.run_group(group));
    Ok(running.finish()?)
}

/// A running campaign with a store of its own. Its groups may run on several threads.
pub struct Running<'a> {
    cells: Cells<'a>,
    writer: Writer,
}

impl<'a> Running<'a> {
    /// Begins or resumes a campaign; see [`run`].
    pub fn begin(
        plan: &'a Plan,
        path: &Path,
        about: &About,
        resume: bool,
        interrupt: &'a Arc<AtomicBool>,
        progress: &'a dyn Progress,
    ) -> Result<Self, CampaignError> {
        // The target is refused before the store is created.
        check_outputs(plan, path)?;
        let held = target::acquire(plan)?;
        let mut store = open(path, resume)?;
        let begun = begin(&mut store, plan, about, resume)?;
        Ok(Running::with(store, begun, held, plan, interrupt, progress))
    }

    /// Begins a campaign on models in a temporary store in memory.
    pub fn in_memory(
        plan: &'a Plan,
        about: &About,
        interrupt: &'a Arc<AtomicBool>,
        progress: &'a dyn Progress,
    ) -> Result<Self, CampaignError> {
        let held = target::acquire(plan)?;
        let mut store = Store::in_memory()?;
        let begun = begin(&mut store, plan, about, false)?;
        Ok(Running::with(store, begun, held, plan, interrupt, progress))
    }

    fn with(
        store: Store,
        begun: Begun,
        held: Option<HeldTarget<'a>>,
        plan: &'a Plan,
        interrupt: &'a Arc<AtomicBool>,
        progress: &'a dyn Progress,
    ) -> Self {
        let writer = Writer::start(store, Arc::clone(interrupt));
        let sender = writer.sender(begun.campaign);
        let cells = Cells::new(plan, begun, interrupt, progress, sender);
        *cells.held.lock().expect("no other thread has it yet") = held;
        Running { cells, writer }
    }

    /// Waits until all results are committed.
    pub fn finish(self) -> Result<(Store, Outcome), StoreError> {
        let Running { cells, writer } = self;
        let outcome = cells.finish();
        Ok((writer.finish()?, outcome))
    }

    /// Runs the cells of a group in order.
    pub fn run_group(&self, group: &[usize]) {
        self.cells.run_group(group);
    }

    /// Runs the cells that `choose` passes to its argument, in that order, on one target. Cells that were measured
    /// before are skipped.
    pub fn run_chosen(&self, choose: impl FnOnce(&mut dyn FnMut(usize))) {
        self.cells.run_chosen(choose);
    }

    /// Skips cells whose levels are predicted, and records a fact about them.
    pub fn predict(&self, cells: &[(u32, Predicted)], fact: Fact) {
        self.cells.progress.spared(cells.len());
        cells.iter().for_each(|(cell, predicted)| {
            self.cells.sender.send(Entry::Predicted(*cell, *predicted));
        });
        self.cells.record([fact]);
    }

    /// Number of the campaign in the store.
    pub fn campaign(&self) -> i64 {
        self.cells.campaign
    }

    /// Returns whether the campaign runs in virtual time.
    pub fn is_simulated(&self) -> bool {
        self.cells.plan.target.is_simulated()
    }
}

/// The stored state of a campaign that begins or resumes.
pub struct Begun {
    /// Number of the campaign.
    pub campaign: i64,
    /// For each cell, whether it is done.
    done: Vec<bool>,
    rounds: Rounds,
    /// Cells that the done cells make unneeded.
    unneeded: Vec<u32>,
}

/// The role of the file under test in error messages.
const FILE_UNDER_TEST: Role = Role::new("the file under test", "--target file:PATH");

/// Checks that the target of a plan can be used now.
///
/// # Errors
/// [`HostError`] with the reasons for the refusal.
pub fn check_target(plan: &Plan) -> Result<(), HostError> {
    target::acquire(plan).map(drop)
}

/// Checks that neither the store nor the file under test would overwrite a file that is still needed.
///
/// # Errors
/// [`OutputError`] if the store is a file of the plan, or the file under test belongs to a store.
pub fn check_outputs(plan: &Plan, path: &Path) -> Result<(), OutputError> {
    output::store(path, &plan.files())?;
    match &plan.target {
        PlanTarget::Host(TargetSpec::File(file)) => {
            let mut files = CommandFiles::default();
            files.add_store(path);
            output::in_place(FILE_UNDER_TEST, file, &files)
        }
        _ => Ok(()),
    }
}

/// Opens the store at `path` for [`begin`].
///
/// # Errors
/// As [`Store::open`]; with `resume`, as [`Store::open_to_resume`].
pub fn open(path: &Path, resume: bool) -> Result<Store, StoreError> {
    if resume { Store::open_to_resume(path) } else { Store::open(path) }
}

/// Begins a campaign in a store. With `resume`, continues the last campaign of the same plan.
///
/// # Errors
/// As [`Store::begin`]; with `resume`, as [`Store::resume`].
pub fn begin(store: &mut Store, plan: &Plan, about: &About, resume: bool) -> Result<Begun, StoreError> {
    let (campaign, done) = match resume {
        true => store.resume(plan)?,
        false => (store.begin(plan, about)?, vec![false; plan.cells.len()]),
    };
    let (mut rounds, mut unneeded) = (Rounds::new(plan), Vec::new());
    for cell in plan.cells.iter().filter(|cell| done[cell.index as usize]) {
        if rounds.tracks(cell.index) {
            unneeded.extend(rounds.measured(cell, &store.rows(campaign, cell.index)?));
        }
    }
    Ok(Begun { campaign, done, rounds, unneeded })
}

/// The cells of a running campaign.
pub struct Cells<'a> {
    plan: &'a Plan,
    campaign: i64,
    done: Vec<bool>,
    rounds: Mutex<Rounds>,
    interrupt: &'a Arc<AtomicBool>,
    progress: &'a dyn Progress,
    sender: Sender,
    /// The target, if it is on the host. All cells are then one group, and this group takes the target.
    held: Mutex<Option<HeldTarget<'a>>>,
    failed: AtomicU32,
}

impl<'a> Cells<'a> {
    /// The cells of a plan. Cells that an earlier run measured are done.
    pub fn new(
        plan: &'a Plan,
        begun: Begun,
        interrupt: &'a Arc<AtomicBool>,
        progress: &'a dyn Progress,
        sender: Sender,
    ) -> Self {
        let Begun { campaign, done, rounds, unneeded } = begun;
        progress.begun(campaign);
        plan.ignored().iter().for_each(|line| progress.note(line));
        let (rounds, held, failed) = (Mutex::new(rounds), Mutex::new(None), AtomicU32::new(0));
        let cells = Cells { plan, campaign, done, rounds, interrupt, progress, sender, held, failed };
        cells.skip(unneeded);
        cells
    }

    /// The outcome, after all cells have run.
    pub fn finish(self) -> Outcome {
        let interrupted = self.interrupt.load(Ordering::Relaxed);
        Outcome { campaign: self.campaign, failed: self.failed.into_inner(), interrupted }
    }

    /// Runs one cell on the host, and holds the target only for this cell.
    pub fn run_alone(&self, index: usize) {
        if self.done[index] || !self.needs(index) || self.interrupt.load(Ordering::Relaxed) {
            return;
        }
        match target::acquire(self.plan) {
            Ok(held) => {
                *self.held.lock().expect("nobody panics while holding it") = held;
                self.run_group(&[index]);
            }
            Err(error) => {
                self.fail(&self.plan.cells[index], &error.into());
            }
        }
    }

    /// Runs the cells of a group in order.
    pub fn run_group(&self, group: &[usize]) {
        // Cells after the last unmeasured cell need not run again.
        let Some(last) = group.iter().rposition(|&index| !self.done[index] && self.needs(index)) else {
            return;
        };
        let mut target = self.target();
        let mut broken = None;
        for &index in &group[..=last] {
            self.run_cell(index, &mut *target, &mut broken);
        }
        self.finish_target(target);
    }

    /// As [`Running::run_chosen`].
    fn run_chosen(&self, choose: impl FnOnce(&mut dyn FnMut(usize))) {
        let mut target = self.target();
        choose(&mut |index| self.run_cell(index, &mut *target, &mut None));
        self.finish_target(target);
    }

    /// The target of the next cells: the held target, or models.
    fn target(&self) -> Box<dyn CellTarget + 'a> {
        let held = self.held.lock().expect("nobody panics while holding it").take();
        let Some(mut target) = held else { return target::models(self.plan) };
        self.record(target.begin());
        target
    }

    /// Runs one cell, unless it is already measured or not needed, or the user has interrupted the campaign. `broken`
    /// is the number of the failed cell that left this cell without its history. A cell that fails on a model sets
    /// `broken` for later cells.
    fn run_cell(&self, index: usize, target: &mut dyn CellTarget, broken: &mut Option<u32>) {
        if self.interrupt.load(Ordering::Relaxed) {
            return;
        }
        let cell = &self.plan.cells[index];
        if !self.needs(index) || (self.done[index] && !self.plan.target.is_simulated()) {
            if self.done[index] {
                target.skip(cell);
            }
            return;
        }
        let mut rows = Vec::new();
        let outcome = match *broken {
            Some(number) => Err(CellError::BrokenHistory(number)),
            None => target.measure(self, cell, &mut rows),
        };
        match outcome {
            Ok(Ended::Interrupted) => {}
            Ok(Ended::Complete(verdict)) => {
                self.progress.judged(cell, &verdict);
                self.progress.ended(cell, None);
                let unneeded = self.rounds().measured(cell, &rows);
                self.skip(unneeded);
            }
            Err(error) => {
                self.fail(cell, &error);
                if self.plan.target.is_simulated() {
                    *broken = Some(cell.index);
                }
            }
        }
    }

    /// Releases the target. An error counts as a failed cell.
    fn finish_target(&self, target: Box<dyn CellTarget + 'a>) {
        let (finished, facts) = target.finish();
        if let Err(error) = finished {
            // The measurements are valid, but the device was not restored.
            self.record([(fact::WARNING.to_owned(), error.to_string())]);
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        self.record(facts);
    }

    fn rounds(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock().expect("nobody panics while holding it")
    }

    /// Returns whether a cell is needed, given the cells measured so far.
    fn needs(&self, index: usize) -> bool {
        self.rounds().needs(&self.plan.cells[index])
    }

    /// Skips unneeded cells.
    fn skip(&self, cells: Vec<u32>) {
        if !cells.is_empty() {
            self.progress.spared(cells.len());
            self.sender.send(Entry::Unneeded(cells));
        }
    }

    fn fail(&self, cell: &PlannedCell, error: &CellError) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let reason = error.to_string();
        self.progress.ended(cell, Some(&reason));
        self.sender.send(Entry::End(cell.index, CellEnd::Failed(reason)));
    }

    /// Records facts about the machine and the target, and shows warnings to the user.
    fn record(&self, facts: impl IntoIterator<Item = Fact>) {
        for (name, value) in facts {
            if name == fact::WARNING {
                self.progress.note(&format!("warning: {value}"));
            }
            self.sender.send(Entry::Fact(name, value));
        }
    }

    /// Records how long a cell occupied its device.
    fn took(&self, cell: &PlannedCell, took: Nanos) {
        self.progress.took(cell, took);
        self.sender.send(Entry::Took(cell.index, took));
    }

    /// Records the gaps during which lowtide did not run, and warns the user.
    fn gaps(&self, cell: &PlannedCell, gaps: &[Gap]) {
        for gap in gaps {
            self.progress.note(&format!("warning: {}: {}", cell.label(), lowtide_record::gap_in_words(gap)));
            self.sender.send(Entry::Gap(cell.index, *gap));
        }
    }

    /// Returns whether a cell was measured in an earlier run, and runs only for the history of later cells.
    fn is_replay(&self, cell: &PlannedCell) -> bool {
        self.done[cell.index as usize]
    }

    /// The stage to report.
    fn stage(&self, cell: &PlannedCell, stage: Stage) -> Stage {
        if self.is_replay(cell) { Stage::Replay } else { stage }
    }

    /// Reports an interval, and stores it unless it belongs to a replay.
    fn interval(
        &self,
        cell: &PlannedCell,
        measured: Measured,
        share: f64,
        so_far: &dyn Fn() -> Verdict,
    ) -> Row {
        let row = measured.row.clone();
        self.progress.cell(cell, self.stage(cell, Stage::Measure), share, Some(&row));
        self.progress.so_far(cell, so_far);
        if !self.is_replay(cell) {
            self.sender.send(Entry::Interval(cell.index, Box::new(measured)));
        }
        row
    }

    /// Stores the verdict of a cell, unless the cell was interrupted or belongs to a replay.
    fn complete(&self, cell: &PlannedCell, ended: &Ended, wear: impl FnOnce() -> Vec<(u64, u64)>) {
        if let (Ended::Complete(verdict), false) = (ended, self.is_replay(cell)) {
            let end = CellEnd::Done { verdict: verdict.clone(), wear: wear() };
            self.sender.send(Entry::End(cell.index, end));
        }
    }
}
