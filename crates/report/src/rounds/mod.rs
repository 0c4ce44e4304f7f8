//! The report of an experiment whose repetitions are rounds, in the terms of the SNIA specification: test flow,
//! convergence, measurement window, and the matrix of what was found.
//!
//! Not here: the rule ([`lowtide_record::analysis::Snia`]) and running the rounds ([`lowtide_lab::rounds`]).

mod course;
mod figures;
mod tables;
mod timeline;
mod words;

use super::{Figure, Table};
use course::Course;
use lowtide_lab::experiment::{Resolved, Step};
use lowtide_record::analysis::{Snia, Window};
use lowtide_record::{Campaign, Cell, Status};

/// What is said of rounds.
pub(crate) struct Parts {
    pub verdict: Vec<String>,
    pub tables: Vec<Table>,
    pub figures: Vec<Figure>,
}

/// The report of a campaign with rounds that ran this experiment; `None` of any other.
pub(crate) fn of_campaign(experiment: &Resolved, campaign: &Campaign) -> Option<Parts> {
    let single = |step: &Step| step.points().take(2).count() == 1;
    let phases =
        experiment.steps.iter().any(|step| step.duration.is_some()) && experiment.steps.iter().all(single);
    let courses = Course::all(experiment, campaign);
    if courses.is_empty() && !phases {
        return None;
    }
    let several = courses.len() > 1;
    // What only prepared for the rest comes last.
    let mut spoken: Vec<&Course<'_>> = courses.iter().collect();
    spoken.sort_by_key(|course| course.points.len() == 1);
    let mut parts = Parts {
        verdict: spoken.into_iter().flat_map(|course| sentences(course, several)).collect(),
        tables: vec![tables::flow(experiment, campaign)],
        figures: Vec::new(),
    };
    let matrices = matrices(&courses);
    let matrices: Vec<tables::Matrix<'_, '_>> =
        matrices.iter().filter_map(|courses| tables::Matrix::of(courses)).collect();
    parts.tables.extend(matrices.iter().flat_map(tables::Matrix::tables));
    for (n, course) in courses.iter().enumerate() {
        parts.tables.extend(tables::window(course, n + 1, several));
        parts.figures.extend(figures::convergence(course, n + 1, several));
        parts.figures.extend(figures::window(course, n + 1, several));
    }
    parts.figures.extend(matrices.iter().flat_map(figures::over_matrix));
    parts.figures.extend(matrices.iter().flat_map(figures::demand));
    // Steps that are neither rounds nor one load after the other have their cells listed.
    let others: Vec<&Step> =
        experiment.steps.iter().filter(|step| step.repeat.track.is_none() && !single(step)).collect();
    let mut rest = Campaign { cells: Vec::new(), ..campaign.clone() };
    let listed = |cell: &&Cell| others.iter().any(|step| step.name == cell.step);
    rest.cells.extend(campaign.cells.iter().filter(listed).cloned());
    parts.tables.extend((!rest.cells.is_empty()).then(|| super::tables::cells(&rest)));
    let timelines = timeline::of(experiment, campaign);
    parts.tables.extend(timelines.tables);
    parts.figures.extend(timelines.figures);
    parts.verdict.extend(timelines.verdict);
    parts.verdict.extend(missing(campaign));
    Some(parts)
}

/// Whether every tracked step of a campaign became steady; `None` where nothing is tracked.
pub(crate) fn steady(campaign: &Campaign) -> Option<bool> {
    let experiment = Resolved::of(campaign).ok()??;
    let courses = Course::all(&experiment, campaign);
    (!courses.is_empty()).then(|| courses.iter().all(|course| course.steady))
}

/// Courses with several points, a list for each device.
fn matrices<'m, 'c>(courses: &'m [Course<'c>]) -> Vec<Vec<&'m Course<'c>>> {
    let mut matrices: Vec<Vec<&Course<'_>>> = Vec::new();
    for course in courses.iter().filter(|course| course.points.len() > 1) {
        match matrices.iter_mut().find(|known| known[0].device() == course.device()) {
            Some(known) => known.push(course),
            None => matrices.push(vec![course]),
        }
    }
    matrices
}

fn sentences(course: &Course<'_>, several: bool) -> Vec<String> {
    let name = match words::course(course, several) {
        name if name.is_empty() => String::new(),
        name => format!("{name}: "),
    };
    let factors = words::varying(course);
    let shown = words::shown(course);
    let seen: Vec<_> = course.tracked().filter_map(|point| Some((point, course.seen(point)?))).collect();
    // Of several, the one that comes nearest to its limits, or goes furthest beyond them.
    let rule = Snia::default();
    let strain =
        |seen: &Window| (seen.excursion / rule.excursion).max(seen.rise.abs() / rule.slope) / seen.average;
    let worst = seen.iter().max_by(|(_, a), (_, b)| strain(a).total_cmp(&strain(b)));
    let Some((point, worst)) = worst else {
        let rounds = course.rounds;
        return vec![format!("{name}No steady state: {rounds} whole rounds, and the rule looks at five.")];
    };
    let levels: Vec<String> = seen
        .iter()
        .map(|(point, seen)| match words::point(point, &factors) {
            at if at.is_empty() => shown.text(seen.average),
            at => format!("{} at {at}", shown.text(seen.average)),
        })
        .collect();
    let share = |value: f64| super::number::percent(value / worst.average);
    let (from, to) = (course.window.start + 1, course.window.end);
    let at = match words::point(point, &factors) {
        at if seen.len() == 1 || at.is_empty() => String::new(),
        at => format!(" at {at}"),
    };
    let spans = format!(
        "the values{at} span {} of their average (allowed: 20\u{a0}%) and their least-squares line changes by {} (allowed: 10\u{a0}%).",
        share(worst.excursion),
        share(worst.rise.abs())
    );
    if course.steady {
        let levels = levels.join("; ");
        return vec![
            format!("{name}Steady state after {to} rounds: {levels}."),
            format!("{name}Over rounds {from} to {to} {spans}"),
        ];
    }
    vec![
        format!("{name}No steady state after {} rounds.", course.rounds),
        format!("{name}Over rounds {from} to {to} {spans}"),
    ]
}

fn missing(campaign: &Campaign) -> Option<String> {
    let count = |status| campaign.cells.iter().filter(|cell| cell.status == status).count();
    let (failed, pending) = (count(Status::Failed), count(Status::Pending));
    let damaged = count(Status::Damaged);
    let parts: Vec<String> =
        [(failed, "failed"), (pending, "not measured"), (damaged, "damaged in the store")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
    (!parts.is_empty()).then(|| format!("Of {} cells, {}.", campaign.cells.len(), parts.join(", ")))
}
