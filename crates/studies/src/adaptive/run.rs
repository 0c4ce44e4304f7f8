//! Runs an adaptive plan cell by cell. Each size is chosen from the results of the earlier cells.
//!
//! Curves are independent of each other. On models they run concurrently, and so do the initial sizes of each curve.
//! A host target is held from the first cell to the last, so that no other process gets it between two cells. A
//! choice depends only on the measured numbers, so resuming a campaign does not change its choices.
//!
//! The choice is in `choose`, the estimate in `posterior`.

use super::accept::Sweep;
use super::posterior::{Known, Seen};
use super::{Adaptive, first, next};
use lowtide_core::Nanos;
use lowtide_lab::campaign::{CampaignError, Outcome, Progress, Running, Stage, on_all_cores};
use lowtide_lab::plan::{Plan, PlannedCell};
use lowtide_lab::store::{About, Store};
use lowtide_record::analysis::Verdict;
use lowtide_record::fact::{self, Fact};
use lowtide_record::{Cell, Predicted, Row, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Least standard deviation of a level that did not settle, as a share. `LEAST` applies to settled levels.
const UNSETTLED: f64 = 0.02;
const LEAST: f64 = 0.004;

/// The result of a cell.
#[derive(Debug, Clone, Copy)]
struct Came {
    /// The level in MiB/s.
    level: f64,
    deviation: f64,
    /// The duration of the cell, and the duration of its load.
    took: Nanos,
    load: Nanos,
}

/// Runs an adaptive plan into the store at `path`. [`lowtide_lab::campaign::run`] does the same for full plans.
///
/// # Errors
/// [`CampaignError`] if the store fails or the target is refused.
pub fn run(
    (plan, adaptive): (&Plan, &Adaptive),
    path: &Path,
    about: &About,
    resume: bool,
    interrupt: &Arc<AtomicBool>,
    progress: &dyn Progress,
) -> Result<(Store, Outcome), CampaignError> {
    let heard = Heard { inner: progress, state: Mutex::default() };
    let running = Running::begin(plan, path, about, resume, interrupt, &heard)?;
    let known = Store::open_existing(path)?.load(running.campaign())?;
    for cell in known.cells.iter().filter(|cell| cell.status == Status::Done) {
        match came_before(cell) {
            Some(came) => _ = heard.state().came.insert(cell.index, came),
            None => _ = heard.state().failed.insert(cell.index),
        }
    }
    let it = Run { plan, adaptive, heard: &heard, interrupt };
    let ended = Mutex::new(BTreeMap::new());
    let sweeps: Vec<(usize, &Sweep)> = adaptive.sweeps.iter().enumerate().collect();
    let each = |(n, sweep): (usize, &Sweep), measure: &mut dyn FnMut(&[usize])| {
        if let Some(known) = it.sweep(sweep, measure) {
            ended.lock().expect("nobody panics while holding it").insert(n, known);
        }
    };
    if plan.target.is_simulated() {
        on_all_cores(&sweeps, |sweep| {
            each(*sweep, &mut |cells| on_all_cores(cells, |cell| running.run_group(&[*cell])));
        });
    } else {
        running.run_chosen(|turn| {
            let measure = &mut |cells: &[usize]| cells.iter().for_each(|cell| turn(*cell));
            sweeps.iter().for_each(|sweep| each(*sweep, measure));
        });
    }
    if !interrupt.load(Ordering::Relaxed) {
        let (predicted, fact) = it.finish(&ended.into_inner().expect("nobody panics while holding it"));
        running.predict(&predicted, fact);
    }
    Ok(running.finish()?)
}

struct Run<'a, 'r> {
    plan: &'a Plan,
    adaptive: &'a Adaptive,
    heard: &'a Heard<'r>,
    interrupt: &'a AtomicBool,
}

impl Run<'_, '_> {
    /// Measures a curve until its levels are known well enough. `None` if it was interrupted, or if all its sizes
    /// failed. `measure` runs cells that have no result yet.
    fn sweep(&self, sweep: &Sweep, measure: &mut dyn FnMut(&[usize])) -> Option<Known> {
        let cells: Vec<usize> = first(&sweep.curve).iter().map(|at| sweep.cells[*at]).collect();
        measure(&cells);
        loop {
            if self.interrupt.load(Ordering::Relaxed) {
                return None;
            }
            let (seen, open, hours) = self.so_far(sweep);
            let label = |at: usize| self.plan.cells[sweep.cells[at]].label();
            let at = if seen.is_empty() {
                // Without a measured level, the first size that has not failed is next.
                let at = open.iter().position(|open| *open)?;
                self.heard.inner.note(&format!("next {}; every size before it failed", label(at)));
                at
            } else {
                let known = sweep.curve.known(&seen);
                let Some(at) = next(&known, &open, &hours, self.adaptive.precision) else {
                    return Some(known);
                };
                let halves = known.half_widths();
                let widest =
                    (0..open.len()).filter(|at| open[*at]).max_by(|a, b| halves[*a].total_cmp(&halves[*b]));
                if let Some(widest) = widest {
                    let (least, percent) = (label(widest), halves[widest] * 100.0);
                    let text = format!("next {}; least certain is {least}, ± {percent:.1} %", label(at));
                    self.heard.inner.note(&text);
                }
                at
            };
            measure(&[sweep.cells[at]]);
            let cell = sweep.cells[at] as u32;
            let state = self.heard.state();
            let told = state.came.contains_key(&cell) || state.failed.contains(&cell);
            assert!(told || self.interrupt.load(Ordering::Relaxed), "cell {cell} ended without a word");
        }
    }

    /// The result of each size of a curve. `None` for sizes without one.
    fn came(&self, sweep: &Sweep) -> Vec<Option<Came>> {
        let state = self.heard.state();
        sweep.cells.iter().map(|cell| state.came.get(&(*cell as u32)).copied()).collect()
    }

    /// The measured levels of a curve, its sizes that can still be measured, and the estimated hours of each size.
    fn so_far(&self, sweep: &Sweep) -> (Vec<Seen>, Vec<bool>, Vec<f64>) {
        let came = self.came(sweep);
        let seen = came.iter().enumerate();
        let seen =
            seen.filter_map(|(at, it)| it.map(|it| Seen { at, level: it.level, deviation: it.deviation }));
        let state = self.heard.state();
        let failed = |cell: &usize| state.failed.contains(&(*cell as u32));
        let open = sweep.cells.iter().zip(&came).map(|(cell, it)| it.is_none() && !failed(cell)).collect();
        let hours = between(sweep, &came, |it| hours(it.took));
        (seen.collect(), open, hours)
    }

    /// The predictions for the unmeasured sizes of complete curves, by cell index, and a summary of the device time
    /// saved. A curve has no predictions if all its sizes failed.
    fn finish(&self, ended: &BTreeMap<usize, Known>) -> (Vec<(u32, Predicted)>, Fact) {
        let (mut predicted, mut spent, mut whole) = (Vec::new(), 0.0, 0.0);
        let mut measured = 0;
        for (sweep, known) in ended.iter().map(|(n, known)| (&self.adaptive.sweeps[*n], known)) {
            let (_, open, _) = self.so_far(sweep);
            for at in (0..open.len()).filter(|at| open[*at]) {
                let of = Predicted { level: known.levels[at], low: known.low[at], high: known.high[at] };
                predicted.push((sweep.cells[at] as u32, of));
            }
            let came = self.came(sweep);
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
        (predicted, (fact::SPARED.to_owned(), text))
    }
}

fn hours(time: Nanos) -> f64 {
    time.as_secs_f64() / 3600.0
}

/// A number at each size of a curve, interpolated linearly between the measured sizes.
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

/// The level of a cell, and its standard deviation as a share.
///
/// A steady cell has the level of its steady window. Any other cell has the mean of its last quarter; its deviation
/// is at least the change from the third quarter to the last.
fn came_to(verdict: &Verdict, rows: &[Row]) -> Option<(f64, f64)> {
    let last = rows.last()?;
    let quarters = [2, 3].map(|n| {
        let (from, to) = (last.end_ns / 4 * n, last.end_ns / 4 * (n + 1));
        // The last interval always counts, so that a run of one interval has a level.
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

/// Collects the results of cells, and forwards all progress.
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
            // A cell without any throughput gives no level, so it counts as failed.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adaptive;
    use lowtide_core::Seed;
    use lowtide_lab::experiment::Experiment;
    use std::path::PathBuf;

    /// Moves the directory under test away until `failures` cells have failed.
    struct Hindered {
        directory: PathBuf,
        away: PathBuf,
        failures: usize,
        failed: Mutex<usize>,
        notes: Mutex<Vec<String>>,
    }

    impl Progress for Hindered {
        fn begun(&self, _campaign: i64) {
            std::fs::rename(&self.directory, &self.away).expect("nobody holds it");
        }
        fn cell(&self, _: &PlannedCell, _: Stage, _: f64, _: Option<&Row>) {}
        fn ended(&self, _: &PlannedCell, failure: Option<&str>) {
            let mut failed = self.failed.lock().expect("not poisoned");
            *failed += usize::from(failure.is_some());
            if failure.is_some() && *failed == self.failures {
                std::fs::rename(&self.away, &self.directory).expect("nothing is in its place");
            }
        }
        fn note(&self, text: &str) {
            self.notes.lock().expect("not poisoned").push(text.to_owned());
        }
    }

    /// Runs two curves of seven file sizes each, whose first cells fail. Returns the number of cells in each state
    /// for the first and second curve, and the notes.
    fn hindered(failures: usize) -> ([BTreeMap<&'static str, usize>; 2], Vec<String>) {
        let folder = tempfile::tempdir().expect("a folder");
        let (directory, away) = (folder.path().join("under-test"), folder.path().join("away"));
        std::fs::create_dir(&directory).expect("a directory");
        let text = format!(
            "name = 't'\ntarget.directory = {directory:?}\n[workload]\npattern = 'random-write'\nblock = '4KiB'\n\
             duration = '40ms'\ninterval = '10ms'\n[sweep]\nthreads = [2, 1]\n\
             file_size = {{ from = '256KiB', to = '1792KiB', step = '256KiB' }}\n"
        );
        let experiment = Experiment::parse("t.toml", &text, &[]).expect("valid");
        let mut plan = Plan::new(experiment, Seed::new(1), 1).expect("plans");
        let adaptive = adaptive::prepare(&mut plan, 0.5).expect("it has curves");
        let progress =
            Hindered { directory, away, failures, failed: Mutex::default(), notes: Mutex::default() };
        let goes_on = Arc::new(AtomicBool::new(false));
        let store = folder.path().join("store.db");
        let ran = run((&plan, &adaptive), &store, &About::default(), false, &goes_on, &progress);
        let (store, outcome) = ran.expect("it runs");
        assert_eq!((outcome.failed as usize, outcome.interrupted), (failures, false));
        let cells = store.load(outcome.campaign).expect("reads back").cells;
        let curves = [2, 1].map(|threads| {
            let mut count = BTreeMap::new();
            for cell in cells.iter().filter(|cell| cell.threads == threads) {
                let standing = match cell.status {
                    Status::Pending => "pending",
                    Status::Done => "done",
                    Status::Failed => "failed",
                    Status::Spared => "spared",
                    Status::Damaged => "damaged",
                };
                *count.entry(standing).or_default() += 1;
            }
            count
        });
        (curves, progress.notes.into_inner().expect("not poisoned"))
    }

    #[test]
    fn a_curve_whose_first_sizes_fail_goes_on_with_the_others() {
        let (curves, notes) = hindered(3);
        assert_eq!(curves[0].get("failed"), Some(&3), "{curves:?}");
        assert!(curves.iter().all(|it| !it.contains_key("pending")), "{curves:?}");
        assert!(notes.iter().any(|note| note.ends_with("every size before it failed")), "{notes:?}");
    }

    #[test]
    fn a_curve_that_fails_altogether_takes_nothing_from_the_others() {
        let (curves, _) = hindered(7);
        assert_eq!(curves[0], BTreeMap::from([("failed", 7)]));
        assert!(!curves[1].contains_key("pending"), "{curves:?}");
    }
}
