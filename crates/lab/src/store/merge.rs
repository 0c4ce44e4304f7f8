//! Stores put together: a campaign that was measured in parts, on many machines, becomes one; others are taken as they are.
//!
//! ```text
//!   part 1: cell 0 done   cell 1 pending  cell 2 done      ┐
//!   part 2: cell 0 pending  cell 1 done   cell 2 pending   ┴─► cell 0 done  cell 1 done  cell 2 done
//! ```
//!
//! Two campaigns are parts of one where plan, version and device are the same, and no cell was measured differently in both.
//! What was measured twice with the same numbers, as models do, counts once; what was measured twice with other numbers
//! stays two campaigns. What is predicted of sizes that were not measured follows from all that were: it stays where one part has
//! measured everything that is there, and else `--resume` predicts anew. Not here: baselines; they name campaigns of the store that they were set in.

use super::schema::{self, StoreFormat};
use super::whole::{Identity, Standing, Whole, cells, forget_spared, identity, put, remove, rows};
use super::{Store, StoreError};
use crate::experiment::Resolved;
use lowtide_record::fact;
use rusqlite::types::Value;
use rusqlite::{Transaction, params};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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
    /// [`StoreError::BadPart`] where an input holds what no writer leaves; others where an input is no store, is this one, or
    /// cannot be read, or this one cannot be written.
    pub fn merge(&mut self, inputs: &[PathBuf]) -> Result<Vec<Merged>, StoreError> {
        let parts = parts(inputs, &self.path)?;
        self.take(&parts)
    }

    /// Takes the campaigns of parts that were checked.
    fn take(&mut self, parts: &[Store]) -> Result<Vec<Merged>, StoreError> {
        let fail = StoreError::on(&self.path);
        let transaction = self.connection.transaction().map_err(&fail)?;
        let mut all = Vec::new();
        for part in parts {
            // What lies twice in one store was meant to.
            let mut taken = Vec::new();
            for number in part.campaigns_of_part()? {
                let one = Merging { to: &transaction, format: &self.format, at: &self.path, from: part };
                let merged = one.campaign(number, &taken)?;
                taken.push(merged.campaign);
                all.push(merged);
            }
        }
        transaction.commit().map_err(&fail)?;
        Ok(all)
    }
}

/// The inputs of a merge into the store at `output`, open and checked.
fn parts(inputs: &[PathBuf], output: &Path) -> Result<Vec<Store>, StoreError> {
    refuse_itself(inputs, output)?;
    let open = |path: &PathBuf| {
        let part = Store::open_part(path)?;
        part.campaigns_of_part()?.into_iter().try_for_each(|number| part.check(number))?;
        Ok(part)
    };
    inputs.iter().map(open).collect()
}

/// Takes the campaigns of stores into the one at `output`, which is made where there is none: all of them, or none. The
/// store, and what became of each.
///
/// # Errors
/// As [`Store::merge`] and [`Store::open`].
pub fn merge(inputs: &[PathBuf], output: &Path) -> Result<(Store, Vec<Merged>), StoreError> {
    // Before a store is made that would hold nothing.
    let parts = parts(inputs, output)?;
    let mut store = Store::open(output)?;
    let merged = store.take(&parts)?;
    Ok((store, merged))
}

/// Refuses inputs that are the output, also by another name: SQLite would keep a second log beside that one.
fn refuse_itself(inputs: &[PathBuf], output: &Path) -> Result<(), StoreError> {
    let file = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    let output = file(output);
    match inputs.iter().find(|path| output.is_some() && file(path) == output) {
        Some(path) => Err(StoreError::IntoItself { path: path.clone() }),
        None => Ok(()),
    }
}

/// The cells of a campaign by their number.
type Cells = BTreeMap<u32, Whole>;

/// Whose predictions hold when two parts of a campaign are put together: those of a part that has measured whatever both have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Predicts {
    /// The part that comes.
    Input,
    /// The one that is there.
    Store,
    Nobody,
}

impl Predicts {
    fn of(cells: &Cells, before: Option<&Cells>) -> Predicts {
        let Some(before) = before else { return Predicts::Input };
        let count = |all: &Cells, standing| all.values().filter(|it| it.standing() == standing).count();
        // Whether `all` measured what `other` did.
        let has = |all: &Cells, other: &Cells| {
            let done = |cells: &Cells, index| {
                cells.get(index).is_some_and(|it: &Whole| it.standing() == Standing::Done)
            };
            other.keys().filter(|index| done(other, index)).all(|index| done(all, index))
        };
        let [here, there] = [before, cells].map(|all| count(all, Standing::Spared));
        match (has(before, cells), has(cells, before)) {
            (true, true) if there > here => Predicts::Input,
            (true, _) => Predicts::Store,
            (false, true) => Predicts::Input,
            (false, false) => Predicts::Nobody,
        }
    }
}

