//! Checks that a block device of the host can run the cells of a plan, before anything is written.
//!
//! The check that the device may be overwritten runs later, when the plan is carried out.

use super::{PlanTarget, PlannedCell};
use crate::experiment::{BadInput, Experiment, Filesystem, Fill, Layout, Purge, Work};
use lowtide_core::Bytes;
use lowtide_host::block::Erase;

/// Refuses operations that the device does not support.
pub(super) fn check(
    experiment: &Experiment,
    target: &PlanTarget,
    cells: &[PlannedCell],
) -> Result<(), BadInput> {
    if matches!(target, PlanTarget::Block(_) | PlanTarget::Attached(_)) {
        cells.iter().try_for_each(|cell| check_mount(experiment, &cell.settings.preparation.layout))?;
    }
    let PlanTarget::Block(planned) = target else { return Ok(()) };
    let disk = &planned.disk;
    for cell in cells {
        let preparation = &cell.settings.preparation;
        for (key, purge) in
            [("purge-before", cell.purge_before), ("before-each-cell.purge", preparation.purge)]
        {
            let path = disk.path.display();
            let fault = match erase(purge) {
                Some(erase) => erase.check(disk).err().map(|error| error.to_string()),
                None if purge == Purge::SecureErase => {
                    Some(format!("{path} is a real drive, and real drives have several ways to erase them"))
                }
                None if purge != Purge::None && !disk.discards() => {
                    Some(format!("{path} does not discard: `{purge}` would fail"))
                }
                None => None,
            };
            if let Some(fault) = fault {
                let help = "choose one, such as `--set purge=trim`: `none`, `trim`, `secure-discard`, \
                            `nvme-format`, `nvme-sanitize`, `ata-secure-erase`";
                return Err(experiment.blame(key, fault, help));
            }
        }
        if let Some(scheduler) = &preparation.scheduler {
            disk.check_scheduler(scheduler).map_err(|error| {
                experiment.blame("before-each-cell.scheduler", error.to_string(), "a scheduler of the device")
            })?;
        }
        let layout = &preparation.layout;
        let usable = super::cells::usable(&cell.settings, cell.capacity).unwrap_or(cell.capacity);
        let smallest = match layout.filesystem {
            Filesystem::None => Bytes::ZERO,
            Filesystem::Ext4 => Bytes::mib(8),
            Filesystem::Btrfs => Bytes::mib(128),
            Filesystem::Xfs => Bytes::mib(300),
        };
        if usable < smallest {
            let message = format!("{} needs {smallest}, and {usable} are available", layout.filesystem);
            return Err(experiment.blame("before-each-cell.layout", message, "a larger device or partition"));
        }
    }
    Ok(())
}

/// Refuses mount options that the filesystem does not have.
fn check_mount(experiment: &Experiment, layout: &Layout) -> Result<(), BadInput> {
    if layout.filesystem == Filesystem::None {
        return Ok(());
    }
    check_options(experiment, &layout.mount_options)?;
    let barrier = |option: &str| matches!(option, "nobarrier" | "barrier" | "barrier=0" | "barrier=1");
    if layout.filesystem == Filesystem::Xfs && layout.mount_options.split(',').any(barrier) {
        let message = format!("XFS has no such mount option since Linux 4.19: `{}`", layout.mount_options);
        return Err(experiment.blame("before-each-cell.layout", message, "leave it out"));
    }
    Ok(())
}

/// Mount options that add a layer between the load and the device, mount another device, or are not temporary.
const REFUSED: &str = "loop offset sizelimit bind rbind move remount ro user users owner group helper uhelper \
                       noauto _netdev encryption";

/// Refuses mount options with which the device would not be measured.
fn check_options(experiment: &Experiment, options: &str) -> Result<(), BadInput> {
    let odd = |option: &&str| {
        let name = option.split('=').next().unwrap_or_default();
        let own = name.starts_with("x-") || name.starts_with("X-");
        let plain = option.chars().all(|c| c.is_ascii_graphic()) && !option.starts_with('-');
        REFUSED.split(' ').any(|refused| refused == name) || own || !plain || option.is_empty()
    };
    match options.split(',').find(|option| !options.is_empty() && odd(option)) {
        None => Ok(()),
        Some(option) => Err(experiment.blame(
            "before-each-cell.layout",
            format!("the mount option `{option}` is not for measuring a device"),
            "options of the filesystem, separated by commas, such as `\"noatime,discard\"`",
        )),
    }
}

/// Returns whether all cells only read from the device.
pub(super) fn only_read(cells: &[PlannedCell]) -> bool {
    cells.iter().all(|cell| {
        let preparation = &cell.settings.preparation;
        let load = &cell.settings.load;
        // A trace that has not been read may contain writes.
        let reads = match &load.work {
            Work::Trace(replay) => replay.trace.as_ref().is_some_and(|trace| !trace.changes_data()),
            Work::Requests => load.workload().reads_only(),
            Work::Inserts(_) | Work::Transactions(_) => false,
        };
        reads
            && cell.precondition.is_none()
            && (cell.purge_before, preparation.purge) == (Purge::None, Purge::None)
            && preparation.fill == Fill::None
            && preparation.layout.filesystem == Filesystem::None
            && preparation.scheduler.is_none()
    })
}

/// The drive command for a purge; `None` if the kernel purges the drive.
pub(crate) fn erase(purge: Purge) -> Option<Erase> {
    match purge {
        Purge::NvmeFormat => Some(Erase::NvmeFormat),
        Purge::NvmeSanitize => Some(Erase::NvmeSanitize),
        Purge::AtaSecureErase => Some(Erase::AtaSecure),
        Purge::None | Purge::Trim | Purge::SecureErase | Purge::SecureDiscard => None,
    }
}
