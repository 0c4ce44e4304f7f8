//! The tables of an open store, and cells as complete sets of their rows: the form in which cells are copied
//! between stores.
//!
//! Modules `merge` and `join` determine which campaigns belong together.

use super::error::Fault;
use super::schema::{self, StoreFormat};
use super::{ON_DEVICE, StoreError};
use lowtide_record::fact;
use rusqlite::types::Value;
use rusqlite::{Connection, Params, Row, ToSql, params};
use std::collections::BTreeMap;
use std::path::Path;

/// Tables with the rows of cells, except table `cell`; each with the first format that has it.
const OF_CELLS: [(&str, i32); 7] = [
    ("interval", schema::OLDEST),
    ("histogram", schema::OLDEST),
    ("oltp", schema::DATABASES),
    ("transactions", schema::DATABASES),
    ("device_time", schema::CURVES),
    ("predicted", schema::CURVES),
    ("gap", schema::GAPS),
];

/// The names of the tables with the rows of cells, except table `cell`.
pub(super) fn of_cells() -> impl Iterator<Item = &'static str> {
    of_cells_in(i32::MAX)
}

/// The tables of [`of_cells`] that stores of a format have.
pub(super) fn of_cells_in(format: i32) -> impl Iterator<Item = &'static str> {
    OF_CELLS.iter().filter(move |(_, since)| *since <= format).map(|(table, _)| *table)
}

/// The attributes that parts of one campaign have in common.
#[derive(PartialEq)]
pub(super) struct Identity {
    pub name: String,
    pub plan: String,
    pub version: String,
    pub on_device: Option<String>,
}

/// All rows of a cell, without the campaign's number.
#[derive(PartialEq)]
pub(super) struct CellRows {
    /// The row of table `cell`.
    own: Vec<Value>,
    tables: [Vec<Vec<Value>>; OF_CELLS.len()],
}

/// The status of a cell, in ascending rank. If two stores have the same cell, the cell of higher rank is kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    Pending,
    Failed,
    /// Predicted, not measured.
    Spared,
    Done,
}

impl CellRows {
    /// Columns of table `cell`, counted without the campaign.
    const FACTORS: usize = 2;
    const STATUS: usize = 4;
    /// Columns that are known before the cell is measured: number, step, factors, repetition, data, capacity,
    /// threads, share of reads.
    const PLANNED: [usize; 8] = [0, 1, 2, 3, 6, 7, 9, 10];

    pub fn progress(&self) -> Progress {
        match &self.own[CellRows::STATUS] {
            Value::Text(status) if status == "done" => Progress::Done,
            Value::Text(status) if status == "spared" => Progress::Spared,
            Value::Text(status) if status == "failed" => Progress::Failed,
            _ => Progress::Pending,
        }
    }

    pub fn is_done(&self) -> bool {
        self.progress() == Progress::Done
    }

    /// Returns whether both can be the same cell of one campaign.
    pub fn is_compatible(&self, other: &CellRows) -> bool {
        let planned = CellRows::PLANNED.iter().all(|&column| self.own[column] == other.own[column]);
        planned && (!(self.is_done() && other.is_done()) || self == other)
    }

    /// The same cell, pending.
    pub fn not_begun(mut self) -> CellRows {
        for (column, value) in self.own.iter_mut().enumerate() {
            if column == CellRows::STATUS {
                *value = Value::Text("pending".to_owned());
            } else if !CellRows::PLANNED.contains(&column) {
                *value = Value::Null;
            }
        }
        CellRows { own: self.own, tables: Default::default() }
    }
}

/// The tables of an open store. All errors name the store.
#[derive(Clone, Copy)]
pub(super) struct Tables<'a> {
    pub connection: &'a Connection,
    pub format: &'a StoreFormat,
    pub path: &'a Path,
}

