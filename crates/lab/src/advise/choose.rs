//! The choice: the cheapest of those that meet all that was asked, and still do in a longer trial with another seed.
//!
//! Leaves out how it is told (`show`).

use super::AdviseError;
use super::candidate::{Candidate, candidates};
use super::question::{Asked, Question, loaded, warehouses};
use super::row::{Life, Measured, Outcome, Row};
use super::search::{UpTo, first_enough, up_to};
use super::text::log_size;
use super::trial::{Bench, Ended, Trial, TrialError};
use crate::campaign::on_all_cores;
use crate::report::number::significant;
use lowtide_core::Bytes;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Memory of a database that is tried, as a share of the data.
pub(super) const POOLS: [u64; 5] = [16, 8, 4, 2, 1];

/// Of so many that meet all it is tried how full they may get, the cheapest first …
const LIMITS: usize = 6;
/// … and of so many that are too slow, the nearest first.
const NEAR_LIMITS: usize = 4;

/// What is advised.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// What was asked.
    pub question: Question,
    /// Every candidate: first those that meet all, the cheapest first; then the others, the nearest first.
    pub rows: Vec<Row>,
    /// Which was run again, in order; the last is the choice where it met the rate again.
    pub checks: Vec<Checked>,
}

/// What was found when a candidate was run again.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// Which of the rows.
    pub row: usize,
    /// What was found; why nothing was.
    pub found: Result<Trial, String>,
}

impl Advice {
    /// The choice and the trial that it was checked by; `None` where nothing meets all that was asked.
    pub fn choice(&self) -> Option<(&Row, &Trial)> {
        let last = self.checks.last()?;
        let trial = last.found.as_ref().ok().filter(|trial| trial.meets(self.question.rate()))?;
        Some((&self.rows[last.row], trial))
    }
}

/// Tries every candidate, chooses, and checks the choice; `hear` is told of every trial, from any thread.
///
/// # Errors
/// [`AdviseError`] for a question that cannot be answered. That nothing meets it is an answer.
pub fn advise(
    question: &Question,
    interrupt: &Arc<AtomicBool>,
    hear: &(dyn Fn(&str) + Sync),
) -> Result<Advice, AdviseError> {
    question.check()?;
    let mut candidates = candidates(question)?;
    // Those that take longest first, so that the cores end together.
    candidates.sort_by_key(|one| std::cmp::Reverse(one.capacity().get() / one.scale));
    let all = candidates.len();
    // A trial of a database takes long, and what has a price is preferred.
    let wait = matches!(question.asked, Asked::Tpcc(_)) && question.devices.is_empty();
    let (first, later): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|one| one.price_usd.is_some() || !wait);
    let ended = AtomicUsize::new(0);
    let told = |row: &Row| {
        let number = ended.fetch_add(1, Ordering::Relaxed) + 1;
        hear(&format!("[{number}/{all}] {}: {}", row.candidate.device.name, heard(question, row)));
    };
    let mut rows = trials(question, &first, interrupt, &told)?;
    if rows.iter().any(|row| row.objections(question).is_empty()) {
        let passed_over = |candidate| Row { candidate, data: needed(question), outcome: Outcome::PassedOver };
        rows.extend(later.into_iter().map(passed_over));
    } else {
        rows.extend(trials(question, &later, interrupt, &told)?);
    }
    let mut rows = in_order(question, rows);
    if let Asked::Block(_) = question.asked {
        limits(question, &mut rows, interrupt, hear)?;
    }
    let mut advice = Advice { question: question.clone(), rows, checks: Vec::new() };
    for row in 0..advice.rows.len() {
        let Row { candidate, .. } = &advice.rows[row];
        let Some(measured) = advice.rows[row].measured() else { break };
        if !advice.rows[row].objections(question).is_empty() {
            break;
        }
        hear(&format!("{}: once more with another seed, and longer", candidate.device.name));
        let found = Bench { question, candidate, interrupt }.check(question.data, measured.pool)?;
        let found = match found {
            Err(Ended::Interrupted) => return Err(AdviseError::Interrupted),
            Err(Ended::Failed(reason)) => Err(reason),
            Ok(trial) => Ok(trial),
        };
        let meets = found.as_ref().is_ok_and(|trial| trial.meets(question.rate()));
        advice.checks.push(Checked { row, found });
        if meets {
            break;
        }
    }
    Ok(advice)
}

/// What candidates come to, side by side; `told` hears of each.
fn trials(
    question: &Question,
    candidates: &[Candidate],
    interrupt: &Arc<AtomicBool>,
    told: &(dyn Fn(&Row) + Sync),
) -> Result<Vec<Row>, AdviseError> {
    let rows = Mutex::new(Vec::new());
    on_all_cores(candidates, |candidate| {
        let row = tried(question, candidate, interrupt);
        if let Ok(Some(row)) = &row {
            told(row);
        }
        rows.lock().expect("nobody panics while holding it").push(row);
    });
    let rows = rows.into_inner().expect("nobody panicked while holding it");
    let rows: Vec<Option<Row>> = rows.into_iter().collect::<Result<_, TrialError>>()?;
    let rows: Option<Vec<Row>> = rows.into_iter().collect();
    rows.ok_or(AdviseError::Interrupted)
}

/// Bytes that have to lie on a device: the data, or as many warehouses as they hold and a log.
fn needed(question: &Question) -> Bytes {
    match question.asked {
        Asked::Block(_) => question.data,
        Asked::Tpcc(_) => loaded(warehouses(question.data)) + log_size(question.data),
    }
}

