//! Watching a running load: when to stop, and the verdict at the end.
//!
//! Not here: the rules themselves (`lowtide_record::analysis`).

use super::Ended;
use crate::experiment::{Length, Load, SteadyRule};
use lowtide_core::Control;
use lowtide_record::Row;
use lowtide_record::analysis::{Confidence, Context, Criterion, Online, Snia, Verdict, steady};
use std::sync::atomic::{AtomicBool, Ordering};

/// Watches one cell.
pub(super) struct Watch {
    /// Bursts with pauses between them are no series.
    pauses: bool,
    online: Online,
    length: Length,
    /// Requests completed so far.
    done: u64,
    fixed: Criterion,
    verdict: Option<Verdict>,
}

impl Watch {
    pub(super) fn new(load: &Load, context: Context) -> Self {
        let rule = |confidence| match load.steady {
            SteadyRule::Lowtide => Criterion::Confidence(confidence),
            SteadyRule::Snia => Criterion::Snia(Snia::default()),
        };
        let online = match load.length {
            Length::UntilSteady { precision, .. } => Confidence::of_precision(precision),
            Length::For(_) | Length::Requests(_) => Confidence::default(),
        };
        Watch {
            pauses: load.bursts().is_some(),
            online: Online::new(context, rule(online)),
            length: load.length,
            done: 0,
            fixed: rule(Confidence::fixed_duration()),
            verdict: None,
        }
    }

    /// Takes an interval and says whether to go on.
    pub(super) fn push(&mut self, row: &Row) -> Control {
        let answer = match self.pauses {
            true => None,
            false => {
                self.online.push(row).expect("a recorder's intervals follow each other and have one length")
            }
        };
        if let (Length::UntilSteady { .. }, Some(estimate)) = (self.length, answer) {
            self.verdict = Some(Verdict::Steady(estimate));
            return Control::Stop;
        }
        self.done += row.reads + row.writes;
        if self.progress(row) >= 1.0 { Control::Stop } else { Control::Continue }
    }

    /// How far the load is, from 0 to 1 at its end, by its requests or else its longest duration.
    pub(super) fn progress(&self, row: &Row) -> f64 {
        match self.length {
            Length::For(time) | Length::UntilSteady { max: time, .. } => {
                row.end_ns as f64 / time.get() as f64
            }
            Length::Requests(number) => self.done as f64 / number as f64,
        }
    }

    /// What the analysis says of everything so far.
    pub(super) fn so_far(&self) -> Verdict {
        if self.pauses {
            return Verdict::NoSteadyState { reason: "there are pauses between bursts".to_owned() };
        }
        match (&self.verdict, self.length) {
            (Some(verdict), _) => verdict.clone(),
            (None, Length::UntilSteady { .. }) => self.online.verdict(),
            (None, Length::For(_) | Length::Requests(_)) => steady(self.online.series(), &self.fixed),
        }
    }

    /// What it says at the end.
    pub(super) fn verdict(self) -> Verdict {
        self.so_far()
    }
}

/// A load in virtual time that goes on until its watch, or the user, ends it.
pub(super) struct Going<'a> {
    watch: Watch,
    interrupt: &'a AtomicBool,
    interrupted: bool,
}

impl<'a> Going<'a> {
    pub(super) fn new(watch: Watch, interrupt: &'a AtomicBool) -> Self {
        Going { watch, interrupt, interrupted: false }
    }

    /// Takes an interval and says whether to go on. `each` hears of it, how far the load is, and what can be said of all so far; of one
    /// in which the user ended it nobody does.
    pub(super) fn push(&mut self, row: &Row, each: impl FnOnce(f64, &dyn Fn() -> Verdict)) -> Control {
        self.interrupted = self.interrupt.load(Ordering::Relaxed);
        if self.interrupted {
            return Control::Stop;
        }
        let control = self.watch.push(row);
        each(self.watch.progress(row), &|| self.watch.so_far());
        control
    }

    /// How it ended.
    pub(super) fn ended(self) -> Ended {
        if self.interrupted { Ended::Interrupted } else { Ended::Complete(self.watch.verdict()) }
    }
}
