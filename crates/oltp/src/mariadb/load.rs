//! The load: rows go from the generator through LOAD DATA LOCAL into empty tables, several tables at a time; no file is
//! written on the way.
//!
//! One statement fills a table: InnoDB of MariaDB then builds it, with its indexes, from sorted rows in place of inserting
//! them; indexes that are made afterwards cost more. While a server of ours is loaded, commits wait for nothing and it writes
//! as fast as it can; afterwards everything is written to its files, and its settings are what they were. A server of the
//! user's, which others may use meanwhile, keeps its settings and its own time. Not here: which rows there are
//! ([`population`]).

use super::errors::sql;
use super::{schema, server::Server};
use crate::OltpError;
use lowtide_core::Seed;
use lowtide_engines::tpcc::{Scale, TabSeparated, Table, column_list, population};
use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the server may take from one dirty page less to the next.
const STUCK: Duration = Duration::from_secs(60);

/// Chunks of rows between generator and connection.
const AHEAD: usize = 8;

/// Tables, the largest first, so that none of them is left alone at the end.
const ORDER: [Table; 9] = [
    Table::OrderLine,
    Table::Stock,
    Table::Customer,
    Table::Orders,
    Table::History,
    Table::Item,
    Table::NewOrder,
    Table::District,
    Table::Warehouse,
];

/// How a server of ours behaves while it is loaded, where it has such a variable.
const RELAXED: [(&str, &str); 4] = [
    ("innodb_flush_log_at_trx_commit", "0"),
    ("innodb_io_capacity_max", "100000"),
    ("innodb_io_capacity", "100000"),
    ("innodb_max_dirty_pages_pct", "90"),
];

