//! State of the live view: running cells, results of ended cells, and notes. `draw` draws it.

use crate::progress::share_of_cell;
use lowtide_lab::campaign::Stage;
use lowtide_lab::plan::PlannedCell;
use lowtide_record::analysis::Verdict;
use lowtide_record::{Quantity, Row};
use std::time::{Duration, Instant};

/// Maximum number of points of a line; beyond it, every other point is removed.
const MOST_POINTS: usize = 400;
/// Interval between verdicts on a running cell, which cost time for long series.
const JUDGE_EVERY: Duration = Duration::from_secs(1);

/// The contents of the view.
#[derive(Clone)]
pub(super) struct State {
    pub title: String,
    pub cells: usize,
    pub began: Instant,
    pub running: Vec<Running>,
    /// Ended cells in order: label, and result or failure.
    pub ended: Vec<(String, String)>,
    pub notes: Vec<String>,
}

/// A running cell.
#[derive(Clone)]
pub(super) struct Running {
    index: u32,
    pub label: String,
    pub stage: Stage,
    pub share: f64,
    /// The quantity of its levels; the default until the first row.
    pub quantity: Quantity,
    /// Time in seconds, and the level.
    pub levels: Vec<(f64, f64)>,
    /// Time in seconds, and the 99th percentile of latency in milliseconds: of reads or writes, whichever is longer;
    /// for a database, of New-Order.
    pub latency: Vec<(f64, f64)>,
    /// Rows for each point.
    stride: u32,
    /// Rows since the last point.
    passed: u32,
    pub verdict: Option<Verdict>,
    judged: Instant,
}

impl State {
    pub fn new(title: &str, cells: usize) -> State {
        let (running, ended, notes) = (Vec::new(), Vec::new(), Vec::new());
        State { title: title.to_owned(), cells, began: Instant::now(), running, ended, notes }
    }

    /// The completed share of the campaign, 0 to 1.
    pub fn share(&self) -> f64 {
        let running: f64 = self.running.iter().map(|it| share_of_cell(it.stage, it.share)).sum();
        ((self.ended.len() as f64 + running) / self.cells.max(1) as f64).min(1.0)
    }

    pub fn cell(&mut self, cell: &PlannedCell, stage: Stage, share: f64, last: Option<&Row>) {
        let at = match self.running.iter().position(|it| it.index == cell.index) {
            Some(at) => at,
            None => {
                self.running.push(Running::new(cell));
                self.running.len() - 1
            }
        };
        let running = &mut self.running[at];
        (running.stage, running.share) = (stage, share.min(1.0));
        if let Some(row) = last {
            running.push(row);
        }
    }

    /// Returns whether it is time for another verdict on the cell.
    pub fn wants_verdict(&self, cell: &PlannedCell) -> bool {
        let running = self.running.iter().find(|it| it.index == cell.index);
        running.is_some_and(|it| it.judged.elapsed() >= JUDGE_EVERY)
    }

    pub fn verdict(&mut self, cell: &PlannedCell, verdict: &Verdict) {
        if let Some(running) = self.running.iter_mut().find(|it| it.index == cell.index) {
            (running.verdict, running.judged) = (Some(verdict.clone()), Instant::now());
        }
    }

    pub fn ended(&mut self, cell: &PlannedCell, failure: Option<&str>) {
        let at = self.running.iter().position(|it| it.index == cell.index);
        let running = at.map(|at| self.running.remove(at));
        let answer = match (failure, running) {
            (Some(reason), _) => format!("failed: {reason}"),
            (None, Some(running)) => running.answer(),
            (None, None) => String::new(),
        };
        self.ended.push((cell.label(), answer));
    }

    /// Removes cells that will not be measured.
    pub fn skip(&mut self, cells: usize) {
        self.cells -= cells.min(self.cells);
    }

    /// Keeps a note to print after the terminal is restored.
    pub fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    /// Removes and returns all notes.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

impl Running {
    fn new(cell: &PlannedCell) -> Running {
        Running {
            index: cell.index,
            label: cell.label(),
            stage: Stage::Prepare,
            share: 0.0,
            quantity: Quantity::default(),
            levels: Vec::new(),
            latency: Vec::new(),
            stride: 1,
            passed: 0,
            verdict: None,
            judged: Instant::now(),
        }
    }

    /// A summary of the result.
    fn answer(&self) -> String {
        match (&self.verdict, self.levels.last()) {
            (Some(verdict @ Verdict::Steady(_)), _) => words(verdict, self.quantity),
            (_, Some((_, rate))) => format!("no steady state, {} at the end", self.quantity.running(*rate)),
            (_, None) => "no steady state".to_owned(),
        }
    }

    fn push(&mut self, row: &Row) {
        self.passed += 1;
        if self.passed < self.stride {
            return;
        }
        self.passed = 0;
        let seconds = row.end_ns as f64 / 1e9;
        self.quantity = row.quantity();
        self.levels.push((seconds, row.rate()));
        let p99_ns = match &row.transactions {
            Some(transactions) => transactions.new_order().latency.p99_ns,
            None => row.read.p99_ns.max(row.write.p99_ns),
        };
        self.latency.push((seconds, p99_ns as f64 / 1e6));
        if self.levels.len() > MOST_POINTS {
            self.stride *= 2;
            for line in [&mut self.levels, &mut self.latency] {
                let mut odd = false;
                line.retain(|_| {
                    odd = !odd;
                    odd
                });
            }
        }
    }
}

/// A summary of a verdict.
pub(super) fn words(verdict: &Verdict, quantity: Quantity) -> String {
    match verdict {
        Verdict::Steady(it) => quantity.settled(it.mean, it.half_width),
        Verdict::NoSteadyState { reason } => format!("no steady state: {reason}"),
    }
}
