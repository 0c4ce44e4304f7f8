//! Progress on standard error: a bar for all cells with the remaining time, and a line for each running cell. Without
//! a terminal, a line for each cell that ends.

use crate::output;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use lowtide_lab::campaign::{Progress, Stage};
use lowtide_lab::plan::PlannedCell;
use lowtide_record::Row;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Steps of the overall bar for each cell, so that it also moves within a cell.
const STEPS: u64 = 1000;
/// The share of a cell's progress that preparation counts for.
const PREPARE: f64 = 0.1;

/// The completed share of a cell, 0 to 1, from the completed share of a stage.
pub fn share_of_cell(stage: Stage, share: f64) -> f64 {
    match stage {
        Stage::Prepare => share * PREPARE,
        Stage::Measure | Stage::Replay => PREPARE + share.min(1.0) * (1.0 - PREPARE),
    }
}

/// Progress bars, which are removed when this is dropped.
pub struct Bars {
    terminal: bool,
    cells: usize,
    all: MultiProgress,
    overall: ProgressBar,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ended: usize,
    /// Cells that will not be measured.
    skipped: usize,
    /// Running cells, by index.
    running: BTreeMap<u32, Running>,
}

struct Running {
    bar: ProgressBar,
    /// The completed share, 0 to 1.
    share: f64,
    began: Instant,
    drawn: Instant,
    /// The level of the last interval.
    level: Option<String>,
}

impl Bars {
    /// Progress over `cells` cells.
    pub fn new(cells: usize) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target =
            if terminal { ProgressDrawTarget::stderr_with_hz(8) } else { ProgressDrawTarget::hidden() };
        let all = MultiProgress::with_draw_target(target);
        let style =
            ProgressStyle::with_template("{bar:24} {percent:>3} %  {msg}  {elapsed} elapsed, {eta} left");
        let overall = all.add(ProgressBar::new(cells as u64 * STEPS));
        overall.set_style(style.expect("the template is valid"));
        overall.set_message(format!("0 of {cells} cells"));
        overall.enable_steady_tick(Duration::from_millis(500));
        Bars { terminal, cells, all, overall, state: Mutex::default() }
    }

    fn line(&self) -> ProgressBar {
        let bar = self.all.add(ProgressBar::new_spinner());
        bar.set_style(ProgressStyle::with_template("  {wide_msg}").expect("the template is valid"));
        bar
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("progress does not panic")
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.overall.finish_and_clear();
        self.state().running.values().for_each(|running| running.bar.finish_and_clear());
    }
}

impl Progress for Bars {
    fn cell(&self, cell: &PlannedCell, stage: Stage, share: f64, last: Option<&Row>) {
        let mut state = self.state();
        let now = Instant::now();
        let running = state.running.entry(cell.index).or_insert_with(|| Running {
            bar: self.line(),
            share: 0.0,
            began: now,
            drawn: now - Duration::from_secs(1),
            level: None,
        });
        running.share = share_of_cell(stage, share);
        running.level = last.map(|row| row.quantity().running(row.rate())).or(running.level.take());
        if now - running.drawn < Duration::from_millis(100) {
            return;
        }
        running.drawn = now;
        let doing = match stage {
            Stage::Prepare => "preparing".to_owned(),
            Stage::Replay => format!("repeating to restore the drive's history, {:.0} %", share * 100.0),
            Stage::Measure => {
                let rate = running.level.as_ref().map(|rate| format!(", {rate}")).unwrap_or_default();
                format!("{:.0} %{rate}", share.min(1.0) * 100.0)
            }
        };
        running.bar.set_message(format!("{}: {doing}", cell.label()));
        let running: f64 = state.running.values().map(|running| running.share).sum();
        self.overall.set_position(state.ended as u64 * STEPS + (running * STEPS as f64) as u64);
    }

    fn ended(&self, cell: &PlannedCell, failure: Option<&str>) {
        let mut state = self.state();
        state.ended += 1;
        let (ended, cells) = (state.ended, self.cells - state.skipped);
        let running = state.running.remove(&cell.index);
        let took = running.as_ref().map_or(0.0, |running| running.began.elapsed().as_secs_f64());
        if let Some(running) = &running {
            running.bar.finish_and_clear();
        }
        self.overall.set_message(format!("{ended} of {cells} cells"));
        self.overall.set_position(ended as u64 * STEPS);
        match failure {
            Some(reason) => self.note(&format!("{}: failed: {reason}", cell.label())),
            None if !self.terminal => {
                let rate = running.and_then(|running| running.level);
                let rate = rate.map(|rate| format!("{rate} at the end, ")).unwrap_or_default();
                output::say(format_args!("[{ended}/{cells}] {}: {rate}{took:.1} s", cell.label()));
            }
            None => {}
        }
    }

    fn spared(&self, cells: usize) {
        let mut state = self.state();
        state.skipped += cells;
        self.overall.set_length((self.cells - state.skipped) as u64 * STEPS);
    }

    fn note(&self, text: &str) {
        if self.terminal {
            self.overall.suspend(|| output::say(text));
        } else {
            output::say(text);
        }
    }
}
