//! Checks whether the claims of a study hold in a campaign.
//!
//! A claim that cannot be checked has failed, and the check records the reason.

use lowtide_lab::experiment::{Claim, Form, Measure, Resolved, Trend, Unreadable};
use lowtide_record::Campaign;
use lowtide_report::find::{Finder, Latencies, mean};
use lowtide_report::{Checked, number};

/// Checks the claims of the campaign's experiment. `latencies` reads the store of the campaign.
///
/// # Errors
/// [`Unreadable`] if the experiment in the store cannot be parsed.
pub fn claims(campaign: &Campaign, latencies: &Latencies<'_>) -> Result<Vec<Checked>, Unreadable> {
    let experiment = Resolved::of(campaign)?;
    Ok(experiment.map_or_else(Vec::new, |experiment| checked(&experiment, campaign, latencies)))
}

pub(super) fn checked(experiment: &Resolved, campaign: &Campaign, latencies: &Latencies<'_>) -> Vec<Checked> {
    let finder = Finder { experiment, campaign, latencies };
    experiment.claims.iter().map(|claim| check(&finder, claim)).collect()
}

fn check(finder: &Finder<'_>, claim: &Claim) -> Checked {
    let finding = &claim.finding;
    let numbers = if claim.each || finding.form == Form::Value {
        finder.each(finding)
    } else {
        let over = |values: Vec<f64>| match finding.measure {
            Measure::StableBy => values.into_iter().reduce(f64::max),
            _ => mean(&values),
        };
        finder.number(finding, &over).map(|number| vec![number])
    };
    let numbers: Result<Vec<f64>, String> =
        numbers.map(|numbers| numbers.into_iter().map(|number| claim.unit.from_inner(number)).collect());
    let (holds, found) = match &numbers {
        Ok(numbers) => (holds(claim, numbers), shown(numbers, &claim.unit_name)),
        Err(reason) => (false, reason.clone()),
    };
    Checked {
        study: claim.study.to_owned(),
        name: claim.name.clone(),
        says: claim.says.clone(),
        experiment: finder.campaign.name.clone(),
        where_label: finder.label(finding),
        check: wanted(claim),
        found,
        holds,
        left_out: claim.left_out.clone(),
    }
}

fn holds(claim: &Claim, numbers: &[f64]) -> bool {
    let within = |number: &f64| {
        claim.at_least.is_none_or(|least| *number >= least)
            && claim.at_most.is_none_or(|most| *number <= most)
    };
    let follows = |pair: &[f64]| match claim.order {
        None => true,
        Some(Trend::Falling) => pair[1] <= pair[0] * (1.0 + claim.tolerance),
        Some(Trend::Rising) => pair[1] >= pair[0] * (1.0 - claim.tolerance),
    };
    // An order needs at least two numbers.
    let enough = claim.order.is_none() || numbers.len() > 1;
    enough && numbers.iter().all(within) && numbers.windows(2).all(follows)
}

/// The check for people: `p95 of level: at least 2 ms, falling`.
fn wanted(claim: &Claim) -> String {
    let finding = &claim.finding;
    let what = match (finding.measure.is_time(), finding.form) {
        (true, Form::Value) => finding.measure.to_string(),
        (true, form) => format!("{form} of {}", finding.measure),
        (false, Form::Value) => format!("{} {}", finding.measure, finding.of),
        (false, form) => format!("{form} of {} {}", finding.measure, finding.of),
    };
    let limit = |word: &str, limit: Option<f64>| {
        limit.map(|limit| format!("{word} {} {}", number::significant(limit), claim.unit_name))
    };
    let order = claim.order.map(|order| match claim.tolerance {
        0.0 => order.to_string(),
        share => format!("{order} within {} %", number::significant(share * 100.0)),
    });
    let all = [limit("at least", claim.at_least), limit("at most", claim.at_most), order];
    let each = if claim.each { " for each" } else { "" };
    format!("{what}{each}: {}", all.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// Formats numbers for people: up to six in full, otherwise the first three and the last two.
fn shown(numbers: &[f64], unit: &str) -> String {
    let some =
        |numbers: &[f64]| numbers.iter().map(|it| number::significant(*it)).collect::<Vec<_>>().join(", ");
    match numbers {
        [] => "nothing".to_owned(),
        few if few.len() <= 6 => format!("{} {unit}", some(few)),
        many => format!("{}, …, {} {unit}", some(&many[..3]), some(&many[many.len() - 2..])),
    }
}
