//! Cells on files of the host or on a block device, in wall time.
//!
//! Leaves out cells of databases (`databases`).

use super::ground::Host;
use super::{Cells, Stage};
use crate::experiment::Precondition;
use crate::load::{Each, Ended, on_host};
use crate::plan::PlannedCell;
use crate::prepare::PreparedHost;
use crate::store::{CellEnd, CellStart, Entry};
use lowtide_core::measure::Cause;
use lowtide_core::{Bytes, Nanos, Seed};
use lowtide_host::HostError;
use lowtide_host::block::Traffic;
use lowtide_host::engine::EngineChoice;
use lowtide_record::Row;
use std::time::Instant;

impl Cells<'_> {
    pub(super) fn host(
        &self,
        cell: &PlannedCell,
        host: &mut Host<'_>,
        rows: &mut Vec<Row>,
    ) -> Result<Ended, String> {
        let (seed, began) = (self.plan.cell_seed(cell), Instant::now());
        let filling = &mut |progress: lowtide_host::target::Progress| {
            let share = progress.done.get() as f64 / progress.total.get().max(1) as f64;
            self.progress.cell(cell, Stage::Prepare, share, None);
        };
        let prepared = match host.target.prepare(cell, seed, self.interrupt, filling) {
            Err(HostError::Interrupted { .. }) => return Ok(Ended::Interrupted),
            prepared => prepared.map_err(|error| error.to_string())?,
        };
        let mut preconditioned = Bytes::ZERO;
        if let Some(passes) = cell.precondition {
            match self.precondition(cell, passes, &prepared, seed, &mut preconditioned)? {
                Ended::Interrupted => return Ok(Ended::Interrupted),
                Ended::Complete(_) => {}
            }
        }
        let written_before = prepared.written_before.map(|before| before + preconditioned);
        let start = CellStart { raw_capacity: None, written_before, counters: None };
        self.sender.send(Entry::Start(cell.index, start));
        if let Some(witness) = &mut host.witness {
            witness.load_begins();
        }
        let mut own = Traffic::default();
        let each: &mut Each<'_> = &mut |interval, share, so_far| {
            own.read += Bytes::new(interval.read_bytes);
            own.written += Bytes::new(interval.write_bytes);
            rows.push(self.interval(cell, Stage::Measure, interval, share, so_far));
        };
        let load = &cell.settings.load;
        let loaded = on_host(&prepared, load, EngineChoice::Auto, seed.part("load", 0), self.interrupt, each);
        host.target.count(preconditioned + own.written);
        if let Some(options) = host.target.mounted().filter(|options| host.said.insert(options.clone())) {
            self.say([("mounted-with".to_owned(), options)]);
        }
        self.say(host.witness.as_ref().and_then(|witness| witness.load_ended(&cell.label(), own)));
        // No other cell may use files that this load could not use, or a stuck thread may still write to.
        if !loaded.as_ref().is_ok_and(|(_, summary)| summary.stuck_threads == 0) {
            host.target.give_up().map_err(|error| error.to_string())?;
        }
        let (ended, summary) = loaded.map_err(|error| error.to_string())?;
        self.gaps(cell, &summary.gaps);
        let path = host.target.path();
        let cached = (!summary.direct && !lowtide_host::environment::in_memory(path))
            .then(|| format!("{} does not take O_DIRECT: numbers include the page cache", path.display()));
        for note in summary.notes.iter().cloned().chain(cached) {
            if host.said.insert(note.clone()) {
                self.progress.note(&note);
            }
        }
        if let Some(failure) = &summary.first_failure {
            self.progress.note(&format!("{} requests failed; the first: {failure}", summary.errors));
        }
        if let Ended::Complete(verdict) = &ended {
            // `Instant` stands still while the machine is suspended, but not while the process is stopped.
            let stopped = summary.gaps.iter().filter(|gap| gap.cause == Cause::Stopped);
            let stopped = stopped.map(|gap| gap.length.get()).sum();
            let took = (began.elapsed().as_nanos() as u64).saturating_sub(stopped);
            self.took(cell, Nanos::new(took));
            let done = CellEnd::Done { verdict: verdict.clone(), wear: Vec::new() };
            self.sender.send(Entry::End(cell.index, done));
        }
        Ok(ended)
    }

    /// Writes all whole blocks of the target in sequence, as many times as `passes` says, and adds the bytes
    /// to `written`.
    fn precondition(
        &self,
        cell: &PlannedCell,
        passes: Precondition,
        prepared: &PreparedHost<'_>,
        seed: Seed,
        written: &mut Bytes,
    ) -> Result<Ended, String> {
        // A partial block at the end is left as it is.
        let size_each = prepared.data.size_each().align_down(passes.block);
        let data = prepared.data.with_size_each(size_each);
        let data = &data.map_err(|error| error.to_string())?;
        let PreparedHost { capacity, rotational, written_before, .. } = *prepared;
        let prepared = &PreparedHost { data, capacity, rotational, written_before };
        let load = passes.load(data.size());
        let each: &mut Each<'_> = &mut |interval, share, _| {
            *written += Bytes::new(interval.write_bytes);
            self.progress.cell(cell, Stage::Prepare, share, Some(&Row::of(interval)));
        };
        let seed = seed.part("precondition", 0);
        on_host(prepared, &load, EngineChoice::Auto, seed, self.interrupt, each)
            .map(|(ended, _)| ended)
            .map_err(|error| error.to_string())
    }
}
