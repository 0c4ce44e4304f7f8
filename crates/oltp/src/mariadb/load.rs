//! Loads the tables: the generator streams rows through LOAD DATA LOCAL into empty tables, several tables
//! concurrently and without a temporary file.
//!
//! One statement fills a table: MariaDB's InnoDB then builds the table and its indexes from sorted rows, without
//! single inserts. Creating the indexes afterwards would take longer. A server of our own does not wait for commits
//! during the load and writes as fast as it can; after the load all dirty pages are written and the settings are
//! restored. A server of the user's, which others may be using, keeps its settings. The rows come from
//! [`population`].

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

/// Time without a decrease of the dirty pages after which waiting ends.
const STUCK: Duration = Duration::from_secs(60);

/// Chunks of rows in the queue between generator and connection.
const AHEAD: usize = 8;

/// Tables in load order: the largest first, so that no large table is loaded alone at the end.
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

/// Settings of a server of our own during a load; variables that it does not have are skipped.
const RELAXED: [(&str, &str); 4] = [
    ("innodb_flush_log_at_trx_commit", "0"),
    ("innodb_io_capacity_max", "100000"),
    ("innodb_io_capacity", "100000"),
    ("innodb_max_dirty_pages_pct", "90"),
];

/// Creates, fills and analyses the tables.
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
        // Also after a failure, because the server may be loaded again.
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
    // A worker that fails stops the others.
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
    // The error of the worker that failed comes before those of the workers that it stopped.
    let mut errors: Vec<OltpError> = outcomes.into_iter().filter_map(Result::err).collect();
    errors.sort_by_key(|error| matches!(error, OltpError::Interrupted));
    errors.into_iter().next().map_or(Ok(()), Err)
}

/// Approximate size of a table as text, in bytes.
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

/// Generates the rows of a table until it is stopped.
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
    /// Sends chunks until all rows are made, the load is stopped, or the receiver is gone.
    fn run(&self, to: SyncSender<io::Result<Vec<u8>>>) {
        let mut lines = TabSeparated::new(Chunks { to: &to, generator: self });
        let warehouses = self.scale.warehouses.clone();
        let made = match self.table.per_warehouse() {
            true => warehouses.into_iter().try_for_each(|it| self.write(it, &mut lines)),
            false => self.write(1, &mut lines),
        };
        let finished = made.and_then(|()| lines.finish().map(drop));
        if let Err(error) = finished {
            // The statement must fail, because an incomplete table would be taken for a complete one.
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
    // InnoDB needs both to build the table from sorted rows.
    conn.query_drop("SET SESSION foreign_key_checks = 0, SESSION unique_checks = 0").map_err(sql(what()))?;
    let (to, from) = sync_channel(AHEAD);
    conn.set_local_infile_handler(Some(handler(from)));
    let (name, columns) = (generator.table.name(), column_list(generator.table));
    let statement =
        format!("LOAD DATA LOCAL INFILE 'rows' INTO TABLE {name} CHARACTER SET latin1 ({columns})");
    let loaded = std::thread::scope(|scope| {
        scope.spawn(|| generator.run(to));
        let loaded = conn.query_drop(statement);
        // Dropping the handler ends the generator, even if the statement never requested the rows.
        conn.set_local_infile_handler(None);
        loaded
    });
    match loaded {
        Err(_) if generator.stopped() => Err(OltpError::Interrupted),
        other => other.map_err(sql(what())),
    }
}

/// A handler that passes chunks on to the connection.
fn handler(from: Receiver<io::Result<Vec<u8>>>) -> LocalInfileHandler {
    LocalInfileHandler::new(move |_, to| {
        // After an error `fill_table` drops the handler with the receiver, which ends the generator.
        while let Ok(chunk) = from.recv() {
            to.write_all(&chunk?)?;
        }
        Ok(())
    })
}

/// Sets the variables of [`RELAXED`]; returns their former values, in the order in which they must be restored.
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

/// Updates the statistics for the optimiser.
fn analyse(server: &Server) -> Result<(), OltpError> {
    let names = Table::ALL.map(Table::name).join(", ");
    server.with("analysing tables", |conn| conn.query_drop(format!("ANALYZE TABLE {names}")))
}

/// Waits until the server has written its dirty pages. Gives up after [`STUCK`] without progress; the server writes
/// the remaining pages when it stops.
fn settle(server: &Server, interrupt: &AtomicBool) -> Result<(), OltpError> {
    server.with("writing tables", |conn| conn.query_drop("FLUSH TABLES"))?;
    let lower = "SET GLOBAL innodb_max_dirty_pages_pct = 0";
    if server.with("writing pages", |conn| conn.query_drop(lower)).is_err() {
        // The server has no InnoDB.
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
