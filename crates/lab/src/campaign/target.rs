//! What the cells of a campaign run on: one trait, with an implementation for each kind of target.
//!
//! Not here: how a target is prepared (`crate::prepare`) and what is measured (`crate::load`).

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

/// A target that cells run on, one after the other.
pub(super) trait CellTarget {
    /// Facts to record before the first cell.
    fn begin(&mut self) -> Vec<Fact> {
        Vec::new()
    }

    /// Prepares the target for a cell and measures it; `rows` takes what was measured.
    ///
    /// # Errors
    /// Why the cell failed.
    fn measure(
        &mut self,
        cells: &Cells<'_>,
        cell: &PlannedCell,
        rows: &mut Vec<Row>,
    ) -> Result<Ended, CellError>;

    /// Notes a cell that was measured in an earlier run: what it wrote is not on the target now.
    fn skip(&mut self, _cell: &PlannedCell) {}

    /// Undoes what was done for the campaign, and returns facts to record.
    fn finish(self: Box<Self>) -> (Result<(), HostError>, Vec<Fact>) {
        (Ok(()), Vec::new())
    }
}

/// A target of this machine, held from the beginning of a campaign to its end.
pub(super) type HeldTarget<'a> = Box<dyn CellTarget + Send + 'a>;

/// Acquires the target of a plan, unless a check refuses it; `None` for models in virtual time.
pub(super) fn take(plan: &Plan) -> Result<Option<HeldTarget<'_>>, HostError> {
    let asks_database = plan.experiment.load.work.is_transactions();
    Ok(match &plan.target {
        PlanTarget::Simulated(_) => None,
        PlanTarget::Host(spec) if !asks_database => {
            check_files(plan, spec)?;
            Some(Box::new(OnHost::new(Box::new(Files::new(spec)))))
        }
        PlanTarget::Block(block) if !asks_database => {
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
        panic!("cells on this machine are one group, which takes the target")
    };
    let models = Models::new(devices);
    match plan.experiment.load.work {
        Work::Transactions(_) => Box::new(ModelledDatabases { models }),
        Work::Requests | Work::Trace(_) | Work::Inserts(_) => Box::new(models),
    }
}

/// Refuses files of the host before anything is written.
fn check_files(plan: &Plan, spec: &TargetSpec) -> Result<(), HostError> {
    plan.cells.iter().try_for_each(|cell| lowtide_host::target::examine(spec, cell.files()?).map(drop))
}
