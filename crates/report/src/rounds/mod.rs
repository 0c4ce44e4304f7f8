//! The report of an experiment with rounds, in the terms of the SNIA specification: test flow, convergence,
//! measurement window, and result matrix.
//!
//! The rule is [`lowtide_record::analysis::Snia`]; [`lowtide_lab::rounds`] runs the rounds.

mod course;
mod figures;
mod tables;
mod timeline;
mod words;

use super::group::grouped;
use super::verdict::unfinished;
use super::{Figure, Table};
use course::Course;
use lowtide_lab::experiment::{Resolved, Step};
use lowtide_record::analysis::{Snia, Window};
use lowtide_record::{Campaign, Cell};

/// The verdict, tables and figures of rounds.
pub(crate) struct RoundsReport {
    pub verdict: Vec<String>,
    pub tables: Vec<Table>,
    pub figures: Vec<Figure>,
}

/// The report of a campaign with rounds; `None` for any other campaign.
pub(crate) fn of_campaign(experiment: &Resolved, campaign: &Campaign) -> Option<RoundsReport> {
    let single = |step: &Step| step.points().take(2).count() == 1;
    let phases =
        experiment.steps.iter().any(|step| step.duration.is_some()) && experiment.steps.iter().all(single);
    let courses = Course::all(experiment, campaign);
    if courses.is_empty() && !phases {
        return None;
    }
    let several = courses.len() > 1;
    // Courses of one point are preconditioning and come last.
    let mut spoken: Vec<&Course<'_>> = courses.iter().collect();
    spoken.sort_by_key(|course| course.points.len() == 1);
    let mut report = RoundsReport {
        verdict: spoken.into_iter().flat_map(|course| sentences(course, several)).collect(),
        tables: vec![tables::flow(experiment, campaign)],
        figures: Vec::new(),
    };
    // The courses with several points, by device.
    let matrices = courses.iter().filter(|course| course.points.len() > 1);
    let matrices = grouped(matrices.map(|course| (course.device(), course)));
    let matrices: Vec<tables::Matrix<'_, '_>> =
        matrices.iter().filter_map(|(_, courses)| tables::Matrix::of(courses)).collect();
    report.tables.extend(matrices.iter().flat_map(tables::Matrix::tables));
    for (n, course) in courses.iter().enumerate() {
        report.tables.extend(tables::window(course, n + 1, several));
        report.figures.extend(figures::convergence(course, n + 1, several));
        report.figures.extend(figures::window(course, n + 1, several));
    }
    report.figures.extend(matrices.iter().flat_map(figures::over_matrix));
    report.figures.extend(matrices.iter().flat_map(figures::demand));
    // The cells of steps without rounds are listed, unless each step has a single load.
    let others: Vec<&Step> =
        experiment.steps.iter().filter(|step| step.repeat.track.is_none() && !single(step)).collect();
    let mut rest = Campaign { cells: Vec::new(), ..campaign.clone() };
    let listed = |cell: &&Cell| others.iter().any(|step| step.name == cell.step);
    rest.cells.extend(campaign.cells.iter().filter(listed).cloned());
    report.tables.extend((!rest.cells.is_empty()).then(|| super::tables::cells(&rest)));
    let timelines = timeline::of(experiment, campaign);
    report.tables.extend(timelines.tables);
    report.figures.extend(timelines.figures);
    report.verdict.extend(timelines.verdict);
    let unfinished = unfinished(campaign, "not measured");
    report.verdict.extend(unfinished.map(|parts| format!("Of {} cells, {parts}.", campaign.cells.len())));
    Some(report)
}

/// Returns whether every tracked step of a campaign became steady; `None` for a campaign without tracked steps.
pub(crate) fn steady(campaign: &Campaign) -> Option<bool> {
    let experiment = Resolved::of(campaign).ok()??;
    let courses = Course::all(&experiment, campaign);
    (!courses.is_empty()).then(|| courses.iter().all(|course| course.steady))
}

fn sentences(course: &Course<'_>, several: bool) -> Vec<String> {
    let name = prefixed("", &words::course(course, several), ": ");
    let factors = words::varying(course);
    let shown = words::shown(course);
    let seen: Vec<_> = course.tracked().filter_map(|point| Some((point, course.seen(point)?))).collect();
    // With several tracked points, the point nearest to its limits or furthest beyond them counts.
    let rule = Snia::default();
    let strain =
        |seen: &Window| (seen.excursion / rule.excursion).max(seen.rise.abs() / rule.slope) / seen.average;
    let worst = seen.iter().max_by(|(_, a), (_, b)| strain(a).total_cmp(&strain(b)));
    let Some((point, worst)) = worst else {
        let rounds = course.rounds;
        return vec![format!("{name}No steady state: {rounds} complete rounds, but the rule needs five.")];
    };
    let levels: Vec<String> = seen
        .iter()
        .map(|(point, seen)| {
            format!("{}{}", shown.text(seen.average), prefixed(" at ", &words::point(point, &factors), ""))
        })
        .collect();
    let share = |value: f64| super::number::percent(value / worst.average);
    let (from, to) = (course.window.start + 1, course.window.end);
    let at = if seen.len() == 1 { String::new() } else { words::point(point, &factors) };
    let at = prefixed(" at ", &at, "");
    let spans = format!(
        "the values{at} span {} of their average (allowed: 20\u{a0}%) and their least-squares line changes by {} (allowed: 10\u{a0}%).",
        share(worst.excursion),
        share(worst.rise.abs())
    );
    let window = format!("{name}Over rounds {from} to {to} {spans}");
    let first = match course.steady {
        true => format!("{name}Steady state after {to} rounds: {}.", levels.join("; ")),
        false => format!("{name}No steady state after {} rounds.", course.rounds),
    };
    vec![first, window]
}

/// `text` between `before` and `after`; empty for an empty text.
fn prefixed(before: &str, text: &str, after: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{before}{text}{after}") }
}
