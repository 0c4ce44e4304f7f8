//! Simulated drives as the home of databases ([`Drives`]). A drive is attached for a cell with the history that the
//! cell asks for, and the next cell continues this history.
//!
//! No model lays out the files of a database, so `fill` and `precondition` apply to the entire usable part of the
//! drive, before the filesystem is made. A cell that would continue an unknown history is refused, never measured on
//! a new drive. Module `live::attached` attaches the drives.

use super::History;
use super::data_set::{Copies, log_device};
use super::home::{Home, Ready};
use crate::cell_error::CellError;
use crate::experiment::{Filesystem, Settings};
use crate::plan::{Plan, PlannedCell, PlannedDevice, cells};
use lowtide_core::{BlockDevice, Bytes, Counters, Seed};
use lowtide_engines::Preset;
use lowtide_host::HostError;
use lowtide_host::block::{Disk, Traffic};
use lowtide_live::attached::{self, AttachOptions, Attached};
use lowtide_live::{Data, Offer, Stat};
use lowtide_record::analysis::Medium;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The scheduler of an attached drive: the default of Linux for drives with one queue, which lets reads pass writes.
const SCHEDULER: &str = "mq-deadline";
/// The queue depth of an attached drive: that of SATA's native command queuing. With the depth of a loop device, 128,
/// reads would wait for up to 127 writes.
const QUEUE: u32 = 32;

/// The drives of a campaign.
pub(crate) struct Drives<'a> {
    devices: &'a BTreeMap<String, PlannedDevice>,
    scale: u64,
    /// The folder for the contents of the drives.
    contents: PathBuf,
    /// The models of used drives, by name; `None` if the history is unknown, or the drive is attached.
    histories: BTreeMap<String, Option<History>>,
    data: Option<Drive>,
    log: Option<Drive>,
}

/// An attached drive.
struct Drive {
    /// The name of the device in the experiment.
    name: String,
    /// `None` if a cell was skipped after the drive was attached, so that later cells cannot continue the history.
    history: Option<History>,
    attached: Attached,
    /// Its statistics at the beginning of the measurement.
    begun: Option<Stat>,
}

/// The devices of a cell: the device of the data, and the device of the log if the two differ.
pub fn devices(settings: &Settings) -> impl Iterator<Item = &str> {
    settings.device.as_deref().into_iter().chain(log_device(settings))
}

/// Returns whether a cell begins with erased drives.
pub fn erases(cell: &PlannedCell) -> bool {
    cell.purge_before.erases() || cell.settings.preparation.forgets_history()
}

impl<'a> Drives<'a> {
    /// Detaches the drives of killed campaigns. Attaches no drive.
    pub fn new(devices: &'a BTreeMap<String, PlannedDevice>, plan: &Plan) -> Result<Self, HostError> {
        attached::clean()?;
        let (histories, contents) = (BTreeMap::new(), std::env::temp_dir());
        Ok(Drives { devices, scale: plan.scale, contents, histories, data: None, log: None })
    }

