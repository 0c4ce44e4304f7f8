//! The verdict: the findings of a campaign in sentences, made from the same numbers as the tables.
//!
//! The level comes first, then its dependence on the factors, then missing results. The verdict gives no advice.

use super::comparison::Comparison;
use super::number::{
    self, decimals_for_half_width, estimate, level as with_unit, percent, significant, size, span,
};
use super::sweep::{Group, Labels, groups, number_of, value_of, with_numbers};
use super::{databases, durability};
use crate::answer::{Answer, LevelChange, quantity_of};
use crate::compare::{self, Judged, Outcome};
use lowtide_core::measure::Gap;
use lowtide_record::fact;
use lowtide_record::{Campaign, Cell, Quantity, Status};

/// At most this many departures of one cell are reported.
const MOST_DEPARTURES: usize = 3;
/// Further warnings and gaps are only counted.
const MOST_WARNINGS: usize = 3;
/// At most this many factors of a database sweep get sentences.
const MOST_FACTORS: usize = 2;
/// More curves than this share one sentence.
const MOST_CURVES: usize = 6;
/// Levels within this range of ratios count as equal.
const EQUAL: std::ops::Range<f64> = 0.95..1.05;

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
    // If durability is the question of the experiment, its answer comes first.
    out.splice(0..0, durability::sentences(campaign, answers));
    out.splice(0..0, databases::broken(answers));
    out.extend(adaptive(campaign));
    out.extend(missing(campaign, answers));
    out.extend(warnings(campaign));
    out.extend(agreement(comparisons));
    out
}

/// Warnings about events during the measurement that may have changed it.
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

/// Pauses of lowtide itself, in the order of the cells.
pub(crate) fn gaps(campaign: &Campaign) -> Vec<String> {
    let gaps = || campaign.cells.iter().flat_map(|cell| cell.gaps.iter().map(move |gap| (cell, gap)));
    let sentence = |(cell, gap): (&Cell, &Gap)| {
        let words = lowtide_record::gap_in_words(gap);
        match campaign.cells.len() {
            1 => format!("{}.", number::capitalised(&words)),
            _ => format!("Cell {} ({}): {words}.", cell.index, cell.label()),
        }
    };
    let mut out: Vec<String> = gaps().take(MOST_WARNINGS).map(sentence).collect();
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
            let mean = with_unit(mean, answer.quantity);
            out.push(format!("The mean of the whole measurement, {mean}, is not a settled level."));
        }
        out.extend(departures(answer));
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
    out.extend(departures(answer));
    if let Some(lowest) = answer.lowest.filter(|lowest| *lowest < settled.mean * 0.8) {
        out.push(format!("The lowest interval had {}.", with_unit(lowest, quantity)));
    }
    if let Some(p99) = answer.latency_ns(99.0) {
        let what = match quantity {
            Quantity::Throughput => "operations",
            Quantity::NewOrders => "transactions",
        };
        let nand = answer
            .write_amplification
            .map(|wa| format!("; each byte written cost {} bytes of NAND", significant(wa)));
        let nand = nand.unwrap_or_default();
        out.push(format!("99 % of {what} took at most {}{nand}.", span(p99)));
    }
    if let Some(layer) = answer.layer_amplification {
        out.push(format!("The log layer wrote {} blocks for each block written to it.", significant(layer)));
    }
    if let Some(cpu_ns) = answer.host_cpu_ns_per_operation {
        out.push(format!("The driver took {} of the host's processors per operation.", span(cpu_ns)));
    }
    out
}

/// The first departures from steady levels, one sentence each.
fn departures(answer: &Answer<'_>) -> Vec<String> {
    let few = answer.departures.iter().take(MOST_DEPARTURES);
    few.map(|change| {
        let cause = match answer.honeymoon_end_s {
            Some(end_s) if change.at_s <= end_s * 1.1 => {
                "typical of the end of a drive's fresh level, or of a filled cache"
            }
            _ => "typical of throttling, a full cache, spent credits or other users of the device",
        };
        format!(
            "After {} it left a steady level of {} for {}: {cause}.",
            span(change.at_s * 1e9),
            with_unit(change.before, answer.quantity),
            with_unit(change.after, answer.quantity)
        )
    })
    .collect()
}

