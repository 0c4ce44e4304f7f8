//! Stores put together: a campaign that was measured in parts, on many machines, becomes one; others are taken as they are.
//!
//! ```text
//!   part 1: cell 0 done   cell 1 pending  cell 2 done      ┐
//!   part 2: cell 0 pending  cell 1 done   cell 2 pending   ┴─► cell 0 done  cell 1 done  cell 2 done
//! ```
//!
//! Two campaigns are parts of one where plan, version and device are the same, and no cell was measured differently in both.
//! What was measured twice with the same numbers, as models do, counts once; what was measured twice with other numbers
//! stays two campaigns. Leaves out baselines: they name campaigns of the store that they were set in.

use super::{ON_DEVICE, Store, StoreError, schema};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Transaction, params, params_from_iter};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a cell left, beside its own row.
const OF_CELLS: [&str; 6] = ["interval", "histogram", "oltp", "transactions", "device_time", "predicted"];

/// What a campaign of an input became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The input.
    pub from: PathBuf,
    /// Its number there.
    pub was: i64,
    /// The experiment's name.
    pub name: String,
    /// Its number in the store that was written.
    pub campaign: i64,
    /// Cells that came with it, and were not there before.
    pub cells: u32,
    /// Whether the campaign is new in that store.
    pub new: bool,
}

impl Store {
    /// Takes the campaigns of other stores, all of them or, where something fails, none. What became of each, in order.
    ///
    /// # Errors
    /// [`StoreError`] where an input is no store, is this one, or cannot be read, or this one cannot be written.
    pub fn merge(&mut self, inputs: &[PathBuf]) -> Result<Vec<Merged>, StoreError> {
        let here = self.path.canonicalize().ok();
        let open = |path: &PathBuf| match path.canonicalize().ok() {
            there if there.is_some() && there == here => Err(StoreError::IntoItself { path: path.clone() }),
            _ => Store::open_existing(path),
        };
        let inputs = inputs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let fail = StoreError::on(&self.path);
        let transaction = self.connection.transaction().map_err(&fail)?;
        let mut all = Vec::new();
        for input in &inputs {
            // What lies twice in one store was meant to.
            let mut taken = Vec::new();
            for listed in input.campaigns()? {
                let one = Merging { to: &transaction, at: &self.path, from: input };
                let merged = one.campaign(listed.id, &taken)?;
                taken.push(merged.campaign);
                all.push(merged);
            }
        }
        transaction.commit().map_err(&fail)?;
        Ok(all)
    }
}

/// Takes the campaigns of stores into the one at `output`, which is made where there is none: all of them, or none. The
/// store, and what became of each.
///
/// # Errors
/// As [`Store::merge`] and [`Store::open`].
pub fn merge(inputs: &[PathBuf], output: &Path) -> Result<(Store, Vec<Merged>), StoreError> {
    for path in inputs {
        // Before a store is made that would hold nothing.
        Store::open_existing(path)?;
    }
    let mut store = Store::open(output)?;
    let merged = store.merge(inputs)?;
    Ok((store, merged))
}

/// What makes campaigns parts of one.
#[derive(PartialEq)]
struct Identity {
    name: String,
    plan: String,
    version: String,
    on_device: Option<String>,
}

/// A cell with everything that was measured in it, as the tables have it, without the campaign's number.
#[derive(PartialEq)]
struct Whole {
    own: Vec<Value>,
    tables: [Vec<Vec<Value>>; OF_CELLS.len()],
}

/// Where a cell stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Pending,
    Failed,
    /// Predicted, not measured.
    Spared,
    Done,
}

impl Whole {
    /// Columns of table `cell`, counted without the campaign.
    const STATUS: usize = 4;
    /// Those that are known before it is measured: number, step, factors, repetition, data, capacity, threads, share of reads.
    const PLANNED: [usize; 8] = [0, 1, 2, 3, 6, 7, 9, 10];

    fn standing(&self) -> Standing {
        match &self.own[Whole::STATUS] {
            Value::Text(status) if status == "done" => Standing::Done,
            Value::Text(status) if status == "spared" => Standing::Spared,
            Value::Text(status) if status == "failed" => Standing::Failed,
            _ => Standing::Pending,
        }
    }

