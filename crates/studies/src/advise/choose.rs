//! Chooses the cheapest candidate that meets the question, both in a trial and in a longer check with another seed.
//!
//! The report is in `show`.

use super::AdviseError;
use super::candidate::Candidate;
use super::question::{Asked, Question, loaded, warehouses};
use super::row::{Life, Measured, Outcome, Row};
use super::search::{UpTo, first_enough, up_to};
use super::text::log_size;
use super::trial::{Bench, Stop, Trial};
use lowtide_core::Bytes;
use lowtide_lab::campaign::on_all_cores;
use lowtide_report::number::significant;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Divisors of the data size that give the memory sizes tried for a database.
pub(super) const POOLS: [u64; 5] = [16, 8, 4, 2, 1];

/// The highest fill is searched for this many candidates that meet the question, the cheapest first, …
const LIMITS: usize = 6;
/// … and for this many candidates that are too slow, the nearest first.
const NEAR_LIMITS: usize = 4;

/// The answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The question.
    pub question: Question,
    /// Every candidate. Candidates that meet the question come first, by price; all others follow, the nearest first.
    pub rows: Vec<Row>,
    /// Checks in the order in which they ran. If the candidate of the last check met the question again, it is the
    /// choice.
    pub checks: Vec<Checked>,
}

/// The check of a candidate: a second, longer trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// Index of the candidate in [`Advice::rows`].
    pub row: usize,
    /// The trial, or the reason that it failed.
    pub found: Result<Trial, String>,
}

impl Checked {
    /// The reasons against the candidate according to this check.
    pub(super) fn objections(&self, question: &Question, row: &Row) -> Vec<String> {
        let trial = match &self.found {
            Ok(trial) => trial.clone(),
            Err(reason) => return vec![reason.clone()],
        };
        let pool = row.measured().and_then(|measured| measured.pool);
        let again = Measured::new(question, &row.candidate, trial, pool, None);
        Row { outcome: Outcome::Measured(Box::new(again)), ..row.clone() }.objections(question)
    }
}

impl Advice {
    /// The choice, with the trial of its check. `None` if no candidate meets the question.
    pub fn choice(&self) -> Option<(&Row, &Trial)> {
        let last = self.checks.last()?;
        let row = &self.rows[last.row];
        let met = last.objections(&self.question, row).is_empty();
        Some((row, last.found.as_ref().ok().filter(|_| met)?))
    }

    /// Adds rows, and restores the order.
    fn take(&mut self, rows: Vec<Row>) {
        let checked = |check: &Checked| self.rows[check.row].candidate.target.clone();
        let targets: Vec<String> = self.checks.iter().map(checked).collect();
        self.rows.extend(rows);
        in_order(&self.question, &mut self.rows);
        for (check, target) in self.checks.iter_mut().zip(targets) {
            let row = self.rows.iter().position(|row| row.candidate.target == target);
            check.row = row.expect("it was there before");
        }
    }

    /// Checks candidates that meet the question, in order, until one meets it again.
    fn check(&mut self, again: Again<'_>) -> Result<(), AdviseError> {
        for row in 0..self.rows.len() {
            let (it, question) = (&self.rows[row], &self.question);
            if self.choice().is_some() || !it.objections(question).is_empty() {
                break;
            }
            if self.checks.iter().any(|check| check.row == row) {
                continue;
            }
            let found = again(it)?;
            self.checks.push(Checked { row, found });
        }
        Ok(())
    }
}

/// Runs the trials of candidates.
type Tried<'a> = &'a dyn Fn(&[Candidate]) -> Result<Vec<Row>, AdviseError>;
/// Checks a candidate. The inner error is an objection to it.
type Again<'a> = &'a dyn Fn(&Row) -> Result<Result<Trial, String>, AdviseError>;

