//! Cells of databases: copies the data set to the target, starts servers, runs terminals, and cleans up.
//!
//! The individual steps are in `prepare::home`, `prepare::data_set`, `load::on_databases` and crate `lowtide-oltp`.

use super::target::{CellOutcome, CellTarget};
use super::{Cells, Stage};
use crate::cell_error::CellError;
use crate::experiment::Oltp;
use crate::load::{EachMeasured, Ended, on_databases};
use crate::plan::{Plan, PlannedCell};
use crate::prepare::data_set::{self, DataSets};
use crate::prepare::home::{self, Home, Ready};
use crate::store::{CellStart, Entry};
use lowtide_core::{Bytes, Seed};
use lowtide_engines::Interval;
use lowtide_engines::tpcc::Scale;
use lowtide_host::HostError;
use lowtide_host::block::Traffic;
use lowtide_host::process::Used;
use lowtide_oltp::terminals::{Part, Summary};
use lowtide_oltp::{Counter, CounterUnit, Database, Folder, Instance, OltpError, Places, check, instance};
use lowtide_record::analysis::Context;
use lowtide_record::fact::{self, Fact};
use lowtide_record::{Condition, Counted, Oltp as Facts, Row, Totals};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The databases of a campaign.
pub(crate) struct Databases<'a> {
    home: Box<dyn Home + Send + 'a>,
    sets: DataSets,
    /// The directory of logs that are separate from the data, on real targets.
    log: Option<Folder>,
    /// Sockets, configurations and logs of servers; on a device, also the data sets.
    run: Folder,
}

impl<'a> Databases<'a> {
    /// Acquires the target of a plan.
    pub fn of(plan: &'a Plan) -> Result<Self, HostError> {
        let home = home::of(plan)?;
        let log = plan.experiment.load.work.transactions().and_then(|oltp| oltp.log_directory.as_deref());
        let log = log.map(home::own).transpose()?;
        let run = home::own(&std::env::temp_dir())?;
        let folder = home.directory().unwrap_or(run.path()).join("sets");
        let sets = DataSets::new(folder, run.path().join("run"), home.copies());
        Ok(Databases { home, sets, log, run })
    }

    /// The directory of sockets, configurations and logs of the servers of cells.
    fn run(&self) -> PathBuf {
        self.run.path().join("run")
    }

    /// Prepares an empty directory with the history of the cell; see [`Home::prepare`].
    fn prepare(
        &mut self,
        cell: &PlannedCell,
        seed: Seed,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Ready, CellError> {
        let ready = self.home.prepare(cell, seed, interrupt)?;
        let log = self.log.as_ref().map(|log| log.path().to_owned()).or(ready.log);
        Ok(Ready { log, ..ready })
    }
}

impl CellTarget for Databases<'_> {
    fn measure(&mut self, cells: &Cells<'_>, cell: &PlannedCell, rows: &mut Vec<Row>) -> CellOutcome {
        cells.databases(cell, self, rows)
    }

    fn skip(&mut self, cell: &PlannedCell) {
        self.home.skip(cell);
    }

    fn finish(self: Box<Self>) -> (Result<(), HostError>, Vec<Fact>) {
        let Databases { home, sets, log, run } = *self;
        drop(sets);
        // All three are removed even if one fails.
        let all = [home.finish(), log.map_or(Ok(()), home::remove), home::remove(run)];
        (all.into_iter().collect(), Vec::new())
    }
}

/// Facts about loaded databases.
struct Loaded {
    /// Total size of the data files.
    bytes: Bytes,
    /// The number of rows that violate each consistency condition.
    conditions: Vec<(String, i64)>,
}

/// The databases of a cell. Dropping an instance ends its server.
#[derive(Default)]
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
        // Counters that a database does not report are left out.
        for counter in self.databases.iter().flat_map(|database| database.counters().unwrap_or_default()) {
            match sums.iter_mut().find(|sum| (sum.from, &sum.name) == (counter.from, &counter.name)) {
                Some(sum) => sum.value += counter.value,
                None => sums.push(counter),
            }
        }
        sums
    }

    /// The cause of an error: the message of a server that ended or logged an error, else `error` itself.
    fn cause(&mut self, error: OltpError) -> OltpError {
        instance::why(&mut self.instances, error)
    }
}

