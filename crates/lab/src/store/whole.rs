//! A campaign and its cells as the tables have them, whole: what is carried from one store to another.
//!
//! Not here: which campaigns belong together; see `merge` and `join`.

use super::ON_DEVICE;
use super::schema::{self, StoreFormat};
use lowtide_record::fact;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeMap;

/// What a cell left, beside its own row: tables, each with the format of stores that has it first.
const OF_CELLS: [(&str, i32); 7] = [
    ("interval", schema::OLDEST),
    ("histogram", schema::OLDEST),
    ("oltp", schema::DATABASES),
    ("transactions", schema::DATABASES),
    ("device_time", schema::CURVES),
    ("predicted", schema::CURVES),
    ("gap", schema::GAPS),
];

/// The tables that have what cells left, beside that of the cells.
pub(super) fn tables() -> impl Iterator<Item = &'static str> {
    OF_CELLS.iter().map(|(table, _)| *table)
}

/// Those of them that stores of a format have.
pub(super) fn tables_since(format: i32) -> impl Iterator<Item = &'static str> {
    OF_CELLS.iter().filter(move |(_, since)| *since <= format).map(|(table, _)| *table)
}

/// Takes out what a campaign says of how much it spared.
pub(super) fn forget_spared(connection: &Connection, campaign: i64) -> rusqlite::Result<()> {
    let text = "DELETE FROM environment WHERE campaign = ?1 AND key = ?2";
    connection.execute(text, params![campaign, fact::SPARED]).map(drop)
}

/// What makes campaigns parts of one.
#[derive(PartialEq)]
pub(super) struct Identity {
    pub name: String,
    pub plan: String,
    pub version: String,
    pub on_device: Option<String>,
}

/// A cell with everything that was measured in it, as the tables have it, without the campaign's number.
#[derive(PartialEq)]
pub(super) struct Whole {
    pub own: Vec<Value>,
    tables: [Vec<Vec<Value>>; OF_CELLS.len()],
}

/// Where a cell stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    Pending,
    Failed,
    /// Predicted, not measured.
    Spared,
    Done,
}

impl Whole {
    /// Columns of table `cell`, counted without the campaign.
    const FACTORS: usize = 2;
    const STATUS: usize = 4;
    /// Those that are known before it is measured: number, step, factors, repetition, data, capacity, threads, share of reads.
    const PLANNED: [usize; 8] = [0, 1, 2, 3, 6, 7, 9, 10];

    pub fn standing(&self) -> Standing {
        match &self.own[Whole::STATUS] {
            Value::Text(status) if status == "done" => Standing::Done,
            Value::Text(status) if status == "spared" => Standing::Spared,
            Value::Text(status) if status == "failed" => Standing::Failed,
            _ => Standing::Pending,
        }
    }

    /// Whether both can be the same cell of one campaign.
    pub fn goes_with(&self, other: &Whole) -> bool {
        let planned = Whole::PLANNED.iter().all(|&column| self.own[column] == other.own[column]);
        let both_done = self.standing() == Standing::Done && other.standing() == Standing::Done;
        planned && (!both_done || self == other)
    }

    /// The same cell, not begun.
    pub fn not_begun(mut self) -> Whole {
        for (column, value) in self.own.iter_mut().enumerate() {
            if column == Whole::STATUS {
                *value = Value::Text("pending".to_owned());
            } else if !Whole::PLANNED.contains(&column) {
                *value = Value::Null;
            }
        }
        Whole { own: self.own, tables: Default::default() }
    }
}

pub(super) fn identity(connection: &Connection, campaign: i64) -> rusqlite::Result<Identity> {
    let on_device = "SELECT value FROM environment WHERE campaign = ?1 AND key = ?2";
    let on_device =
        connection.query_row(on_device, params![campaign, ON_DEVICE], |row| row.get(0)).optional()?;
    let head = "SELECT name, plan, version FROM campaign WHERE id = ?1";
    connection.query_row(head, [campaign], |row| {
        Ok(Identity { name: row.get(0)?, plan: row.get(1)?, version: row.get(2)?, on_device })
    })
}

/// The cells of a campaign by their number.
pub(super) fn cells(
    connection: &Connection,
    format: &StoreFormat,
    campaign: i64,
) -> rusqlite::Result<BTreeMap<u32, Whole>> {
    let text = format!("{} WHERE campaign = ?1", format.select("cell"));
    let own = rows(connection, &text, params![campaign])?;
    own.into_iter().map(|own| whole(connection, format, campaign, own)).collect()
}

