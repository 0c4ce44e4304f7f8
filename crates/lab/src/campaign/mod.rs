//! Running a campaign: every group of the plan, cell after cell, into the store.
//!
//! Groups on simulated devices run on all cores; on the host there is one group. A cell that fails fails the
//! cells after it in its group, whose history would be another, and no others. Cells of rounds that are not needed
//! ([`Rounds`]) are left out, and taken out of the store. Not here: what is shown while it runs; [`Progress`] hears
//! of it.

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
use lowtide_core::measure::Gap;
use lowtide_core::{Interval, Nanos};
use lowtide_files::output::{self, CommandFiles, OutputError, Role};
use lowtide_host::HostError;
use lowtide_host::target::TargetSpec;
use lowtide_record::analysis::Verdict;
use lowtide_record::fact::{self, Fact};
use lowtide_record::{Campaign, Predicted, Row};
pub use named::Named;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use target::{CellTarget, HeldTarget};

/// Hears how a campaign goes, from any thread.
pub trait Progress: Sync {
    /// A cell is being prepared or measured; `share` of it is done, 0 to 1.
    fn cell(&self, cell: &PlannedCell, stage: Stage, share: f64, last: Option<&Row>);
    /// A cell ended: measured (`None`), or failed for a reason.
    fn ended(&self, cell: &PlannedCell, failure: Option<&str>);
    /// A cell has occupied its device so long, preparation included.
    fn took(&self, _cell: &PlannedCell, _took: Nanos) {}
    /// So many cells will not be measured: their step was steady before their round, or their level is known without.
    fn spared(&self, _cells: usize) {}
    /// Something the user should know.
    fn note(&self, text: &str);
    /// A campaign is in the store, under this number.
    fn begun(&self, _campaign: i64) {}
    /// A cell that is being measured can be judged by what there is of it so far; that takes a while, so not too often.
    fn so_far(&self, _cell: &PlannedCell, _judge: &dyn Fn() -> Verdict) {}
    /// What a cell came to, before it ends.
    fn judged(&self, _cell: &PlannedCell, _verdict: &Verdict) {}
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
    /// Something would be lost.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Output(#[from] OutputError),
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
    let running = Running::begin(plan, path, about, resume, interrupt, progress)?;
    on_all_cores(&plan.groups, |group| running.group(group));
    Ok(running.finish()?)
}

/// A campaign that has begun, with a store of its own. Its groups may be run from several threads.
pub struct Running<'a> {
    cells: Cells<'a>,
    writer: Writer,
}

impl<'a> Running<'a> {
    /// Begins, or goes on with, a campaign; see [`run`].
    pub fn begin(
        plan: &'a Plan,
        path: &Path,
        about: &About,
        resume: bool,
        interrupt: &'a Arc<AtomicBool>,
        progress: &'a dyn Progress,
    ) -> Result<Self, CampaignError> {
        // Refused before anything is written, the store included.
        check_outputs(plan, path)?;
        let held = target::take(plan)?;
        let (mut store, begin) = open(path, resume)?;
        let begun = begin(&mut store, plan, about)?;
        Ok(Running::with(store, begun, held, plan, interrupt, progress))
    }

    /// Begins a campaign on models in a store that nobody keeps.
    pub fn in_memory(
        plan: &'a Plan,
        about: &About,
        interrupt: &'a Arc<AtomicBool>,
        progress: &'a dyn Progress,
    ) -> Result<Self, CampaignError> {
        let held = target::take(plan)?;
        let mut store = Store::in_memory()?;
        let begun = begin_new(&mut store, plan, about)?;
        Ok(Running::with(store, begun, held, plan, interrupt, progress))
    }