/// The number of cells of a sweep that left a steady level, and the first of them.
fn departures_in_sweep(answers: &[Answer<'_>]) -> Option<String> {
    let leaving: Vec<(&Answer<'_>, &LevelChange)> =
        answers.iter().filter_map(|answer| Some((answer, answer.departures.first()?))).collect();
    let (answer, change) = leaving.first()?;
    let count = match leaving.len() {
        1 => "One cell left a steady level".to_owned(),
        several => format!("{several} of {} cells left a steady level; the first of them", answers.len()),
    };
    Some(format!(
        "{count}: {}, after {}, {} for {}.",
        Labels::without_repetition(answers).label(answer.cell),
        span(change.at_s * 1e9),
        with_unit(change.before, answer.quantity),
        with_unit(change.after, answer.quantity)
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
    } else {
        let few = |curves: &Vec<Group<'_, '_>>| curves.len() <= MOST_CURVES;
        if let Some(curves) = groups(answers, |a| Some(a.data_bytes())).filter(few) {
            out.extend(curves.iter().filter_map(over_size));
        } else if let Some(curves) = groups(answers, |a| Some(f64::from(a.cell.threads))).filter(few) {
            out.extend(curves.iter().filter_map(over_threads));
        }
    }
    // Unless there is exactly one curve, a sentence about all cells comes first.
    if out.len() != 1 {
        out.splice(0..0, range(answers));
    }
    let unsettled: Vec<&Answer<'_>> = answers.iter().filter(|a| a.settled.is_none()).collect();
    match unsettled.as_slice() {
        [] => {}
        [one] => {
            let label = Labels::without_repetition(answers).label(one.cell);
            out.push(format!("No steady state at {label}: {}.", reason(one)));
        }
        all if all.len() == answers.len() => {
            out.push(format!("No steady state in any of the {} cells.", all.len()));
        }
        some => out.push(format!("{} of {} cells found no steady state.", some.len(), answers.len())),
    }
    out.extend(departures_in_sweep(answers));
    out
}

/// `label: from`, or `From` for a single curve.
fn introduced(group: &Group<'_, '_>, word: &str) -> String {
    match group.label.as_str() {
        "" => number::capitalised(word),
        label => format!("{label}: {word}"),
    }
}

/// The first and the last settled cell of a curve, with their levels.
fn ends<'s, 'a>(group: &Group<'s, 'a>) -> Option<[(&'s Answer<'a>, f64); 2]> {
    let mut settled = group.answers.iter().filter_map(|a| Some((*a, a.settled?.mean)));
    Some([settled.next()?, settled.next_back()?])
}

/// `falls from 80.1 to 20.3 MiB/s, a factor of 4`.
fn changes(first: &Answer<'_>, last: &Answer<'_>, ratio: f64) -> Option<String> {
    let verb = if ratio < 1.0 { "falls" } else { "rises" };
    let factor = significant(ratio.max(1.0 / ratio));
    let (from, to, unit) = (level(first)?, level(last)?, first.quantity.unit());
    Some(format!("{verb} from {from} to {to}\u{a0}{unit}, a factor of {factor}"))
}

/// `(x, settled level)` of the settled cells of a curve.
fn levels(group: &Group<'_, '_>, x: impl Fn(&Answer<'_>) -> f64) -> Vec<(f64, f64)> {
    group.answers.iter().filter_map(|a| Some((x(a), a.settled?.mean))).collect()
}

/// A level with as many digits as its interval supports.
fn level(answer: &Answer<'_>) -> Option<String> {
    let e = answer.settled?;
    let decimals = decimals_for_half_width(e.half_width).min(1);
    Some(if e.mean >= 99.95 { significant(e.mean) } else { number::fixed(e.mean, decimals) })
}

fn over_size(group: &Group<'_, '_>) -> Option<String> {
    let [(first, from), (last, to)] = ends(group)?;
    let fills = match (first.fill(), last.fill()) {
        (Some(a), Some(b)) if group.label.is_empty() && first.cell.capacity == last.cell.capacity => {
            format!(" ({} to {} full)", percent(a), percent(b))
        }
        _ => String::new(),
    };
    let (noun, unit) = (first.quantity.noun(), first.quantity.unit());
    let sizes = format!(
        "{} {} to {} of data{fills}, the settled {noun}",
        introduced(group, "from"),
        size(first.data_bytes()),
        size(last.data_bytes())
    );
    if EQUAL.contains(&(to / from)) {
        return Some(format!("{sizes} stays at about {}\u{a0}{unit}.", level(last)?));
    }
    let mut text = format!("{sizes} {}", changes(first, last, to / from)?);
    if let Some(half) = crossing(&levels(group, |a| a.data_bytes()), from / 2.0) {
        let share = first.cell.capacity.get() as f64 * first.scale;
        let fill =
            if fills.is_empty() { String::new() } else { format!(" ({} full)", percent(half / share)) };
        text.push_str(&format!("; it has halved by about {}{fill}", size(coarse(half))));
    }
    Some(text + ".")
}

/// A size interpolated between two cells, rounded to a GiB, or to a MiB if it is small.
fn coarse(bytes: f64) -> f64 {
    let grain = (1u64 << if bytes > 8e9 { 30 } else { 20 }) as f64;
    (bytes / grain).round().max(1.0) * grain
}

/// The x at which a falling curve first passes `target`, interpolated linearly.
fn crossing(points: &[(f64, f64)], target: f64) -> Option<f64> {
    points.windows(2).find_map(|pair| {
        let [(x0, y0), (x1, y1)] = pair else { return None };
        (*y0 > target && *y1 <= target).then(|| x0 + (x1 - x0) * (y0 - target) / (y0 - y1))
    })
}

fn over_factor(group: &Group<'_, '_>, factor: &str) -> Option<String> {
    let [(first, from), (last, to)] = ends(group)?;
    let value = |a: &Answer<'_>| value_of(a.cell, factor);
    let (noun, unit) = (first.quantity.noun(), first.quantity.unit());
    let mut text = format!(
        "{} {} from {} to {}, the settled {noun} ",
        introduced(group, "with"),
        factor.replace('_', " "),
        value(first)?,
        value(last)?
    );
    text.push_str(&match EQUAL.contains(&(to / from)) {
        true => format!("is about {}\u{a0}{unit} at both ends", level(last)?),
        false => changes(first, last, to / from)?,
    });
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
    let enough = points.iter().find(|(_, y)| *y >= 0.95 * best)?;
    let quantity = group.answers.first()?.quantity;
    Some(format!(
        "{} {} to {} threads, the settled {} goes from {} to {}; {} {} of the best.",
        introduced(group, "from"),
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
    let labels = Labels::without_repetition(answers);
    let mut settled: Vec<(&Answer<'_>, f64)> =
        answers.iter().filter_map(|a| Some((a, a.settled?.mean))).collect();
    settled.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (low, high) = (settled.first()?, settled.last()?);
    let quantity = low.0.quantity;
    Some(format!(
        "The settled {} ranges from {} ({}) to {} ({}).",
        quantity.noun(),
        with_unit(low.1, quantity),
        labels.label(low.0.cell),
        with_unit(high.1, quantity),
        labels.label(high.0.cell),
    ))
}

/// The share of the sweep that was measured, for an adaptive run.
fn adaptive(campaign: &Campaign) -> Option<String> {
    let (_, fact) = campaign.environment.iter().rfind(|(name, _)| name == fact::SPARED)?;
    Some(format!("Adaptive: {fact}."))
}

fn missing(campaign: &Campaign, answers: &[Answer<'_>]) -> Option<String> {
    let parts = unfinished(campaign, "not yet measured")?;
    Some(format!("Of {} cells, {} done, {parts}.", campaign.cells.len(), answers.len()))
}

/// The numbers of failed, pending and damaged cells; `pending` names the pending ones.
pub(crate) fn unfinished(campaign: &Campaign, pending: &str) -> Option<String> {
    let kinds =
        [(Status::Failed, "failed"), (Status::Pending, pending), (Status::Damaged, "damaged in the store")];
    let count = |status| campaign.cells.iter().filter(|c| c.status == status).count();
    let counts =
        kinds.map(|(status, word)| (count(status), word)).into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = counts.map(|(count, word)| format!("{count} {word}")).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn agreement(comparisons: &[Comparison]) -> Option<String> {
    let judged: Vec<&Comparison> =
        comparisons.iter().filter(|c| !c.used_to_fit && c.within(10.0).is_some()).collect();
    let fitted = match comparisons.iter().filter(|c| c.used_to_fit).count() {
        0 => String::new(),
        1 => " (1 more was used to fit the model and proves nothing)".to_owned(),
        more => format!(" ({more} more were used to fit the model and prove nothing)"),
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
        let error = percent(error.abs() / 100.0);
        format!("; the largest error is {sign}{error} ({}, {})", c.metric, c.where_label)
    });
    let numbers = if judged.len() == 1 { "number" } else { "numbers" };
    Some(format!("Of {} published {numbers}, {near} are met within 10\u{a0}%{worst}{fitted}.", judged.len()))
}

/// Compares the two sides in one sentence.
pub(crate) fn of_sides(comparison: &compare::Comparison) -> String {
    let (base, other) = (&comparison.base, &comparison.other);
    let level = comparison.level();
    let ratios = comparison.ratios(level);
    let Some(mean) = comparison.overall(level) else {
        let settled = if comparison.pairs.is_empty() { "" } else { " in which both settled" };
        return format!("{base} and {other} have no cell in common{settled}.");
    };
    let interval = format!("{} to {}", share(mean.low), share(mean.high));
    let noun = comparison.quantity.noun();
    let significant = comparison.pairs.iter().filter(|pair| pair.of(level).significant()).count();
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

/// A ratio in percent with one decimal, because most ratios are near 100 %.
fn share(ratio: f64) -> String {
    format!("{}\u{a0}%", number::fixed(100.0 * ratio, 1))
}
