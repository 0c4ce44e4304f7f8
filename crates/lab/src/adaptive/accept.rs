//! Which plans have size curves, and what becomes of a plan that is measured so.
//!
//! Each cell must begin as new, so that it does not matter which were measured before; and it ends as soon as its level is known to
//! half of the precision, at the latest when the experiment says. Leaves out running it.

use super::posterior::Curve;
use crate::experiment::{BadInput, FactorName, Length, Level, Purge};
use crate::plan::{Plan, PlanTarget, PlannedCell};
use lowtide_core::Nanos;
use lowtide_core::workload::{Access, Arrival, Distribution};

/// Fewer sizes than these leave nothing to choose.
const LEAST_SIZES: usize = 4;
/// A cell is measured to this share of the precision that is asked of the curve.
const OF_CELL: f64 = 0.5;

/// How a plan is measured adaptively.
#[derive(Debug, Clone)]
pub struct Adaptive {
    /// Half of the width of each 95 % interval at most, as a share of the level.
    pub precision: f64,
    pub(super) sweeps: Vec<Sweep>,
}

/// The cells of one curve.
#[derive(Debug, Clone)]
pub(super) struct Sweep {
    /// Positions in the plan, by rising size.
    pub cells: Vec<usize>,
    pub curve: Curve,
    /// How long the measurement of a cell would have taken, where the experiment says so.
    pub length: Option<Nanos>,
}

/// Makes a plan adaptive: its cells end when their level is known, and it is another plan than the one that measures every cell.
///
/// # Errors
/// [`BadInput`] at the key that speaks against it, with what is accepted.
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
    let sweeps = sweeps.into_iter().map(|(_, cells)| sweep(plan, cells)).collect::<Result<_, _>>()?;
    for cell in &mut plan.cells {
        let length = &mut cell.settings.load.length;
        if let Some(max) = length.longest() {
            *length = Length::UntilSteady { max, precision: precision * OF_CELL };
        }
    }
    plan.beside = format!("\nadaptive, precision {precision}");
    Ok(Adaptive { precision, sweeps })
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
    if load.oltp.is_some() || load.inserts.is_some() {
        let key = if load.oltp.is_some() { "oltp" } else { "inserts" };
        return refuse(key, "what is known of size curves is not known of databases", "a `[workload]`");
    }
    if load.replay.is_some() || load.bursts().is_some() || !load.events.is_empty() {
        let message = "a load with a trace, pauses or events has no one level";
        return refuse("workload", message, "a load that goes on: `pattern = \"random-write\"`");
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

fn sweep(plan: &Plan, mut cells: Vec<usize>) -> Result<Sweep, BadInput> {
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
    let curve = Curve::new(&data, first.capacity.get() as f64, uniform_writes);
    Ok(Sweep { cells, curve, length })
}
