//! Simulated drives as the home of databases: attached for a cell, with the history it asks for, which goes on in the next.
//!
//! A database is not laid out by a model: what `fill` and `precondition` say is done to the whole of the drive that is used,
//! before the filesystem is made. A cell that goes on from what is not known any more is refused: it would be measured on a
//! new drive. Not here: how a drive is attached (`live::attached`).

use super::History;
use super::data_set::log_device;
use super::home::Ready;
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

/// The scheduler of an attached drive: Linux gives it to drives with one queue, and it lets reads pass writes.
const SCHEDULER: &str = "mq-deadline";
/// Requests that reach an attached drive at a time: the native command queue of SATA. A loop device alone would pass 128 on, and
/// reads would wait behind all the writes among them.
const QUEUE: u32 = 32;

/// The drives of a campaign.
pub(crate) struct Drives<'a> {
    devices: &'a BTreeMap<String, PlannedDevice>,
    scale: u64,
    /// What lies on them is kept in this folder.
    contents: PathBuf,
    /// Models of drives that were used, where what became of them is known and they are not attached.
    histories: BTreeMap<String, Option<History>>,
    data: Option<Drive>,
    log: Option<Drive>,
}

/// An attached drive.
struct Drive {
    /// The device, as the experiment calls it.
    name: String,
    /// `None` where a cell was left out since: whoever comes next cannot go on from it.
    history: Option<History>,
    attached: Attached,
    /// What it had counted when the measurement began.
    begun: Option<Stat>,
}

/// The devices of a cell: that of the data, and that of the log where that is another.
pub fn devices(settings: &Settings) -> impl Iterator<Item = &str> {
    settings.device.as_deref().into_iter().chain(log_device(settings))
}

/// Whether a cell begins with drives as new.
pub fn erases(cell: &PlannedCell) -> bool {
    cell.purge_before.erases() || cell.settings.preparation.forgets_history()
}

impl<'a> Drives<'a> {
    /// None attached yet; what killed campaigns left attached is taken apart.
    pub fn new(devices: &'a BTreeMap<String, PlannedDevice>, plan: &Plan) -> Result<Self, HostError> {
        attached::clean()?;
        Ok(Drives {
            devices,
            scale: plan.scale,
            contents: std::env::temp_dir(),
            histories: BTreeMap::new(),
            data: None,
            log: None,
        })
    }

