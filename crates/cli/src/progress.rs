//! Progress on standard error: a bar over all cells with the time left, and a line for each running cell; without
//! a terminal a line whenever a cell ends.
//!
//! Not here: results, which go to standard output at the end.

use crate::output;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use lowtide_lab::campaign::{Progress, Stage};
use lowtide_lab::plan::PlannedCell;
use lowtide_record::Row;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Parts of the overall bar per cell, so that it moves inside a cell, too.
const PARTS: u64 = 1000;
/// Preparing counts for this share of a cell.
const PREPARE: f64 = 0.1;

/// Shows how a campaign goes.
pub struct Shown {
    terminal: bool,
    cells: usize,
    all: MultiProgress,
    whole: ProgressBar,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ended: usize,
    /// Cells that will not be measured.
    spared: usize,
    /// Running cells: their line, how much is done, when they began, and the level of the last interval.
    running: BTreeMap<u32, Running>,
}

struct Running {
    bar: ProgressBar,
    share: f64,
    began: Instant,
    shown: Instant,
    level: Option<String>,
}

impl Shown {
    /// Progress over `cells` cells.
    pub fn new(cells: usize) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target =
            if terminal { ProgressDrawTarget::stderr_with_hz(8) } else { ProgressDrawTarget::hidden() };
        let all = MultiProgress::with_draw_target(target);
        let style =
            ProgressStyle::with_template("{bar:24} {percent:>3} %  {msg}  {elapsed} elapsed, {eta} left");
        let whole = all.add(ProgressBar::new(cells as u64 * PARTS));
        whole.set_style(style.expect("the template is right"));
        whole.set_message(format!("0 of {cells} cells"));
        whole.enable_steady_tick(Duration::from_millis(500));
        Shown { terminal, cells, all, whole, state: Mutex::default() }
    }

    /// Takes everything off the screen.
    pub fn finish(&self) {
        self.whole.finish_and_clear();
        let state = self.state.lock().expect("progress does not panic");
        state.running.values().for_each(|running| running.bar.finish_and_clear());
    }

    fn line(&self) -> ProgressBar {
        let bar = self.all.add(ProgressBar::new_spinner());
        bar.set_style(ProgressStyle::with_template("  {wide_msg}").expect("the template is right"));
        bar
    }
}

impl Progress for Shown {
    fn cell(&self, cell: &PlannedCell, stage: Stage, share: f64, last: Option<&Row>) {
        let mut state = self.state.lock().expect("progress does not panic");
        let now = Instant::now();
        let running = state.running.entry(cell.index).or_insert_with(|| Running {
            bar: self.line(),
            share: 0.0,
            began: now,
            shown: now - Duration::from_secs(1),
            level: None,
        });
        running.share = match stage {
            Stage::Prepare => share * PREPARE,
            Stage::Measure | Stage::Replay => PREPARE + share.min(1.0) * (1.0 - PREPARE),
        };
        running.level = last.map(|row| row.quantity().running(row.rate())).or(running.level.take());
        if now - running.shown < Duration::from_millis(100) {
            return;
        }
        running.shown = now;
        let doing = match stage {
            Stage::Prepare => "preparing".to_owned(),
            Stage::Replay => format!("again for its history, {:.0} %", share * 100.0),
            Stage::Measure => {
                let rate = running.level.as_ref().map(|rate| format!(", {rate}")).unwrap_or_default();
                format!("{:.0} %{rate}", share.min(1.0) * 100.0)
            }
        };
        running.bar.set_message(format!("{}: {doing}", cell.label()));
        let parts: f64 = state.running.values().map(|running| running.share).sum();
        self.whole.set_position(state.ended as u64 * PARTS + (parts * PARTS as f64) as u64);
    }

    fn ended(&self, cell: &PlannedCell, failure: Option<&str>) {
        let mut state = self.state.lock().expect("progress does not panic");
        state.ended += 1;
        let (ended, cells) = (state.ended, self.cells - state.spared);
        let running = state.running.remove(&cell.index);
        let took = running.as_ref().map_or(0.0, |running| running.began.elapsed().as_secs_f64());
        if let Some(running) = &running {
            running.bar.finish_and_clear();
        }
        self.whole.set_message(format!("{ended} of {cells} cells"));
        self.whole.set_position(ended as u64 * PARTS);
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
        let mut state = self.state.lock().expect("progress does not panic");
        state.spared += cells;
        self.whole.set_length((self.cells - state.spared) as u64 * PARTS);
    }

    fn note(&self, text: &str) {
        if self.terminal {
            self.whole.suspend(|| output::say(text));
        } else {
            output::say(text);
        }
    }
}