    /// Whether both can be the same cell of one campaign.
    fn goes_with(&self, other: &Whole) -> bool {
        let planned = Whole::PLANNED.iter().all(|&column| self.own[column] == other.own[column]);
        let both_done = self.standing() == Standing::Done && other.standing() == Standing::Done;
        planned && (!both_done || self == other)
    }
}

/// One input on its way into a store.
struct Merging<'a> {
    to: &'a Transaction<'a>,
    at: &'a Path,
    from: &'a Store,
}

impl Merging<'_> {
    fn campaign(&self, was: i64, taken: &[i64]) -> Result<Merged, StoreError> {
        let (there, here) = (StoreError::on(&self.from.path), StoreError::on(self.at));
        let identity = identity(&self.from.connection, was).map_err(&there)?;
        let cells = cells(&self.from.connection, was).map_err(&there)?;
        let found = self.partner(&identity, &cells, taken).map_err(&here)?;
        let (campaign, before) = match found {
            Some((campaign, before)) => (campaign, Some(before)),
            None => (self.head(was)?, None),
        };
        let is_better = |cell: &Whole, before: Option<&Whole>| match before {
            Some(before) => cell.standing() > before.standing(),
            // It was found needless there; here it was measured before that was known.
            None => cell.standing() == Standing::Done,
        };
        let mut came = 0;
        for (index, cell) in &cells {
            if before.as_ref().is_none_or(|all| is_better(cell, all.get(index))) {
                put(self.to, campaign, *index, cell).map_err(&here)?;
                came += u32::from(cell.standing() == Standing::Done);
            }
        }
        // A cell that one part has not at all was found needless there.
        for (index, cell) in before.iter().flatten() {
            if !cells.contains_key(index) && cell.standing() == Standing::Pending {
                remove(self.to, campaign, *index).map_err(&here)?;
            }
        }
        let new = before.is_none();
        self.environment(was, campaign, new)?;
        Ok(Merged { from: self.from.path.clone(), was, name: identity.name, campaign, cells: came, new })
    }

    /// The campaign that this one is a part of, with its cells.
    fn partner(
        &self,
        wanted: &Identity,
        cells: &BTreeMap<u32, Whole>,
        taken: &[i64],
    ) -> rusqlite::Result<Option<(i64, BTreeMap<u32, Whole>)>> {
        let mut statement = self.to.prepare("SELECT id FROM campaign WHERE plan = ?1 ORDER BY id")?;
        let found =
            statement.query_map([&wanted.plan], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
        for campaign in found.into_iter().filter(|it| !taken.contains(it)) {
            if identity(self.to, campaign)? != *wanted {
                continue;
            }
            let there = self::cells(self.to, campaign)?;
            let goes = |(index, cell): (&u32, &Whole)| there.get(index).is_none_or(|it| it.goes_with(cell));
            if cells.iter().all(goes) {
                return Ok(Some((campaign, there)));
            }
        }
        Ok(None)
    }

    /// A new campaign with the head of this one; its number.
    fn head(&self, was: i64) -> Result<i64, StoreError> {
        let (there, here) = (StoreError::on(&self.from.path), StoreError::on(self.at));
        let head = rows(&self.from.connection, "SELECT * FROM campaign WHERE id = ?1", params![was]);
        for mut values in head.map_err(there)? {
            // The store gives it another number.
            values[0] = Value::Null;
            insert(self.to, "campaign", &values).map_err(&here)?;
        }
        Ok(self.to.last_insert_rowid())
    }

    /// Takes over the facts that are not there yet; the campaign began when its first part did.
    fn environment(&self, was: i64, campaign: i64, new: bool) -> Result<(), StoreError> {
        let (there, here) = (StoreError::on(&self.from.path), StoreError::on(self.at));
        let facts = "SELECT key, value FROM environment WHERE campaign = ?1 ORDER BY position";
        let began = "SELECT started_at FROM campaign WHERE id = ?1";
        let of = |connection, text, number: i64| rows(connection, text, params![number]);
        let known = if new { Vec::new() } else { of(self.to, facts, campaign).map_err(&here)? };
        let add = "INSERT INTO environment (campaign, position, key, value)
                   SELECT ?1, coalesce(max(position) + 1, 0), ?2, ?3 FROM environment WHERE campaign = ?1";
        for fact in of(&self.from.connection, facts, was).map_err(&there)? {
            // One part may say the same of each of its cells.
            if !known.contains(&fact) {
                self.to.execute(add, params![campaign, fact[0], fact[1]]).map_err(&here)?;
            }
        }
        for began in of(&self.from.connection, began, was).map_err(&there)? {
            let earlier = "UPDATE campaign SET started_at = min(started_at, ?2) WHERE id = ?1";
            self.to.execute(earlier, params![campaign, began[0]]).map_err(&here)?;
        }
        Ok(())
    }
}

