//! Accepts a plan for adaptive measurement, and divides it into curves.
//!
//! Each cell must begin on a drive as new, so that the order of the cells does not matter. A cell ends as soon as its
//! level is known to half the precision of the curve, or to the experiment's own precision if that is finer. The
//! duration of the experiment is the upper limit. Module `run` runs the plan.

use super::posterior::Curve;
use lowtide_core::Nanos;
use lowtide_core::workload::{Access, Arrival, Distribution};
use lowtide_lab::experiment::{BadInput, FactorName, Length, Level, Purge, SteadyRule, Work};
use lowtide_lab::plan::identity::ADAPTIVE;
use lowtide_lab::plan::{Plan, PlanTarget, PlannedCell};
use lowtide_record::analysis::Confidence;
use std::sync::Arc;

/// Minimum sizes per curve.
const LEAST_SIZES: usize = 4;
/// Maximum sizes per curve. Memory and time grow with the square of the sizes.
const MOST_SIZES: usize = 200;
/// Precision of a cell, as a share of the precision of its curve.
const OF_CELL: f64 = 0.5;

/// An accepted adaptive plan.
#[derive(Debug, Clone)]
pub struct Adaptive {
    /// Upper limit on the half-width of each 95 % interval, as a share of the level.
    pub precision: f64,
    pub(super) sweeps: Vec<Sweep>,
}

/// The cells of one curve.
#[derive(Debug, Clone)]
pub(super) struct Sweep {
    /// Positions in the plan, by ascending size.
    pub cells: Vec<usize>,
    pub curve: Arc<Curve>,
    /// Full duration of the load of a cell, if the experiment sets one.
    pub length: Option<Nanos>,
}

/// The inputs of the prior of a curve.
#[derive(PartialEq)]
struct Kind {
    data: Vec<f64>,
    capacity: f64,
    uniform_writes: bool,
}

/// Makes a plan adaptive: its cells end when their level is known. An adaptive plan has another identity than the
/// plan that measures every cell.
///
/// # Errors
/// [`BadInput`] at the key that prevents it, with the accepted values.
pub fn prepare(plan: &mut Plan, precision: f64) -> Result<Adaptive, BadInput> {
    check(plan)?;
    let mut sweeps: Vec<(Vec<String>, Vec<usize>)> = Vec::new();
    for (position, cell) in plan.cells.iter().enumerate() {
        let others = cell.point.iter().filter(|level| !is_size(level)).map(ToString::to_string);
        let key: Vec<String> = cell.step.iter().cloned().chain(others).collect();
        match sweeps.iter_mut().find(|(known, _)| *known == key) {
            Some((_, cells)) => cells.push(position),
            None => sweeps.push((key, vec![position])),
        }
    }
    let mut curves = Vec::new();
    let sweeps =
        sweeps.into_iter().map(|(_, cells)| sweep(plan, cells, &mut curves)).collect::<Result<_, _>>()?;
    for cell in &mut plan.cells {
        let length = &mut cell.settings.load.length;
        *length = ends(*length, precision);
    }
    plan.identity_suffix = format!("{ADAPTIVE}{precision}");
    Ok(Adaptive { precision, sweeps })
}

/// The length of a cell on a curve of the given precision. A length in requests stays as it is.
fn ends(length: Length, precision: f64) -> Length {
    // A precision above the default drift tolerance would raise the drift tolerance, so it is capped at the default.
    let enough = (precision * OF_CELL).min(Confidence::default().drift_tolerance);
    match length {
        Length::Requests(_) => length,
        Length::For(max) => Length::UntilSteady { max, precision: enough },
        Length::UntilSteady { max, precision: own } => {
            Length::UntilSteady { max, precision: own.min(enough) }
        }
    }
}

fn is_size(level: &Level) -> bool {
    matches!(level, Level::FileSize(_) | Level::Utilisation(_))
}

