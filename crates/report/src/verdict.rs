//! The verdict: what a campaign found, in plain sentences made from the same figures as the tables.
//!
//! Says the level first, then what it depends on, then what is missing. Not here: advice.

use super::comparison::Comparison;
use super::number::{
    self, decimals_for_half_width, estimate, level as with_unit, percent, significant, size, span,
};
use super::sweep::{Group, groups, number_of, short_label, value_of, varying, with_numbers};
use super::{databases, durability};
use crate::answer::{Answer, Left, quantity_of};
use crate::compare::{self, Judged, Outcome};
use lowtide_core::measure::Gap;
use lowtide_record::fact;
use lowtide_record::{Campaign, Cell, Quantity, Status};

/// More departures of one cell than this are not told.
const MOST_DEPARTURES: usize = 3;
/// More warnings than this are counted.
const MOST_WARNINGS: usize = 3;
/// The factors of a sweep of databases that get sentences.
const MOST_FACTORS: usize = 2;
/// More curves than this get one sentence together.
const MOST_CURVES: usize = 6;

/// The sentences of a campaign's verdict; the first is the answer.
pub(crate) fn sentences(
    campaign: &Campaign,
    answers: &[Answer<'_>],
    comparisons: &[Comparison],
) -> Vec<String> {
    let mut out = match answers {
        [] => vec!["Nothing was measured to its end, so there is no answer.".to_owned()],
        [one] => single(one),
        many => sweep(many),
    };
    out.extend(databases::sentences(campaign, answers));
    // Where that is the question, its answer comes first.
    out.splice(0..0, durability::sentences(campaign, answers));
    out.splice(0..0, databases::broken(answers));
    out.extend(spared(campaign));
    out.extend(missing(campaign, answers));
    out.extend(warnings(campaign));
    out.extend(agreement(comparisons));
    out
}

/// What went on beside the measurement and may have changed it; many warnings are counted.
fn warnings(campaign: &Campaign) -> Vec<String> {
    let mut all = campaign.environment.iter().filter(|(name, _)| name == fact::WARNING);
    let mut out: Vec<String> =
        all.by_ref().take(MOST_WARNINGS).map(|(_, text)| format!("Warning: {text}.")).collect();
    match all.count() {
        0 => {}
        more => out.push(format!("And {more} more such warnings, in the store.")),
    }
    out
}

/// When lowtide itself did not run, in the order of the cells; many gaps are counted.
pub(crate) fn gaps(campaign: &Campaign) -> Vec<String> {
    let gaps = || campaign.cells.iter().flat_map(|cell| cell.gaps.iter().map(move |gap| (cell, gap)));
    let told = |(cell, gap): (&Cell, &Gap)| {
        let words = lowtide_record::gap_in_words(gap);
        match campaign.cells.len() {
            1 => format!("{}.", number::capitalised(&words)),
            _ => format!("Cell {} ({}): {words}.", cell.index, cell.label()),
        }
    };
    let mut out: Vec<String> = gaps().take(MOST_WARNINGS).map(told).collect();
    match gaps().count().saturating_sub(MOST_WARNINGS) {
        0 => {}
        more => out.push(format!("And {more} more such gaps, in the store and its JSON export.")),
    }
    out
}

fn single(answer: &Answer<'_>) -> Vec<String> {
    let Some(settled) = answer.settled else {
        let mut out = vec![format!("No steady state: {}.", reason(answer))];
        if let Some(mean) = answer.cell.mean_rate() {
            out.push(format!(
                "The mean of the whole measurement, {}, is not a settled level.",
                with_unit(mean, answer.quantity)
            ));
        }
        out.extend(left(answer));
        return out;
    };
    let quantity = answer.quantity;
    let mut first =
        format!("Settled at {}\u{a0}{}", estimate(settled.mean, settled.half_width), quantity.spelt());
    if answer.cell.data.get() > 0 {
        first.push_str(&format!(" with {} in use", size(answer.data_bytes())));
        if let Some(fill) = answer.fill() {
            first.push_str(&format!(" ({} of the capacity)", percent(fill)));
        }
    }
    if quantity == Quantity::NewOrders {
        // A database may begin faster (a fresh drive) or slower (an empty buffer pool).
        first.extend(answer.fresh.map(|fresh| format!("; it began with {}", with_unit(fresh, quantity))));
    } else if let (Some(share), Some(fresh)) = (answer.share_of_fresh(), answer.fresh) {
        first.push_str(&format!(": {} of the fresh {}", percent(share), with_unit(fresh, quantity)));
    }
    let mut out = vec![first + "."];
    if let Some(end) = answer.honeymoon_end_s {
        let tired = answer.share_of_fresh().is_some_and(|share| share < 0.9);
        let so = if tired { ": the fresh plateau ends about there" } else { "" };
        out.push(format!("As many bytes as the device has raw were written after {}{so}.", span(end * 1e9)));
    }
    out.extend(left(answer));
    if let Some(lowest) = answer.lowest.filter(|lowest| *lowest < settled.mean * 0.8) {
        out.push(format!("The lowest interval had {}.", with_unit(lowest, quantity)));
    }
    if let Some(p99) = answer.latency_ns(99.0) {
        let what = match quantity {
            Quantity::Throughput => "operations",
            Quantity::NewOrders => "transactions",
        };
        let mut text = format!("99 % of {what} took at most {}", span(p99));
        match answer.write_amplification {
            Some(wa) => {
                text.push_str(&format!("; each byte written cost {} bytes of NAND.", significant(wa)))
            }
            None => text.push('.'),
        }
        out.push(text);
    }
    if let Some(layer) = answer.layer_amplification {
        out.push(format!("The log layer wrote {} blocks for each block written to it.", significant(layer)));
    }
    if let Some(cpu_ns) = answer.host_cpu_ns_per_operation {
        out.push(format!("The driver took {} of the host's processors per operation.", span(cpu_ns)));
    }
    out
}

/// The steady levels that were left, each in a sentence, up to a few.
fn left(answer: &Answer<'_>) -> Vec<String> {
    let few = answer.left.iter().take(MOST_DEPARTURES);
    few.map(|left| {
        let cause = match answer.honeymoon_end_s {
            Some(end_s) if left.at_s <= end_s * 1.1 => {
                "the fresh level of a drive ends like that, and so does a cache"
            }
            _ => "throttling, a full cache, spent credits and other users of a device look like that",
        };
        format!(
            "After {} it left a steady level of {} for {}: {cause}.",
            span(left.at_s * 1e9),
            with_unit(left.before, answer.quantity),
            with_unit(left.after, answer.quantity)
        )
    })
    .collect()
}

/// How many cells of a sweep left a steady level, and the first that did.
fn left_in_sweep(answers: &[Answer<'_>]) -> Option<String> {
    let leaving: Vec<(&Answer<'_>, &Left)> =
        answers.iter().filter_map(|answer| Some((answer, answer.left.first()?))).collect();
    let (answer, left) = leaving.first()?;
    let varying = varying(answers.iter().map(|a| a.cell));
    let count = match leaving.len() {
        1 => "One cell left a steady level".to_owned(),
        several => format!("{several} of {} cells left a steady level; the first of them", answers.len()),
    };
    Some(format!(
        "{count}: {}, after {}, {} for {}.",
        short_label(answer.cell, &varying, false),
        span(left.at_s * 1e9),
        with_unit(left.before, answer.quantity),
        with_unit(left.after, answer.quantity)
    ))
}

fn reason<'s>(answer: &'s Answer<'_>) -> &'s str {
    answer.unsettled.as_deref().unwrap_or("the measurement ended too early").trim_end_matches('.')
}

fn sweep(answers: &[Answer<'_>]) -> Vec<String> {
    let mut out = Vec::new();
    if quantity_of(answers) == Quantity::NewOrders {
        for factor in with_numbers(answers).iter().take(MOST_FACTORS) {
            let curves = groups(answers, |a| number_of(a.cell, factor));
            let curves = curves.filter(|curves| curves.len() <= MOST_CURVES).unwrap_or_default();
            out.extend(curves.iter().filter_map(|group| over_factor(group, factor)));
        }
    } else if let Some(curves) = groups(answers, |a| Some(a.data_bytes())).filter(|g| g.len() <= MOST_CURVES)
    {
        out.extend(curves.iter().filter_map(over_size));
    } else if let Some(curves) =
        groups(answers, |a| Some(f64::from(a.cell.threads))).filter(|g| g.len() <= MOST_CURVES)
    {
        out.extend(curves.iter().filter_map(over_threads));
    }
    // One curve speaks for itself; several need a sentence that holds them together.
    if out.len() != 1 {
        out.splice(0..0, range(answers));
    }
    let unsettled: Vec<&Answer<'_>> = answers.iter().filter(|a| a.settled.is_none()).collect();
    match unsettled.as_slice() {
        [] => {}
        [one] => {
            let varying = varying(answers.iter().map(|a| a.cell));
            out.push(format!(
                "No steady state at {}: {}.",
                short_label(one.cell, &varying, false),
                reason(one)
            ));
        }
        all if all.len() == answers.len() => {
            out.push(format!("No steady state in any of the {} cells.", all.len()));
        }
        some => out.push(format!("{} of {} cells found no steady state.", some.len(), answers.len())),
    }
    out.extend(left_in_sweep(answers));
    out
}

fn named(group: &Group<'_, '_>) -> String {
    if group.label.is_empty() { String::new() } else { format!("{}: ", group.label) }
}

/// `(x, settled level)` of the settled cells of a curve.
fn levels(group: &Group<'_, '_>, x: impl Fn(&Answer<'_>) -> f64) -> Vec<(f64, f64)> {
    group.answers.iter().filter_map(|a| Some((x(a), a.settled?.mean))).collect()
}

/// A level with the digits its interval supports.
fn level(answer: &Answer<'_>) -> Option<String> {
    let e = answer.settled?;
    let decimals = decimals_for_half_width(e.half_width).min(1);
    Some(if e.mean >= 99.95 { significant(e.mean) } else { super::number::fixed(e.mean, decimals) })
}

fn over_size(group: &Group<'_, '_>) -> Option<String> {
    let mut settled = group.answers.iter().filter(|a| a.settled.is_some());
    let first = settled.next()?;
    let last = settled.next_back()?;
    let (from, to) = (first.settled?.mean, last.settled?.mean);
    let fills = match (first.fill(), last.fill()) {
        (Some(a), Some(b)) if group.label.is_empty() && first.cell.capacity == last.cell.capacity => {
            format!(" ({} to {} full)", percent(a), percent(b))
        }
        _ => String::new(),
    };
    let from_word = if group.label.is_empty() { "From" } else { "from" };
    let sizes = format!(
        "{}{from_word} {} to {} of data{fills}",
        named(group),
        size(first.data_bytes()),
        size(last.data_bytes())
    );
    let (noun, unit) = (first.quantity.noun(), first.quantity.unit());
    let change = to / from;
    if (0.95..1.05).contains(&change) {
        return Some(format!("{sizes}, the settled {noun} stays at about {}\u{a0}{unit}.", level(last)?));
    }
    let verb = if change < 1.0 { "falls" } else { "rises" };
    let factor = significant(change.max(1.0 / change));
    let mut text = format!(
        "{sizes}, the settled {noun} {verb} from {} to {}\u{a0}{unit}, a factor of {factor}",
        level(first)?,
        level(last)?
    );
    if let Some(half) = crossing(&levels(group, |a| a.data_bytes()), from / 2.0) {
        let share = first.cell.capacity.get() as f64 * first.scale;
        let fill =
            if fills.is_empty() { String::new() } else { format!(" ({} full)", percent(half / share)) };
        text.push_str(&format!("; it has halved by about {}{fill}", size(coarse(half))));
    }
    Some(text + ".")
}

/// A size read off between two cells: no finer than a GiB, or a MiB where it is small.
fn coarse(bytes: f64) -> f64 {
    let grain = (1u64 << if bytes > 8e9 { 30 } else { 20 }) as f64;
    (bytes / grain).round().max(1.0) * grain
}

/// Where a falling curve first passes `target`, linearly between its points.
fn crossing(points: &[(f64, f64)], target: f64) -> Option<f64> {
    points.windows(2).find_map(|pair| {
        let [(x0, y0), (x1, y1)] = pair else { return None };
        (*y0 > target && *y1 <= target).then(|| x0 + (x1 - x0) * (y0 - target) / (y0 - y1))
    })
}

fn over_factor(group: &Group<'_, '_>, factor: &str) -> Option<String> {
    let mut settled = group.answers.iter().filter(|a| a.settled.is_some());
    let first = settled.next()?;
    let last = settled.next_back()?;
    let (from, to) = (first.settled?.mean, last.settled?.mean);
    let value = |a: &Answer<'_>| value_of(a.cell, factor);
    let with = if group.label.is_empty() { "With" } else { "with" };
    let name = factor.replace('_', " ");
    let (noun, unit) = (first.quantity.noun(), first.quantity.unit());
    let ends = format!(
        "{}{with} {name} from {} to {}, the settled {noun}",
        named(group),
        value(first)?,
        value(last)?
    );
    let change = to / from;
    let mut text = if (0.95..1.05).contains(&change) {
        format!("{ends} is about {}\u{a0}{unit} at both ends", level(last)?)
    } else {
        let verb = if change < 1.0 { "falls" } else { "rises" };
        let times = significant(change.max(1.0 / change));
        format!("{ends} {verb} from {} to {}\u{a0}{unit}, a factor of {times}", level(first)?, level(last)?)
    };
    let best = group.answers.iter().filter_map(|a| Some((a, a.settled?.mean)));
    if let Some((best, most)) = best.max_by(|a, b| a.1.total_cmp(&b.1))
        && most > 1.05 * from.max(to)
    {
        text.push_str(&format!("; the most, {}, is at {}", with_unit(most, best.quantity), value(best)?));
    }
    Some(text + ".")
}

fn over_threads(group: &Group<'_, '_>) -> Option<String> {
    let points = levels(group, |a| f64::from(a.cell.threads));
    let (first, last) = (points.first()?, points.last()?);
    let best = points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    let from_word = if group.label.is_empty() { "From" } else { "from" };
    let enough = points.iter().find(|(_, y)| *y >= 0.95 * best)?;
    let quantity = group.answers.first()?.quantity;
    Some(format!(
        "{}{from_word} {} to {} threads, the settled {} goes from {} to {}; {} {} of the best.",
        named(group),
        first.0,
        last.0,
        quantity.noun(),
        significant(first.1),
        with_unit(last.1, quantity),
        if enough.0 == 1.0 { "one thread gives".to_owned() } else { format!("{} threads give", enough.0) },
        percent(enough.1 / best),
    ))
}

fn range(answers: &[Answer<'_>]) -> Option<String> {
    let varying = varying(answers.iter().map(|a| a.cell));
    let mut settled: Vec<(&Answer<'_>, f64)> =
        answers.iter().filter_map(|a| Some((a, a.settled?.mean))).collect();
    settled.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (low, high) = (settled.first()?, settled.last()?);
    let quantity = low.0.quantity;
    Some(format!(
        "The settled {} ranges from {} ({}) to {} ({}).",
        quantity.noun(),
        with_unit(low.1, quantity),
        short_label(low.0.cell, &varying, false),
        with_unit(high.1, quantity),
        short_label(high.0.cell, &varying, false),
    ))
}

/// How much of the sweep was measured, where the rest was left out by choice.
fn spared(campaign: &Campaign) -> Option<String> {
    let (_, fact) = campaign.environment.iter().rfind(|(name, _)| name == fact::SPARED)?;
    Some(format!("Adaptive: {fact}."))
}

fn missing(campaign: &Campaign, answers: &[Answer<'_>]) -> Option<String> {
    let count = |status| campaign.cells.iter().filter(|c| c.status == status).count();
    let (failed, pending) = (count(Status::Failed), count(Status::Pending));
    let damaged = count(Status::Damaged);
    let part = |n: usize, what: &str| (n > 0).then(|| format!("{n} {what}"));
    let parts: Vec<String> =
        [part(failed, "failed"), part(pending, "not yet measured"), part(damaged, "damaged in the store")]
            .into_iter()
            .flatten()
            .collect();
    (!parts.is_empty())
        .then(|| format!("Of {} cells, {} done, {}.", campaign.cells.len(), answers.len(), parts.join(", ")))
}

fn agreement(comparisons: &[Comparison]) -> Option<String> {
    let judged: Vec<&Comparison> =
        comparisons.iter().filter(|c| !c.used_to_fit && c.within(10.0).is_some()).collect();
    let fitted = comparisons.iter().filter(|c| c.used_to_fit).count();
    let fitted = if fitted > 0 {
        {
            let (was, proves) = if fitted == 1 { ("was", "proves") } else { ("were", "prove") };
            format!(" ({fitted} more {was} used to fit the model and {proves} nothing)")
        }
    } else {
        String::new()
    };
    if judged.is_empty() {
        return None;
    }
    let near = judged.iter().filter(|c| c.within(10.0) == Some(true)).count();
    let worst = judged
        .iter()
        .filter(|c| c.within(10.0) == Some(false))
        .filter_map(|c| Some((c, c.error_percent?)))
        .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    let worst = worst.map_or_else(String::new, |(c, error)| {
        let sign = if error > 0.0 { "+" } else { "−" };
        format!(
            "; the largest error is {sign}{} ({}, {})",
            percent(error.abs() / 100.0),
            c.metric,
            c.where_label
        )
    });
    let numbers = if judged.len() == 1 { "number" } else { "numbers" };
    Some(format!("Of {} published {numbers}, {near} are met within 10\u{a0}%{worst}{fitted}.", judged.len()))
}

/// One sentence on how one side compares with the other.
pub(crate) fn of_sides(comparison: &compare::Comparison) -> String {
    let (base, other) = (&comparison.base, &comparison.other);
    let ratios = comparison.ratios(comparison.level());
    let Some(mean) = comparison.overall(comparison.level()) else {
        return match comparison.pairs.len() {
            0 => format!("{base} and {other} have no cell in common."),
            _ => format!("{base} and {other} have no cell in common in which both settled."),
        };
    };
    let interval = format!("{} to {}", share(mean.low), share(mean.high));
    let noun = comparison.quantity.noun();
    let significant =
        comparison.pairs.iter().filter(|pair| pair.of(comparison.level()).significant()).count();
    if ratios.len() == 1 {
        let sure = if significant == 1 { "" } else { ": no significant difference" };
        return format!(
            "{other} has {} of the {noun} of {base} (95\u{a0}% interval {interval}){sure}.",
            share(mean.ratio)
        );
    }
    let least = ratios.iter().map(|it| it.ratio).fold(f64::INFINITY, f64::min);
    let most = ratios.iter().map(|it| it.ratio).fold(0.0, f64::max);
    format!(
        "{other} has {} of the {noun} of {base} on (geometric) average over {} cells (95\u{a0}% interval {interval}), \
         from {} to {}; the difference is significant in {significant} of them.",
        share(mean.ratio),
        ratios.len(),
        share(least),
        share(most),
    )
}

/// One sentence for each limit that was crossed or could not be judged.
pub(crate) fn of_limits(judged: &[Judged]) -> Vec<String> {
    let sentence = |it: &Judged| {
        let (threshold, other) = (&it.threshold, &it.other);
        match (it.outcome, &it.worst) {
            (Outcome::Crossed, Some((label, ratio))) => Some(format!(
                "Limit crossed by {other}: {threshold} ({label}: {}, 95\u{a0}% interval {} to {}).",
                share(ratio.ratio),
                share(ratio.low),
                share(ratio.high),
            )),
            (Outcome::NotJudged, _) => Some(format!(
                "The limit {threshold} cannot be judged for {other}: {}.",
                it.reason.as_deref().unwrap_or("nothing was measured")
            )),
            _ => None,
        }
    };
    judged.iter().filter_map(sentence).collect()
}

/// A ratio in percent, with one decimal: most of them are near 100.
fn share(ratio: f64) -> String {
    format!("{}\u{a0}%", number::fixed(100.0 * ratio, 1))
}