/// What a candidate came to; `None` where the user ended it.
fn tried(
    question: &Question,
    candidate: &Candidate,
    interrupt: &Arc<AtomicBool>,
) -> Result<Option<Row>, TrialError> {
    let data = needed(question);
    let row = |outcome| Some(Row { candidate: candidate.clone(), data, outcome });
    if data > candidate.capacity() {
        return Ok(row(Outcome::TooSmall));
    }
    if question.budget_usd.zip(candidate.price_usd).is_some_and(|(budget, price)| price > budget) {
        return Ok(row(Outcome::TooDear));
    }
    let bench = Bench { question, candidate, interrupt };
    let found = match question.asked {
        Asked::Block(_) => by_fill(&bench)?,
        Asked::Tpcc(_) => by_memory(&bench)?,
    };
    Ok(match found {
        Ok(measured) => row(Outcome::Measured(Box::new(measured))),
        Err(Ended::Failed(reason)) => row(Outcome::Failed(reason)),
        Err(Ended::Interrupted) => None,
    })
}

/// A failure of the machinery, or an end without a figure.
enum Stop {
    Trial(TrialError),
    Ended(Ended),
}

impl From<TrialError> for Stop {
    fn from(error: TrialError) -> Self {
        Stop::Trial(error)
    }
}

fn unstopped<T>(result: Result<T, Stop>) -> Result<Result<T, Ended>, TrialError> {
    match result {
        Ok(found) => Ok(Ok(found)),
        Err(Stop::Ended(ended)) => Ok(Err(ended)),
        Err(Stop::Trial(error)) => Err(error),
    }
}

/// The level at the data.
fn by_fill(bench: &Bench<'_>) -> Result<Result<Measured, Ended>, TrialError> {
    let Bench { question, candidate, .. } = bench;
    let trial = bench.run(question.data, None)?;
    Ok(trial.map(|trial| Measured::new(question, candidate, trial, None, None)))
}

/// How full the first of those may get that meet all, and the nearest of those that do not.
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
        if let Ok(Ok(limit)) = &limit {
            hear(&format!("{}: {}", candidate.device.name, limit.words()));
        }
        found.lock().expect("nobody panics while holding it").push((*at, limit));
    });
    for (at, limit) in found.into_inner().expect("nobody panicked while holding it") {
        let limit = limit?.map_err(|_| AdviseError::Interrupted)?;
        if let Outcome::Measured(measured) = &mut rows[at].outcome {
            measured.up_to = Some(limit);
        }
    }
    Ok(())
}

/// How full a device may get; an end only where the user ended it.
fn limit(bench: &Bench<'_>, met: bool) -> Result<Result<UpTo, Ended>, TrialError> {
    let Bench { question, candidate, .. } = bench;
    let capacity = candidate.capacity().get() as f64;
    let meets = |fill: f64| {
        let data = Bytes::new((capacity * fill) as u64).align_down(Bytes::mib(1));
        match bench.run(data, None)? {
            Ok(trial) => Ok(trial.meets(question.rate())),
            // So little, or so much, that the model cannot do it.
            Err(Ended::Failed(_)) => Ok(false),
            Err(ended) => Err(Stop::Ended(ended)),
        }
    };
    unstopped(up_to(candidate.fill(question.data), met, meets))
}

/// The level with the smallest memory that is enough, or with as much as there are data.
fn by_memory(bench: &Bench<'_>) -> Result<Result<Measured, Ended>, TrialError> {
    let Bench { question, candidate, .. } = bench;
    let mut tried: Vec<(usize, Trial)> = Vec::new();
    let pool = |step: usize| (question.data / POOLS[step]).align_down(Bytes::mib(1));
    let search = || {
        let found = first_enough(POOLS.len(), |step| {
            let trial = bench.run(question.data, Some(pool(step)))?.map_err(Stop::Ended)?;
            let meets = trial.meets(question.rate());
            tried.push((step, trial));
            Ok::<bool, Stop>(meets)
        })?;
        // Without one that is enough the last that was tried is the largest.
        let step = found.unwrap_or(POOLS.len() - 1);
        let (_, trial) = tried.into_iter().find(|(at, _)| *at == step).expect("it was tried");
        Ok(Measured::new(question, candidate, trial, Some(pool(step)), None))
    };
    unstopped(search())
}

/// What is said while others are still tried.
fn heard(question: &Question, row: &Row) -> String {
    let against = row.objections(question);
    if !against.is_empty() {
        return against.join("; ");
    }
    let Some(measured) = row.measured() else { return String::new() };
    format!("{} {}", significant(measured.trial.mean), question.unit().word())
}

/// Those that meet all first, the cheapest first; the others as near as they come.
fn in_order(question: &Question, mut rows: Vec<Row>) -> Vec<Row> {
    let key = |row: &Row| {
        let meets = row.objections(question).is_empty();
        let cost = row.measured().and_then(|measured| measured.cost);
        let life_known = row.measured().is_some_and(|measured| !matches!(measured.life, Life::Unknown(_)));
        let dollars = cost.map_or(f64::INFINITY, |cost| cost.total_usd());
        // What nobody knows the price of comes after what has one, and so does what nobody knows the life of.
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
    rows
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::{candidate, row, trial, writes};
    use super::*;

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
        let rows = in_order(
            &question,
            vec![
                too_small,
                one("slow", Some(10.0), 900.0),
                one("slower", Some(10.0), 500.0),
                one("unpriced", None, 9000.0),
                one("dear", Some(1900.0), 9000.0),
                one("too-dear", Some(4000.0), 9000.0),
                unknown,
                one("cheap", Some(300.0), 1100.0),
            ],
        );
        assert_eq!(
            names(&rows),
            ["cheap", "dear", "unknown", "unpriced", "slow", "too-dear", "slower", "small"]
        );
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
