//! Sentences that only databases have: whether the data are still right, what bound the rate, what a transaction cost.
//!
//! Not here: levels and what they depend on, and says nothing where the numbers do not.

use super::{Asked, price_usd};
use crate::answer::Answer;
use crate::number::{fixed, percent, significant, size, span};
use crate::sweep::{short_label, varying};
use lowtide_engines::tpcc::Kind;
use lowtide_record::{Campaign, Condition};

/// From this share of all processors on, they are the limit.
const BUSY: f64 = 0.9;
/// From this share on, retries are told.
const MANY_RETRIES: f64 = 0.01;
/// The remote shares of order lines and of payments that the benchmark asks for, roughly: clauses 2.4.1.5 and 2.5.1.2.
const REMOTE_LINES: (f64, f64) = (0.009, 0.011);
const REMOTE_PAYMENTS: (f64, f64) = (0.14, 0.16);
/// A share that lies fewer standard errors than this beyond its range may be there by chance.
const BY_CHANCE: f64 = 3.0;
/// More cells than this are counted, not named.
const MOST_NAMED: usize = 3;

/// A cell, and what was asked of its database.
struct One<'a> {
    label: String,
    answer: &'a Answer<'a>,
    asked: Asked<'a>,
}

fn all<'a>(answers: &'a [Answer<'a>]) -> Vec<One<'a>> {
    let varying = varying(answers.iter().map(|a| a.cell));
    let repeated = answers.iter().any(|a| a.cell.repetition > 1);
    let one = |answer: &'a Answer<'a>| {
        let label = short_label(answer.cell, &varying, repeated);
        Some(One { label, answer, asked: Asked::of(answer)? })
    };
    answers.iter().filter_map(one).collect()
}

/// What is said before everything else: data that are not what they should be.
pub(crate) fn broken(answers: &[Answer<'_>]) -> Vec<String> {
    let several = answers.len() > 1;
    let all = all(answers);
    let of_one = |one: &One<'_>| {
        let whose = if several { format!(" ({})", one.label) } else { String::new() };
        let conditions = &one.asked.oltp.conditions;
        let breaks = |of: fn(&Condition) -> Option<i64>| -> Vec<(&str, i64)> {
            let rows = conditions.iter().filter_map(|it| Some((it.name.as_str(), of(it)?)));
            rows.filter(|(_, rows)| *rows != 0).collect()
        };
        let (before, after) = (breaks(|it| it.before), breaks(|it| it.after));
        match (before.as_slice(), after.as_slice()) {
            ([], []) => None,
            ([], [(name, rows), others @ ..]) => Some(format!(
                "INCONSISTENT{whose}: before the measurement all conditions of consistency held; after it {} break \
                 `{name}`{}. The database lost or mixed up data, so its rate is not that of a database that keeps them.",
                rows_of(*rows),
                and_more(others.len()),
            )),
            ([(name, rows), others @ ..], _) => Some(format!(
                "INCONSISTENT{whose}: before the measurement already {} broke `{name}`{}. The data were not those of \
                 the benchmark, and neither are the numbers.",
                rows_of(*rows),
                and_more(others.len()),
            )),
        }
    };
    all.iter().filter_map(of_one).collect()
}

fn rows_of(count: i64) -> String {
    if count == 1 { "1 row".to_owned() } else { format!("{} rows", fixed(count as f64, 0)) }
}

fn and_more(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => ", and another condition is broken".to_owned(),
        more => format!(", and {more} more conditions are broken"),
    }
}

