//! Cells of modelled databases, on simulated drives in virtual time.
//!
//! Leaves out the engine (`lowtide_oltp::model`) and the history of the drive (`prepare`).

use super::{Cells, Stage, wear};
use crate::analysis::Verdict;
use crate::load::{Ended, on_model};
use crate::plan::{PlanTarget, PlannedCell};
use crate::prepare::History;
use crate::record::{MODELLED, Oltp as Facts, Row};
use crate::store::{CellEnd, CellStart, Entry, Measured};
use lowtide_core::{BlockDevice, Bytes, DeviceError};
use lowtide_oltp::model::{self, ModelSettings};
use std::collections::BTreeMap;

impl Cells<'_> {
    /// Measures a cell, or only gives the drive its history again where it was measured before.
    pub(super) fn modelled(
        &self,
        cell: &PlannedCell,
        histories: &mut BTreeMap<String, History>,
        rows: &mut Vec<Row>,
    ) -> Result<Ended, String> {
        let PlanTarget::Simulated(devices) = &self.plan.target else { unreachable!("a modelled cell") };
        let load = &cell.settings.load;
        let oltp = load.oltp.as_ref().expect("a cell of databases");
        let settings = ModelSettings::of(&oltp.settings).expect("the plan checked them");
        let name = cell.settings.device.clone().expect("a simulated target names its device");
        let replay = self.done[cell.index as usize];
        let stage = |stage| if replay { Stage::Replay } else { stage };
        self.progress.cell(cell, stage(Stage::Prepare), 0.0, None);
        let seed = self.plan.cell_seed(cell);
        let history = histories
            .entry(name.clone())
            .or_insert_with(|| History::new(&devices[&name].spec, seed.part("device", 0)));
        let prepared = history.prepare(cell, seed).map_err(|error| error.to_string())?;
        // A log of its own begins on a drive that is as new.
        let mut log = oltp.log_device.as_ref().map(|name| {
            devices[name].spec.build(seed.part("log", 0)).expect("the plan validated the description")
        });
        if !replay {
            let facts = Facts {
                database: format!("{}{MODELLED}", oltp.settings.engine),
                warehouses: oltp.warehouses,
                instances: 1,
                loaded_bytes: model::loaded(&settings, oltp.warehouses).get(),
                settings: settings.told(),
                ..Facts::default()
            };
            self.sender.send(Entry::Oltp(cell.index, Box::new(facts)));
            let start = CellStart {
                raw_capacity: prepared.drive.raw_capacity(),
                written_before: Some(prepared.written_before),
                counters: Some(prepared.drive.counters()),
            };
            self.sender.send(Entry::Start(cell.index, start));
        }
        let each = &mut |measured: Measured, share: f64, so_far: &dyn Fn() -> Verdict| {
            rows.push(measured.row.clone());
            self.progress.cell(cell, stage(Stage::Measure), share, Some(&measured.row));
            self.progress.so_far(cell, so_far);
            if !replay {
                self.sender.send(Entry::Interval(cell.index, Box::new(measured)));
            }
        };
        let seed = seed.part("load", 0);
        let ended = on_model(prepared, log.as_mut(), load, &settings, seed, self.interrupt, each);
        let ended = ended.map_err(|error| match error {
            DeviceError::OutOfRange { capacity, .. } => format!(
                "the database has grown past the end of the device, which has {}: each new order adds rows",
                Bytes::new(capacity)
            ),
            other => other.to_string(),
        })?;
        if let (Ended::Complete(verdict), false) = (&ended, replay) {
            let wear = wear(&history.drive().erase_counts());
            self.sender.send(Entry::End(cell.index, CellEnd::Done { verdict: verdict.clone(), wear }));
        }
        Ok(ended)
    }
}
