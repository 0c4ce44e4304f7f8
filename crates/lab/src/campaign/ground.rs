//! What the cells of a campaign run on: models, files of the host, a block device, or where databases lie.
//!
//! Leaves out running them, and how a target is prepared (`crate::prepare`).

use super::databases::Databases;
use crate::plan::{Plan, PlanTarget, PlannedCell};
use crate::prepare::{Block, Files, History, PreparedHost};
use crate::witness::Witness;
use lowtide_core::{Bytes, Seed};
use lowtide_host::HostError;
use lowtide_host::target::TargetSpec;
use lowtide_record::fact::Fact;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// What a campaign holds of this machine from its beginning to its end.
pub(super) enum Taken<'a> {
    /// Files, or a block device.
    Host(HostTarget<'a>),
    /// Where databases lie.
    Databases(Box<Databases<'a>>),
}

impl<'a> Taken<'a> {
    /// The target of a plan, if nothing speaks against it; `None` for models in virtual time.
    pub(super) fn of(plan: &'a Plan) -> Result<Option<Self>, HostError> {
        if plan.experiment.load.oltp.is_none() || plan.target.is_simulated() {
            return Ok(HostTarget::of(plan)?.map(Taken::Host));
        }
        Ok(Some(Taken::Databases(Box::new(Databases::of(plan)?))))
    }
}

/// What the cells of a group run on.
pub(super) enum Ground<'a> {
    /// Models in virtual time, by their names.
    Models(BTreeMap<String, History>),
    Host(Box<Host<'a>>),
    Databases(Box<Databases<'a>>),
}

/// Files of the host, or a block device.
pub(crate) enum HostTarget<'a> {
    Files(Files<'a>),
    Block(Box<Block>),
}

impl<'a> HostTarget<'a> {
    /// The target of a plan, if nothing speaks against it; `None` for a simulated one.
    fn of(plan: &'a Plan) -> Result<Option<Self>, HostError> {
        Ok(match &plan.target {
            PlanTarget::Simulated(_) | PlanTarget::Attached(_) => None,
            PlanTarget::Host(spec) => {
                check_files(plan, spec)?;
                Some(HostTarget::Files(Files::new(spec)))
            }
            PlanTarget::Block(block) => Some(HostTarget::Block(Box::new(Block::take(block)?))),
        })
    }
}

impl HostTarget<'_> {
    pub fn path(&self) -> &Path {
        match self {
            HostTarget::Files(files) => files.path(),
            HostTarget::Block(block) => block.path(),
        }
    }

    pub fn prepare(
        &mut self,
        cell: &PlannedCell,
        seed: Seed,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(lowtide_host::target::Progress),
    ) -> Result<PreparedHost<'_>, HostError> {
        match self {
            HostTarget::Files(files) => files.prepare(cell, seed, interrupt, progress),
            HostTarget::Block(block) => block.prepare(cell, seed, interrupt, progress),
        }
    }

    /// What watches its device, and what that says at the beginning.
    pub fn witness(&self) -> Option<(Witness, Vec<Fact>)> {
        match self {
            HostTarget::Files(files) => Witness::beneath(files.path()),
            HostTarget::Block(block) => Some(Witness::begin(block.disk().clone())),
        }
    }

    /// The filesystem made for the cell, and what the kernel mounted it with.
    pub fn mounted(&self) -> Option<String> {
        match self {
            HostTarget::Files(_) => None,
            HostTarget::Block(block) => block.mounted(),
        }
    }

    /// The load has written that much.
    pub fn count(&mut self, written: Bytes) {
        if let HostTarget::Block(block) = self {
            block.count(written);
        }
    }

    /// What a load could not use serves no other cell.
    pub fn give_up(&mut self) -> Result<(), HostError> {
        match self {
            HostTarget::Files(files) => files.remove(),
            HostTarget::Block(_) => Ok(()),
        }
    }

    pub fn finish(self) -> Result<(), HostError> {
        match self {
            HostTarget::Files(files) => files.finish(),
            HostTarget::Block(block) => block.finish(),
        }
    }
}

/// A campaign on the host.
pub(super) struct Host<'a> {
    pub target: HostTarget<'a>,
    pub witness: Option<Witness>,
    /// What the user was told, to be told once.
    pub said: BTreeSet<String>,
}

/// Refuses files of the host before anything is written.
fn check_files(plan: &Plan, spec: &TargetSpec) -> Result<(), HostError> {
    plan.cells.iter().try_for_each(|cell| lowtide_host::target::examine(spec, cell.files()?).map(drop))
}