impl Cells<'_> {
    /// Measures a cell of databases.
    fn databases(
        &self,
        cell: &PlannedCell,
        databases: &mut Databases<'_>,
        rows: &mut Vec<Row>,
    ) -> CellOutcome {
        let oltp = cell.settings.load.work.of_databases();
        self.progress.cell(cell, Stage::Prepare, 0.0, None);
        let outcome = match oltp.servers.is_empty() {
            true => self.on_own_servers(cell, oltp, databases, rows),
            false => self.on_user_servers(cell, oltp, databases, rows),
        };
        // An interrupt makes other steps fail, so it is reported instead of their errors.
        if self.interrupt.load(Ordering::Relaxed) { Ok(Ended::Interrupted) } else { outcome }
    }

    /// Measures a cell on servers that lowtide starts, with a copy of the data set.
    fn on_own_servers(
        &self,
        cell: &PlannedCell,
        oltp: &Oltp,
        databases: &mut Databases<'_>,
        rows: &mut Vec<Row>,
    ) -> CellOutcome {
        let loading = |share: f64| self.progress.cell(cell, Stage::Prepare, share, None);
        let set = databases.sets.get(&cell.settings, oltp, self.data_seed(), self.interrupt, &loading);
        // The drives then lack the writes of this cell, so later cells cannot continue their history.
        let set = set.inspect_err(|_| databases.home.skip(cell))?;
        let mut ready = databases.prepare(cell, self.plan.cell_seed(cell), self.interrupt)?;
        let (number, run) = (0..oltp.instances, databases.run());
        let places: Vec<Places> = number.map(|number| ready.places(number, &run)).collect();
        let copied = databases.sets.check_space_for(set.bytes).and_then(|()| {
            places.iter().zip(0..).try_for_each(|(places, number)| {
                data_set::make(places)?;
                set.copy_to(number, places, self.interrupt)
            })
        });
        let outcome = copied.map_err(CellError::Oltp).and_then(|()| {
            let own_log = if ready.log.is_some() { set.log_bytes } else { Bytes::ZERO };
            databases.home.begin(&mut ready, set.bytes.saturating_sub(own_log))?;
            crate::prepare::wait(cell.settings.preparation.idle, &ready.data, self.interrupt)?;
            let running = start(oltp, &places, self.interrupt)?;
            let loaded = Loaded { bytes: set.bytes, conditions: set.conditions };
            self.measure(cell, &ready, running, loaded, &mut *databases.home, rows)
        });
        for path in places.iter().flat_map(|places| [Some(&places.data), places.log.as_ref()]).flatten() {
            let _ = std::fs::remove_dir_all(path);
        }
        outcome
    }

    /// Measures a cell on servers of the user, after loading the data.
    fn on_user_servers(
        &self,
        cell: &PlannedCell,
        oltp: &Oltp,
        databases: &mut Databases<'_>,
        rows: &mut Vec<Row>,
    ) -> CellOutcome {
        let ready = databases.prepare(cell, self.plan.cell_seed(cell), self.interrupt)?;
        let mut running = Running::default();
        let mut conditions = Vec::new();
        for (number, address) in oltp.servers.iter().enumerate() {
            let database = instance::connect(address.secret(), self.interrupt)?;
            let scale = data_set::share(oltp, number as u32);
            let loading = |share: f64| {
                let share = (number as f64 + share) / oltp.servers.len() as f64;
                self.progress.cell(cell, Stage::Prepare, share, None);
            };
            database.load(&scale, self.data_seed(), self.interrupt, &loading)?;
            if oltp.check {
                data_set::add(&mut conditions, check::all(&*database, &scale)?);
            }
            running.databases.push(database);
            running.scales.push(scale);
        }
        let loaded = Loaded { bytes: Bytes::ZERO, conditions };
        self.measure(cell, &ready, running, loaded, &mut *databases.home, rows)
    }

    /// The seed of the data, which is the same for all cells of a campaign.
    fn data_seed(&self) -> Seed {
        self.plan.seed.part("data", 0)
    }

    fn measure(
        &self,
        cell: &PlannedCell,
        ready: &Ready,
        mut running: Running,
        loaded: Loaded,
        home: &mut dyn Home,
        rows: &mut Vec<Row>,
    ) -> CellOutcome {
        let load = &cell.settings.load;
        let oltp = load.work.of_databases();
        let (mut last, counters) = home.activity();
        let facts = Facts {
            device_unseen: last.is_none(),
            database: running.databases.first().map_or_else(String::new, |it| it.version().to_owned()),
            warehouses: oltp.warehouses,
            instances: running.databases.len() as u32,
            loaded_bytes: loaded.bytes.get(),
            settings: running.instances.first().map_or_else(Vec::new, |it| it.settings().to_vec()),
            ignored: running.instances.first().map_or_else(Vec::new, |it| it.ignored().to_vec()),
            conditions: conditions(&loaded.conditions, &[]),
            ..Facts::default()
        };
        self.sender.send(Entry::Oltp(cell.index, Box::new(facts.clone())));
        let start = CellStart { raw_capacity: ready.raw_capacity, written_before: ready.written, counters };
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
        let (mut now_used, mut all_written) = (used, Bytes::ZERO);
        let device = &mut |interval: &Interval| {
            let (now, counters) = home.activity();
            now_used = running.used();
            // If the device does not answer, the next interval includes the traffic of this interval.
            let since = now.zip(last).map(|(now, last)| now.since(last)).unwrap_or_default();
            let Traffic { reads, read, writes, written } = since;
            all_written += written;
            last = now.or(last);
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
        let each: &mut EachMeasured<'_> =
            &mut |measured, share, so_far| rows.push(self.interval(cell, measured, share, so_far));
        let seed = self.plan.cell_seed(cell).part("load", 0);
        let ended = on_databases(&running.parts(), (load, oltp), context, seed, self.interrupt, device, each);
        home.count(all_written);
        let (ended, summary, gaps) = ended.map_err(|error| running.cause(error))?;
        self.gaps(cell, &gaps);
        if let Some(options) = home.mounted() {
            self.record([("mounted-with".to_owned(), options)]);
        }
        let interrupted = ended == Ended::Interrupted;
        // Counters of an interrupted cell are not needed, and a frozen server would not answer.
        let after = if interrupted { Vec::new() } else { running.counters() };
        let late = home.end()?;
        if !interrupted {
            let warning = |why| (fact::WARNING.to_owned(), format!("{}: {why}", cell.label()));
            self.record(late.into_iter().map(warning));
        }
        let mut broken = Vec::new();
        if oltp.check && !interrupted {
            let checked = running.parts().iter().try_for_each(|part| {
                data_set::add(&mut broken, check::all(part.database, part.scale)?);
                Ok(())
            });
            checked.map_err(|error| running.cause(error))?;
        }
        let facts = Facts {
            device_unseen: last.is_none(),
            said: said(&summary, now_used.since(used)),
            counted: difference(&counted, &after, now_used.since(used)),
            conditions: conditions(&loaded.conditions, &broken),
            ..facts
        };
        self.sender.send(Entry::Oltp(cell.index, Box::new(facts)));
        let Running { instances, databases: sessions, .. } = running;
        drop(sessions);
        // Dropping an instance kills its server: the data of an interrupted cell is not needed.
        let stopped = |instance: Box<dyn Instance>| if interrupted { Ok(()) } else { instance.stop() };
        instances.into_iter().try_for_each(stopped)?;
        self.complete(cell, &ended, Vec::new);
        Ok(ended)
    }
}

fn start(oltp: &Oltp, places: &[Places], interrupt: &Arc<AtomicBool>) -> Result<Running, OltpError> {
    let mut running = Running::default();
    for (number, places) in places.iter().enumerate() {
        let instance = instance::start(&oltp.of_instance(), places, interrupt)?;
        running.databases.push(instance.database());
        running.instances.push(instance);
        running.scales.push(data_set::share(oltp, number as u32));
    }
    Ok(running)
}

/// The consistency conditions, with the number of rows that violate each before and after the load.
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

fn said(summary: &Summary, servers: Used) -> Totals {
    Totals {
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

/// The differences between two readings of the counters of databases, and the resources their servers used.
fn difference(before: &[Counter], after: &[Counter], used: Used) -> Vec<Counted> {
    let base = |counter: &Counter| {
        let earlier = before.iter().find(|it| (it.from, &it.name) == (counter.from, &counter.name));
        earlier.map_or(0.0, |it| it.value)
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
