//! Cells of databases: a copy of the data set on the target, servers on it, terminals, and everything put away again.
//!
//! Leaves out each of these (`prepare::home`, `prepare::data_set`, `load::on_databases`, crate `lowtide-oltp`).

use super::{Cells, Stage};
use crate::analysis::Context;
use crate::experiment::Oltp;
use crate::load::{Ended, on_databases};
use crate::plan::{Plan, PlannedCell};
use crate::prepare::data_set::{self, DataSet, DataSets};
use crate::prepare::home::{self, Home, Ready};
use crate::record::{Condition, Counted, Oltp as Facts, Row, Said};
use crate::store::{CellEnd, CellStart, Entry};
use lowtide_core::Seed;
use lowtide_host::HostError;
use lowtide_host::block::Traffic;
use lowtide_host::process::Used;
use lowtide_oltp::terminals::{Interval, Part, Summary};
use lowtide_oltp::tpcc::Scale;
use lowtide_oltp::{Counter, CounterUnit, Database, Instance, Places, check, instance};
use std::path::PathBuf;
use std::sync::Arc;

/// The databases of a campaign.
pub(crate) struct Databases<'a> {
    home: Home<'a>,
    sets: DataSets,
    /// Sockets, configurations and logs of servers.
    run: PathBuf,
}

impl<'a> Databases<'a> {
    /// Of a plan, if nothing speaks against its target.
    pub fn of(plan: &'a Plan) -> Result<Self, HostError> {
        let home = Home::of(plan)?;
        let base = home.base();
        let run = std::env::temp_dir().join(base.file_name().expect("it is named")).join("run");
        home::remove_left_over(&std::env::temp_dir());
        Ok(Databases { home, sets: DataSets::new(base.join("sets"), run.clone()), run })
    }

    /// Undoes what was done for the campaign.
    pub fn finish(self) -> Result<(), HostError> {
        drop(self.sets);
        let _ = self.run.parent().map(std::fs::remove_dir_all);
        self.home.finish()
    }
}

/// The instances of a cell, which are ended when they are dropped.
struct Running {
    instances: Vec<Box<dyn Instance>>,
    databases: Vec<Arc<dyn Database>>,
    scales: Vec<Scale>,
}

impl Running {
    fn parts(&self) -> Vec<Part<'_>> {
        let both = self.databases.iter().zip(&self.scales);
        both.map(|(database, scale)| Part { database: &**database, scale }).collect()
    }

    fn used(&self) -> Used {
        let processes = self.instances.iter().filter_map(|instance| instance.process());
        processes.map(Used::by).fold(Used::default(), Used::and)
    }

    fn counters(&self) -> Vec<Counter> {
        let mut sums: Vec<Counter> = Vec::new();
        // What a database does not tell is missing in a table, no more.
        for counter in self.databases.iter().flat_map(|database| database.counters().unwrap_or_default()) {
            match sums.iter_mut().find(|sum| (sum.from, &sum.name) == (counter.from, &counter.name)) {
                Some(sum) => sum.value += counter.value,
                None => sums.push(counter),
            }
        }
        sums
    }

    /// The error of a server that ended by itself, which says more than what its terminals saw.
    fn why(&mut self, seen: String) -> String {
        let ended = self.instances.iter_mut().find_map(|instance| instance.check().err());
        ended.map_or(seen, |ended| ended.to_string())
    }
}