    /// Attaches the drives of a cell, which answer at once.
    pub fn prepare(
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

    /// Attaches a device with the history that the cell asks for; with it, what was written since its last purge.
    fn attach(
        &mut self,
        name: String,
        cell: &PlannedCell,
        seed: Seed,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<(Drive, Bytes), CellError> {
        let planned = &self.devices[&name];
        let whole = &mut cell.clone();
        let capacity = planned.spec.capacity();
        let usable = cells::usable(&cell.settings, capacity).expect("the plan checked the partition");
        whole.data = usable;
        whole.settings.preparation.layout.filesystem = Filesystem::None;
        // Until it comes back nothing is known of it.
        let before = self.histories.insert(name.clone(), None);
        let mut history = goes_on(&name, before, cell)?.unwrap_or_else(|| {
            // One device, one seed, whichever cell comes first.
            History::new(&planned.spec, Seed::new(seed.get()).part("device", 0))
        });
        let prepared = history.prepare(whole, seed)?;
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
        // Filesystems of several devices have no disk beneath them that could be told.
        if let Some(disk) = Disk::beneath(attached.path()) {
            let scheduler = cell.settings.preparation.scheduler.as_deref().unwrap_or(SCHEDULER);
            disk.queue(scheduler, QUEUE)?;
            disk.set_rotational(planned.spec.is_rotational() || wants_neighbours(cell))?;
        }
        Ok((Drive { name, history: Some(history), attached, begun: None }, written))
    }

    /// The drives answer at their pace, and the kernel remembers nothing of what lies on them.
    pub fn begin(&mut self) -> Result<(), CellError> {
        for drive in [&mut self.data, &mut self.log].into_iter().flatten() {
            drive.attached.remount()?;
            drive.attached.at_its_pace()?;
            drive.begun = drive.attached.stat().ok();
        }
        Ok(())
    }

    /// The drives answer at once. What is to be said of those whose answers came too late.
    pub fn end(&mut self) -> Result<Vec<String>, CellError> {
        let mut late = Vec::new();
        for (what, drive) in [("", &self.data), ("the log's drive: ", &self.log)] {
            let Some(drive) = drive else { continue };
            let stat = drive.attached.stat().ok();
            let why = stat.and_then(|stat| stat.too_slow_since(drive.begun.as_ref()));
            late.extend(why.map(|why| format!("{what}{why}")));
            drive.attached.at_once()?;
        }
        Ok(late)
    }

    /// What the drive of the data has done so far; `None` where it does not answer.
    pub fn done(&self) -> (Option<Traffic>, Option<Counters>) {
        let stat = self.data.as_ref().and_then(|drive| drive.attached.stat().ok());
        let traffic = stat.as_ref().map(|stat| Traffic {
            reads: stat.reads.latency.count,
            read: Bytes::new(stat.reads.bytes),
            writes: stat.writes.latency.count,
            written: Bytes::new(stat.writes.bytes),
        });
        (traffic, stat.map(|stat| stat.since_new))
    }

    /// A cell is left out, because it was measured before or could not be begun: what comes after it on the same devices
    /// cannot go on from what is known of them.
    pub fn left_out(&mut self, cell: &PlannedCell) {
        for name in devices(&cell.settings) {
            self.histories.insert(name.to_owned(), None);
            let attached = [&mut self.data, &mut self.log].into_iter().flatten();
            attached.filter(|drive| drive.name == name).for_each(|drive| drive.history = None);
        }
    }

    /// Takes the drives apart; their models are kept with all that was asked of them.
    fn detach(&mut self) -> Result<(), CellError> {
        let both = [self.data.take(), self.log.take()].into_iter().flatten();
        // One that is lost does not take the other along.
        let apart: Vec<_> = both.map(|drive| self.take_apart(drive)).collect();
        apart.into_iter().collect()
    }

    fn take_apart(&mut self, drive: Drive) -> Result<(), CellError> {
        let Drive { name, history, attached, .. } = drive;
        let returned = attached.detach()?;
        if let Some(mut history) = history {
            history.take_back(returned.model, returned.now);
            self.histories.insert(name, Some(history));
        }
        Ok(())
    }

    /// Takes the drives apart for good.
    pub fn finish(mut self) -> Result<(), HostError> {
        // Whoever still holds a drive is told of by the next campaign, which takes it apart.
        let _ = self.detach();
        attached::clean().map(drop)
    }
}

/// What a cell goes on from on a device; `None` from a new one. `before` is `None` of a device that no cell had yet, and
/// `Some(None)` where it is not known what became of it.
///
/// # Errors
/// [`CellError::UnknownHistory`] where it is not known and the cell needs it.
fn goes_on<H>(name: &str, before: Option<Option<H>>, cell: &PlannedCell) -> Result<Option<H>, CellError> {
    match before {
        Some(None) if !erases(cell) => Err(CellError::UnknownHistory(name.to_owned())),
        before => Ok(before.flatten()),
    }
}

/// Whether servers are asked to write neighbours along: those of today do so only on what they take for a disk.
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

    /// Symptom: the cells after a resumed one, or after a drive that was lost, were measured on a new drive without a word,
    /// and without the purge and the precondition of their step. Cause: what was not in the map was new. Fix: it is known
    /// which drives were used, and a cell that needs more is refused.
    #[test]
    fn a_cell_goes_on_from_what_is_known_or_is_refused() {
        let plan = |purge: &str| {
            let text = format!(
                "name = \"test\"\ntarget.device = \"intel-x25-e-32gb\"\n[oltp]\nduration = \"1s\"\n[before-each-cell]\n\
                 purge = \"{purge}\"\nlayout = {{ filesystem = \"xfs\" }}\n[repeat]\ntimes = 2\n"
            );
            let experiment = Experiment::parse("test.toml", &text, &[]).expect("valid");
            Plan::new(experiment, Seed::new(1), 1).expect("plans").cells.remove(1)
        };
        for (purge, before, wanted) in [
            ("none", None, Ok(None)),
            ("none", Some(Some(7)), Ok(Some(7))),
            ("none", Some(None), Err(())),
            ("trim", Some(None), Err(())),
            ("secure-erase", Some(None), Ok(None)),
            ("secure-erase", Some(Some(7)), Ok(Some(7))),
        ] {
            let found = goes_on("intel-x25-e-32gb", before, &plan(purge));
            let said = format!("{purge}, {before:?}: {found:?}");
            assert_eq!(found.map_err(drop), wanted, "{said}");
        }
        let said =
            goes_on::<()>("intel-x25-e-32gb", Some(None), &plan("none")).expect_err("refused").to_string();
        assert!(said.contains("intel-x25-e-32gb") && said.contains("--resume"), "{said}");
    }

    #[test]
    fn what_is_left_out_is_not_known_any_more() {
        let devices = BTreeMap::new();
        let mut drives = Drives {
            devices: &devices,
            scale: 1,
            contents: PathBuf::new(),
            histories: BTreeMap::new(),
            data: None,
            log: None,
        };
        let text = "name = \"test\"\ntarget.device = \"intel-x25-e-32gb\"\n[oltp]\nduration = \"1s\"\n\
                    log_device = \"raptor-10k-150gb\"\n[before-each-cell]\nlayout = { filesystem = \"xfs\" }\n";
        let experiment = Experiment::parse("test.toml", text, &[]).expect("valid");
        let plan = Plan::new(experiment, Seed::new(1), 1).expect("plans");
        drives.left_out(&plan.cells[0]);
        let known: Vec<(&str, bool)> =
            drives.histories.iter().map(|(name, it)| (name.as_str(), it.is_some())).collect();
        assert_eq!(known, [("intel-x25-e-32gb", false), ("raptor-10k-150gb", false)]);
    }
}