/// Tries all [`candidates`](super::candidates), chooses, and checks the choice. `hear` receives a line per trial,
/// from any thread.
///
/// # Errors
/// [`AdviseError`] if trials cannot be run or are interrupted. It is no error if no candidate meets the question.
pub fn advise(
    question: &Question,
    mut candidates: Vec<Candidate>,
    interrupt: &Arc<AtomicBool>,
    hear: &(dyn Fn(&str) + Sync),
) -> Result<Advice, AdviseError> {
    // The longest trials start first, so that all cores finish at about the same time.
    candidates.sort_by_key(|one| std::cmp::Reverse(one.capacity().get() / one.scale));
    let all = candidates.len();
    let ended = AtomicUsize::new(0);
    let told = |row: &Row| {
        let number = ended.fetch_add(1, Ordering::Relaxed) + 1;
        hear(&format!("[{number}/{all}] {}: {}", row.candidate.device.name, heard(question, row)));
    };
    let tried = |candidates: &[Candidate]| trials(question, candidates, interrupt, &told);
    let again = |row: &Row| {
        let Row { candidate, .. } = row;
        hear(&format!("{}: once more with another seed, and longer", candidate.device.name));
        let pool = row.measured().and_then(|measured| measured.pool);
        let found = Bench { question, candidate, interrupt }.check(question.data, pool);
        found.map_or_else(|stop| stop.reason().map(Err), |trial| Ok(Ok(trial)))
    };
    let mut advice = advice(question, candidates, &tried, &again)?;
    if let Asked::Block(_) = question.asked {
        limits(question, &mut advice.rows, interrupt, hear)?;
    }
    Ok(advice)
}

/// Chooses among candidates.
fn advice(
    question: &Question,
    candidates: Vec<Candidate>,
    tried: Tried<'_>,
    again: Again<'_>,
) -> Result<Advice, AdviseError> {
    // Trials of databases take long, so devices without a price are tried only if no priced device is chosen.
    let wait = matches!(question.asked, Asked::Tpcc(_)) && question.devices.is_empty();
    let (first, later): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|one| one.price_usd.is_some() || !wait);
    let mut advice = Advice { question: question.clone(), rows: Vec::new(), checks: Vec::new() };
    advice.take(tried(&first)?);
    advice.check(again)?;
    if advice.choice().is_none() {
        advice.take(tried(&later)?);
        advice.check(again)?;
    } else {
        let passed_over = |candidate| Row { candidate, data: needed(question), outcome: Outcome::PassedOver };
        advice.take(later.into_iter().map(passed_over).collect());
    }
    Ok(advice)
}

/// Runs the trials of candidates concurrently. `told` is called after each.
fn trials(
    question: &Question,
    candidates: &[Candidate],
    interrupt: &Arc<AtomicBool>,
    told: &(dyn Fn(&Row) + Sync),
) -> Result<Vec<Row>, AdviseError> {
    let rows = Mutex::new(Vec::new());
    on_all_cores(candidates, |candidate| {
        let row = tried(question, candidate, interrupt);
        if let Ok(row) = &row {
            told(row);
        }
        rows.lock().expect("nobody panics while holding it").push(row);
    });
    rows.into_inner().expect("nobody panicked while holding it").into_iter().collect()
}

/// Bytes that a device must hold: the data or, for a database, a log and the warehouses that fit in the data.
fn needed(question: &Question) -> Bytes {
    match question.asked {
        Asked::Block(_) => question.data,
        Asked::Tpcc(_) => loaded(warehouses(question.data)) + log_size(question.data),
    }
}

/// Runs the trials of one candidate, unless it is too small or too expensive.
fn tried(
    question: &Question,
    candidate: &Candidate,
    interrupt: &Arc<AtomicBool>,
) -> Result<Row, AdviseError> {
    let data = needed(question);
    let row = |outcome| Row { candidate: candidate.clone(), data, outcome };
    if data > candidate.capacity() {
        return Ok(row(Outcome::TooSmall));
    }
    if question.budget_usd.zip(candidate.price_usd).is_some_and(|(budget, price)| price > budget) {
        return Ok(row(Outcome::TooDear));
    }
    let bench = Bench { question, candidate, interrupt };
    let found = match question.asked {
        Asked::Block(_) => by_fill(&bench),
        Asked::Tpcc(_) => by_memory(&bench),
    };
    Ok(row(match found {
        Ok(measured) => Outcome::Measured(Box::new(measured)),
        Err(stop) => Outcome::Failed(stop.reason()?),
    }))
}

/// Measures a block load at the requested data size.
fn by_fill(bench: &Bench<'_>) -> Result<Measured, Stop> {
    let Bench { question, candidate, .. } = bench;
    Ok(Measured::new(question, candidate, bench.run(question.data, None)?, None, None))
}