    /// Begins, or goes on with, a campaign whose cells are chosen one by one. With it, what was measured before.
    pub fn begin_knowing(
        plan: &'a Plan,
        path: &Path,
        about: &About,
        resume: bool,
        interrupt: &'a Arc<AtomicBool>,
        progress: &'a dyn Progress,
    ) -> Result<(Self, Campaign), CampaignError> {
        // Refused before anything is written, the store included.
        check_outputs(plan, path)?;
        let held = target::take(plan)?;
        let (mut store, begin) = open(path, resume)?;
        let begun = begin(&mut store, plan, about)?;
        let known = store.load(begun.campaign)?;
        Ok((Running::with(store, begun, held, plan, interrupt, progress), known))
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
        *cells.held.lock().expect("nobody else has it yet") = held;
        Running { cells, writer }
    }

    /// Waits until everything is in the store.
    pub fn finish(self) -> Result<(Store, Outcome), StoreError> {
        let Running { cells, writer } = self;
        let outcome = cells.finish();
        Ok((writer.finish()?, outcome))
    }

    /// Runs the cells of a group in order.
    pub fn group(&self, group: &[usize]) {
        self.cells.group(group);
    }

    /// Runs cells that `choose` gives its argument one after the other, unless they were measured before, on a target of the host that is
    /// held meanwhile.
    pub fn chosen(&self, choose: impl FnOnce(&mut dyn FnMut(usize))) {
        self.cells.chosen(choose);
    }

    /// Leaves cells out whose levels are known without, and keeps a fact about that.
    pub fn predict(&self, cells: &[(u32, Predicted)], fact: Fact) {
        self.cells.progress.spared(cells.len());
        cells.iter().for_each(|(cell, predicted)| {
            self.cells.sender.send(Entry::Predicted(*cell, *predicted));
        });
        self.cells.say([fact]);
    }

    /// Whether it runs in virtual time.
    pub fn is_simulated(&self) -> bool {
        self.cells.plan.target.is_simulated()
    }
}

/// A campaign that has begun in a store.
pub struct Begun {
    /// Its number.
    pub campaign: i64,
    /// Which of its cells are done.
    done: Vec<bool>,
    rounds: Rounds,
    /// Cells that are not needed, by what is done.
    spared: Vec<u32>,
}

impl Begun {
    fn new(store: &Store, plan: &Plan, (campaign, done): (i64, Vec<bool>)) -> Result<Begun, StoreError> {
        let (mut rounds, mut spared) = (Rounds::new(plan), Vec::new());
        for cell in plan.cells.iter().filter(|cell| done[cell.index as usize]) {
            if rounds.tracks(cell.index) {
                spared.extend(rounds.measured(cell, &store.rows(campaign, cell.index)?));
            }
        }
        Ok(Begun { campaign, done, rounds, spared })
    }
}

/// How a campaign begins in a store.
pub type Begin = fn(&mut Store, &Plan, &About) -> Result<Begun, StoreError>;

/// What is made where a plan says that a file is under test.
const FILE_UNDER_TEST: Role = Role::new("the file under test", "--target file:PATH");

/// Checks that the target of a plan can be used now.
///
/// # Errors
/// [`HostError`] with the objections.
pub fn check_target(plan: &Plan) -> Result<(), HostError> {
    target::take(plan).map(drop)
}

/// Refuses a store that would be a file of the plan, and a file under test that would be one of a store.
///
/// # Errors
/// [`OutputError`].
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

/// Opens the store at `path` for new campaigns, or to go on with those that are there.
pub fn open(path: &Path, resume: bool) -> Result<(Store, Begin), StoreError> {
    let begin: Begin = if resume {
        |store, plan, _| {
            let found = store.resume(plan)?;
            Begun::new(store, plan, found)
        }
    } else {
        begin_new
    };
    Ok((if resume { Store::open_to_resume(path)? } else { Store::open(path)? }, begin))
}

fn begin_new(store: &mut Store, plan: &Plan, about: &About) -> Result<Begun, StoreError> {
    let campaign = store.begin(plan, about)?;
    Begun::new(store, plan, (campaign, vec![false; plan.cells.len()]))
}

/// The cells of a campaign that has begun.
pub struct Cells<'a> {
    plan: &'a Plan,
    campaign: i64,
    done: Vec<bool>,
    rounds: Mutex<Rounds>,
    interrupt: &'a Arc<AtomicBool>,
    progress: &'a dyn Progress,
    sender: Sender,
    /// The target where it is of the host; its cells are one group, which takes it.
    held: Mutex<Option<HeldTarget<'a>>>,
    failed: AtomicU32,
}

