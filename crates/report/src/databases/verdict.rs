//! Sentences for databases only: consistency of the data, the limit of the rate, the cost of a transaction.
//!
//! Levels and their dependence on factors are in `crate::verdict`.

use super::{Activity, price_usd};
use crate::answer::Answer;
use crate::number::{fixed, percent, significant, size, span};
use crate::sweep::Labels;
use lowtide_engines::tpcc::Kind;
use lowtide_record::{Campaign, Condition};

/// From this share of all processors on, the processors are the limit.
const BUSY: f64 = 0.9;
/// From this share on, retries are reported.
const MANY_RETRIES: f64 = 0.01;
/// The approximate remote shares of order lines and payments in the benchmark: clauses 2.4.1.5 and 2.5.1.2.
const REMOTE_LINES: (f64, f64) = (0.009, 0.011);
const REMOTE_PAYMENTS: (f64, f64) = (0.14, 0.16);
/// A share up to this many standard errors outside its range may be chance.
const BY_CHANCE: f64 = 3.0;
/// More cells than this are reported by their number only.
const MOST_NAMED: usize = 3;

/// A cell with the activity of its database.
struct DatabaseCell<'a> {
    label: String,
    answer: &'a Answer<'a>,
    activity: Activity<'a>,
}

impl DatabaseCell<'_> {
    /// ` (label)` if the campaign has several cells.
    fn suffix(&self, cells: usize) -> String {
        if cells > 1 { format!(" ({})", self.label) } else { String::new() }
    }
}