impl Cells<'_> {
    /// Measures a cell of databases.
    pub(super) fn databases(
        &self,
        cell: &PlannedCell,
        databases: &mut Databases<'_>,
        rows: &mut Vec<Row>,
    ) -> Result<Ended, String> {
        let oltp = cell.settings.load.oltp.as_ref().expect("a cell of databases");
        let seed = self.plan.cell_seed(cell);
        self.progress.cell(cell, Stage::Prepare, 0.0, None);
        // All cells of a campaign have the same data.
        let data_seed = self.plan.seed.part("data", 0);
        let loading = |share: f64| self.progress.cell(cell, Stage::Prepare, share, None);
        let set = match databases.sets.get(oltp, data_seed, self.interrupt, &loading) {
            Err(lowtide_oltp::OltpError::Interrupted) => return Ok(Ended::Interrupted),
            set => set.map_err(|error| error.to_string())?,
        };
        let mut ready = databases.home.prepare(cell, seed, self.interrupt)?;
        let outcome = self.on(cell, oltp, &set, &mut ready, databases, seed, rows);
        for directory in [Some(&ready.data), ready.log.as_ref()].into_iter().flatten() {
            for number in 0..oltp.instances {
                let _ = std::fs::remove_dir_all(directory.join(format!("data-{number}")));
                let _ = std::fs::remove_dir_all(directory.join(format!("log-{number}")));
            }
        }
        if self.interrupt.load(std::sync::atomic::Ordering::Relaxed) {
            Ok(Ended::Interrupted)
        } else {
            outcome
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a cell is all of them")]
    fn on(
        &self,
        cell: &PlannedCell,
        oltp: &Oltp,
        set: &DataSet,
        ready: &mut Ready,
        databases: &mut Databases<'_>,
        seed: Seed,
        rows: &mut Vec<Row>,
    ) -> Result<Ended, String> {
        let fail = |error: lowtide_oltp::OltpError| error.to_string();
        let mut places: Vec<Places> = Vec::new();
        for number in 0..oltp.instances {
            let own = ready.places(number, &databases.run);
            data_set::make(&own).map_err(fail)?;
            set.copy_to(number, &own, self.interrupt).map_err(fail)?;
            places.push(own);
        }
        databases.home.begin(ready, set.bytes)?;
        crate::prepare::wait(cell.settings.preparation.idle, &ready.data, self.interrupt)
            .map_err(|error| error.to_string())?;
        let mut running = start(oltp, &places).map_err(fail)?;
        let facts = Facts {
            database: running.databases.first().map_or_else(String::new, |it| it.version().to_owned()),
            warehouses: oltp.warehouses,
            instances: oltp.instances,
            loaded_bytes: set.bytes.get(),
            settings: running.instances.first().map_or_else(Vec::new, |it| it.settings().to_vec()),
            ignored: running.instances.first().map_or_else(Vec::new, |it| it.ignored().to_vec()),
            conditions: conditions(&set.conditions, &[]),
            ..Facts::default()
        };
        self.sender.send(Entry::Oltp(cell.index, Box::new(facts.clone())));
        let start = CellStart {
            raw_capacity: ready.raw_capacity,
            written_before: ready.written,
            counters: databases.home.done().1,
        };
        self.sender.send(Entry::Start(cell.index, start));
        let context = Context {
            capacity: ready.capacity,
            raw_capacity: ready.raw_capacity,
            data: cell.data,
            read_only: false,
            medium: ready.medium,
            written_before: ready.written,
        };
        let (counted, used) = (running.counters(), running.used());
        let (mut last, _) = databases.home.done();
        let mut now_used = used;
        let device = &mut |interval: &Interval| {
            let (now, counters) = databases.home.done();
            now_used = running.used();
            let Traffic { reads, read, writes, written } = now.since(last);
            last = now;
            Row {
                start_ns: interval.start_ns,
                end_ns: interval.end_ns,
                reads,
                read_bytes: read.get(),
                writes,
                write_bytes: written.get(),
                counters,
                ..Row::default()
            }
        };
        let each = &mut |measured: crate::store::Measured,
                         share: f64,
                         so_far: &dyn Fn() -> crate::analysis::Verdict| {
            rows.push(measured.row.clone());
            self.progress.cell(cell, Stage::Measure, share, Some(&measured.row));
            self.progress.so_far(cell, so_far);
            self.sender.send(Entry::Interval(cell.index, Box::new(measured)));
        };
        let load = &cell.settings.load;
        let loaded =
            on_databases(&running.parts(), load, context, seed.part("load", 0), self.interrupt, device, each);
        let (ended, summary) = loaded.map_err(|error| running.why(error.to_string()))?;
        if let Some(options) = databases.home.mounted() {
            self.say([("mounted-with".to_owned(), options)]);
        }
        let after = running.counters();
        databases.home.end()?;
        let mut broken = Vec::new();
        if oltp.check && ended != Ended::Interrupted {
            for part in running.parts() {
                let found = check::all(part.database, part.scale);
                data_set::add(&mut broken, found.map_err(fail)?);
            }
        }
        let facts = Facts {
            said: said(&summary, now_used.since(used)),
            counted: difference(&counted, &after, now_used.since(used)),
            conditions: conditions(&set.conditions, &broken),
            ..facts
        };
        self.sender.send(Entry::Oltp(cell.index, Box::new(facts)));
        let Running { instances, databases: sessions, .. } = running;
        drop(sessions);
        instances.into_iter().try_for_each(|instance| instance.stop()).map_err(fail)?;
        if let Ended::Complete(verdict) = &ended {
            let done = CellEnd::Done { verdict: verdict.clone(), wear: Vec::new() };
            self.sender.send(Entry::End(cell.index, done));
        }
        Ok(ended)
    }
}

fn start(oltp: &Oltp, places: &[Places]) -> Result<Running, lowtide_oltp::OltpError> {
    let mut running = Running { instances: Vec::new(), databases: Vec::new(), scales: Vec::new() };
    for (number, places) in places.iter().enumerate() {
        let instance = instance::start(&oltp.settings, places)?;
        running.databases.push(instance.database());
        running.instances.push(instance);
        running.scales.push(data_set::share(oltp, number as u32));
    }
    Ok(running)
}

/// The conditions of consistency, by the rows that broke them before and after.
fn conditions(before: &[(String, i64)], after: &[(String, i64)]) -> Vec<Condition> {
    let of = |list: &[(String, i64)], wanted: &str| {
        list.iter().find(|(name, _)| name == wanted).map(|(_, broken)| *broken)
    };
    let condition = |(name, broken): &(String, i64)| Condition {
        name: name.clone(),
        before: Some(*broken),
        after: of(after, name),
    };
    before.iter().map(condition).collect()
}

fn said(summary: &Summary, servers: Used) -> Said {
    Said {
        transactions: summary.transactions,
        statements: summary.statements,
        client_cpu_ns: summary.client_cpu.get(),
        server_cpu_ns: servers.cpu.get(),
        lines: summary.lines.0,
        remote_lines: summary.lines.1,
        payments: summary.payments.0,
        remote_payments: summary.payments.1,
        skipped_deliveries: summary.skipped_deliveries,
    }
}

/// What databases, and the kernel for them, counted between two instants.
fn difference(before: &[Counter], after: &[Counter], used: Used) -> Vec<Counted> {
    let base = |counter: &Counter| {
        let same = before.iter().find(|it| (it.from, &it.name) == (counter.from, &counter.name));
        same.map_or(0.0, |it| it.value)
    };
    let counted = after.iter().map(|counter| Counted {
        from: counter.from.to_owned(),
        name: counter.name.clone(),
        unit: unit(counter.unit).to_owned(),
        value: match counter.unit {
            CounterUnit::Level => counter.value,
            _ => counter.value - base(counter),
        },
    });
    let kernel = [
        ("cpu", "ns", used.cpu.get()),
        ("read_bytes", "bytes", used.read.get()),
        ("write_bytes", "bytes", used.written.get()),
    ];
    let kernel = kernel.map(|(name, unit, value)| Counted {
        from: "/proc of the server".to_owned(),
        name: name.to_owned(),
        unit: unit.to_owned(),
        value: value as f64,
    });
    counted.chain(kernel).collect()
}

fn unit(unit: CounterUnit) -> &'static str {
    match unit {
        CounterUnit::Count => "count",
        CounterUnit::Bytes => "bytes",
        CounterUnit::Nanoseconds => "ns",
        CounterUnit::Level => "level",
    }
}