fn identity(connection: &Connection, campaign: i64) -> rusqlite::Result<Identity> {
    let on_device = "SELECT value FROM environment WHERE campaign = ?1 AND key = ?2";
    let on_device =
        connection.query_row(on_device, params![campaign, ON_DEVICE], |row| row.get(0)).optional()?;
    let head = "SELECT name, plan, version FROM campaign WHERE id = ?1";
    connection.query_row(head, [campaign], |row| {
        Ok(Identity { name: row.get(0)?, plan: row.get(1)?, version: row.get(2)?, on_device })
    })
}

/// The cells of a campaign by their number.
fn cells(connection: &Connection, campaign: i64) -> rusqlite::Result<BTreeMap<u32, Whole>> {
    let known = match (schema::knows_databases(connection)?, schema::knows_curves(connection)?) {
        (_, true) => OF_CELLS.len(),
        (true, false) => 4,
        (false, false) => 2,
    };
    let own = rows(connection, "SELECT * FROM cell WHERE campaign = ?1", params![campaign])?;
    let whole = |mut own: Vec<Value>| {
        own.remove(0);
        let Value::Integer(number) = own[0] else { unreachable!("cells have numbers") };
        let mut tables = <[Vec<Vec<Value>>; OF_CELLS.len()]>::default();
        for (table, into) in OF_CELLS.iter().zip(&mut tables).take(known) {
            // In the order of their keys: tables without row numbers have no other.
            let text = format!("SELECT * FROM {table} WHERE campaign = ?1 AND cell = ?2");
            *into = rows(connection, &text, params![campaign, number])?;
            into.iter_mut().for_each(|row| drop(row.remove(0)));
        }
        Ok((number as u32, Whole { own, tables }))
    };
    own.into_iter().map(whole).collect()
}

fn rows(
    connection: &Connection,
    text: &str,
    parameters: &[&dyn rusqlite::ToSql],
) -> rusqlite::Result<Vec<Vec<Value>>> {
    let mut statement = connection.prepare_cached(text)?;
    let columns = statement.column_count();
    let all = |row: &rusqlite::Row<'_>| (0..columns).map(|column| row.get(column)).collect();
    statement.query_map(parameters, all)?.collect()
}

fn insert(connection: &Connection, table: &str, values: &[Value]) -> rusqlite::Result<()> {
    let places = vec!["?"; values.len()].join(", ");
    let mut statement = connection.prepare_cached(&format!("INSERT INTO {table} VALUES ({places})"))?;
    statement.execute(params_from_iter(values)).map(drop)
}

fn remove(connection: &Connection, campaign: i64, cell: u32) -> rusqlite::Result<()> {
    for table in OF_CELLS.iter().chain(&["cell"]) {
        let mut delete =
            connection.prepare_cached(&format!("DELETE FROM {table} WHERE campaign = ?1 AND cell = ?2"))?;
        delete.execute(params![campaign, cell])?;
    }
    Ok(())
}

fn put(connection: &Connection, campaign: i64, index: u32, cell: &Whole) -> rusqlite::Result<()> {
    remove(connection, campaign, index)?;
    let with = |values: &[Value]| [&[Value::Integer(campaign)], values].concat();
    insert(connection, "cell", &with(&cell.own))?;
    for (table, rows) in OF_CELLS.iter().zip(&cell.tables) {
        rows.iter().try_for_each(|row| insert(connection, table, &with(row)))?;
    }
    Ok(())
}
