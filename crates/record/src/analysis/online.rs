//! Ending a running measurement as soon as its answer is good enough (`until = "steady"`).
//!
//! Looking at a confidence interval again and again until it happens to be narrow makes it optimistic (Y. S. Chow
//! and H. Robbins, Ann. Math. Stat. 36, 1965; Law and Kelton on sequential procedures). So it looks rarely, each
//! time with 20 % more intervals than the last time, and stops only when two looks in a row are steady and agree:
//! their intervals overlap. Not here: the clock and the limit `max`, which belong to whoever runs the load.

use super::confidence::judge;
use super::honeymoon::{Interlock, interlock};
use super::reason::Reason;
use super::series::{Context, Series, SeriesError};
use super::{Confidence, Criterion, Estimate, Verdict, steady};
use crate::Row;

/// A look comes after this share more intervals since the honeymoon than the last one had.
const GROWTH: f64 = 0.2;

/// What to do after an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Go on measuring.
    Continue,
    /// Stop: this is the answer.
    Stop(Estimate),
}

/// Watches a running measurement.
#[derive(Debug, Clone)]
pub struct Online {
    criterion: Criterion,
    series: Series,
    open: Option<usize>,
    next: usize,
    last: Option<Estimate>,
    why: Option<Reason>,
}

impl Online {
    /// A watcher of a measurement that has not begun.
    pub fn new(context: Context, criterion: Criterion) -> Self {
        Online { criterion, series: Series::new(context), open: None, next: 0, last: None, why: None }
    }

    /// Takes the next interval and says what to do. Most calls take constant time; a look takes time linear in
    /// the length of the series.
    ///
    /// # Errors
    /// Where the row does not follow the one before.
    pub fn push(&mut self, row: &Row) -> Result<Step, SeriesError> {
        self.series.push_row(row)?;
        Ok(self.step())
    }

    /// Takes the next interval as bytes instead of a row, as [`Series::push`] does.
    ///
    /// # Errors
    /// Where the interval does not follow the one before.
    pub fn push_bytes(
        &mut self,
        start_ns: u64,
        end_ns: u64,
        moved: lowtide_core::Bytes,
        written: lowtide_core::Bytes,
    ) -> Result<Step, SeriesError> {
        self.series.push(start_ns, end_ns, moved, written)?;
        Ok(self.step())
    }

    fn step(&mut self) -> Step {
        // The rules of others stop at the first window that holds, so only the newest window is looked at.
        let answer = match self.criterion {
            Criterion::Confidence(rule) => return self.look(&rule),
            Criterion::Snia(rule) => rule.answer_at_end(&self.series),
            Criterion::FioSlope(rule) => rule.answer_at_end(&self.series),
        };
        answer.map_or(Step::Continue, |answer| Step::Stop(answer.into()))
    }

    fn look(&mut self, rule: &Confidence) -> Step {
        let count = self.series.points().len();
        if self.open.is_none() && count >= self.next {
            // While the interlock is closed it is asked at every hundredth more.
            match interlock(&self.series) {
                Interlock::Open { from } => {
                    self.open = Some(from);
                    self.next = from + rule.least_intervals;
                }
                Interlock::Closed { written, needed, blind } => {
                    self.why = Some(Reason::Honeymoon { written, needed, blind });
                    self.next = count + 1 + count / 100;
                }
            }
        }
        let Some(open) = self.open.filter(|_| count >= self.next) else { return Step::Continue };
        self.next = count + 1 + ((count - open) as f64 * GROWTH) as usize;
        match judge(&self.series, rule) {
            Err(reason) => {
                self.why = Some(reason);
                self.last = None;
                Step::Continue
            }
            Ok(estimate) => match self.last.replace(estimate) {
                Some(last) if agree(&last, &estimate) => Step::Stop(estimate),
                _ => {
                    self.why = Some(Reason::Unconfirmed);
                    Step::Continue
                }
            },
        }
    }

    /// The series so far.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Why the last look did not stop, for a progress line; `None` before the first look.
    pub fn why(&self) -> Option<Reason> {
        self.why
    }

    /// The verdict over everything so far, for a measurement that ran into its limit.
    pub fn verdict(&self) -> Verdict {
        steady(&self.series, &self.criterion)
    }
}

/// Whether two looks say the same.
fn agree(last: &Estimate, now: &Estimate) -> bool {
    let apart = (last.mean - now.mean).abs();
    apart <= last.half_width + now.half_width
}

#[cfg(test)]
mod tests {
    use super::super::shapes::Shape;
    use super::*;

    #[test]
    fn one_look_is_not_enough() {
        // Steady from the start: the first look is at 30 intervals, the second at 31 + 20 % of 30 = 37.
        let shape = Shape::reads(100.0, 0.0, 0.0);
        let mut online = Online::new(shape.context(), Criterion::default());
        for (index, (start, end, moved, written)) in shape.run(1).take(37).enumerate() {
            let step = online.push_bytes(start, end, moved, written).expect("even intervals");
            match index + 1 {
                37 => assert!(matches!(step, Step::Stop(_)), "{:?}", online.why()),
                _ => assert_eq!(step, Step::Continue),
            }
            if index + 1 == 30 {
                assert_eq!(online.why(), Some(Reason::Unconfirmed));
            }
        }
        assert!(matches!(online.verdict(), Verdict::Steady(_)));
    }

    #[test]
    fn looks_that_disagree_do_not_stop() {
        let at = |mean| Estimate { mean, half_width: 0.3, from_ns: 0, to_ns: 1, batches: 20 };
        assert!(agree(&at(30.0), &at(30.5)));
        assert!(!agree(&at(30.0), &at(30.7)));
    }
}