/// One input on its way into a store.
pub(super) struct Merging<'a> {
    /// Where it goes.
    pub to: &'a Transaction<'a>,
    /// The format of that.
    pub format: &'a StoreFormat,
    /// The path of that.
    pub at: &'a Path,
    /// The input.
    pub from: &'a Store,
}

impl Merging<'_> {
    fn campaign(&self, was: i64, taken: &[i64]) -> Result<Merged, StoreError> {
        let (there, here) = (StoreError::on(&self.from.path), StoreError::on(self.at));
        let identity = identity(&self.from.connection, was).map_err(&there)?;
        let cells = cells(&self.from.connection, &self.from.format, was).map_err(&there)?;
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
        let predicts = Predicts::of(&cells, before.as_ref());
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
        self.keep_predictions(campaign, predicts, &cells, before.as_ref()).map_err(&here)?;
        let new = before.is_none();
        self.environment(was, campaign, new, predicts == Predicts::Input)?;
        Ok(Merged { from: self.from.path.clone(), was, name: identity.name, campaign, cells: came, new })
    }

    /// Of cells that nobody measured, leaves what one part predicts, and else that they are still to be measured.
    fn keep_predictions(
        &self,
        campaign: i64,
        predicts: Predicts,
        cells: &Cells,
        before: Option<&Cells>,
    ) -> rusqlite::Result<()> {
        let Some(before) = before else { return Ok(()) };
        if predicts != Predicts::Store {
            forget_spared(self.to, campaign)?;
        }
        for (index, now) in self::cells(self.to, self.format, campaign)? {
            if now.standing() != Standing::Spared {
                continue;
            }
            let of = match predicts {
                Predicts::Input => cells.get(&index),
                Predicts::Store => before.get(&index),
                Predicts::Nobody => None,
            };
            match of {
                Some(cell) => put(self.to, campaign, index, cell)?,
                None => put(self.to, campaign, index, &now.not_begun())?,
            }
        }
        Ok(())
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
            let there = self::cells(self.to, self.format, campaign)?;
            let goes = |(index, cell): (&u32, &Whole)| there.get(index).is_none_or(|it| it.goes_with(cell));
            if cells.iter().all(goes) {
                return Ok(Some((campaign, there)));
            }
        }
        Ok(None)
    }

    /// A new campaign with the head of this one; its number.
    pub fn head(&self, was: i64) -> Result<i64, StoreError> {
        let (there, here) = (StoreError::on(&self.from.path), StoreError::on(self.at));
        let head = format!("{} WHERE id = ?1", self.from.format.select("campaign"));
        let head = rows(&self.from.connection, &head, params![was]);
        let place = |name: &str| {
            let columns = schema::columns_of("campaign").iter();
            columns.clone().position(|column| column.name == name).expect("a campaign has this column")
        };
        let (experiment, resolved) = (place("experiment"), place("resolved"));
        for mut values in head.map_err(there)? {
            // The store gives it another number.
            values[0] = Value::Null;
            // A stranger's JSON is not believed: the text was compared with the plan.
            values[resolved] = match &values[experiment] {
                Value::Text(text) => Resolved::json_of_text(text).map_or(Value::Null, Value::Text),
                _ => Value::Null,
            };
            schema::insert(self.to, "campaign", &values).map_err(&here)?;
        }
        Ok(self.to.last_insert_rowid())
    }

    /// Takes over the facts that are not there yet, how much was spared only where that is `predicted` by the input; the campaign began
    /// when its first part did.
    pub fn environment(&self, was: i64, campaign: i64, new: bool, predicted: bool) -> Result<(), StoreError> {
        let (there, here) = (StoreError::on(&self.from.path), StoreError::on(self.at));
        let facts = "SELECT key, value FROM environment WHERE campaign = ?1 ORDER BY position";
        let began = "SELECT started_at FROM campaign WHERE id = ?1";
        let of = |connection, text, number: i64| rows(connection, text, params![number]);
        let known = if new { Vec::new() } else { of(self.to, facts, campaign).map_err(&here)? };
        let add = "INSERT INTO environment (campaign, position, key, value)
                   SELECT ?1, coalesce(max(position) + 1, 0), ?2, ?3 FROM environment WHERE campaign = ?1";
        for fact in of(&self.from.connection, facts, was).map_err(&there)? {
            let spared = fact[0] == Value::Text(fact::SPARED.to_owned());
            // One part may say the same of each of its cells.
            if !known.contains(&fact) && (predicted || !spared) {
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
