//! Decides when a running load stops, and gives the verdict at the end.
//!
//! The rules of the analysis are in `lowtide_record::analysis`.

use super::Ended;
use crate::experiment::{Length, Load, SteadyRule};
use lowtide_core::Control;
use lowtide_record::Row;
use lowtide_record::analysis::{Confidence, Context, Criterion, Online, Snia, Verdict, steady};
use std::sync::atomic::{AtomicBool, Ordering};

/// The state of the load of one cell.
pub(super) struct Watch {
    /// Whether the load has pauses. Bursts are not analysed, because they are not a continuous series.
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

    /// Adds an interval, and decides whether the load continues.
    pub(super) fn push(&mut self, row: &Row) -> Control {
        let answer = match self.pauses {
            true => None,
            false => {
                self.online.push(row).expect("intervals of a recorder are consecutive and have equal lengths")
            }
        };
        if let (Length::UntilSteady { .. }, Some(estimate)) = (self.length, answer) {
            self.verdict = Some(Verdict::Steady(estimate));
            return Control::Stop;
        }
        self.done += row.reads + row.writes;
        if self.progress(row) >= 1.0 { Control::Stop } else { Control::Continue }
    }

    /// The completed share of the load, 0 to 1, by requests or by the longest duration.
    pub(super) fn progress(&self, row: &Row) -> f64 {
        match self.length {
            Length::For(time) | Length::UntilSteady { max: time, .. } => {
                row.end_ns as f64 / time.get() as f64
            }
            Length::Requests(number) => self.done as f64 / number as f64,
        }
    }

    /// The verdict on the intervals so far.
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
}

/// A load in virtual time that ends when its watch decides or the user interrupts it.
pub(super) struct Interruptible<'a> {
    watch: Watch,
    interrupt: &'a AtomicBool,
    interrupted: bool,
}

impl<'a> Interruptible<'a> {
    pub(super) fn new(watch: Watch, interrupt: &'a AtomicBool) -> Self {
        Interruptible { watch, interrupt, interrupted: false }
    }

    /// Adds an interval, calls `each` with the completed share and the verdict so far, and decides whether the load
    /// continues. After an interrupt, the interval is dropped.
    pub(super) fn push(&mut self, row: &Row, each: impl FnOnce(f64, &dyn Fn() -> Verdict)) -> Control {
        self.interrupted = self.interrupt.load(Ordering::Relaxed);
        if self.interrupted {
            return Control::Stop;
        }
        let control = self.watch.push(row);
        each(self.watch.progress(row), &|| self.watch.so_far());
        control
    }

    /// The end of the load.
    pub(super) fn ended(self) -> Ended {
        if self.interrupted { Ended::Interrupted } else { Ended::Complete(self.watch.so_far()) }
    }
}
