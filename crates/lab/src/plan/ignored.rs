//! Messages about settings of an experiment that its target ignores.
//!
//! An experiment for a simulated drive can run on the user's own disk. Settings that the target does not support are
//! therefore ignored and reported instead of refused.

use super::{PlanTarget, PlannedCell};
use crate::experiment::{Filesystem, Fill, Purge};

/// The messages about all cells, each once, in the order of the cells.
pub(super) fn all(cells: &[PlannedCell], target: &PlanTarget) -> Vec<String> {
    let mut all = Vec::new();
    for cell in cells {
        let messages = match target {
            PlanTarget::Simulated(_) => on_model(cell),
            PlanTarget::Host(_) => on_files(cell),
            PlanTarget::Block(_) => of_databases(cell),
            PlanTarget::Attached(_) => Vec::new(),
        };
        for message in messages {
            if !all.contains(&message) {
                all.push(message);
            }
        }
    }
    all
}

/// Ignored settings of a cell on files.
fn on_files(cell: &PlannedCell) -> Vec<String> {
    let mut messages = Vec::new();
    let mut add = |message: String| messages.push(message);
    let preparation = &cell.settings.preparation;
    for (key, purge) in [("purge", preparation.purge), ("purge-before", cell.purge_before)] {
        if purge != Purge::None {
            add(format!("files cannot be erased: `{key} = \"{purge}\"` is ignored"));
        }
    }
    let layout = &preparation.layout;
    if layout.filesystem != Filesystem::None {
        let kind = layout.filesystem;
        add(format!("files are on an existing filesystem: `filesystem = \"{kind}\"` is ignored"));
    }
    if layout.reserve > 0.0 {
        add(format!(
            "files use the free space of their filesystem: `reserve = {}` is ignored",
            layout.reserve
        ));
    }
    if let Some(partition) = layout.partition {
        add(format!("files have no partition: `partition = \"{partition}\"` is ignored"));
    }
    if layout.mkfs_trims {
        add("no filesystem is made for files: `mkfs-trims = true` is ignored".to_owned());
    }
    if preparation.fill == Fill::Aged {
        let done = "writes every block once in random order";
        add(format!("the NAND capacity of a real drive is unknown: `fill = \"aged\"` {done}"));
    }
    if preparation.fill == Fill::None && !cell.settings.load.work.is_transactions() {
        add("files are always filled, in order: `fill = \"none\"` is ignored".to_owned());
    }
    if let Some(name) = &preparation.scheduler {
        add(format!("other programs use the disk below the files: `scheduler = \"{name}\"` is ignored"));
    }
    of_databases(cell).into_iter().for_each(&mut add);
    if !layout.mount_options.is_empty() {
        let options = &layout.mount_options;
        add(format!("files are on a mounted filesystem: `mount-options = \"{options}\"` is ignored"));
    }
    messages
}

/// Ignored settings of a cell on a model, which has no kernel above it.
fn on_model(cell: &PlannedCell) -> Vec<String> {
    let preparation = &cell.settings.preparation;
    let scheduler = preparation.scheduler.as_ref();
    let scheduler =
        scheduler.map(|name| format!("models have no I/O scheduler: `scheduler = \"{name}\"` is ignored"));
    let options = Some(&preparation.layout.mount_options).filter(|options| !options.is_empty());
    let options = options.map(|options| {
        format!("models of filesystems have no options: `mount-options = \"{options}\"` is ignored")
    });
    scheduler.into_iter().chain(options).collect()
}

/// Ignored settings of a cell with a database on a real device.
fn of_databases(cell: &PlannedCell) -> Vec<String> {
    if !cell.settings.load.work.is_transactions() {
        return Vec::new();
    }
    let fill = cell.settings.preparation.fill;
    let fill = (fill != Fill::None)
        .then(|| format!("databases fill a real device with their own data: `fill = \"{fill}\"` is ignored"));
    let precondition = cell.precondition.map(|_| {
        "databases write only their own data to a real device: `precondition` is ignored".to_owned()
    });
    fill.into_iter().chain(precondition).collect()
}
