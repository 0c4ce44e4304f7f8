//! Cells of modelled databases, on simulated drives in virtual time.
//!
//! The engine is in `lowtide_engines::model`, and the history of the drive in module `prepare`.

use super::Cells;
use super::simulated::{Models, wear};
use super::target::{CellOutcome, CellTarget};
use crate::cell_error::CellError;
use crate::load::{EachMeasured, on_model};
use crate::plan::PlannedCell;
use crate::store::Entry;
use lowtide_core::{Bytes, DeviceError};
use lowtide_engines::model::{self, ModelSettings};
use lowtide_record::{MODELLED, Oltp as Facts, Row};

/// Modelled databases on models of drives.
pub(super) struct ModelledDatabases<'a> {
    pub models: Models<'a>,
}

impl CellTarget for ModelledDatabases<'_> {
    fn measure(&mut self, cells: &Cells<'_>, cell: &PlannedCell, rows: &mut Vec<Row>) -> CellOutcome {
        let devices = self.models.devices;
        let load = &cell.settings.load;
        let oltp = load.work.of_databases();
        let settings = ModelSettings::of(&oltp.settings).expect("the plan checked the settings");
        let seed = cells.plan.cell_seed(cell);
        let history = self.models.history(cells, cell);
        let prepared = history.prepare(cell, seed)?;
        // A separate log device starts without a history.
        let mut log = oltp.log_device.as_ref().map(|name| {
            devices[name].spec.build(seed.part("log", 0)).expect("the plan validated the description")
        });
        if !cells.is_replay(cell) {
            let facts = Facts {
                database: format!("{}{MODELLED}", oltp.settings.engine),
                warehouses: oltp.warehouses,
                instances: 1,
                loaded_bytes: model::loaded(&settings, oltp.warehouses).get(),
                settings: settings.told(),
                ignored: settings.ignored().to_vec(),
                ..Facts::default()
            };
            cells.sender.send(Entry::Oltp(cell.index, Box::new(facts)));
        }
        cells.starts(cell, &prepared);
        let each: &mut EachMeasured<'_> =
            &mut |measured, share, so_far| rows.push(cells.interval(cell, measured, share, so_far));
        let seed = seed.part("load", 0);
        let ended = on_model(prepared, log.as_mut(), (load, oltp), &settings, seed, cells.interrupt, each);
        let ended = ended.map_err(|error| match error {
            DeviceError::OutOfRange { capacity, .. } => CellError::Outgrown(Bytes::new(capacity)),
            other => CellError::Device(other),
        })?;
        cells.complete(cell, &ended, || wear(history));
        Ok(ended)
    }
}
