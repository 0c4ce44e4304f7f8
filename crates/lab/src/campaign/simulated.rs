//! Cells on models in virtual time.
//!
//! Modelled databases are in module `modelled`.

use super::target::{CellOutcome, CellTarget};
use super::{Cells, Stage};
use crate::load::{Each, Ended, EventOutcome, on_drive};
use crate::plan::{PlannedCell, PlannedDevice};
use crate::prepare::{History, PreparedDrive};
use crate::store::{CellStart, Entry, Measured};
use lowtide_core::BlockDevice;
use lowtide_record::Row;
use std::collections::BTreeMap;

/// Models in virtual time, with their histories.
pub(super) struct Models<'a> {
    pub devices: &'a BTreeMap<String, PlannedDevice>,
    histories: BTreeMap<String, History>,
}

impl<'a> Models<'a> {
    pub fn new(devices: &'a BTreeMap<String, PlannedDevice>) -> Self {
        Models { devices, histories: BTreeMap::new() }
    }

    /// The history of the model that a cell runs on.
    pub fn history(&mut self, cells: &Cells<'_>, cell: &PlannedCell) -> &mut History {
        let name = cell.settings.device.clone().expect("a simulated target names its device");
        cells.progress.cell(cell, cells.stage(cell, Stage::Prepare), 0.0, None);
        let seed = cells.plan.cell_seed(cell).part("device", 0);
        self.histories.entry(name.clone()).or_insert_with(|| History::new(&self.devices[&name].spec, seed))
    }
}

impl CellTarget for Models<'_> {
    fn measure(&mut self, cells: &Cells<'_>, cell: &PlannedCell, rows: &mut Vec<Row>) -> CellOutcome {
        let (replay, seed) = (cells.is_replay(cell), cells.plan.cell_seed(cell));
        let history = self.history(cells, cell);
        let began = history.now();
        let prepared = history.prepare(cell, seed)?;
        cells.starts(cell, &prepared);
        let each: &mut Each<'_> = &mut |interval, share, so_far| {
            rows.push(cells.interval(cell, Measured::of(interval), share, so_far));
        };
        let load = &cell.settings.load;
        let (ended, events) = on_drive(prepared, load, seed.part("load", 0), cells.interrupt, each)?;
        if !replay && ended != Ended::Interrupted {
            cells.record(events.into_iter().map(|EventOutcome { at, outcome }| {
                // Unscaled, as in the experiment.
                let at = at.map_or(String::new(), |at| format!(", at {}", at * cells.plan.scale));
                ("event".to_owned(), format!("{}{at}: {outcome}", cell.label()))
            }));
            cells.took(cell, history.now().since(began));
        }
        cells.complete(cell, &ended, || wear(history));
        Ok(ended)
    }
}

impl Cells<'_> {
    /// Records the start of a cell on a prepared model.
    pub(super) fn starts(&self, cell: &PlannedCell, prepared: &PreparedDrive<'_>) {
        if self.is_replay(cell) {
            return;
        }
        let start = CellStart {
            raw_capacity: prepared.drive.raw_capacity(),
            written_before: Some(prepared.written_before),
            counters: Some(prepared.drive.counters()),
        };
        self.sender.send(Entry::Start(cell.index, start));
    }
}

/// The erase counts of a drive as a histogram.
pub(super) fn wear(history: &History) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let erases = history.drive().erase_counts();
    erases.iter().for_each(|&erases| *counts.entry(u64::from(erases)).or_default() += 1);
    counts.into_iter().collect()
}
