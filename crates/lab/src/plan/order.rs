//! The order of the points of a step, and the groups of cells that run one after another.
//!
//! The number of groups that run at the same time is in module `campaign`.

use super::{PlanTarget, PlannedCell};
use crate::experiment::{Level, Order, Repeat, Step};
use lowtide_core::Seed;
use lowtide_core::rng::shuffle;
use std::collections::BTreeMap;

/// The points of a step with their repetitions, in the order in which they run.
pub(super) fn arrange(step: &Step, repeat: &Repeat) -> Vec<(Vec<Level>, u32)> {
    let times = repeat.times.max(1);
    let points: Vec<Vec<Level>> = step.points().collect();
    let by_point =
        || points.iter().flat_map(|point| (1..=times).map(move |repetition| (point.clone(), repetition)));
    match repeat.order {
        Order::AsWritten => by_point().collect(),
        Order::Interleaved => (1..=times)
            .flat_map(|repetition| points.iter().map(move |point| (point.clone(), repetition)))
            .collect(),
        Order::Shuffled => {
            let mut all: Vec<_> = by_point().collect();
            let mut rng = Seed::new(repeat.seed).part("order", 0).stream();
            shuffle(&mut rng, &mut all);
            all
        }
    }
}

/// Groups of cells that share history. On a simulated device a group ends before a cell that erases the drive. On the
/// host all cells are one group, so that no two cells run at the same time.
pub(super) fn groups(cells: &[PlannedCell], target: &PlanTarget) -> Vec<Vec<usize>> {
    if !target.is_simulated() {
        return vec![(0..cells.len()).collect()];
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut open: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for (index, cell) in cells.iter().enumerate() {
        let erased = cell.purge_before.erases() || cell.settings.preparation.forgets_history();
        let device = cell.settings.device.as_deref();
        match open.get(&device) {
            Some(&group) if !erased => groups[group].push(index),
            _ => {
                open.insert(device, groups.len());
                groups.push(vec![index]);
            }
        }
    }
    groups
}
