//! One case: writes of one kind on one drive, from a model or from a cell of a campaign.
//!
//! The formula is in `endurance`, the report in `show`.

use super::endurance::{Endurance, Wear};
use super::simulate::Simulated;
use lowtide_core::Bytes;
use lowtide_device::flash::spec::Cycles;
use lowtide_files::device::{self, Device};
use lowtide_record::{Campaign, Cell, Status};

/// Writes of one kind on one drive.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// `random`, `sequential`, or the label of a cell.
    pub writes: String,
    /// The rate of wear.
    pub wear: Wear,
    /// Whether the level had settled.
    pub steady: bool,
    /// The rate at which the drive takes these writes, in MiB/s.
    pub mib_per_s: Option<f64>,
    /// The endurance of the drive.
    pub endurance: Endurance,
    /// The capacity that the host can address.
    pub capacity: Bytes,
}

/// The reason for an unknown lifetime.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum NoLifetime {
    /// The device is not a single flash drive.
    #[error("{device} is not a single flash drive, so it has no erase cycles of its own")]
    NotFlash {
        /// The device's name.
        device: String,
    },
    /// The rated cycles are unknown.
    #[error("the file of {device} has no `nand.pe-cycles`")]
    NoCycles {
        /// The device's name.
        device: String,
    },
    /// The campaign ran on files.
    #[error("campaign {name} ran on {target}, where lowtide sees no NAND counters")]
    NoCounters {
        /// The experiment.
        name: String,
        /// The target.
        target: String,
    },
    /// No completed cell wrote anything.
    #[error("campaign {name} has no completed cell with writes")]
    NoWrites {
        /// The experiment.
        name: String,
    },
}

impl NoLifetime {
    /// Advice for the user.
    pub fn advice(&self) -> &'static str {
        match self {
            NoLifetime::NotFlash { .. } => {
                "name a flash drive, for an array one of its members; `lowtide devices` lists the models"
            }
            NoLifetime::NoCycles { .. } => "add the rating: `--cycles 3000` or `--cycles 5000..10000`",
            NoLifetime::NoCounters { .. } => {
                "read the drive's counters before and after: `lowtide lifetime --smart NOW.json --since BEFORE.json`"
            }
            NoLifetime::NoWrites { .. } => {
                "name a campaign with writes; `lowtide store show` lists campaigns"
            }
        }
    }
}

impl Endurance {
    /// The endurance of a device. `cycles` overrides the rating in its file.
    ///
    /// # Errors
    /// [`NoLifetime`] if the device has no NAND or its rated cycles are unknown.
    pub fn of(device: &Device, cycles: Option<Cycles>) -> Result<Endurance, NoLifetime> {
        let name = || device.name.clone();
        let flash = device.spec.flash().ok_or_else(|| NoLifetime::NotFlash { device: name() })?;
        let cycles =
            cycles.or(flash.nand.pe_cycles).ok_or_else(|| NoLifetime::NoCycles { device: name() })?;
        Ok(Endurance { raw: flash.nand.raw, cycles })
    }
}

impl Case {
    /// The case of a simulation.
    pub fn simulated(simulated: &Simulated, endurance: Endurance, capacity: Bytes) -> Case {
        Case {
            writes: simulated.pattern.word().to_owned(),
            wear: simulated.wear,
            steady: simulated.steady,
            mib_per_s: Some(simulated.mib_per_s),
            endurance,
            capacity,
        }
    }

    /// A case for each cell of a campaign with writes, from its counters over the steady window or else the last
    /// quarter. Wear is assumed to be even, because a cell is too short to measure its spread.
    ///
    /// # Errors
    /// [`NoLifetime`] if no cell has counters, or a device has no rated cycles.
    pub fn measured(campaign: &Campaign, cycles: Option<Cycles>) -> Result<Vec<Case>, NoLifetime> {
        if !campaign.target.starts_with("device:") {
            return Err(NoLifetime::NoCounters {
                name: campaign.name.clone(),
                target: campaign.target.clone(),
            });
        }
        let mut cases = Vec::new();
        for cell in campaign.cells.iter().filter(|cell| cell.status == Status::Done) {
            let Some((write_amplification, mib_per_s, steady)) = written(cell) else { continue };
            let Some(device) = device::of_cell(campaign, cell) else { continue };
            cases.push(Case {
                writes: cell.label(),
                wear: Wear { write_amplification, levelling: 1.0 },
                steady,
                mib_per_s,
                endurance: Endurance::of(&device, cycles)?,
                capacity: device.spec.capacity(),
            });
        }
        if cases.is_empty() {
            return Err(NoLifetime::NoWrites { name: campaign.name.clone() });
        }
        Ok(cases)
    }
}

/// Write amplification of a cell, its host writes in MiB/s, and whether the cell had settled.
fn written(cell: &Cell) -> Option<(f64, Option<f64>, bool)> {
    let (from, to, steady) = cell.window();
    let write_amplification = cell.write_amplification_between(from, to)?;
    let rows = cell.rows.iter().filter(|row| row.start_ns >= from && row.end_ns <= to);
    let (bytes, seconds) =
        rows.fold((0, 0.0), |(bytes, seconds), row| (bytes + row.write_bytes, seconds + row.seconds()));
    let rate = (seconds > 0.0).then(|| Bytes::new(bytes).as_mib() / seconds);
    (bytes > 0).then_some((write_amplification, rate, steady))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn campaign() -> Campaign {
        let device = lowtide_files::device::find("intel-320-160gb").expect("in the catalogue");
        Campaign { devices: device.texts, ..sample::intel(&[10, 70, 140], 300) }
    }

    #[test]
    fn cells_use_the_counters_of_their_window() {
        let campaign = campaign();
        let cases = Case::measured(&campaign, None).expect("a simulated campaign");
        let device = lowtide_files::device::parse(&campaign.devices[0]).expect("valid");
        let cells: Vec<_> = campaign.cells.iter().filter(|cell| cell.status == Status::Done).collect();
        assert_eq!(cases.len(), cells.len());
        for (case, cell) in cases.iter().zip(cells) {
            let (from, to, _) = cell.window();
            assert_eq!(Some(case.wear.write_amplification), cell.write_amplification_between(from, to));
            assert_eq!(Some(case.endurance.raw), device.spec.flash().map(|flash| flash.nand.raw));
            assert_eq!(case.endurance.cycles.to_string(), "3000");
        }
    }

    #[test]
    fn files_have_no_counters() {
        let campaign = Campaign { target: "dir:/data".to_owned(), ..campaign() };
        let error = Case::measured(&campaign, None).expect_err("no counters");
        assert!(error.to_string().contains("ran on dir:/data"), "{error}");
        assert!(error.advice().contains("--smart"));
    }
}