fn database_cells<'a>(answers: &'a [Answer<'a>]) -> Vec<DatabaseCell<'a>> {
    let labels = Labels::of_answers(answers);
    let cell = |answer: &'a Answer<'a>| {
        Some(DatabaseCell { label: labels.label(answer.cell), answer, activity: Activity::of(answer)? })
    };
    answers.iter().filter_map(cell).collect()
}

/// The sentences about inconsistent data, which come before all others.
pub(crate) fn broken(answers: &[Answer<'_>]) -> Vec<String> {
    let of_one = |one: &DatabaseCell<'_>| {
        let whose = one.suffix(answers.len());
        let conditions = &one.activity.oltp.conditions;
        let breaks = |of: fn(&Condition) -> Option<i64>| -> Vec<(&str, i64)> {
            let rows = conditions.iter().filter_map(|it| Some((it.name.as_str(), of(it)?)));
            rows.filter(|(_, rows)| *rows != 0).collect()
        };
        let (before, after) = (breaks(|it| it.before), breaks(|it| it.after));
        match (before.as_slice(), after.as_slice()) {
            ([], []) => None,
            ([], [(name, rows), others @ ..]) => Some(format!(
                "INCONSISTENT{whose}: before the measurement all conditions of consistency held; after it {} break \
                 `{name}`{}. The database lost or mixed up data, so its rate is not valid.",
                rows_of(*rows),
                and_more(others.len()),
            )),
            ([(name, rows), others @ ..], _) => Some(format!(
                "INCONSISTENT{whose}: before the measurement already {} broke `{name}`{}. The data were not those of \
                 the benchmark, so the results are not valid.",
                rows_of(*rows),
                and_more(others.len()),
            )),
        }
    };
    database_cells(answers).iter().filter_map(of_one).collect()
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

/// The sentences that follow the levels.
pub(crate) fn sentences(campaign: &Campaign, answers: &[Answer<'_>]) -> Vec<String> {
    let all = database_cells(answers);
    if all.is_empty() {
        return Vec::new();
    }
    let mut out = Vec::new();
    if let ([one], 1) = (all.as_slice(), answers.len()) {
        out.extend(cost_of_transactions(&one.activity));
    }
    out.extend(busy(campaign, &all, answers.len()));
    out.extend(retries(&all, answers.len()));
    out.extend(remote(&all, answers.len()));
    out.extend(dollars(campaign, &all, answers.len()));
    out.extend(consistent(&all));
    out
}

fn cost_of_transactions(activity: &Activity<'_>) -> Option<String> {
    if activity.ended() == 0 {
        return None;
    }
    let per_minute = significant(activity.per_minute());
    let of_each = |bytes: Option<u64>| activity.per_transaction(bytes?);
    let device = match (of_each(activity.read_bytes), of_each(activity.write_bytes)) {
        (Some(read), Some(written)) => {
            format!("for each of them the device read {} and wrote {}", size(read), size(written))
        }
        _ => "the device traffic was not visible".to_owned(),
    };
    let p95 = activity.latency_ns(Kind::NewOrder, 95.0);
    let p95 = p95.map(|p95| format!("; 95 % of New-Order took at most {}", span(p95))).unwrap_or_default();
    Some(format!("{per_minute} transactions of all kinds ended per minute; {device}{p95}."))
}

/// The cells limited by their processors. In other cells the limit is unknown.
fn busy(campaign: &Campaign, all: &[DatabaseCell<'_>], cells: usize) -> Option<String> {
    let cores = campaign.environment.iter().find(|(name, _)| name == "cores")?.1.parse::<f64>().ok()?;
    let bound: Vec<&DatabaseCell<'_>> =
        all.iter().filter(|one| one.activity.busy_cores() >= BUSY * cores).collect();
    let first = bound.first()?;
    if cells == 1 {
        return Some(format!(
            "Terminals and servers kept {} of {} processors busy: the processors were the limit rather than the device.",
            fixed(first.activity.busy_cores(), 1),
            fixed(cores, 0),
        ));
    }
    let who = match bound.len() {
        few if few <= MOST_NAMED => bound.iter().map(|one| one.label.as_str()).collect::<Vec<_>>().join("; "),
        many => format!("{many} of {cells} cells"),
    };
    Some(format!(
        "With all {} processors kept busy by terminals and servers, the processors were the limit rather than the \
         device: {who}.",
        fixed(cores, 0),
    ))
}

fn retries(all: &[DatabaseCell<'_>], cells: usize) -> Option<String> {
    let retries = |one: &DatabaseCell<'_>| one.activity.retries().filter(|share| *share > MANY_RETRIES);
    let many = all.iter().filter_map(|one| Some((one, retries(one)?)));
    let (one, share) = many.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let most = if cells > 1 { "up to " } else { "" };
    Some(format!(
        "Per hundred transactions, {most}{} attempts conflicted with another transaction and were retried{}.",
        fixed(share * 100.0, 1),
        one.suffix(cells),
    ))
}

/// Shares of remote order lines and payments that differ from the benchmark's beyond chance.
fn remote(all: &[DatabaseCell<'_>], cells: usize) -> Vec<String> {
    let sentence = |one: &DatabaseCell<'_>| {
        let (oltp, said) = (one.activity.oltp, &one.activity.oltp.said);
        // Terminals reach only the warehouses of their own instance.
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
            Some(format!("{} of the {what} went to another warehouse, instead of {wanted}", percent(share)))
        })
        .collect();
        let shares = parts.join(", and ");
        (!parts.is_empty()).then(|| format!("Not the mix of the benchmark{}: {shares}.", one.suffix(cells)))
    };
    all.iter().filter_map(sentence).take(MOST_NAMED).collect()
}

/// The share, if chance does not explain its distance from the range.
fn beyond(part: u64, count: u64, (low, high): (f64, f64)) -> Option<f64> {
    if count == 0 {
        return None;
    }
    let share = part as f64 / count as f64;
    let by_chance = |end: f64| BY_CHANCE * (end * (1.0 - end) / count as f64).sqrt();
    (share < low - by_chance(low) || share > high + by_chance(high)).then_some(share)
}

fn dollars(campaign: &Campaign, all: &[DatabaseCell<'_>], cells: usize) -> Option<String> {
    let per_dollar = all
        .iter()
        .filter_map(|one| Some((one, one.answer.settled?.mean / price_usd(campaign, one.answer.cell)?)));
    let (one, most) = per_dollar.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let at_most = if cells > 1 { "At most, a" } else { "A" };
    Some(format!("{at_most} dollar of the device buys {} NOTPM{}.", significant(most), one.suffix(cells)))
}

/// The outcome of the consistency checks, unless a condition is broken.
fn consistent(all: &[DatabaseCell<'_>]) -> Option<String> {
    let conditions = || all.iter().flat_map(|one| &one.activity.oltp.conditions);
    let most = all.iter().map(|one| one.activity.oltp.conditions.len()).max()?;
    if all.iter().all(|one| one.activity.is_modelled()) {
        return Some(
            "The database is simulated and has no data whose consistency could be checked.".to_owned(),
        );
    }
    if most == 0 {
        return Some("The consistency of the data was not checked.".to_owned());
    }
    let checked = |of: fn(&Condition) -> Option<i64>| conditions().filter(|it| of(it).is_some()).count();
    let (before, after, all) = (checked(|it| it.before), checked(|it| it.after), conditions().count());
    if conditions().flat_map(|it| [it.before, it.after]).flatten().any(|rows| rows != 0) {
        return None;
    }
    match (before == all, after == all) {
        (true, true) => {
            Some(format!("All {most} conditions of consistency held, before and after the measurement."))
        }
        (_, true) => Some(format!("All {most} conditions of consistency held after the measurement.")),
        (true, _) if after == 0 => Some(format!(
            "All {most} conditions of consistency held before the measurement; they were not checked after it."
        )),
        _ => Some("Some conditions of consistency were not checked; all checked ones held.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_reported_only_if_chance_does_not_explain_it() {
        // 2 of 100 lines: the standard error of one percentage point explains the difference.
        assert_eq!(beyond(2, 100, REMOTE_LINES), None);
        assert_eq!(beyond(20_000, 1_000_000, REMOTE_LINES), Some(0.02));
        assert_eq!(beyond(10_500, 1_000_000, REMOTE_LINES), None);
        assert_eq!(beyond(0, 1_000_000, REMOTE_PAYMENTS), Some(0.0));
        assert_eq!(beyond(0, 0, REMOTE_PAYMENTS), None);
    }
}
