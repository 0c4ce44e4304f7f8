//! What an experiment asks for that files, or a device, of the host cannot do, for people.
//!
//! A study of a drive runs on a disk of one's own, too, so none of this is refused: it is left out, and said.

use super::PlannedCell;
use crate::experiment::{Filesystem, Fill, Purge};

/// A line for each setting of `cells` that is left out or done in another way, in the order of the settings.
pub(super) fn on_files(cells: &[PlannedCell]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |line: String| {
        if !lines.contains(&line) {
            lines.push(line);
        }
    };
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
        match preparation.fill {
            Fill::Sequential => {}
            fill => {
                say(format!("files are filled in order, whatever is asked: `fill = \"{fill}\"` is not done"))
            }
        }
    }
    lines
}

/// The same for a block device.
pub(super) fn on_block(cells: &[PlannedCell]) -> Vec<String> {
    let random = cells.iter().any(|cell| cell.settings.preparation.fill == Fill::Random);
    let line = "devices are filled in order, whatever is asked: `fill = \"random\"` is not done";
    random.then(|| line.to_owned()).into_iter().collect()
}
