//! Running an adaptive plan: one cell after the other, each chosen by what those before it told.
//!
//! Curves of several combinations are independent; on models they run side by side, and so do the first sizes of each, which are
//! chosen beforehand. What follows from a cell follows from its numbers alone, so that a campaign that is resumed chooses as an
//! unbroken one. Leaves out the choice itself (`choose`) and what is known (`posterior`).

use super::accept::Sweep;
use super::posterior::{Known, Seen};
use super::{Adaptive, FACT, first, next};
use crate::analysis::Verdict;
use crate::campaign::{CampaignError, Outcome, Progress, Running, Stage, on_all_cores};
use crate::plan::{Plan, PlannedCell};
use crate::record::{Cell, Predicted, Row, Status};
use crate::store::{About, Store};
use crate::witness::Fact;
use lowtide_core::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The deviation of a level that did not settle, as a share, and the least that is believed.
const UNSETTLED: f64 = 0.02;
const LEAST: f64 = 0.004;

/// What a cell came to.
#[derive(Debug, Clone, Copy)]
struct Came {
    /// MiB/s.
    level: f64,
    deviation: f64,
    /// How long it took, and how long of that its load.
    took: Nanos,
    load: Nanos,
}

/// Runs an adaptive plan into the store at `path`, as [`crate::campaign::run`] does a whole one.
///
/// # Errors
/// [`CampaignError`] where the store fails or the target is refused.
pub fn run(
    (plan, adaptive): (&Plan, &Adaptive),
    path: &Path,
    about: &About,
    resume: bool,
    interrupt: &Arc<AtomicBool>,
    progress: &dyn Progress,
) -> Result<(Store, Outcome), CampaignError> {
    let heard = Heard { inner: progress, state: Mutex::default() };
    let (running, known) = Running::one_by_one(plan, path, about, resume, interrupt, &heard)?;
    for cell in known.cells.iter().filter(|cell| cell.status == Status::Done) {
        match came_before(cell) {
            Some(came) => _ = heard.state().came.insert(cell.index, came),
            None => _ = heard.state().failed.insert(cell.index),
        }
    }
    let it = Run { plan, adaptive, running: &running, heard: &heard, interrupt };
    let ended = Mutex::new(BTreeMap::new());
    let sweeps: Vec<(usize, &Sweep)> = adaptive.sweeps.iter().enumerate().collect();
    let each = |(n, sweep): &(usize, &Sweep)| {
        if let Some(known) = it.sweep(sweep) {
            ended.lock().expect("nobody panics while holding it").insert(*n, known);
        }
    };
    if running.is_simulated() {
        on_all_cores(&sweeps, each)
    } else {
        sweeps.iter().for_each(each)
    }
    let ended = ended.into_inner().expect("nobody panics while holding it");
    if ended.len() == sweeps.len() && !interrupt.load(Ordering::Relaxed) {
        it.finish(&ended, &known.environment);
    }
    Ok(running.finish()?)
}

struct Run<'a, 'r> {
    plan: &'a Plan,
    adaptive: &'a Adaptive,
    running: &'a Running<'r>,
    heard: &'a Heard<'r>,
    interrupt: &'a AtomicBool,
}

impl Run<'_, '_> {
    /// Measures a curve until it is known; `None` where it was interrupted, or nothing could be measured.
    fn sweep(&self, sweep: &Sweep) -> Option<Known> {
        self.measure(sweep, &first(&sweep.curve));
        loop {
            if self.interrupt.load(Ordering::Relaxed) {
                return None;
            }
            let (seen, open, hours) = self.so_far(sweep);
            if seen.is_empty() {
                return None;
            }
            let known = sweep.curve.known(&seen);
            let Some(at) = next(&known, &open, &hours, self.adaptive.precision) else { return Some(known) };
            let halves = known.half_widths();
            let widest =
                (0..open.len()).filter(|at| open[*at]).max_by(|a, b| halves[*a].total_cmp(&halves[*b]));
            let label = |at: usize| self.plan.cells[sweep.cells[at]].label();
            if let Some(widest) = widest {
                let percent = halves[widest] * 100.0;
                let least = label(widest);
                self.heard
                    .inner
                    .note(&format!("next {}; least certain is {least}, ± {percent:.1} %", label(at)));
            }
            self.measure(sweep, &[at]);
            let cell = sweep.cells[at] as u32;
            let state = self.heard.state();
            let told = state.came.contains_key(&cell) || state.failed.contains(&cell);
            assert!(told || self.interrupt.load(Ordering::Relaxed), "cell {cell} ended without a word");
        }
    }

