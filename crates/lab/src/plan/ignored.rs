//! What an experiment asks for that its target cannot do, for people.
//!
//! A study of a drive runs on a disk of one's own, too, so none of this is refused: it is left out, and said.

use super::PlannedCell;
use crate::experiment::{Filesystem, Fill, Purge};

/// A line for each setting of `cells` that is left out or done in another way, in the order of the settings.
pub(super) fn on_files(cells: &[PlannedCell]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |line| once(&mut lines, line);
    for cell in cells {
        let preparation = &cell.settings.preparation;
        for (key, purge) in [("purge", preparation.purge), ("purge-before", cell.purge_before)] {
            if purge != Purge::None {
                say(format!("on files there is nothing to erase: `{key} = \"{purge}\"` is not done"));
            }
        }
        let layout = &preparation.layout;
        if layout.filesystem != Filesystem::None {
            let kind = layout.filesystem;
            say(format!("files lie on the filesystem that is there: `filesystem = \"{kind}\"` is not made"));
        }
        if layout.reserve > 0.0 {
            say(format!(
                "files leave free what the filesystem leaves free: `reserve = {}` is not kept",
                layout.reserve
            ));
        }
        if let Some(partition) = layout.partition {
            say(format!("files need no partition: `partition = \"{partition}\"` is not made"));
        }
        if layout.mkfs_trims {
            say("no filesystem is made for files: `mkfs-trims = true` is not done".to_owned());
        }
        if preparation.fill == Fill::Aged {
            say("nobody knows how much NAND there is: `fill = \"aged\"` writes every block once in random order".to_owned());
        }
        if preparation.fill == Fill::None && !cell.settings.load.work.is_transactions() {
            say("files are filled in order, whatever is asked: `fill = \"none\"` is not done".to_owned());
        }
        if let Some(name) = &preparation.scheduler {
            say(format!("the disk below files is others', too: `scheduler = \"{name}\"` is not set"));
        }
        if cell.settings.load.work.is_transactions() {
            on_databases(cell).into_iter().for_each(&mut say);
        }
        if !layout.mount_options.is_empty() {
            say(format!(
                "files lie on what is mounted: `mount-options = \"{}\"` is not done",
                layout.mount_options
            ));
        }
    }
    lines
}

/// The same for models, which have what the page of their device file says, and no kernel above them.
pub(super) fn on_models(cells: &[PlannedCell]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |line| once(&mut lines, line);
    for cell in cells {
        let preparation = &cell.settings.preparation;
        if let Some(name) = &preparation.scheduler {
            say(format!("models have no I/O scheduler: `scheduler = \"{name}\"` has no effect"));
        }
        let options = &preparation.layout.mount_options;
        if !options.is_empty() {
            say(format!(
                "models of filesystems take no options: `mount-options = \"{options}\"` has no effect"
            ));
        }
    }
    lines
}

/// The same for databases on a block device.
pub(super) fn on_blocks(cells: &[PlannedCell]) -> Vec<String> {
    let mut lines = Vec::new();
    let databases = cells.iter().filter(|cell| cell.settings.load.work.is_transactions());
    databases.flat_map(on_databases).for_each(|line| once(&mut lines, line));
    lines
}

/// The same for a database on anything that is not a model.
fn on_databases(cell: &PlannedCell) -> Vec<String> {
    let fill = cell.settings.preparation.fill;
    let fill = (fill != Fill::None).then(|| {
        format!("databases fill a real device with their own data: `fill = \"{fill}\"` is not done")
    });
    let writes = cell
        .precondition
        .map(|_| "databases write no others' data on a real device: `precondition` is not done".to_owned());
    fill.into_iter().chain(writes).collect()
}

fn once(lines: &mut Vec<String>, line: String) {
    if !lines.contains(&line) {
        lines.push(line);
    }
}
