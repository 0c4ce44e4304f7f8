//! Simulated drives as the home of databases: attached for a cell, with the history it asks for, which goes on in the next.
//!
//! A database is not laid out by a model: what `fill` and `precondition` say is done to the whole of the drive that is used,
//! before the filesystem is made. Leaves out how a drive is attached (`live::attached`).

use super::History;
use super::home::Ready;
use crate::analysis::Medium;
use crate::experiment::Filesystem;
use crate::live::attached::{self, Attached, AttachedError, Wanted};
use crate::live::{Data, Offer};
use crate::plan::{Plan, PlannedCell, PlannedDevice, cells};
use lowtide_core::{Bytes, Counters, Seed};
use lowtide_host::HostError;
use lowtide_host::block::{Disk, FilesystemKind, Traffic};
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
    /// Models whose drives are not attached.
    histories: BTreeMap<String, History>,
    data: Option<Drive>,
    log: Option<Drive>,
}

/// An attached drive.
struct Drive {
    /// The device, as the experiment calls it.
    name: String,
    history: History,
    attached: Attached,
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
    ) -> Result<Ready, String> {
        self.detach()?;
        let oltp = cell.settings.load.oltp.as_ref().expect("a cell of databases");
        let name = cell.settings.device.clone().expect("a simulated target names its device");
        let (drive, written) = self.attach(name, cell, seed, interrupt)?;
        let history = drive.history.drive();
        let raw_capacity = lowtide_core::BlockDevice::raw_capacity(history);
        let medium = if raw_capacity.is_some() { Medium::Flash } else { Medium::Other };
        let data = drive.attached.path().to_owned();
        self.data = Some(drive);
        if let Some(name) = oltp.log_device.clone().filter(|name| Some(name) != cell.settings.device.as_ref())
        {
            let (drive, _) = self.attach(name, cell, seed.part("log", 0), interrupt)?;
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
    ) -> Result<(Drive, Bytes), String> {
        let planned = &self.devices[&name];
        let whole = &mut cell.clone();
        let capacity = planned.spec.capacity();
        let usable = cells::usable(&cell.settings, capacity).map_err(|(_, message)| message)?;
        whole.data = usable;
        whole.settings.preparation.layout.filesystem = Filesystem::None;
        let mut history = self.histories.remove(&name).unwrap_or_else(|| {
            // One device, one seed, whichever cell comes first.
            History::new(&planned.spec, Seed::new(seed.get()).part("device", 0))
        });
        let prepared = history.prepare(whole, seed).map_err(|error| error.to_string())?;
        let written = prepared.written_before;
        let offer =
            Offer { scale: self.scale, data: Data::File(self.contents.clone()), seed, ..Offer::of(&name) };
        let layout = &cell.settings.preparation.layout;
        let wanted = Wanted {
            offer,
            history: Some(prepared.history()),
            filesystem: kind(layout.filesystem),
            size: (usable < capacity).then_some(usable),
            trims: layout.mkfs_trims,
            options: &layout.mount_options,
            server: attached::server(),
            interrupt,
        };
        let attached = Attached::new(wanted).map_err(|error| error.to_string())?;
        // Filesystems of several devices have no disk beneath them that could be told.
        if let Some(disk) = Disk::beneath(attached.path()) {
            let scheduler = cell.settings.preparation.scheduler.as_deref().unwrap_or(SCHEDULER);
            disk.queue(scheduler, QUEUE).map_err(|error| error.to_string())?;
        }
        Ok((Drive { name, history, attached }, written))
    }

    /// The drives answer at their pace, and the kernel remembers nothing of what lies on them.
    pub fn begin(&mut self) -> Result<(), String> {
        let told = |error: AttachedError| error.to_string();
        for drive in [&mut self.data, &mut self.log].into_iter().flatten() {
            drive.attached.remount().map_err(told)?;
            drive.attached.at_its_pace().map_err(told)?;
        }
        Ok(())
    }

    /// The drives answer at once.
    pub fn end(&mut self) -> Result<(), String> {
        let mut drives = [&self.data, &self.log].into_iter().flatten();
        drives.try_for_each(|drive| drive.attached.at_once().map_err(|error| error.to_string()))
    }

    /// What the drive of the data has done so far.
    pub fn done(&self) -> (Traffic, Option<Counters>) {
        let stat = self.data.as_ref().and_then(|drive| drive.attached.stat().ok());
        stat.map_or_else(Default::default, |stat| {
            let traffic = Traffic {
                reads: stat.reads.latency.count,
                read: Bytes::new(stat.reads.bytes),
                writes: stat.writes.latency.count,
                written: Bytes::new(stat.writes.bytes),
            };
            (traffic, Some(stat.since_new))
        })
    }

    /// Takes the drives apart; their models are kept with all that was asked of them.
    fn detach(&mut self) -> Result<(), String> {
        for drive in [self.data.take(), self.log.take()].into_iter().flatten() {
            let Drive { name, mut history, attached } = drive;
            let returned = attached.detach().map_err(|error| error.to_string())?;
            history.take_back(returned.model, returned.now);
            self.histories.insert(name, history);
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

fn kind(filesystem: Filesystem) -> FilesystemKind {
    super::block::kind(filesystem).expect("the plan asked for a filesystem")
}