    fn measure(&self, sweep: &Sweep, sizes: &[usize]) {
        let cells: Vec<usize> = sizes.iter().map(|at| sweep.cells[*at]).collect();
        if self.running.is_simulated() {
            on_all_cores(&cells, |cell| self.running.turn(*cell));
        } else {
            cells.iter().for_each(|cell| self.running.turn(*cell));
        }
    }

    /// What was seen of a curve, which of its sizes may still be measured, and the hours of each.
    fn so_far(&self, sweep: &Sweep) -> (Vec<Seen>, Vec<bool>, Vec<f64>) {
        let state = self.heard.state();
        let came: Vec<Option<Came>> =
            sweep.cells.iter().map(|cell| state.came.get(&(*cell as u32)).copied()).collect();
        let seen = came.iter().enumerate();
        let seen =
            seen.filter_map(|(at, it)| it.map(|it| Seen { at, level: it.level, deviation: it.deviation }));
        let failed = |cell: &usize| state.failed.contains(&(*cell as u32));
        let open = sweep.cells.iter().zip(&came).map(|(cell, it)| it.is_none() && !failed(cell)).collect();
        let hours = between(sweep, &came, |it| hours(it.took));
        (seen.collect(), open, hours)
    }

    /// Leaves the other cells out, and says what that spared, if nobody has said it yet.
    fn finish(&self, ended: &BTreeMap<usize, Known>, said: &[Fact]) {
        let (mut predicted, mut spent, mut whole) = (Vec::new(), 0.0, 0.0);
        let mut measured = 0;
        for (sweep, known) in self.adaptive.sweeps.iter().zip(ended.values()) {
            let (_, open, _) = self.so_far(sweep);
            for at in (0..open.len()).filter(|at| open[*at]) {
                let of = Predicted { level: known.levels[at], low: known.low[at], high: known.high[at] };
                predicted.push((sweep.cells[at] as u32, of));
            }
            let state = self.heard.state();
            let came: Vec<Option<Came>> =
                sweep.cells.iter().map(|cell| state.came.get(&(*cell as u32)).copied()).collect();
            measured += came.iter().flatten().count();
            spent += came.iter().flatten().map(|it| hours(it.took)).sum::<f64>();
            let load = |it: &Came| hours(sweep.length.unwrap_or(it.load));
            whole +=
                between(sweep, &came, |it| hours(it.took) - hours(it.load) + load(it)).iter().sum::<f64>();
        }
        let scale = self.plan.scale as f64;
        let failed = match self.plan.cells.len() - measured - predicted.len() {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        let text = format!(
            "{measured} of {} sizes measured{failed}, {} predicted to ± {} % or better with 95 % confidence; device time {:.1} h of \
             about {:.1} h that every size takes ({:.0} %)",
            self.plan.cells.len(),
            predicted.len(),
            (self.adaptive.precision * 1e8).round() / 1e6,
            spent * scale,
            whole * scale,
            100.0 * spent / whole.max(1e-12)
        );
        let fact = (FACT.to_owned(), text);
        self.running.predict(&predicted, Some(fact).filter(|fact| !said.contains(fact)));
    }
}

fn hours(time: Nanos) -> f64 {
    time.as_secs_f64() / 3600.0
}

/// A number of every size of a curve, on lines between those that are known.
fn between(sweep: &Sweep, came: &[Option<Came>], number: impl Fn(&Came) -> f64) -> Vec<f64> {
    let points: Vec<(f64, f64)> = came
        .iter()
        .enumerate()
        .filter_map(|(at, it)| it.as_ref().map(|it| (sweep.curve.data(at), number(it))))
        .collect();
    let at = |data: f64| {
        let after = points.partition_point(|(at, _)| *at < data);
        match (after.checked_sub(1).map(|n| points[n]), points.get(after)) {
            (Some((from, low)), Some((to, high))) => low + (high - low) * (data - from) / (to - from),
            (Some((_, only)), None) | (None, Some(&(_, only))) => only,
            (None, None) => 1.0,
        }
    };
    (0..came.len()).map(|n| at(sweep.curve.data(n))).collect()
}

/// The level of a cell and its deviation: of its steady window; else the mean of its last quarter, which may lie as far from where it
/// settles as from the quarter before.
fn came_to(verdict: &Verdict, rows: &[Row]) -> Option<(f64, f64)> {
    let last = rows.last()?;
    let quarters = [2, 3].map(|n| {
        let (from, to) = (last.end_ns / 4 * n, last.end_ns / 4 * (n + 1));
        // A single interval is not left out.
        let within = |row: &&Row| row.start_ns >= from.min(last.start_ns) && (n == 3 || row.end_ns <= to);
        rows.iter().filter(within).fold((0.0, 0.0), |(done, seconds), row| {
            (done + row.rate() * row.seconds(), seconds + row.seconds())
        })
    });
    let [before, end] = quarters.map(|(done, seconds)| if seconds > 0.0 { done / seconds } else { 0.0 });
    let came = match verdict {
        Verdict::Steady(it) => (it.mean, (it.half_width / it.mean / 2.0).max(LEAST)),
        Verdict::NoSteadyState { .. } if before > 0.0 => (end, (end / before - 1.0).abs().max(UNSETTLED)),
        Verdict::NoSteadyState { .. } => (end, UNSETTLED),
    };
    Some(came).filter(|(level, _)| *level > 0.0)
}

fn came_before(cell: &Cell) -> Option<Came> {
    let (level, deviation) = came_to(cell.verdict.as_ref()?, &cell.rows)?;
    let load = Nanos::new(cell.rows.last().map_or(0, |row| row.end_ns));
    Some(Came { level, deviation, took: cell.took.unwrap_or(load), load })
}

/// Hears what cells come to, and passes everything on.
struct Heard<'a> {
    inner: &'a dyn Progress,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    came: BTreeMap<u32, Came>,
    failed: BTreeSet<u32>,
    rows: BTreeMap<u32, Vec<Row>>,
    took: BTreeMap<u32, Nanos>,
}