impl Tables<'_> {
    /// Calls `each` with every row of a query.
    pub fn for_each(
        self,
        text: &str,
        parameters: impl Params,
        mut each: impl FnMut(&Row<'_>) -> Result<(), Fault>,
    ) -> Result<(), StoreError> {
        let run = || {
            let mut statement = self.connection.prepare_cached(text)?;
            let mut rows = statement.query(parameters)?;
            while let Some(row) = rows.next()? {
                each(row)?;
            }
            Ok(())
        };
        run().map_err(|fault: Fault| fault.at(self.path))
    }

    /// Collects the rows of a query.
    pub fn query<T>(
        self,
        text: &str,
        parameters: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
    ) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        self.for_each(text, parameters, |row| {
            all.push(read(row)?);
            Ok(())
        })?;
        Ok(all)
    }

    /// Reads the row of a query that returns at most one row.
    pub fn one<T>(
        self,
        text: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.query(text, parameters, read)?.pop())
    }

    pub fn execute(self, text: &str, parameters: impl Params) -> Result<(), StoreError> {
        let executed = self.connection.prepare_cached(text).and_then(|mut it| it.execute(parameters));
        executed.map(drop).map_err(StoreError::on(self.path))
    }

    /// Inserts a row whose values are in the order of [`schema::columns_of`].
    pub fn insert(self, table: &str, values: &[Value]) -> Result<(), StoreError> {
        schema::insert(self.connection, table, values).map_err(StoreError::on(self.path))
    }

    /// Appends a fact to the environment of a campaign.
    pub fn add_fact(self, campaign: i64, key: impl ToSql, value: impl ToSql) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO environment (campaign, position, key, value)
             SELECT ?1, coalesce(max(position) + 1, 0), ?2, ?3 FROM environment WHERE campaign = ?1",
            params![campaign, key, value],
        )
    }

    /// Removes the fact with the number of measurements that a campaign spared.
    pub fn forget_spared(self, campaign: i64) -> Result<(), StoreError> {
        let text = "DELETE FROM environment WHERE campaign = ?1 AND key = ?2";
        self.execute(text, params![campaign, fact::SPARED])
    }

    pub fn identity(self, campaign: i64) -> Result<Identity, StoreError> {
        let on_device = "SELECT value FROM environment WHERE campaign = ?1 AND key = ?2";
        let on_device = self.one(on_device, params![campaign, ON_DEVICE], |row| Ok(row.get(0)?))?;
        let head = "SELECT name, plan, version FROM campaign WHERE id = ?1";
        let identity = self.one(head, [campaign], |row| {
            let on_device = on_device.clone();
            Ok(Identity { name: row.get(0)?, plan: row.get(1)?, version: row.get(2)?, on_device })
        })?;
        identity.ok_or_else(|| StoreError::on(self.path)(rusqlite::Error::QueryReturnedNoRows))
    }

    /// The cells of a campaign by their number.
    pub fn cells(self, campaign: i64) -> Result<BTreeMap<u32, CellRows>, StoreError> {
        let text = format!("{} WHERE campaign = ?1", self.format.select("cell"));
        let own = self.values(&text, params![campaign])?;
        own.into_iter().map(|own| self.with_rows(campaign, own)).collect()
    }

    /// The cell with this number; `None` if the campaign does not have it.
    pub fn cell(self, campaign: i64, number: u32) -> Result<Option<CellRows>, StoreError> {
        let text = format!("{} WHERE campaign = ?1 AND cell = ?2", self.format.select("cell"));
        let own = self.values(&text, params![campaign, number])?.pop();
        own.map(|own| self.with_rows(campaign, own).map(|(_, cell)| cell)).transpose()
    }

    /// The values of table `cell` that are known before a cell is measured, without its number; `None` if there is no
    /// such cell.
    pub fn planned(self, campaign: i64, number: u32) -> Result<Option<Vec<Value>>, StoreError> {
        const TEXT: &str = "SELECT step, factors, repetition, data_bytes, capacity_bytes, threads, read_share
                            FROM cell WHERE campaign = ?1 AND cell = ?2";
        let mut planned = self.values(TEXT, params![campaign, number])?.pop();
        planned.iter_mut().for_each(|values| self.convert_factors(&mut values[1]));
        Ok(planned)
    }

    fn convert_factors(self, factors: &mut Value) {
        if let Value::Text(factors) = factors {
            *factors = self.format.factors(std::mem::take(factors));
        }
    }

    /// Reads the remaining rows of a cell, given its row of table `cell`.
    fn with_rows(self, campaign: i64, mut own: Vec<Value>) -> Result<(u32, CellRows), StoreError> {
        own.remove(0);
        self.convert_factors(&mut own[CellRows::FACTORS]);
        let number = match own[0] {
            Value::Integer(number) => {
                number.try_into().map_err(|_| rusqlite::Error::IntegralValueOutOfRange(1, number))
            }
            ref other => Err(rusqlite::Error::InvalidColumnType(1, "cell".to_owned(), other.data_type())),
        };
        let number: u32 = number.map_err(StoreError::on(self.path))?;
        let mut tables = <[Vec<Vec<Value>>; OF_CELLS.len()]>::default();
        // `OF_CELLS` is in the order of formats.
        for (table, rows) in of_cells_in(self.format.version).zip(&mut tables) {
            // Tables without row numbers are in the order of their keys.
            let text = format!("{} WHERE campaign = ?1 AND cell = ?2", self.format.select(table));
            *rows = self.values(&text, params![campaign, number])?;
            rows.iter_mut().for_each(|row| drop(row.remove(0)));
        }
        Ok((number, CellRows { own, tables }))
    }

    /// The numbers of the cells of a campaign; with `status`, only cells with this status.
    pub fn numbers(self, campaign: i64, status: Option<&str>) -> Result<Vec<u32>, StoreError> {
        let text =
            "SELECT cell FROM cell WHERE campaign = ?1 AND status = coalesce(?2, status) ORDER BY cell";
        self.query(text, params![campaign, status], |row| Ok(row.get(0)?))
    }

    /// The rows of a query, with all columns.
    pub fn values(self, text: &str, parameters: impl Params) -> Result<Vec<Vec<Value>>, StoreError> {
        self.query(text, parameters, |row| {
            let columns = 0..row.as_ref().column_count();
            Ok(columns.map(|column| row.get(column)).collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Removes all rows of a cell.
    pub fn remove(self, campaign: i64, cell: u32) -> Result<(), StoreError> {
        of_cells().chain(["cell"]).try_for_each(|table| {
            let delete = format!("DELETE FROM {table} WHERE campaign = ?1 AND cell = ?2");
            self.execute(&delete, params![campaign, cell])
        })
    }

    /// Replaces all rows of a cell.
    pub fn put(self, campaign: i64, index: u32, cell: &CellRows) -> Result<(), StoreError> {
        self.remove(campaign, index)?;
        let with_campaign = |values: &[Value]| [&[Value::Integer(campaign)], values].concat();
        self.insert("cell", &with_campaign(&cell.own))?;
        for (table, rows) in of_cells().zip(&cell.tables) {
            rows.iter().try_for_each(|row| self.insert(table, &with_campaign(row)))?;
        }
        Ok(())
    }
}