/// The cell of that number, where there is one.
pub(super) fn cell(
    connection: &Connection,
    format: &StoreFormat,
    campaign: i64,
    number: u32,
) -> rusqlite::Result<Option<Whole>> {
    let text = format!("{} WHERE campaign = ?1 AND cell = ?2", format.select("cell"));
    let own = rows(connection, &text, params![campaign, number])?.pop();
    own.map(|own| whole(connection, format, campaign, own).map(|(_, whole)| whole)).transpose()
}

/// The values of table `cell` that are known before a cell is measured, without its number; `None` where there is no such cell.
pub(super) fn planned(
    connection: &Connection,
    format: &StoreFormat,
    campaign: i64,
    number: u32,
) -> rusqlite::Result<Option<Vec<Value>>> {
    const TEXT: &str = "SELECT step, factors, repetition, data_bytes, capacity_bytes, threads, read_share
                        FROM cell WHERE campaign = ?1 AND cell = ?2";
    let mut planned = rows(connection, TEXT, params![campaign, number])?.pop();
    planned.iter_mut().for_each(|values| convert_factors(format, &mut values[1]));
    Ok(planned)
}

fn convert_factors(format: &StoreFormat, factors: &mut Value) {
    if let Value::Text(factors) = factors {
        *factors = format.factors(std::mem::take(factors));
    }
}

/// A cell by its row of table `cell`.
fn whole(
    connection: &Connection,
    format: &StoreFormat,
    campaign: i64,
    mut own: Vec<Value>,
) -> rusqlite::Result<(u32, Whole)> {
    own.remove(0);
    convert_factors(format, &mut own[Whole::FACTORS]);
    let number: u32 = match own[0] {
        Value::Integer(number) => {
            number.try_into().map_err(|_| rusqlite::Error::IntegralValueOutOfRange(1, number))?
        }
        ref other => return Err(rusqlite::Error::InvalidColumnType(1, "cell".to_owned(), other.data_type())),
    };
    let mut tables = <[Vec<Vec<Value>>; OF_CELLS.len()]>::default();
    for ((table, _), into) in
        OF_CELLS.iter().zip(&mut tables).filter(|((_, since), _)| *since <= format.version)
    {
        // In the order of their keys: tables without row numbers have no other.
        let text = format!("{} WHERE campaign = ?1 AND cell = ?2", format.select(table));
        *into = rows(connection, &text, params![campaign, number])?;
        into.iter_mut().for_each(|row| drop(row.remove(0)));
    }
    Ok((number, Whole { own, tables }))
}

/// The numbers of the cells of a campaign, or of those of a standing.
pub(super) fn numbers(
    connection: &Connection,
    campaign: i64,
    status: Option<&str>,
) -> rusqlite::Result<Vec<u32>> {
    let text = "SELECT cell FROM cell WHERE campaign = ?1 AND status = coalesce(?2, status) ORDER BY cell";
    let mut statement = connection.prepare_cached(text)?;
    statement.query_map(params![campaign, status], |row| row.get(0))?.collect()
}

pub(super) fn rows(
    connection: &Connection,
    text: &str,
    parameters: &[&dyn rusqlite::ToSql],
) -> rusqlite::Result<Vec<Vec<Value>>> {
    let mut statement = connection.prepare_cached(text)?;
    let columns = statement.column_count();
    let all = |row: &rusqlite::Row<'_>| (0..columns).map(|column| row.get(column)).collect();
    statement.query_map(parameters, all)?.collect()
}

pub(super) fn remove(connection: &Connection, campaign: i64, cell: u32) -> rusqlite::Result<()> {
    for table in tables().chain(["cell"]) {
        let mut delete =
            connection.prepare_cached(&format!("DELETE FROM {table} WHERE campaign = ?1 AND cell = ?2"))?;
        delete.execute(params![campaign, cell])?;
    }
    Ok(())
}

pub(super) fn put(connection: &Connection, campaign: i64, index: u32, cell: &Whole) -> rusqlite::Result<()> {
    remove(connection, campaign, index)?;
    let with = |values: &[Value]| [&[Value::Integer(campaign)], values].concat();
    schema::insert(connection, "cell", &with(&cell.own))?;
    for (table, rows) in tables().zip(&cell.tables) {
        rows.iter().try_for_each(|row| schema::insert(connection, table, &with(row)))?;
    }
    Ok(())
}
