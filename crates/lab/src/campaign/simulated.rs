//! Cells on models in virtual time.
//!
//! Leaves out modelled databases (`modelled`).

use super::{Cells, Stage};
use crate::load::{Each, Ended, Told, on_drive};
use crate::plan::{PlanTarget, PlannedCell};
use crate::prepare::{History, PreparedDrive};
use crate::store::{CellEnd, CellStart, Entry};
use lowtide_core::BlockDevice;
use lowtide_record::Row;
use std::collections::BTreeMap;

impl Cells<'_> {
    pub(super) fn simulated(
        &self,
        cell: &PlannedCell,
        histories: &mut BTreeMap<String, History>,
        rows: &mut Vec<Row>,
    ) -> Result<Ended, String> {
        let (replay, seed) = (self.is_replay(cell), self.plan.cell_seed(cell));
        let history = self.history(cell, histories);
        let began = history.now();
        let prepared = history.prepare(cell, seed).map_err(|error| error.to_string())?;
        self.starts(cell, &prepared);
        let each: &mut Each<'_> = &mut |interval, share, so_far| {
            rows.push(self.interval(cell, self.stage(cell, Stage::Measure), interval, share, so_far));
        };
        let load = &cell.settings.load;
        let mut told = Vec::new();
        let ended = on_drive(prepared, load, seed.part("load", 0), self.interrupt, each, &mut told);
        let ended = ended.map_err(|error| error.to_string())?;
        if !replay && ended != Ended::Interrupted {
            self.say(told.into_iter().map(|Told { at, what }| {
                // Unscaled, as in the experiment.
                let at = at.map_or(String::new(), |at| format!(", at {}", at * self.plan.scale));
                ("event".to_owned(), format!("{}{at}: {what}", cell.label()))
            }));
        }
        if !replay && ended != Ended::Interrupted {
            self.took(cell, history.now().since(began));
        }
        self.ends(cell, &ended, history);
        Ok(ended)
    }

    /// The history of the model that a cell runs on.
    pub(super) fn history<'h>(
        &self,
        cell: &PlannedCell,
        histories: &'h mut BTreeMap<String, History>,
    ) -> &'h mut History {
        let PlanTarget::Simulated(devices) = &self.plan.target else { unreachable!("a cell on a model") };
        let name = cell.settings.device.clone().expect("a simulated target names its device");
        self.progress.cell(cell, self.stage(cell, Stage::Prepare), 0.0, None);
        let seed = self.plan.cell_seed(cell).part("device", 0);
        histories.entry(name.clone()).or_insert_with(|| History::new(&devices[&name].spec, seed))
    }

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

    /// Records the end of a cell on a model.
    pub(super) fn ends(&self, cell: &PlannedCell, ended: &Ended, history: &History) {
        if let (Ended::Complete(verdict), false) = (ended, self.is_replay(cell)) {
            let wear = wear(&history.drive().erase_counts());
            self.sender.send(Entry::End(cell.index, CellEnd::Done { verdict: verdict.clone(), wear }));
        }
    }
}

/// Erase counts as a histogram.
fn wear(erases: &[u32]) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    erases.iter().for_each(|&erases| *counts.entry(u64::from(erases)).or_default() += 1);
    counts.into_iter().collect()
}
