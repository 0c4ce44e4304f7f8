//! `[[step]]`: several passes over the sweep in order, with different preparation on the same history.
//!
//! A step has only the keys that differ. `purge`, `layout` and `fill` replace the keys of `[before-each-cell]` one by
//! one, a factor in its `sweep` replaces that factor in `[sweep]`, its `duration` replaces that of `[workload]`, and
//! keys of its `repeat` replace those of `[repeat]`. An experiment without steps has one step without a name. Not
//! here: the order of cells (`plan`).

use super::length::Length;
use super::level::{FactorName, Level};
use super::load::Load;
use super::prepare::{Precondition, Preparation, Purge};
use super::read::{Entry, Table};
use super::repeat::{self, Repeat};
use super::schema;
use super::sweep::{self, Factor};
use lowtide_core::Nanos;
use serde::{Deserialize, Serialize};

/// The most cells of an experiment. A larger number is probably a typing error.
pub(super) const MOST_CELLS: u128 = 100_000;

/// One pass over a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its name; `None` in an experiment without steps.
    pub name: Option<String>,
    /// The purge before its first cell.
    pub purge_before: Purge,
    /// The writes before its first cell, after the purge.
    pub precondition: Option<Precondition>,
    /// The preparation before each of its cells.
    pub preparation: Preparation,
    /// Its factors. The first factor varies slowest.
    pub sweep: Vec<Factor>,
    /// The duration of each of its measurements; `None` for the end given in the workload.
    pub duration: Option<Nanos>,
    /// The repetitions of its cells.
    pub repeat: Repeat,
}

/// The settings of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The simulated device, if the target is one.
    pub device: Option<String>,
    /// The preparation before the measurement.
    pub preparation: Preparation,
    /// The load of the measurement.
    pub load: Load,
}

impl Settings {
    /// Applies a step's own duration.
    pub(super) fn lasts(&mut self, duration: Nanos) {
        self.load.length = Length::For(duration);
        self.load.interval = self.load.interval.min(duration);
    }

    /// Applies a factor's level.
    pub(super) fn set(&mut self, level: &Level) {
        match level {
            Level::Reserve(reserve) => self.preparation.layout.reserve = *reserve,
            Level::Partition(size) => self.preparation.layout.partition = Some(*size),
            Level::Idle(span) => self.preparation.idle = *span,
            Level::Filesystem(kind) => self.preparation.layout.filesystem = *kind,
            Level::MountOptions(options) => self.preparation.layout.mount_options = options.clone(),
            Level::Scheduler(name) => self.preparation.scheduler = Some(name.clone()),
            Level::Device(device) => self.device = Some(device.clone()),
            level => self.load.set(level),
        }
    }
}

impl Step {
    /// Every combination of levels, in order: the last factor varies fastest. Without factors there is one
    /// point without levels.
    pub fn points(&self) -> impl Iterator<Item = Vec<Level>> + '_ {
        let count: u64 = self.sweep.iter().map(|factor| factor.levels.len() as u64).product();
        (0..count).map(|mut index| {
            let mut point: Vec<Level> = Vec::with_capacity(self.sweep.len());
            for factor in self.sweep.iter().rev() {
                let levels = factor.levels.len() as u64;
                point.push(factor.levels[(index % levels) as usize].clone());
                index /= levels;
            }
            point.reverse();
            point
        })
    }

    /// The number of cells of the step: points times repetitions.
    fn cells(&self) -> u128 {
        let levels = self.sweep.iter().map(|factor| factor.levels.len() as u128);
        levels.fold(u128::from(self.repeat.times.max(1)), u128::saturating_mul)
    }

    /// The factor with this name; `None` if the step does not vary it.
    pub fn factor(&self, name: FactorName) -> Option<&Factor> {
        self.sweep.iter().find(|factor| factor.name == name)
    }
}

/// The number of cells of all steps, if it is above [`MOST_CELLS`].
pub(super) fn too_many_cells(steps: &[Step]) -> Option<u128> {
    let cells = steps.iter().map(Step::cells).fold(0, u128::saturating_add);
    (cells > MOST_CELLS).then_some(cells)
}

/// Reads the steps, whose keys replace those of the experiment.
pub(super) fn read(
    tables: Vec<Table<'_>>,
    preparation: Preparation,
    sweep: Vec<Factor>,
    repeat: Repeat,
) -> Vec<Step> {
    let (purge_before, precondition, duration) = (Purge::None, None, None);
    let base = Step { name: None, purge_before, precondition, preparation, sweep, duration, repeat };
    let mut steps: Vec<Step> = Vec::new();
    for table in tables {
        table.only(&schema::STEP);
        let mut step = base.clone();
        if let Some(entry) = table.require("name", "\"second pass\"") {
            step.name = entry.text("\"second pass\"");
            if step.name.is_some() && steps.iter().any(|earlier| earlier.name == step.name) {
                entry.refuse::<()>("a second step of this name", "a name of its own for each step");
            }
        }
        table.update("purge-before", &mut step.purge_before, Entry::word);
        step.precondition = table.get("precondition").and_then(|entry| Precondition::read(&entry));
        step.preparation = step.preparation.with(&table);
        step.duration = table.get("duration").and_then(|entry| entry.some_time());
        if let Some(own) = table.get("repeat").and_then(|entry| entry.table()) {
            step.repeat = repeat::read(&own, step.repeat);
        }
        if let Some(own) = table.get("sweep").and_then(|entry| entry.table()) {
            for factor in sweep::read(&own) {
                match step.sweep.iter_mut().find(|base| base.name == factor.name) {
                    Some(base) => *base = factor,
                    None => step.sweep.push(factor),
                }
            }
        }
        steps.push(step);
    }
    if steps.is_empty() { vec![base] } else { steps }
}