/// Finds the highest fill of the first candidates that meet the question, and of the nearest that are too slow.
fn limits(
    question: &Question,
    rows: &mut [Row],
    interrupt: &Arc<AtomicBool>,
    hear: &(dyn Fn(&str) + Sync),
) -> Result<(), AdviseError> {
    let meet = rows.iter().filter(|row| row.objections(question).is_empty()).count();
    let slow = |row: &Row| row.measured().is_some_and(|measured| !measured.trial.meets(question.rate()));
    let near = (meet..rows.len()).filter(|at| slow(&rows[*at])).take(NEAR_LIMITS);
    let asked: Vec<usize> = (0..meet.min(LIMITS)).chain(near).collect();
    let found = Mutex::new(Vec::new());
    on_all_cores(&asked, |at| {
        let candidate = &rows[*at].candidate;
        let met = !slow(&rows[*at]);
        let limit = limit(&Bench { question, candidate, interrupt }, met);
        if let Ok(limit) = &limit {
            hear(&format!("{}: {}", candidate.device.name, limit.words()));
        }
        found.lock().expect("nobody panics while holding it").push((*at, limit));
    });
    for (at, limit) in found.into_inner().expect("nobody panicked while holding it") {
        if let Outcome::Measured(measured) = &mut rows[at].outcome {
            measured.up_to = Some(limit?);
        }
    }
    Ok(())
}

/// Finds the highest fill of one device. `met` states whether the device meets the rate at the requested data size.
fn limit(bench: &Bench<'_>, met: bool) -> Result<UpTo, AdviseError> {
    let Bench { question, candidate, .. } = bench;
    let capacity = candidate.capacity().get() as f64;
    let meets = |fill: f64| {
        let data = Bytes::new((capacity * fill) as u64).align_down(Bytes::mib(1));
        match bench.run(data, None) {
            Ok(trial) => Ok(trial.meets(question.rate())),
            // At this fill the model cannot run, so the rate is not met.
            Err(stop) => stop.reason().map(|_| false),
        }
    };
    up_to(candidate.fill(question.data), met, meets)
}

/// Measures a database with the smallest sufficient memory. If none suffices, the memory equals the data.
fn by_memory(bench: &Bench<'_>) -> Result<Measured, Stop> {
    let Bench { question, candidate, .. } = bench;
    let mut tried: Vec<(usize, Trial)> = Vec::new();
    let pool = |step: usize| (question.data / POOLS[step]).align_down(Bytes::mib(1));
    let found = first_enough(POOLS.len(), |step| {
        let trial = bench.run(question.data, Some(pool(step)))?;
        let meets = trial.meets(question.rate());
        tried.push((step, trial));
        Ok::<bool, Stop>(meets)
    })?;
    // If no memory suffices, the search has ended with the largest.
    let step = found.unwrap_or(POOLS.len() - 1);
    let (_, trial) = tried.into_iter().find(|(at, _)| *at == step).expect("it was tried");
    Ok(Measured::new(question, candidate, trial, Some(pool(step)), None))
}

/// The progress message for a candidate.
fn heard(question: &Question, row: &Row) -> String {
    let against = row.objections(question);
    if !against.is_empty() {
        return against.join("; ");
    }
    let Some(measured) = row.measured() else { return String::new() };
    format!("{} {}", significant(measured.trial.mean), question.unit().word())
}

/// Sorts candidates that meet the question first, by price, and the others by nearness.
fn in_order(question: &Question, rows: &mut [Row]) {
    let key = |row: &Row| {
        let meets = row.objections(question).is_empty();
        let cost = row.measured().and_then(|measured| measured.cost);
        let life_known = row.measured().is_some_and(|measured| !matches!(measured.life, Life::Unknown(_)));
        let dollars = cost.map_or(f64::INFINITY, |cost| cost.total_usd());
        // Candidates without a known price, or else without a known lifetime, come last.
        let unknown = (u8::from(cost.is_none()), u8::from(!life_known));
        let fastest = row.measured().map_or(0.0, |measured| measured.trial.low);
        let order = if meets { [dollars, -fastest] } else { [-row.nearness(question), -fastest] };
        (u8::from(!meets), if meets { unknown } else { (0, 0) }, order)
    };
    rows.sort_by(|a, b| {
        let (a_key, b_key) = (key(a), key(b));
        (a_key.0, a_key.1)
            .cmp(&(b_key.0, b_key.1))
            .then(a_key.2[0].total_cmp(&b_key.2[0]))
            .then(a_key.2[1].total_cmp(&b_key.2[1]))
            .then_with(|| a.candidate.device.name.cmp(&b.candidate.device.name))
    });
}

#[cfg(test)]
mod tests {
    use super::super::question::TpccLoad;
    use super::super::row::tests::{candidate, question, row, trial, writes};
    use super::*;
    use lowtide_core::Nanos;

