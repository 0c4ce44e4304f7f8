//! Ends a running measurement as soon as its answer is good enough (`until = "steady"`).
//!
//! Testing a confidence interval repeatedly until it is narrow gives intervals that are too narrow (Y. S. Chow and H.
//! Robbins, Ann. Math. Stat. 36, 1965; Law and Kelton on sequential procedures). The series is therefore judged
//! rarely, each time with 20 % more intervals. The measurement ends only after two consecutive steady judgements with
//! overlapping intervals. The load owns the clock and the limit `max`.

use super::confidence::judge;
use super::honeymoon::interlock;
use super::reason::Reason;
use super::series::{Context, Series, SeriesError};
use super::{Confidence, Criterion, Estimate, Verdict, steady};
use crate::Row;

/// Growth of the number of intervals after the honeymoon between two judgements.
const GROWTH: f64 = 0.2;

/// Watches a running measurement.
#[derive(Debug, Clone)]
pub struct Online {
    criterion: Criterion,
    series: Series,
    /// The first interval after the honeymoon.
    open: Option<usize>,
    /// The number of intervals at the next judgement.
    next: usize,
    /// The estimate of the last judgement, if that judgement was steady.
    last: Option<Estimate>,
    why: Option<Reason>,
}

impl Online {
    /// Creates a watcher for a measurement that has not begun.
    pub fn new(context: Context, criterion: Criterion) -> Self {
        Online { criterion, series: Series::new(context), open: None, next: 0, last: None, why: None }
    }

    /// Adds the next interval. Returns the estimate if the measurement may end. Most calls take constant time; a call
    /// with a judgement takes time linear in the length of the series.
    ///
    /// # Errors
    /// The errors of [`Series::push`].
    pub fn push(&mut self, row: &Row) -> Result<Option<Estimate>, SeriesError> {
        self.series.push(row)?;
        // The rules of SNIA and fio end with the first window that satisfies them, so only the newest window is
        // checked.
        Ok(match self.criterion {
            Criterion::Confidence(rule) => self.look(&rule),
            Criterion::Snia(rule) => rule.answer_at_end(&self.series),
            Criterion::FioSlope(rule) => rule.answer_at_end(&self.series),
        })
    }

    fn look(&mut self, rule: &Confidence) -> Option<Estimate> {
        let count = self.series.points().len();
        if self.open.is_none() && count >= self.next {
            match interlock(&self.series) {
                Ok(from) => {
                    self.open = Some(from);
                    self.next = from + rule.least_intervals;
                }
                Err(reason) => {
                    self.why = Some(reason);
                    self.next = count + 1 + count / 100;
                }
            }
        }
        let open = self.open.filter(|_| count >= self.next)?;
        self.next = count + 1 + ((count - open) as f64 * GROWTH) as usize;
        match judge(&self.series, rule) {
            Err(reason) => {
                self.why = Some(reason);
                self.last = None;
                None
            }
            Ok(estimate) => match self.last.replace(estimate) {
                Some(last) if agree(&last, &estimate) => Some(estimate),
                _ => {
                    self.why = Some(Reason::Unconfirmed);
                    None
                }
            },
        }
    }

    /// The series so far.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// The reason why the last judgement did not end the measurement; `None` before the first judgement.
    pub fn why(&self) -> Option<Reason> {
        self.why
    }

    /// The verdict over all intervals so far, for a measurement that reached its limit.
    pub fn verdict(&self) -> Verdict {
        steady(&self.series, &self.criterion)
    }
}

/// Returns whether the intervals of two estimates overlap.
fn agree(last: &Estimate, now: &Estimate) -> bool {
    let apart = (last.mean - now.mean).abs();
    apart <= last.half_width + now.half_width
}

#[cfg(test)]
mod tests {
    use super::super::shapes::Shape;
    use super::*;

    #[test]
    fn one_judgement_is_not_enough() {
        // Steady from the start: the first judgement is at 30 intervals, the second at 31 + 20 % of 30 = 37.
        let shape = Shape::reads(100.0, 0.0, 0.0);
        let mut online = Online::new(shape.context(), Criterion::default());
        for (count, row) in (1..=37).zip(shape.run(1)) {
            let answer = online.push(&row).expect("even intervals");
            assert_eq!(answer.is_some(), count == 37, "{count}: {:?}", online.why());
            if count == 30 {
                assert_eq!(online.why(), Some(Reason::Unconfirmed));
            }
        }
        assert!(matches!(online.verdict(), Verdict::Steady(_)));
    }

    #[test]
    fn estimates_that_disagree_do_not_end_a_measurement() {
        let at = |mean| Estimate { mean, half_width: 0.3, from_ns: 0, to_ns: 1, batches: 20 };
        assert!(agree(&at(30.0), &at(30.5)));
        assert!(!agree(&at(30.0), &at(30.7)));
    }
}