impl<'a> Cells<'a> {
    /// The cells of a plan, some of which may be measured already.
    pub fn new(
        plan: &'a Plan,
        begun: Begun,
        interrupt: &'a Arc<AtomicBool>,
        progress: &'a dyn Progress,
        sender: Sender,
    ) -> Self {
        let Begun { campaign, done, rounds, spared } = begun;
        progress.begun(campaign);
        plan.ignored().iter().for_each(|line| progress.note(line));
        let (rounds, held, failed) = (Mutex::new(rounds), Mutex::new(None), AtomicU32::new(0));
        let cells = Cells { plan, campaign, done, rounds, interrupt, progress, sender, held, failed };
        cells.spare(spared);
        cells
    }

    /// How it ended.
    pub fn finish(self) -> Outcome {
        let interrupted = self.interrupt.load(Ordering::Relaxed);
        Outcome { campaign: self.campaign, failed: self.failed.into_inner(), interrupted }
    }

    /// Runs one cell on a target of the host, which is taken for it alone.
    pub fn turn(&self, index: usize) {
        if self.done[index] || !self.needs(index) || self.interrupt.load(Ordering::Relaxed) {
            return;
        }
        match target::take(self.plan) {
            Ok(held) => {
                *self.held.lock().expect("nobody panics while holding it") = held;
                self.group(&[index]);
            }
            Err(error) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                self.fail(&self.plan.cells[index], &error.into());
            }
        }
    }

    /// Runs the cells of a group in order.
    pub fn group(&self, group: &[usize]) {
        let failed = self.cells(group);
        self.failed.fetch_add(failed, Ordering::Relaxed);
    }

    /// Runs the cells of a group in order; how many failed.
    fn cells(&self, group: &[usize]) -> u32 {
        // Cells after the last one to measure need not be done again.
        let Some(last) = group.iter().rposition(|&index| !self.done[index] && self.needs(index)) else {
            return 0;
        };
        let mut target = self.target();
        let mut failed = 0;
        let mut broken = None;
        for &index in &group[..=last] {
            if self.interrupt.load(Ordering::Relaxed) {
                break;
            }
            match self.one(index, &mut *target, &mut broken) {
                Ok(()) => {}
                Err(Stopped::Failed) => failed += 1,
                Err(Stopped::Interrupted) => break,
            }
        }
        failed + self.finish_target(target)
    }

    /// Runs cells that are chosen one after the other; see [`Running::chosen`].
    fn chosen(&self, choose: impl FnOnce(&mut dyn FnMut(usize))) {
        let (mut target, mut failed) = (self.target(), 0);
        choose(&mut |index| {
            if !self.interrupt.load(Ordering::Relaxed) {
                let ended = self.one(index, &mut *target, &mut None);
                failed += u32::from(matches!(ended, Err(Stopped::Failed)));
            }
        });
        failed += self.finish_target(target);
        self.failed.fetch_add(failed, Ordering::Relaxed);
    }

    /// The target of the next cells: the one that is held, or models.
    fn target(&self) -> Box<dyn CellTarget + 'a> {
        let held = self.held.lock().expect("nobody panics while holding it").take();
        let Some(mut target) = held else { return target::models(self.plan) };
        self.say(target.begin());
        target
    }

    /// Runs one cell, unless it is already measured or not needed. `broken` is the number of the failed cell that left this one
    /// without its history; a cell on a model that fails sets it for the cells after it.
    fn one(
        &self,
        index: usize,
        target: &mut dyn CellTarget,
        broken: &mut Option<u32>,
    ) -> Result<(), Stopped> {
        let cell = &self.plan.cells[index];
        if !self.needs(index) || (self.done[index] && !self.plan.target.is_simulated()) {
            if self.done[index] {
                target.skip(cell);
            }
            return Ok(());
        }
        let mut rows = Vec::new();
        let outcome = match *broken {
            Some(number) => Err(CellError::BrokenHistory(number)),
            None => target.measure(self, cell, &mut rows),
        };
        match outcome {
            Ok(Ended::Interrupted) => Err(Stopped::Interrupted),
            Ok(Ended::Complete(verdict)) => {
                self.progress.judged(cell, &verdict);
                self.progress.ended(cell, None);
                let spared = self.rounds().measured(cell, &rows);
                self.spare(spared);
                Ok(())
            }
            Err(error) => {
                self.fail(cell, &error);
                if self.plan.target.is_simulated() {
                    *broken = Some(cell.index);
                }
                Err(Stopped::Failed)
            }
        }
    }

    /// Releases the target and returns how many steps of that failed.
    fn finish_target(&self, target: Box<dyn CellTarget + 'a>) -> u32 {
        let (finished, facts) = target.finish();
        let failed = u32::from(finished.is_err());
        if let Err(error) = finished {
            // Nothing that was measured is wrong, but the device is not as it was.
            self.say([(fact::WARNING.to_owned(), error.to_string())]);
        }
        self.say(facts);
        failed
    }

    fn rounds(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock().expect("nobody panics while holding it")
    }

    /// Whether a cell is to be measured, as far as is known by now.
    fn needs(&self, index: usize) -> bool {
        self.rounds().needs(&self.plan.cells[index])
    }

    /// Leaves out cells that are not needed.
    fn spare(&self, cells: Vec<u32>) {
        if !cells.is_empty() {
            self.progress.spared(cells.len());
            self.sender.send(Entry::Unneeded(cells));
        }
    }

    fn fail(&self, cell: &PlannedCell, error: &CellError) {
        let reason = error.to_string();
        self.progress.ended(cell, Some(&reason));
        self.sender.send(Entry::End(cell.index, CellEnd::Failed(reason)));
    }

    /// Keeps facts about the machine and the target; the user hears of those that warn.
    fn say(&self, facts: impl IntoIterator<Item = Fact>) {
        for (name, value) in facts {
            if name == fact::WARNING {
                self.progress.note(&format!("warning: {value}"));
            }
            self.sender.send(Entry::Fact(name, value));
        }
    }

    /// A cell has occupied its device so long.
    fn took(&self, cell: &PlannedCell, took: Nanos) {
        self.progress.took(cell, took);
        self.sender.send(Entry::Took(cell.index, took));
    }

    /// Keeps the gaps in which lowtide did not run, and says so.
    fn gaps(&self, cell: &PlannedCell, gaps: &[Gap]) {
        for gap in gaps {
            self.progress.note(&format!("warning: {}: {}", cell.label(), lowtide_record::gap_in_words(gap)));
            self.sender.send(Entry::Gap(cell.index, *gap));
        }
    }

    /// Whether a cell was measured before, and is run again for the sake of what comes after it.
    fn is_replay(&self, cell: &PlannedCell) -> bool {
        self.done[cell.index as usize]
    }

    /// The stage that the user hears of.
    fn stage(&self, cell: &PlannedCell, stage: Stage) -> Stage {
        if self.is_replay(cell) { Stage::Replay } else { stage }
    }

    fn interval(
        &self,
        cell: &PlannedCell,
        stage: Stage,
        interval: &Interval,
        share: f64,
        so_far: &dyn Fn() -> Verdict,
    ) -> Row {
        self.measured(cell, stage, Measured::of(interval), share, so_far)
    }

    /// Keeps what an interval gave, and lets the user see it.
    fn measured(
        &self,
        cell: &PlannedCell,
        stage: Stage,
        measured: Measured,
        share: f64,
        so_far: &dyn Fn() -> Verdict,
    ) -> Row {
        let row = measured.row.clone();
        self.progress.cell(cell, stage, share, Some(&measured.row));
        self.progress.so_far(cell, so_far);
        if stage == Stage::Measure {
            self.sender.send(Entry::Interval(cell.index, Box::new(measured)));
        }
        row
    }
}

/// Why a cell was not measured to its end.
enum Stopped {
    Failed,
    Interrupted,
}