fn check(plan: &Plan) -> Result<(), BadInput> {
    let experiment = &plan.experiment;
    let refuse = |key: &str, message: &str, help: &str| {
        Err(experiment.blame(key, format!("`--adaptive`: {message}"), help))
    };
    let load = &experiment.load;
    let key_of_database = match load.work {
        Work::Transactions(_) => Some("oltp"),
        Work::Inserts(_) => Some("inserts"),
        Work::Requests | Work::Trace(_) => None,
    };
    if let Some(key) = key_of_database {
        return refuse(key, "what is known of size curves is not known of databases", "a `[workload]`");
    }
    if load.work != Work::Requests || load.bursts().is_some() || !load.events.is_empty() {
        let message = "a load with a trace, pauses or events has no one level";
        return refuse("workload", message, "a load that goes on: `pattern = \"random-write\"`");
    }
    if plan.cells.iter().any(|cell| cell.settings.load.steady == SteadyRule::Snia) {
        let message = "the rule `snia` takes the fresh level of a purged drive for a settled one, and ends at no precision";
        return refuse("workload.steady", message, "`steady = \"lowtide\"`, or no `steady`, which means it");
    }
    for (number, step) in experiment.steps.iter().enumerate() {
        let size = [FactorName::FileSize, FactorName::Utilisation].map(|name| step.factor(name));
        let levels = size.into_iter().flatten().map(|factor| factor.levels.len()).max().unwrap_or(0);
        if levels < LEAST_SIZES {
            let help = "`[sweep]` with `file_size` or `utilisation`, such as `file_size = { from = \"20GiB\", to = \"140GiB\", \
                        step = \"10GiB\" }`";
            let sizes =
                if levels == 1 { "1 size of data leaves" } else { &format!("{levels} sizes of data leave") };
            let message = format!("{sizes} nothing to choose, and {LEAST_SIZES} are the least");
            return refuse("sweep", &message, help);
        }
        if levels > MOST_SIZES {
            let message = format!("{levels} sizes of data are more than can be weighed against each other");
            let help = format!("{MOST_SIZES} sizes at most: a larger `step`");
            return refuse("sweep", &message, &help);
        }
        if step.repeat.times > 1 || step.repeat.track.is_some() {
            let help = "without `[repeat]`: a cell goes on until its level is known";
            return refuse("repeat", "sizes are measured once", help);
        }
        if step.precondition.is_some() {
            let help = "`fill` and `purge` in `[before-each-cell]`";
            return refuse(
                &format!("step.{number}.precondition"),
                "each size begins on a drive as new",
                help,
            );
        }
    }
    let keeps_history = |cell: &PlannedCell| cell.settings.preparation.purge == Purge::None;
    if !matches!(plan.target, PlanTarget::Host(_)) && plan.cells.iter().any(keeps_history) {
        let help = "`purge = \"secure-erase\"` or `purge = \"trim\"` in `[before-each-cell]`";
        let message =
            "a cell would find what the sizes chosen before left; each must begin on a drive as new";
        return refuse("before-each-cell.purge", message, help);
    }
    Ok(())
}

