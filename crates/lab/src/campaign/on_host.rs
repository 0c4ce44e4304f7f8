//! Cells on files of the host or on a block device, in wall time.
//!
//! Cells of databases are in module `databases`.

use super::target::{CellOutcome, CellTarget};
use super::{Cells, Stage};
use crate::experiment::Precondition;
use crate::load::{Each, Ended, on_host};
use crate::plan::PlannedCell;
use crate::prepare::{HostTarget, PreparedHost};
use crate::store::{CellStart, Entry, Measured};
use crate::witness::Witness;
use lowtide_core::measure::Cause;
use lowtide_core::{Bytes, Nanos, Seed};
use lowtide_host::HostError;
use lowtide_host::block::Traffic;
use lowtide_record::Row;
use lowtide_record::fact::Fact;
use std::collections::BTreeSet;
use std::time::Instant;

/// Files of the host, or a block device.
pub(super) struct OnHost<'a> {
    target: Box<dyn HostTarget + Send + 'a>,
    witness: Option<Witness>,
    /// Notes that were already printed.
    noted: BTreeSet<String>,
}

impl<'a> OnHost<'a> {
    pub fn new(target: Box<dyn HostTarget + Send + 'a>) -> Self {
        OnHost { target, witness: None, noted: BTreeSet::new() }
    }
}

impl CellTarget for OnHost<'_> {
    fn begin(&mut self) -> Vec<Fact> {
        let begun = match self.target.disk() {
            Some(disk) => Some(Witness::begin(disk.clone())),
            None => Witness::beneath(self.target.path()),
        };
        let (witness, facts) = begun.unzip();
        self.witness = witness;
        facts.unwrap_or_default()
    }

    fn measure(&mut self, cells: &Cells<'_>, cell: &PlannedCell, rows: &mut Vec<Row>) -> CellOutcome {
        let (seed, began) = (cells.plan.cell_seed(cell), Instant::now());
        let filling = &mut |progress: lowtide_host::target::Progress| {
            let share = progress.done.get() as f64 / progress.total.get().max(1) as f64;
            cells.progress.cell(cell, Stage::Prepare, share, None);
        };
        let prepared = match self.target.prepare(cell, seed, cells.interrupt, filling) {
            Err(HostError::Interrupted { .. }) => return Ok(Ended::Interrupted),
            prepared => prepared?,
        };
        let mut preconditioned = Bytes::ZERO;
        if let Some(passes) = cell.precondition {
            match cells.precondition(cell, passes, &prepared, seed, &mut preconditioned)? {
                Ended::Interrupted => return Ok(Ended::Interrupted),
                Ended::Complete(_) => {}
            }
        }
        let written_before = prepared.written_before.map(|before| before + preconditioned);
        let start = CellStart { raw_capacity: None, written_before, counters: None };
        cells.sender.send(Entry::Start(cell.index, start));
        if let Some(witness) = &mut self.witness {
            witness.load_begins();
        }
        let mut own = Traffic::default();
        let each: &mut Each<'_> = &mut |interval, share, so_far| {
            own.read += Bytes::new(interval.read_bytes);
            own.written += Bytes::new(interval.write_bytes);
            rows.push(cells.interval(cell, Measured::of(interval), share, so_far));
        };
        let load = &cell.settings.load;
        let loaded = on_host(&prepared, load, seed.part("load", 0), cells.interrupt, each);
        self.target.count(preconditioned + own.written);
        if let Some(options) = self.target.mounted().filter(|options| self.noted.insert(options.clone())) {
            cells.record([("mounted-with".to_owned(), options)]);
        }
        cells.record(self.witness.as_ref().and_then(|witness| witness.load_ended(&cell.label(), own)));
        // After a failed load the files may be unusable, or a stuck thread may still write to them.
        if !loaded.as_ref().is_ok_and(|(_, summary)| summary.stuck_threads == 0) {
            self.target.give_up()?;
        }
        let (ended, summary) = loaded?;
        cells.gaps(cell, &summary.gaps);
        let path = self.target.path();
        let cached = (!summary.direct && !lowtide_host::environment::in_memory(path)).then(|| {
            format!("{} does not support O_DIRECT: the results include the page cache", path.display())
        });
        for note in summary.notes.iter().cloned().chain(cached) {
            if self.noted.insert(note.clone()) {
                cells.progress.note(&note);
            }
        }
        if let Some(failure) = &summary.first_failure {
            cells.progress.note(&format!("{} requests failed; the first error: {failure}", summary.errors));
        }
        if let Ended::Complete(_) = ended {
            // `Instant` stands still while the machine is suspended, but not while the process is stopped.
            let stopped = summary.gaps.iter().filter(|gap| gap.cause == Cause::Stopped);
            let stopped = stopped.map(|gap| gap.length.get()).sum();
            let took = (began.elapsed().as_nanos() as u64).saturating_sub(stopped);
            cells.took(cell, Nanos::new(took));
        }
        cells.complete(cell, &ended, Vec::new);
        Ok(ended)
    }

    fn finish(self: Box<Self>) -> (Result<(), HostError>, Vec<Fact>) {
        let OnHost { target, witness, .. } = *self;
        (target.finish(), witness.map(Witness::end).unwrap_or_default())
    }
}

impl Cells<'_> {
    /// Writes all blocks of the target in sequence, as often as `passes` requires, and adds the bytes to `written`.
    fn precondition(
        &self,
        cell: &PlannedCell,
        passes: Precondition,
        prepared: &PreparedHost<'_>,
        seed: Seed,
        written: &mut Bytes,
    ) -> CellOutcome {
        // A partial block at the end is not written.
        let size_each = prepared.data.size_each().align_down(passes.block);
        let data = &prepared.data.with_size_each(size_each)?;
        let PreparedHost { capacity, rotational, written_before, .. } = *prepared;
        let prepared = &PreparedHost { data, capacity, rotational, written_before };
        let load = passes.load(data.size());
        let each: &mut Each<'_> = &mut |interval, share, _| {
            *written += Bytes::new(interval.write_bytes);
            self.progress.cell(cell, Stage::Prepare, share, Some(&Row::of(interval)));
        };
        let seed = seed.part("precondition", 0);
        let (ended, _) = on_host(prepared, &load, seed, self.interrupt, each)?;
        Ok(ended)
    }
}