    fn names(rows: &[Row]) -> Vec<&str> {
        rows.iter().map(|row| row.candidate.device.name.as_str()).collect()
    }

    #[test]
    fn the_cheapest_that_meets_all_comes_first() {
        let question = Question { years: 0.5, ..writes() };
        let one =
            |name, price, level| row(&question, candidate(name, price, "3000"), trial(level, 10.0), None);
        let mut unknown = one("unknown", Some(100.0), 5000.0);
        if let Outcome::Measured(measured) = &mut unknown.outcome {
            measured.life = Life::Unknown("why");
        }
        let too_small = Row { outcome: Outcome::TooSmall, ..one("small", Some(1.0), 5000.0) };
        let mut rows = vec![
            too_small,
            one("slow", Some(10.0), 900.0),
            one("slower", Some(10.0), 500.0),
            one("unpriced", None, 9000.0),
            one("dear", Some(1900.0), 9000.0),
            one("too-dear", Some(4000.0), 9000.0),
            unknown,
            one("cheap", Some(300.0), 1100.0),
        ];
        in_order(&question, &mut rows);
        assert_eq!(
            names(&rows),
            ["cheap", "dear", "unknown", "unpriced", "slow", "too-dear", "slower", "small"]
        );
    }

    #[test]
    fn what_was_passed_over_is_tried_where_no_choice_stands_when_it_is_run_again() {
        let load = TpccLoad { per_minute: 1000.0, terminals: 4, cores: 4, cpu: Nanos::from_micros(500) };
        let question = Question { years: 0.5, ..question(Asked::Tpcc(load)) };
        let tried = |candidates: &[Candidate]| {
            let measured = |one: &Candidate| row(&question, one.clone(), trial(1100.0, 10.0), None);
            Ok(candidates.iter().map(measured).collect())
        };
        let all = || vec![candidate("priced", Some(100.0), "3000"), candidate("unpriced", None, "3000")];
        let fails = |_: &Row| Ok(Ok(trial(500.0, 10.0)));
        let nothing = advice(&question, all(), &tried, &fails).expect("it ends");
        assert_eq!(nothing.checks.len(), 2, "{:?}", nothing.checks);
        assert!(nothing.choice().is_none() && nothing.rows.iter().all(|row| row.measured().is_some()));
        let second = |row: &Row| {
            let level = if row.candidate.price_usd.is_some() { 500.0 } else { 1100.0 };
            Ok(Ok(trial(level, 10.0)))
        };
        let unpriced = advice(&question, all(), &tried, &second).expect("it ends");
        let chosen = unpriced.choice().map(|(row, _)| row.candidate.device.name.as_str());
        assert_eq!(chosen, Some("unpriced"), "{:?}", unpriced.checks);
        let again = |_: &Row| Ok(Ok(trial(1050.0, 10.0)));
        let priced = advice(&question, all(), &tried, &again).expect("it ends");
        assert_eq!(priced.choice().map(|(row, _)| row.candidate.device.name.as_str()), Some("priced"));
        assert_eq!(priced.rows[1].outcome, Outcome::PassedOver);
    }

    #[test]
    fn a_choice_that_lives_too_short_when_it_is_run_again_is_none() {
        let question = Question { years: 0.5, ..writes() };
        let row = row(&question, candidate("a", Some(100.0), "3000"), trial(1100.0, 10.0), None);
        let worn = Trial { write_amplification: Some(20.0), ..trial(1100.0, 10.0) };
        let checks = vec![Checked { row: 0, found: Ok(worn) }];
        let advice = Advice { question, rows: vec![row], checks };
        assert_eq!(advice.choice(), None);
    }

    #[test]
    fn the_choice_is_the_last_that_was_checked_and_met_the_rate_again() {
        let question = Question { years: 0.5, ..writes() };
        let one =
            |name, price| row(&question, candidate(name, Some(price), "3000"), trial(1100.0, 10.0), None);
        let rows = vec![one("a", 1.0), one("b", 2.0)];
        let checked = |row, level| Checked { row, found: Ok(trial(level, 10.0)) };
        let mut advice = Advice { question: question.clone(), rows, checks: vec![checked(0, 1005.0)] };
        assert_eq!(advice.choice(), None);
        advice.checks.push(checked(1, 1200.0));
        assert_eq!(advice.choice().map(|(row, _)| row.candidate.device.name.as_str()), Some("b"));
        advice.checks[1].found = Err("it failed".to_owned());
        assert_eq!(advice.choice(), None);
    }
}
