//! Fills the tables in two concurrent sessions. Each session takes the largest remaining table.
//!
//! A table is created, filled with `COPY` and given its keys in one transaction. With `wal_level = minimal` its rows
//! then bypass the WAL and are frozen, so they are written only once. A checkpoint at the end writes the dirty pages.
//! The module `tpcc::population` generates the rows.

use super::connection::{Connection, Copy};
use super::error::PgError;
use super::{Postgres, schema};
use crate::OltpError;
use lowtide_core::Seed;
use lowtide_engines::tpcc::{Scale, TabSeparated, Table, column_list, population};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Concurrent sessions. The server and the row generator need a processor each.
const SESSIONS: usize = 2;

/// The state that all sessions of a load share.
struct Shared<'a> {
    postgres: &'a Postgres,
    scale: &'a Scale,
    seed: Seed,
    interrupt: &'a AtomicBool,
    /// Set when a session has failed; the other session then stops.
    failed: AtomicBool,
    queue: Mutex<Vec<Table>>,
    done: AtomicU64,
    bytes: u64,
    progress: &'a (dyn Fn(f64) + Sync),
}

/// Creates the tables and fills them.
///
/// # Errors
/// [`OltpError`] if a statement fails or `interrupt` is set.
pub(super) fn load(
    postgres: &Postgres,
    scale: &Scale,
    seed: Seed,
    interrupt: &AtomicBool,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<(), OltpError> {
    let mut connection = postgres.connection().map_err(|error| error.sql("loading"))?;
    schema::make(&mut connection, postgres.tablespaces)?;
    let shared = Shared {
        postgres,
        scale,
        seed,
        interrupt,
        failed: AtomicBool::new(false),
        queue: Mutex::new(schema::BY_SIZE.iter().rev().map(|(table, _)| *table).collect()),
        done: AtomicU64::new(0),
        bytes: schema::BY_SIZE.iter().map(|(table, bytes)| population::count(*table, scale) * bytes).sum(),
        progress,
    };
    let results: Vec<Result<(), OltpError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..SESSIONS).map(|_| scope.spawn(|| shared.work())).collect();
        threads.into_iter().map(|thread| thread.join().expect("a load does not panic")).collect()
    });
    if interrupt.load(Ordering::Relaxed) {
        return Err(OltpError::Interrupted);
    }
    results.into_iter().collect::<Result<(), OltpError>>()?;
    // Some users may not run a checkpoint.
    if let Err(error @ PgError::Lost(_)) = connection.simple("CHECKPOINT") {
        return Err(error.sql("writing what was loaded"));
    }
    progress(1.0);
    Ok(())
}

impl Shared<'_> {
    fn work(&self) -> Result<(), OltpError> {
        loop {
            let next = self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(table) = next.filter(|_| !self.given_up()) else {
                return Ok(());
            };
            if let Err(error) = self.fill(table) {
                // The other session stops because of this failure, so its own error is not reported.
                let first = !self.failed.swap(true, Ordering::Relaxed);
                let told = || error.sql(format!("loading {}", table.name()));
                return if first { Err(told()) } else { Ok(()) };
            }
        }
    }

    fn given_up(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    /// Fills a table in a session of its own, so that session settings do not carry over to the next table.
    fn fill(&self, table: Table) -> Result<(), PgError> {
        let name = table.name();
        let mut connection = self.postgres.connection()?;
        connection.simple("SET maintenance_work_mem = '256MB'; BEGIN")?;
        schema::make_table(&mut connection, table, self.postgres.tablespaces)?;
        let columns = column_list(table);
        let copy = connection.copy(&format!("COPY {name} ({columns}) FROM STDIN WITH (FREEZE)"))?;
        let bytes = population::count(table, self.scale) * bytes_of_row(table);
        self.write_rows(table, bytes, copy)?;
        schema::make_indexes(&mut connection, table)?;
        connection.simple("COMMIT")?;
        connection.simple(&format!("VACUUM (ANALYZE) {name}"))?;
        Ok(())
    }

    fn write_rows(&self, table: Table, bytes: u64, copy: Copy<'_>) -> Result<(), PgError> {
        let watched = Watched { shared: self, copy, left: bytes };
        let mut rows = TabSeparated::new(watched);
        let all = if table.per_warehouse() { self.scale.warehouses.clone() } else { 1..=1 };
        for warehouse in all {
            population::write(table, warehouse, self.scale, self.seed, &mut rows)?;
        }
        let watched = rows.finish()?;
        watched.share(watched.left);
        watched.copy.finish()
    }
}

fn bytes_of_row(table: Table) -> u64 {
    schema::BY_SIZE.iter().find(|(it, _)| *it == table).map_or(0, |(_, bytes)| *bytes)
}

/// Counts the rows on their way; stops once the load is given up.
struct Watched<'a> {
    shared: &'a Shared<'a>,
    copy: Copy<'a>,
    /// Bytes still expected, by the estimate for the table.
    left: u64,
}

impl Watched<'_> {
    fn share(&self, bytes: u64) {
        let done = self.shared.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        (self.shared.progress)((done as f64 / self.shared.bytes.max(1) as f64).min(1.0));
    }
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.shared.given_up() {
            return Err(io::Error::other("the load was given up"));
        }
        let written = self.copy.write(bytes)?;
        let counted = self.left.min(written as u64);
        self.left -= counted;
        self.share(counted);
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A [`Connection`] can move between threads, but is used by one at a time.
const _: fn() = || {
    fn sends<T: Send>() {}
    sends::<Connection>();
};