/// What is said after the levels.
pub(crate) fn sentences(campaign: &Campaign, answers: &[Answer<'_>]) -> Vec<String> {
    let all = all(answers);
    if all.is_empty() {
        return Vec::new();
    }
    let mut out = Vec::new();
    if let ([one], false) = (all.as_slice(), answers.len() > 1) {
        out.extend(cost_of_transactions(&one.asked));
    }
    out.extend(busy(campaign, &all, answers.len()));
    out.extend(retries(&all, answers.len()));
    out.extend(remote(&all, answers.len()));
    out.extend(dollars(campaign, &all, answers.len()));
    out.extend(consistent(&all));
    out
}

/// `: label` where there are several cells to tell apart.
fn of(one: &One<'_>, cells: usize) -> String {
    if cells > 1 { format!(" ({})", one.label) } else { String::new() }
}

fn cost_of_transactions(asked: &Asked<'_>) -> Option<String> {
    if asked.ended() == 0 {
        return None;
    }
    let mut text = format!("Of all kinds {} transactions a minute ended", significant(asked.per_minute()));
    let of_each = |bytes: Option<u64>| asked.per_transaction(bytes?);
    match (of_each(asked.read_bytes), of_each(asked.write_bytes)) {
        (Some(read), Some(written)) => text.push_str(&format!(
            "; for each of them the device read {} and wrote {}",
            size(read),
            size(written)
        )),
        _ => text.push_str("; what the device did for them was not to be seen here"),
    }
    if let Some(p95) = asked.latency_ns(Kind::NewOrder, 95.0) {
        text.push_str(&format!("; 95 % of New-Order took at most {}", span(p95)));
    }
    Some(text + ".")
}

/// Where the processors were the limit. Where they were not, it is not known what was.
fn busy(campaign: &Campaign, all: &[One<'_>], cells: usize) -> Option<String> {
    let cores = campaign.environment.iter().find(|(name, _)| name == "cores")?.1.parse::<f64>().ok()?;
    let bound: Vec<&One<'_>> = all.iter().filter(|one| one.asked.busy_cores() >= BUSY * cores).collect();
    let first = bound.first()?;
    if cells == 1 {
        return Some(format!(
            "Terminals and servers kept {} of {} processors busy: these were the limit, more than the device.",
            fixed(first.asked.busy_cores(), 1),
            fixed(cores, 0),
        ));
    }
    let who = match bound.len() {
        few if few <= MOST_NAMED => bound.iter().map(|one| one.label.as_str()).collect::<Vec<_>>().join("; "),
        many => format!("{many} of {cells} cells"),
    };
    Some(format!(
        "Where terminals and servers kept all {} processors busy, these were the limit, more than the device: {who}.",
        fixed(cores, 0),
    ))
}

fn retries(all: &[One<'_>], cells: usize) -> Option<String> {
    let many =
        all.iter().filter_map(|one| Some((one, one.asked.retries().filter(|share| *share > MANY_RETRIES)?)));
    let (one, share) = many.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let most = if cells > 1 { "up to " } else { "" };
    Some(format!(
        "For a hundred transactions {most}{} attempts met another one and were made again{}.",
        fixed(share * 100.0, 1),
        of(one, cells),
    ))
}

/// Shares of remote order lines and payments that are not those of the benchmark, and not by chance.
fn remote(all: &[One<'_>], cells: usize) -> Vec<String> {
    let sentence = |one: &One<'_>| {
        let (oltp, said) = (one.asked.oltp, &one.asked.oltp.said);
        // Instances have their own warehouses: the others are out of reach.
        if oltp.warehouses <= oltp.instances.max(1) {
            return None;
        }
        let parts: Vec<String> = [
            ("order lines", said.remote_lines, said.lines, REMOTE_LINES, "1 %"),
            ("payments", said.remote_payments, said.payments, REMOTE_PAYMENTS, "15 %"),
        ]
        .into_iter()
        .filter_map(|(what, remote, count, range, wanted)| {
            let share = beyond(remote, count, range)?;
            Some(format!("{} of the {what} went to another warehouse, in place of {wanted}", percent(share)))
        })
        .collect();
        let shares = parts.join(", and ");
        (!parts.is_empty()).then(|| format!("Not the mix of the benchmark{}: {shares}.", of(one, cells)))
    };
    all.iter().filter_map(sentence).take(MOST_NAMED).collect()
}

/// The share, where it lies beyond a range, and farther than chance explains.
fn beyond(part: u64, count: u64, (low, high): (f64, f64)) -> Option<f64> {
    if count == 0 {
        return None;
    }
    let share = part as f64 / count as f64;
    let by_chance = |end: f64| BY_CHANCE * (end * (1.0 - end) / count as f64).sqrt();
    (share < low - by_chance(low) || share > high + by_chance(high)).then_some(share)
}

fn dollars(campaign: &Campaign, all: &[One<'_>], cells: usize) -> Option<String> {
    let per_dollar = all
        .iter()
        .filter_map(|one| Some((one, one.answer.settled?.mean / price_usd(campaign, one.answer.cell)?)));
    let (one, most) = per_dollar.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let at_most = if cells > 1 { "At the most, a" } else { "A" };
    Some(format!("{at_most} dollar of the device buys {} NOTPM{}.", significant(most), of(one, cells)))
}

/// That the conditions of consistency held, or were not looked at.
fn consistent(all: &[One<'_>]) -> Option<String> {
    let conditions = || all.iter().flat_map(|one| &one.asked.oltp.conditions);
    let most = all.iter().map(|one| one.asked.oltp.conditions.len()).max()?;
    if all.iter().all(|one| one.asked.is_modelled()) {
        return Some(
            "The database is a model of one: it has no data that could contradict each other.".to_owned(),
        );
    }
    if most == 0 {
        return Some("Nobody checked whether the data are consistent.".to_owned());
    }
    let checked = |of: fn(&Condition) -> Option<i64>| conditions().filter(|it| of(it).is_some()).count();
    let (before, after, all) = (checked(|it| it.before), checked(|it| it.after), conditions().count());
    if conditions()
        .any(|it| it.before.is_some_and(|rows| rows != 0) || it.after.is_some_and(|rows| rows != 0))
    {
        return None;
    }
    match (before == all, after == all) {
        (true, true) => {
            Some(format!("All {most} conditions of consistency held, before and after the measurement."))
        }
        (_, true) => Some(format!("All {most} conditions of consistency held after the measurement.")),
        (true, _) if after == 0 => Some(format!(
            "All {most} conditions of consistency held before the measurement; after it nobody checked."
        )),
        _ => Some("Not all conditions of consistency were checked; those that were held.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_told_only_where_chance_does_not_explain_it() {
        // 2 of 100 lines: a standard error of a percent says nothing.
        assert_eq!(beyond(2, 100, REMOTE_LINES), None);
        assert_eq!(beyond(20_000, 1_000_000, REMOTE_LINES), Some(0.02));
        assert_eq!(beyond(10_500, 1_000_000, REMOTE_LINES), None);
        assert_eq!(beyond(0, 1_000_000, REMOTE_PAYMENTS), Some(0.0));
        assert_eq!(beyond(0, 0, REMOTE_PAYMENTS), None);
    }
}