    /// Attaches a device with the history that the cell asks for. Also returns the bytes written since its last
    /// purge.
    fn attach(
        &mut self,
        name: String,
        cell: &PlannedCell,
        seed: Seed,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<(Drive, Bytes), CellError> {
        let planned = &self.devices[&name];
        let on_drive = &mut cell.clone();
        let capacity = planned.spec.capacity();
        let usable = cells::usable(&cell.settings, capacity).expect("the plan checked the partition");
        on_drive.data = usable;
        on_drive.settings.preparation.layout.filesystem = Filesystem::None;
        // The history is unknown until the drive is detached.
        let before = self.histories.insert(name.clone(), None);
        let mut history = known_history(&name, before, cell)?.unwrap_or_else(|| {
            // The seed of a device does not depend on the first cell that uses it.
            History::new(&planned.spec, Seed::new(seed.get()).part("device", 0))
        });
        let prepared = history.prepare(on_drive, seed)?;
        let written = prepared.written_before;
        let offer =
            Offer { scale: self.scale, data: Data::File(self.contents.clone()), seed, ..Offer::of(&name) };
        let layout = &cell.settings.preparation.layout;
        let wanted = AttachOptions {
            offer,
            history: Some(prepared.history()),
            filesystem: layout.filesystem.made().expect("the plan asked for a filesystem"),
            size: (usable < capacity).then_some(usable),
            trims: layout.mkfs_trims,
            options: &layout.mount_options,
            server: attached::server(),
            interrupt,
        };
        let attached = Attached::new(wanted)?;
        // A filesystem on several devices has no single disk below it.
        if let Some(disk) = Disk::beneath(attached.path()) {
            let scheduler = cell.settings.preparation.scheduler.as_deref().unwrap_or(SCHEDULER);
            disk.queue(scheduler, QUEUE)?;
            disk.set_rotational(planned.spec.is_rotational() || wants_neighbours(cell))?;
        }
        Ok((Drive { name, history: Some(history), attached, begun: None }, written))
    }

    /// Detaches the drives, and keeps their models with their history.
    fn detach(&mut self) -> Result<(), CellError> {
        let both = [self.data.take(), self.log.take()].into_iter().flatten();
        // Both drives are detached, even if the first fails.
        let results: Vec<_> = both.map(|drive| self.detach_one(drive)).collect();
        results.into_iter().collect()
    }

    fn detach_one(&mut self, drive: Drive) -> Result<(), CellError> {
        let Drive { name, history, attached, .. } = drive;
        let returned = attached.detach()?;
        if let Some(mut history) = history {
            history.take_back(returned.model, returned.now);
            self.histories.insert(name, Some(history));
        }
        Ok(())
    }

    fn attached(&mut self) -> impl Iterator<Item = &mut Drive> {
        [&mut self.data, &mut self.log].into_iter().flatten()
    }
}

impl Home for Drives<'_> {
    fn copies(&self) -> Copies {
        Copies::Contents
    }

    fn skip(&mut self, cell: &PlannedCell) {
        for name in devices(&cell.settings) {
            self.histories.insert(name.to_owned(), None);
            self.attached().filter(|drive| drive.name == name).for_each(|drive| drive.history = None);
        }
    }