impl Heard<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding it")
    }
}

impl Progress for Heard<'_> {
    fn cell(&self, cell: &PlannedCell, stage: Stage, share: f64, last: Option<&Row>) {
        if let (Stage::Measure, Some(row)) = (stage, last) {
            self.state().rows.entry(cell.index).or_default().push(row.clone());
        }
        self.inner.cell(cell, stage, share, last);
    }
    fn took(&self, cell: &PlannedCell, took: Nanos) {
        self.state().took.insert(cell.index, took);
        self.inner.took(cell, took);
    }
    fn judged(&self, cell: &PlannedCell, verdict: &Verdict) {
        let mut state = self.state();
        let rows = state.rows.remove(&cell.index).unwrap_or_default();
        let load = Nanos::new(rows.last().map_or(0, |row| row.end_ns));
        let took = state.took.get(&cell.index).copied().unwrap_or(load);
        match came_to(verdict, &rows) {
            Some((level, deviation)) => {
                state.came.insert(cell.index, Came { level, deviation, took, load });
            }
            // Nothing was done in it, and nothing can be told of it.
            None => {
                state.failed.insert(cell.index);
            }
        }
        drop(state);
        self.inner.judged(cell, verdict);
    }
    fn ended(&self, cell: &PlannedCell, failure: Option<&str>) {
        if failure.is_some() {
            self.state().failed.insert(cell.index);
        }
        self.inner.ended(cell, failure);
    }
    fn spared(&self, cells: usize) {
        self.inner.spared(cells);
    }
    fn note(&self, text: &str) {
        self.inner.note(text);
    }
    fn begun(&self, campaign: i64) {
        self.inner.begun(campaign);
    }
    fn so_far(&self, cell: &PlannedCell, judge: &dyn Fn() -> Verdict) {
        self.inner.so_far(cell, judge);
    }
}
