//! Watching a running load: when to stop, and the verdict at the end.
//!
//! Leaves out the rules themselves (`analysis`).

use crate::analysis::{Confidence, Context, Criterion, Online, Snia, Step, Verdict, steady};
use crate::experiment::{Length, Load, SteadyRule};
use crate::record::Row;
use lowtide_core::Control;

/// Watches one cell.
pub(super) struct Watch {
    online: Online,
    length: Length,
    longest_ns: u64,
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
            Length::UntilSteady { precision, .. } => {
                Confidence { relative_half_width: precision, ..Confidence::default() }
            }
            Length::For(_) => Confidence::default(),
        };
        Watch {
            online: Online::new(context, rule(online)),
            length: load.length,
            longest_ns: load.length.longest().get(),
            fixed: rule(Confidence::fixed_duration()),
            verdict: None,
        }
    }

    /// Takes an interval and says whether to go on.
    pub(super) fn push(&mut self, row: &Row) -> Control {
        let step =
            self.online.push(row).expect("a recorder's intervals follow each other and have one length");
        if let (Length::UntilSteady { .. }, Step::Stop(estimate)) = (self.length, step) {
            self.verdict = Some(Verdict::Steady(estimate));
            return Control::Stop;
        }
        if row.end_ns >= self.longest_ns { Control::Stop } else { Control::Continue }
    }

    /// How far the load is, 0 to 1, by its longest duration.
    pub(super) fn progress(&self, row: &Row) -> f64 {
        row.end_ns as f64 / self.longest_ns as f64
    }

    /// What the analysis says at the end.
    pub(super) fn verdict(self) -> Verdict {
        match (self.verdict, self.length) {
            (Some(verdict), _) => verdict,
            (None, Length::UntilSteady { .. }) => self.online.verdict(),
            (None, Length::For(_)) => steady(self.online.series(), &self.fixed),
        }
    }
}
