//! What the live view knows: the cells that run, those that ended, and what was said meanwhile.
//!
//! Not here: drawing, and the terminal.

use lowtide_lab::campaign::Stage;
use lowtide_lab::plan::PlannedCell;
use lowtide_record::analysis::Verdict;
use lowtide_record::{Quantity, Row};
use std::time::{Duration, Instant};

/// Points of a line at most; then every other one goes.
const MOST_POINTS: usize = 400;
/// How often a running cell is judged; its series may be long.
const JUDGE_EVERY: Duration = Duration::from_secs(1);
/// Preparing counts for this share of a cell.
const PREPARE: f64 = 0.1;

/// Everything that is drawn.
#[derive(Clone)]
pub(super) struct State {
    pub title: String,
    pub cells: usize,
    pub began: Instant,
    pub running: Vec<Running>,
    /// The cells that ended, in that order: what each is called, and its answer or failure.
    pub ended: Vec<(String, String)>,
    pub notes: Vec<String>,
}

/// A cell that runs.
#[derive(Clone)]
pub(super) struct Running {
    index: u32,
    pub label: String,
    pub stage: Stage,
    pub share: f64,
    /// What its levels are rates of, as far as is known yet.
    pub quantity: Quantity,
    /// Seconds of the measurement, and the level.
    pub levels: Vec<(f64, f64)>,
    /// Seconds of the measurement, and the 99th percentile of latency in milliseconds: of reads or writes, whichever
    /// took longer; of a database, of New-Order.
    pub latency: Vec<(f64, f64)>,
    /// Rows to pass over between two points.
    stride: u32,
    passed: u32,
    pub verdict: Option<Verdict>,
    judged: Instant,
}

impl State {
    pub fn new(title: &str, cells: usize) -> State {
        let (running, ended, notes) = (Vec::new(), Vec::new(), Vec::new());
        State { title: title.to_owned(), cells, began: Instant::now(), running, ended, notes }
    }

    /// The share of everything that is done, 0 to 1.
    pub fn share(&self) -> f64 {
        let parts: f64 = self.running.iter().map(Running::whole_share).sum();
        ((self.ended.len() as f64 + parts) / self.cells.max(1) as f64).min(1.0)
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

    /// Whether it is time to judge the cell.
    pub fn wants_verdict(&mut self, cell: &PlannedCell) -> bool {
        let running = self.running.iter_mut().find(|it| it.index == cell.index);
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

    /// So many cells will not be measured.
    pub fn spared(&mut self, cells: usize) {
        self.cells -= cells.min(self.cells);
    }

    /// Something the user should know once the terminal is theirs again.
    pub fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    /// What was said while nobody could read it on the terminal.
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

    fn whole_share(&self) -> f64 {
        match self.stage {
            Stage::Prepare => self.share * PREPARE,
            Stage::Measure | Stage::Replay => PREPARE + self.share * (1.0 - PREPARE),
        }
    }

    /// What it came to, in a few words.
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

/// A verdict in a few words.
pub(super) fn words(verdict: &Verdict, quantity: Quantity) -> String {
    match verdict {
        Verdict::Steady(it) => quantity.settled(it.mean, it.half_width),
        Verdict::NoSteadyState { reason } => format!("no steady state: {reason}"),
    }
}