/// Creates one curve. Curves of the same kind share their forms.
fn sweep(
    plan: &Plan,
    mut cells: Vec<usize>,
    curves: &mut Vec<(Kind, Arc<Curve>)>,
) -> Result<Sweep, BadInput> {
    cells.sort_by_key(|position| plan.cells[*position].data);
    let data: Vec<f64> = cells.iter().map(|position| plan.cells[*position].data.get() as f64).collect();
    if let Some(pair) = cells.windows(2).find(|pair| plan.cells[pair[0]].data == plan.cells[pair[1]].data) {
        let [a, b] = [0, 1].map(|n| plan.cells[pair[n]].label());
        let message = format!("`--adaptive`: `{a}` and `{b}` are the same size of data");
        return Err(plan.experiment.blame("sweep", message, "sizes that differ by a block at least"));
    }
    let first = &plan.cells[cells[0]];
    let load = first.settings.load.workload();
    let uniform_writes = load.access == Access::Random
        && load.distribution == Distribution::Uniform
        && load.read_share == 0.0
        && load.arrival == Arrival::Closed;
    let length = match first.settings.load.length {
        Length::For(time) => Some(time),
        Length::Requests(_) | Length::UntilSteady { .. } => None,
    };
    let kind = Kind { data, capacity: first.capacity.get() as f64, uniform_writes };
    let curve = match curves.iter().find(|(known, _)| *known == kind) {
        Some((_, curve)) => Arc::clone(curve),
        None => {
            let curve = Arc::new(Curve::new(&kind.data, kind.capacity, kind.uniform_writes));
            curves.push((kind, Arc::clone(&curve)));
            curve
        }
    };
    Ok(Sweep { cells, curve, length })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;
    use lowtide_lab::experiment::Experiment;

    /// Prepares a sweep, with the given lines in `[workload]` and `[sweep]`.
    fn adaptive(workload: &str, sweep: &str, precision: f64) -> Result<(Plan, Adaptive), BadInput> {
        let text = format!(
            "name = 't'\ntarget.device = 'intel-320-160gb'\n[before-each-cell]\npurge = 'secure-erase'\nfill = 'sequential'\n\
             [workload]\nblock = '16KiB'\n{workload}\n[sweep]\n{sweep}\n"
        );
        let experiment = Experiment::parse("t.toml", &text, &[]).expect("valid");
        let mut plan = Plan::new(experiment, Seed::new(1), 1).expect("plans");
        let adaptive = prepare(&mut plan, precision)?;
        Ok((plan, adaptive))
    }

    const SIZES: &str = "file_size = { from = '20GiB', to = '140GiB', step = '20GiB' }";

    const HOUR: &str = "pattern = 'random-write'\nduration = '1h'";

    #[test]
    fn cells_end_at_the_finer_precision_and_let_no_more_drift_in_for_a_coarse_one() {
        let of = |workload: &str, precision: f64| {
            let workload = format!("pattern = 'random-write'\n{workload}");
            let (plan, _) = adaptive(&workload, SIZES, precision).expect("accepted");
            plan.cells[0].settings.load.length
        };
        let until = |precision| Length::UntilSteady { max: Nanos::from_secs(3600), precision };
        assert_eq!(of("duration = '1h'", 0.03), until(0.015), "half");
        assert_eq!(of("duration = '1h'", 0.2), until(0.02), "coarse");
        assert_eq!(of("until = 'steady'\nmax = '1h'\nprecision = 0.004", 0.05), until(0.004), "its own");
        assert_eq!(of("until = 'steady'\nmax = '1h'\nprecision = 0.1", 0.01), until(0.005), "half of it");
        assert_eq!(of("requests = 1000", 0.05), Length::Requests(1000));
    }

    #[test]
    fn a_rule_without_a_precision_and_too_many_sizes_are_refused_where_they_stand() {
        let says = |workload: &str, sweep: &str, wanted: &[&str]| {
            let error = format!("{:?}", adaptive(workload, sweep, 0.05).map(drop).expect_err("refused"));
            wanted.iter().for_each(|wanted| assert!(error.contains(wanted), "{wanted}: {error}"));
        };
        let wanted = ["`snia`", "or no `steady`"];
        says(&format!("{HOUR}\nsteady = 'snia'"), SIZES, &wanted);
        let many = "file_size = { from = '1GiB', to = '101GiB', step = '512MiB' }";
        says(HOUR, many, &["201 sizes", "200 sizes at most"]);
    }

    #[test]
    fn curves_of_the_same_sizes_share_their_forms() {
        let (_, two) = adaptive(HOUR, &format!("{SIZES}\nthreads = [1, 4]"), 0.05).expect("accepted");
        assert!(Arc::ptr_eq(&two.sweeps[0].curve, &two.sweeps[1].curve));
        let mixed = format!("{SIZES}\npattern = ['random-write', 'random-read']");
        let (_, two) = adaptive("duration = '1h'", &mixed, 0.05).expect("accepted");
        assert!(!Arc::ptr_eq(&two.sweeps[0].curve, &two.sweeps[1].curve), "of other laws");
    }
}
