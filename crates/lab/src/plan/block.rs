//! What a block device of the host must be able to do for the cells of a plan, known before anything is written.
//!
//! Leaves out whether it may be overwritten: that is asked when the plan is carried out.

use super::{PlanTarget, PlannedCell};
use crate::experiment::{BadInput, Experiment, Filesystem, Fill, Purge};
use crate::prepare;

/// Refuses what the device cannot do.
pub(super) fn check(
    experiment: &Experiment,
    target: &PlanTarget,
    cells: &[PlannedCell],
) -> Result<(), BadInput> {
    let PlanTarget::Block(planned) = target else { return Ok(()) };
    let disk = &planned.disk;
    for cell in cells {
        let preparation = &cell.settings.preparation;
        for (key, purge) in
            [("purge-before", cell.purge_before), ("before-each-cell.purge", preparation.purge)]
        {
            let refuse = |message: String| {
                let ways =
                    "`none`, `trim`, `secure-discard`, `nvme-format`, `nvme-sanitize`, `ata-secure-erase`";
                let help = format!("say which is meant, such as `--set purge=trim`: {ways}");
                experiment.blame(key, message, help)
            };
            let path = disk.path.display();
            match prepare::erase(purge) {
                Some(erase) => erase.check(disk).map_err(|error| refuse(error.to_string()))?,
                None if purge == Purge::SecureErase => {
                    return Err(refuse(format!(
                        "drives have several ways to erase themselves, and {path} is a real one"
                    )));
                }
                None if purge != Purge::None && !disk.discards() => {
                    return Err(refuse(format!("{path} does not discard: `{purge}` would fail")));
                }
                None => {}
            }
        }
        if let Some(scheduler) = &preparation.scheduler {
            disk.check_scheduler(scheduler).map_err(|error| {
                experiment.blame("before-each-cell.scheduler", error.to_string(), "one of those it has")
            })?;
        }
        let layout = &preparation.layout;
        let barrier = |option: &str| matches!(option, "nobarrier" | "barrier" | "barrier=0" | "barrier=1");
        if layout.filesystem == Filesystem::Xfs && layout.mount_options.split(',').any(barrier) {
            let message =
                format!("XFS has no such mount option since Linux 4.19: `{}`", layout.mount_options);
            return Err(experiment.blame("before-each-cell.layout", message, "leave it out"));
        }
    }
    Ok(())
}

/// Whether no cell changes anything on the device.
pub(super) fn only_read(cells: &[PlannedCell]) -> bool {
    cells.iter().all(|cell| {
        let preparation = &cell.settings.preparation;
        cell.settings.load.workload().reads_only()
            && (cell.purge_before, preparation.purge) == (Purge::None, Purge::None)
            && preparation.fill == Fill::None
            && preparation.layout.filesystem == Filesystem::None
            && preparation.scheduler.is_none()
    })
}
