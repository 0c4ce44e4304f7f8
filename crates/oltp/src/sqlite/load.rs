//! Loads the tables: one transaction, with indexes created after the rows.
//!
//! The journal is in memory and stays almost empty, because new pages are undone by truncating the file. So a failed
//! load leaves an empty database. Rows are not loaded concurrently, because SQLite has one writer.

use super::error::sql;
use crate::OltpError;
use lowtide_core::Seed;
use lowtide_engines::tpcc::{Column, LOADED_AT_SECONDS, Rows, Scale, Table, Type, column_list, population};
use rusqlite::types::Null;
use rusqlite::{Connection, Statement, TransactionBehavior};
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows between checks of the interrupt.
const LOOK_EVERY: u64 = 4_096;

/// Fills an empty database.
pub(super) fn load(
    connection: &mut Connection,
    scale: &Scale,
    seed: Seed,
    interrupt: &AtomicBool,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<(), OltpError> {
    for (name, value) in [("journal_mode", "MEMORY"), ("synchronous", "OFF")] {
        connection.pragma_update(None, name, value).map_err(sql("preparing the load"))?;
    }
    let began = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = began.map_err(sql("beginning the load"))?;
    let total = Table::ALL.iter().map(|table| population::count(*table, scale)).sum();
    let mut done = Done { rows: 0, total, interrupt, progress };
    for table in Table::ALL {
        transaction.execute_batch(&create(table)).map_err(sql(format!("making {}", table.name())))?;
        let marks = vec!["?"; table.columns().len()].join(", ");
        let insert = format!("INSERT INTO {} ({}) VALUES ({marks})", table.name(), column_list(table));
        let statement = transaction.prepare(&insert).map_err(sql(format!("loading {}", table.name())))?;
        let mut rows = Inserts { table, statement, values: 0, failed: None, done: &mut done };
        let warehouses = if table.per_warehouse() { scale.warehouses.clone() } else { 0..=0 };
        for warehouse in warehouses {
            population::write(table, warehouse, scale, seed, &mut rows)?;
        }
        for index in table.indexes() {
            let columns = index.columns.join(", ");
            let create = format!("CREATE INDEX {} ON {} ({columns})", index.name, table.name());
            transaction.execute_batch(&create).map_err(sql(format!("making {}", index.name)))?;
        }
    }
    transaction.commit().map_err(sql("committing the load"))?;
    progress(1.0);
    Ok(())
}

/// Progress of a load.
struct Done<'a> {
    rows: u64,
    total: u64,
    interrupt: &'a AtomicBool,
    progress: &'a (dyn Fn(f64) + Sync),
}

/// Inserts rows one at a time.
struct Inserts<'a, 'b> {
    table: Table,
    statement: Statement<'a>,
    values: usize,
    /// The first value that could not be bound, reported at the end of its row.
    failed: Option<rusqlite::Error>,
    done: &'a mut Done<'b>,
}

impl Inserts<'_, '_> {
    fn bind(&mut self, value: impl rusqlite::ToSql) {
        self.values += 1;
        if let Err(error) = self.statement.raw_bind_parameter(self.values, value) {
            self.failed.get_or_insert(error);
        }
    }
}

impl Rows for Inserts<'_, '_> {
    type Error = OltpError;
    fn int(&mut self, value: i64) {
        self.bind(value);
    }
    fn text(&mut self, value: &str) {
        self.bind(value);
    }
    fn null(&mut self) {
        self.bind(Null);
    }
    fn time(&mut self) {
        self.bind(LOADED_AT_SECONDS);
    }
    fn end(&mut self) -> Result<(), OltpError> {
        self.values = 0;
        let inserted = self.failed.take().map_or_else(|| self.statement.raw_execute(), Err);
        inserted.map_err(|error| sql(format!("loading {}", self.table.name()))(error))?;
        self.done.rows += 1;
        if self.done.rows.is_multiple_of(LOOK_EVERY) {
            if self.done.interrupt.load(Ordering::Relaxed) {
                return Err(OltpError::Interrupted);
            }
            (self.done.progress)((self.done.rows as f64 / self.done.total as f64).min(1.0));
        }
        Ok(())
    }
}

/// The statement that creates a table.
///
/// A key of one number is SQLite's row id. With a key of several columns, a `WITHOUT ROWID` table needs one tree, and
/// a table with row ids needs two. A `WITHOUT ROWID` table keeps rows in the inner nodes too, so it pays off only for
/// short rows: at most a twentieth of a page, by SQLite's documentation.
fn create(table: Table) -> String {
    let key = table.key();
    let columns: Vec<String> = table.columns().iter().map(|it| definition(it, key == [it.name])).collect();
    let columns = columns.join(", ");
    let name = table.name();
    match key.len() {
        0 | 1 => format!("CREATE TABLE {name} ({columns}) STRICT"),
        _ => {
            let widest: u32 = table.columns().iter().map(width).sum();
            let without = if widest < 4_096 / 20 { ", WITHOUT ROWID" } else { "" };
            format!("CREATE TABLE {name} ({columns}, PRIMARY KEY ({})) STRICT{without}", key.join(", "))
        }
    }
}

fn definition(column: &Column, key: bool) -> String {
    let holds = match column.holds {
        Type::Small | Type::Int | Type::Long | Type::Time => "INTEGER",
        Type::Char(_) | Type::Text(_) => "TEXT",
    };
    let null = if column.null { "" } else { " NOT NULL" };
    let key = if key { " PRIMARY KEY" } else { "" };
    format!("{} {holds}{null}{key}", column.name)
}

/// Maximum size of a column in bytes.
fn width(column: &Column) -> u32 {
    match column.holds {
        Type::Small => 2,
        Type::Int => 4,
        Type::Long | Type::Time => 8,
        Type::Char(length) | Type::Text(length) => length,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_rows_with_long_keys_have_no_row_numbers() {
        let without: Vec<&str> = Table::ALL
            .into_iter()
            .filter(|table| create(*table).contains("WITHOUT ROWID"))
            .map(Table::name)
            .collect();
        assert_eq!(without, ["district", "orders", "new_order", "order_line"]);
        assert!(create(Table::Item).contains("i_id INTEGER NOT NULL PRIMARY KEY"));
    }

    #[test]
    fn a_load_that_is_interrupted_leaves_an_empty_database() {
        let scale = Scale { warehouses: 1..=1, customers: 100, items: 1_000 };
        let mut connection = Connection::open_in_memory().expect("opens");
        let interrupt = AtomicBool::new(false);
        let heard = |share: f64| {
            assert!((0.0..=1.0).contains(&share));
            interrupt.store(true, Ordering::Relaxed);
        };
        let loaded = load(&mut connection, &scale, Seed::new(1), &interrupt, &heard);
        assert!(matches!(loaded, Err(OltpError::Interrupted)), "{loaded:?}");
        let tables = "SELECT count(*) FROM sqlite_schema";
        let tables: i64 = connection.query_row(tables, [], |row| row.get(0)).expect("answers");
        assert_eq!(tables, 0);
    }
}