/// Makes the tables, fills and analyses them.
pub(super) fn load(
    server: &Server,
    scale: &Scale,
    seed: Seed,
    interrupt: &AtomicBool,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<(), OltpError> {
    let of_others = |conn: &mut Conn| conn.query_first::<String, _>(schema::of_others());
    if let Some(name) = server.with("looking for tables", of_others)? {
        return Err(OltpError::Invalid(format!(
            "the table `{name}` is there already, and lowtide did not make it: name an empty database"
        )));
    }
    for table in Table::ALL {
        server.with(table.name(), |conn| {
            conn.query_drop(format!("DROP TABLE IF EXISTS {}", table.name()))?;
            conn.query_drop(schema::create(table, server.engine()))
        })?;
    }
    if server.is_own() {
        let before = server.with("reading settings", relax)?;
        let filled = fill(server, scale, seed, interrupt, progress).and_then(|()| analyse(server));
        let settled = filled.and_then(|()| settle(server, interrupt));
        // Also where it failed: it may be loaded again.
        let restored = server.with("restoring settings", |conn| restore(conn, &before));
        settled.and(restored)?;
    } else {
        fill(server, scale, seed, interrupt, progress)?;
        analyse(server)?;
    }
    progress(1.0);
    Ok(())
}

fn fill(
    server: &Server,
    scale: &Scale,
    seed: Seed,
    interrupt: &AtomicBool,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<(), OltpError> {
    let meter = Meter {
        written: AtomicU64::new(0),
        total: Table::ALL.iter().map(|table| weight(*table, scale)).sum::<u64>().max(1),
        progress,
    };
    let tables = Mutex::new(ORDER.iter());
    let next = || tables.lock().unwrap_or_else(PoisonError::into_inner).next();
    // One that fails stops the others.
    let stop = AtomicBool::new(false);
    let workers = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 4);
    let outcomes: Vec<Result<(), OltpError>> = std::thread::scope(|scope| {
        let worker = || {
            while let Some(table) = next() {
                let rows = Generator { table: *table, scale, seed, stops: [interrupt, &stop], meter: &meter };
                if let Err(error) = fill_table(server, rows) {
                    stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            Ok(())
        };
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    // The one that failed says more than those that it stopped.
    let mut errors: Vec<OltpError> = outcomes.into_iter().filter_map(Result::err).collect();
    errors.sort_by_key(|error| matches!(error, OltpError::Interrupted));
    errors.into_iter().next().map_or(Ok(()), Err)
}

/// About the bytes of a table as text.
fn weight(table: Table, scale: &Scale) -> u64 {
    let row = match table {
        Table::Customer => 600,
        Table::Stock => 320,
        Table::OrderLine => 70,
        _ => 50,
    };
    population::count(table, scale) * row
}

struct Meter<'a> {
    written: AtomicU64,
    total: u64,
    progress: &'a (dyn Fn(f64) + Sync),
}

/// The rows of a table, and when to stop making them.
struct Generator<'a> {
    table: Table,
    scale: &'a Scale,
    seed: Seed,
    stops: [&'a AtomicBool; 2],
    meter: &'a Meter<'a>,
}

impl Generator<'_> {
    fn stopped(&self) -> bool {
        self.stops.iter().any(|stop| stop.load(Ordering::Relaxed))
    }
    /// Sends chunks until all rows are made, someone stops it, or nobody takes any more.
    fn run(&self, to: SyncSender<io::Result<Vec<u8>>>) {
        let mut lines = TabSeparated::new(Chunks { to: &to, generator: self });
        let warehouses = self.scale.warehouses.clone();
        let made = match self.table.per_warehouse() {
            true => warehouses.into_iter().try_for_each(|it| self.write(it, &mut lines)),
            false => self.write(1, &mut lines),
        };
        let finished = made.and_then(|()| lines.finish().map(drop));
        if let Err(error) = finished {
            // The statement must fail: a table with some of its rows would be taken for a whole one.
            let _ = to.send(Err(error));
        }
    }
    fn write(&self, warehouse: u32, lines: &mut TabSeparated<Chunks<'_>>) -> io::Result<()> {
        population::write(self.table, warehouse, self.scale, self.seed, lines)
    }
}

struct Chunks<'a> {
    to: &'a SyncSender<io::Result<Vec<u8>>>,
    generator: &'a Generator<'a>,
}

impl Write for Chunks<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.generator.stopped() {
            return Err(io::Error::other("interrupted"));
        }
        self.to.send(Ok(bytes.to_owned())).map_err(|_| io::Error::other("the server takes no more rows"))?;
        let meter = self.generator.meter;
        let written = meter.written.fetch_add(bytes.len() as u64, Ordering::Relaxed) + bytes.len() as u64;
        (meter.progress)((written as f64 / meter.total as f64).min(0.99));
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn fill_table(server: &Server, generator: Generator<'_>) -> Result<(), OltpError> {
    let what = || format!("loading {}", generator.table.name());
    let mut conn = server.open()?;
    // Both are needed for building the table in place of inserting row by row.
    conn.query_drop("SET SESSION foreign_key_checks = 0, SESSION unique_checks = 0").map_err(sql(what()))?;
    let (to, from) = sync_channel(AHEAD);
    conn.set_local_infile_handler(Some(handler(from)));
    let (name, columns) = (generator.table.name(), column_list(generator.table));
    let statement =
        format!("LOAD DATA LOCAL INFILE 'rows' INTO TABLE {name} CHARACTER SET latin1 ({columns})");
    let loaded = std::thread::scope(|scope| {
        scope.spawn(|| generator.run(to));
        let loaded = conn.query_drop(statement);
        // The rows end with the connection's handler, also where the statement never asked for them.
        conn.set_local_infile_handler(None);
        loaded
    });
    match loaded {
        Err(_) if generator.stopped() => Err(OltpError::Interrupted),
        other => other.map_err(sql(what())),
    }
}

/// Passes chunks on to the connection as they come.
fn handler(from: Receiver<io::Result<Vec<u8>>>) -> LocalInfileHandler {
    LocalInfileHandler::new(move |_, to| {
        // What is left when it fails is taken off, so that the generator does not wait for ever.
        while let Ok(chunk) = from.recv() {
            to.write_all(&chunk?)?;
        }
        Ok(())
    })
}

/// Sets what is in [`RELAXED`]; gives back what was there before, in the order in which it has to be set again.
fn relax(conn: &mut Conn) -> mysql::Result<Vec<(&'static str, String)>> {
    let mut before = Vec::new();
    for (name, value) in RELAXED {
        let row: Option<(String, String)> =
            conn.query_first(format!("SHOW GLOBAL VARIABLES LIKE '{name}'"))?;
        let Some((_, old)) = row else { continue };
        if conn.query_drop(format!("SET GLOBAL {name} = {value}")).is_ok() {
            before.insert(0, (name, old));
        }
    }
    Ok(before)
}

fn restore(conn: &mut Conn, before: &[(&'static str, String)]) -> mysql::Result<()> {
    before.iter().try_for_each(|(name, value)| conn.query_drop(format!("SET GLOBAL {name} = {value}")))
}

/// Statistics for the optimiser.
fn analyse(server: &Server) -> Result<(), OltpError> {
    let names = Table::ALL.map(Table::name).join(", ");
    server.with("analysing tables", |conn| conn.query_drop(format!("ANALYZE TABLE {names}")))
}

/// Everything into its files, as far as the server gets within a while of the last page that it wrote; what is left then, it
/// writes when it stops.
fn settle(server: &Server, interrupt: &AtomicBool) -> Result<(), OltpError> {
    server.with("writing tables", |conn| conn.query_drop("FLUSH TABLES"))?;
    let lower = "SET GLOBAL innodb_max_dirty_pages_pct = 0";
    if server.with("writing pages", |conn| conn.query_drop(lower)).is_err() {
        // It has no InnoDB.
        return Ok(());
    }
    let (mut least, mut since) = (u64::MAX, Instant::now());
    loop {
        let status = "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'";
        let row: Option<(String, u64)> = server.with("writing pages", |conn| conn.query_first(status))?;
        let dirty = row.map_or(0, |(_, dirty)| dirty);
        if dirty < least {
            (least, since) = (dirty, Instant::now());
        }
        if dirty == 0 || since.elapsed() > STUCK {
            return Ok(());
        }
        if interrupt.load(Ordering::Relaxed) {
            return Err(OltpError::Interrupted);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
