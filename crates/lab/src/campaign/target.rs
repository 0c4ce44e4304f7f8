//! The target of the cells of a campaign: one trait, with an implementation for each kind of target.
//!
//! Preparation is in `crate::prepare`, and measurement in `crate::load`.

use super::Cells;
use super::databases::Databases;
use super::modelled::ModelledDatabases;
use super::on_host::OnHost;
use super::simulated::Models;
use crate::cell_error::CellError;
use crate::experiment::Work;
use crate::load::Ended;
use crate::plan::{Plan, PlanTarget, PlannedCell};
use crate::prepare::{Block, Files};
use lowtide_host::HostError;
use lowtide_host::target::TargetSpec;
use lowtide_record::Row;
use lowtide_record::fact::Fact;

/// The result of running one cell.
pub(super) type CellOutcome = Result<Ended, CellError>;

/// A target on which cells run one after another.
pub(super) trait CellTarget {
    /// Facts to record before the first cell.
    fn begin(&mut self) -> Vec<Fact> {
        Vec::new()
    }

    /// Prepares the target for a cell, measures the cell, and appends its intervals to `rows`. On a model, a cell
    /// that was measured in an earlier run is only replayed.
    fn measure(&mut self, cells: &Cells<'_>, cell: &PlannedCell, rows: &mut Vec<Row>) -> CellOutcome;

    /// Records that a cell does not run because an earlier run measured it. Its writes are missing on the target.
    fn skip(&mut self, _cell: &PlannedCell) {}

    /// Restores the target, and returns facts to record.
    fn finish(self: Box<Self>) -> (Result<(), HostError>, Vec<Fact>) {
        (Ok(()), Vec::new())
    }
}

/// A target on this machine, held from the beginning of a campaign to its end.
pub(super) type HeldTarget<'a> = Box<dyn CellTarget + Send + 'a>;

/// Acquires the target of a plan, unless a check refuses it; `None` for models in virtual time.
pub(super) fn acquire(plan: &Plan) -> Result<Option<HeldTarget<'_>>, HostError> {
    let is_database = plan.experiment.load.work.is_transactions();
    Ok(match &plan.target {
        PlanTarget::Simulated(_) => None,
        PlanTarget::Host(spec) if !is_database => {
            check_files(plan, spec)?;
            Some(Box::new(OnHost::new(Box::new(Files::new(spec)))))
        }
        PlanTarget::Block(block) if !is_database => {
            Some(Box::new(OnHost::new(Box::new(Block::take(block)?))))
        }
        PlanTarget::Host(_) | PlanTarget::Block(_) | PlanTarget::Attached(_) => {
            Some(Box::new(Databases::of(plan)?))
        }
    })
}

/// The models of a plan, without a history yet.
pub(super) fn models(plan: &Plan) -> Box<dyn CellTarget + '_> {
    let PlanTarget::Simulated(devices) = &plan.target else {
        panic!("the group of cells on this machine takes the held target")
    };
    let models = Models::new(devices);
    match plan.experiment.load.work {
        Work::Transactions(_) => Box::new(ModelledDatabases { models }),
        Work::Requests | Work::Trace(_) | Work::Inserts(_) => Box::new(models),
    }
}

/// Checks the files under test before anything is written.
fn check_files(plan: &Plan, spec: &TargetSpec) -> Result<(), HostError> {
    plan.cells.iter().try_for_each(|cell| lowtide_host::target::examine(spec, cell.files()?).map(drop))
}