    fn prepare(
        &mut self,
        cell: &PlannedCell,
        seed: Seed,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Ready, CellError> {
        self.detach()?;
        let name = cell.settings.device.clone().expect("a simulated target names its device");
        let (drive, written) = self.attach(name, cell, seed, interrupt)?;
        let raw_capacity = drive.history.as_ref().and_then(|history| history.drive().raw_capacity());
        let medium = if raw_capacity.is_some() { Medium::Flash } else { Medium::Other };
        let data = drive.attached.path().to_owned();
        self.data = Some(drive);
        if let Some(name) = log_device(&cell.settings) {
            let (drive, _) = self.attach(name.to_owned(), cell, seed.part("log", 0), interrupt)?;
            self.log = Some(drive);
        }
        let log = self.log.as_ref().map(|drive| drive.attached.path().to_owned());
        Ok(Ready { data, log, capacity: cell.capacity, raw_capacity, medium, written: Some(written) })
    }

    fn begin(&mut self, ready: &mut Ready, copied: Bytes) -> Result<(), CellError> {
        ready.settle(copied)?;
        for drive in self.attached() {
            drive.attached.remount()?;
            drive.attached.at_its_pace()?;
            drive.begun = drive.attached.stat().ok();
        }
        Ok(())
    }

    fn end(&mut self) -> Result<Vec<String>, CellError> {
        let mut warnings = Vec::new();
        for (what, drive) in [("", &self.data), ("the log's drive: ", &self.log)] {
            let Some(drive) = drive else { continue };
            let stat = drive.attached.stat().ok();
            let late = stat.and_then(|stat| stat.too_slow_since(drive.begun.as_ref()));
            warnings.extend(late.map(|late| format!("{what}{late}")));
            drive.attached.at_once()?;
        }
        Ok(warnings)
    }

    fn activity(&self) -> (Option<Traffic>, Option<Counters>) {
        let stat = self.data.as_ref().and_then(|drive| drive.attached.stat().ok());
        let traffic = stat.as_ref().map(|stat| Traffic {
            reads: stat.reads.latency.count,
            read: Bytes::new(stat.reads.bytes),
            writes: stat.writes.latency.count,
            written: Bytes::new(stat.writes.bytes),
        });
        (traffic, stat.map(|stat| stat.since_new))
    }

    fn finish(mut self: Box<Self>) -> Result<(), HostError> {
        // If another process still holds a drive, the next campaign detaches it and reports an error.
        let _ = self.detach();
        attached::clean().map(drop)
    }
}

/// The history of a device that a cell continues; `None` for a new device. `before` is `None` if no cell used the
/// device, and `Some(None)` if its history is unknown.
///
/// # Errors
/// [`CellError::UnknownHistory`] if the history is unknown and the cell needs it.
fn known_history<H>(
    name: &str,
    before: Option<Option<H>>,
    cell: &PlannedCell,
) -> Result<Option<H>, CellError> {
    match before {
        Some(None) if !erases(cell) => Err(CellError::UnknownHistory(name.to_owned())),
        before => Ok(before.flatten()),
    }
}

/// Returns whether servers are to write dirty neighbours of a page. Current servers write neighbours only on a
/// rotational device.
fn wants_neighbours(cell: &PlannedCell) -> bool {
    cell.settings.load.work.transactions().is_some_and(|oltp| {
        let of_2010 = oltp.settings.preset == Some(Preset::Y2010);
        oltp.settings.flush_neighbours.unwrap_or(of_2010)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    fn plan(more: &str) -> Plan {
        let text = format!(
            "name = \"test\"\ntarget.device = \"intel-x25-e-32gb\"\n[oltp]\nduration = \"1s\"\n{more}"
        );
        Plan::new(Experiment::parse("test.toml", &text, &[]).expect("valid"), Seed::new(1), 1).expect("plans")
    }

    /// Symptom: cells after a resumed cell, or after a lost drive, were measured on a new drive without a warning,
    /// and without the purge and the precondition of their step. Cause: a drive missing in the map counted as new.
    /// Fix: the map has every used drive, and a cell that needs an unknown history is refused.
    #[test]
    fn a_cell_continues_a_known_history_or_is_refused() {
        let cell = |purge: &str| {
            let before = "[before-each-cell]\nlayout = { filesystem = \"xfs\" }\n";
            plan(&format!("{before}purge = \"{purge}\"\n[repeat]\ntimes = 2\n")).cells.remove(1)
        };
        for (purge, before, wanted) in [
            ("none", None, Ok(None)),
            ("none", Some(Some(7)), Ok(Some(7))),
            ("none", Some(None), Err(())),
            ("trim", Some(None), Err(())),
            ("secure-erase", Some(None), Ok(None)),
            ("secure-erase", Some(Some(7)), Ok(Some(7))),
        ] {
            let found = known_history("intel-x25-e-32gb", before, &cell(purge));
            let text = format!("{purge}, {before:?}: {found:?}");
            if let Err(error) = &found {
                let error = error.to_string();
                assert!(error.contains("intel-x25-e-32gb") && error.contains("--resume"), "{error}");
            }
            assert_eq!(found.map_err(drop), wanted, "{text}");
        }
    }

    #[test]
    fn the_history_after_a_skipped_cell_is_unknown() {
        let plan = plan(
            "log_device = \"raptor-10k-150gb\"\n[before-each-cell]\nlayout = { filesystem = \"xfs\" }\n",
        );
        let (devices, histories, contents) = (BTreeMap::new(), BTreeMap::new(), PathBuf::new());
        let mut drives = Drives { devices: &devices, scale: 1, contents, histories, data: None, log: None };
        drives.skip(&plan.cells[0]);
        let known: Vec<(&str, bool)> =
            drives.histories.iter().map(|(name, it)| (name.as_str(), it.is_some())).collect();
        assert_eq!(known, [("intel-x25-e-32gb", false), ("raptor-10k-150gb", false)]);
    }
}
