//! Merges stores. Parts of a campaign that were measured on several machines become one campaign; other campaigns
//! are copied.
//!
//! ```text
//!   part 1: cell 0 done   cell 1 pending  cell 2 done      ┐
//!   part 2: cell 0 pending  cell 1 done   cell 2 pending   ┴─► cell 0 done  cell 1 done  cell 2 done
//! ```
//!
//! Two campaigns are parts of one campaign if their plan, version and device are equal, and every cell that both have
//! measured has the same numbers in both. Models give the same numbers each time; such a cell is kept once. Different
//! numbers keep the campaigns separate. Predictions depend on all measured cells, so they are kept only if one part
//! has measured all of these cells; otherwise `--resume` predicts again.
//!
//! # Not handled
//! Baselines, which name campaigns of their own store.

use super::schema;
use super::tables::{CellRows, Identity, Progress, Tables};
use super::{Store, StoreError};
use crate::experiment::Resolved;
use lowtide_record::fact;
use rusqlite::params;
use rusqlite::types::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The result of merging one campaign of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The input.
    pub from: PathBuf,
    /// Number of the campaign in the input.
    pub was: i64,
    /// Name of the experiment.
    pub name: String,
    /// Number of the campaign in the output.
    pub campaign: i64,
    /// Number of measured cells that the output gained.
    pub cells: u32,
    /// Whether the campaign is new in the output.
    pub new: bool,
}

impl Store {
    /// Merges the campaigns of other stores into this one, in one transaction. Returns the result for each, in order.
    ///
    /// # Errors
    /// [`StoreError::BadPart`] if the contents of an input are invalid; others if an input is not a store, is this
    /// store, or cannot be read, or if this store cannot be written.
    pub fn merge(&mut self, inputs: &[PathBuf]) -> Result<Vec<Merged>, StoreError> {
        let parts = parts(inputs, &self.path)?;
        self.merge_checked(&parts)
    }

    /// Merges the campaigns of checked parts.
    fn merge_checked(&mut self, parts: &[Store]) -> Result<Vec<Merged>, StoreError> {
        self.transaction(|to| {
            let mut all = Vec::new();
            for part in parts {
                // Equal campaigns of one input were measured twice on purpose, so they are not merged with each
                // other.
                let mut merged_into = Vec::new();
                for number in part.campaigns_of_part()? {
                    let merged = Merging { to, from: part.tables() }.campaign(number, &merged_into)?;
                    merged_into.push(merged.campaign);
                    all.push(merged);
                }
            }
            Ok(all)
        })
    }
}

/// Opens and checks the inputs of a merge into the store at `output`.
fn parts(inputs: &[PathBuf], output: &Path) -> Result<Vec<Store>, StoreError> {
    refuse_output(inputs, output)?;
    let open = |path: &PathBuf| {
        let part = Store::open_part(path)?;
        part.campaigns_of_part()?.into_iter().try_for_each(|number| part.check(number))?;
        Ok(part)
    };
    inputs.iter().map(open).collect()
}

/// Merges the campaigns of stores into the store at `output`, which is created if it does not exist. Returns that
/// store and the result for each campaign. After an error no campaign has been merged.
///
/// # Errors
/// As [`Store::merge`] and [`Store::open`].
pub fn merge(inputs: &[PathBuf], output: &Path) -> Result<(Store, Vec<Merged>), StoreError> {
    // The inputs are checked first, so that a failure does not leave an empty store.
    let parts = parts(inputs, output)?;
    let mut store = Store::open(output)?;
    let merged = store.merge_checked(&parts)?;
    Ok((store, merged))
}

/// Refuses an input that is the same file as the output, even under another name: SQLite would create a second log.
fn refuse_output(inputs: &[PathBuf], output: &Path) -> Result<(), StoreError> {
    let file = |path: &Path| path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let output = file(output);
    match inputs.iter().find(|path| output.is_some() && file(path) == output) {
        Some(path) => Err(StoreError::IntoItself { path: path.clone() }),
        None => Ok(()),
    }
}

/// The cells of a campaign by their number.
type Cells = BTreeMap<u32, CellRows>;

/// The part whose predictions stay valid when two parts of a campaign are merged: it has measured every cell that
/// either part has measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Predictor {
    Input,
    Output,
    Neither,
}

impl Predictor {
    fn of(input: &Cells, output: Option<&Cells>) -> Predictor {
        let Some(output) = output else { return Predictor::Input };
        let spared = |all: &Cells| all.values().filter(|it| it.progress() == Progress::Spared).count();
        let has_measured_all_of = |all: &Cells, other: &Cells| {
            let mut done = other.iter().filter(|(_, cell)| cell.is_done());
            done.all(|(index, _)| all.get(index).is_some_and(CellRows::is_done))
        };
        match (has_measured_all_of(output, input), has_measured_all_of(input, output)) {
            (true, true) if spared(input) > spared(output) => Predictor::Input,
            (true, _) => Predictor::Output,
            (false, true) => Predictor::Input,
            (false, false) => Predictor::Neither,
        }
    }
}

/// The merge of one input into a store.
pub(super) struct Merging<'a> {
    /// The output, in a transaction.
    pub to: Tables<'a>,
    /// The input.
    pub from: Tables<'a>,
}

impl Merging<'_> {
    /// Merges campaign `was` of the input, but not into the campaigns `excluded`.
    fn campaign(&self, was: i64, excluded: &[i64]) -> Result<Merged, StoreError> {
        let identity = self.from.identity(was)?;
        let cells = self.from.cells(was)?;
        let (campaign, before) = match self.partner(&identity, &cells, excluded)? {
            Some((campaign, before)) => (campaign, Some(before)),
            None => (self.head(was)?, None),
        };
        let is_better = |cell: &CellRows, before: Option<&CellRows>| match before {
            Some(before) => cell.progress() > before.progress(),
            // The output removed the cell as unneeded, but the input has measured it.
            None => cell.is_done(),
        };
        let predictor = Predictor::of(&cells, before.as_ref());
        let mut gained = 0;
        for (index, cell) in &cells {
            if before.as_ref().is_none_or(|all| is_better(cell, all.get(index))) {
                self.to.put(campaign, *index, cell)?;
                gained += u32::from(cell.is_done());
            }
        }
        // The input removed these cells as unneeded.
        for (index, cell) in before.iter().flatten() {
            if !cells.contains_key(index) && cell.progress() == Progress::Pending {
                self.to.remove(campaign, *index)?;
            }
        }
        if let Some(before) = &before {
            self.keep_predictions(campaign, predictor, &cells, before)?;
        }
        let new = before.is_none();
        self.environment(was, campaign, new, predictor == Predictor::Input)?;
        let from = self.from.path.to_owned();
        Ok(Merged { from, was, name: identity.name, campaign, cells: gained, new })
    }

    /// Keeps the predictions of one part, and sets cells with other predictions to pending.
    fn keep_predictions(
        &self,
        campaign: i64,
        predictor: Predictor,
        input: &Cells,
        output: &Cells,
    ) -> Result<(), StoreError> {
        if predictor != Predictor::Output {
            self.to.forget_spared(campaign)?;
        }
        let mut merged = self.to.cells(campaign)?;
        merged.retain(|_, cell| cell.progress() == Progress::Spared);
        for (index, now) in merged {
            let predicted = match predictor {
                Predictor::Input => input.get(&index),
                Predictor::Output => output.get(&index),
                Predictor::Neither => None,
            };
            match predicted {
                Some(cell) => self.to.put(campaign, index, cell)?,
                None => self.to.put(campaign, index, &now.not_begun())?,
            }
        }
        Ok(())
    }

    /// Finds the campaign of the output that is part of the same campaign, with its cells.
    fn partner(
        &self,
        wanted: &Identity,
        cells: &Cells,
        excluded: &[i64],
    ) -> Result<Option<(i64, Cells)>, StoreError> {
        let text = "SELECT id FROM campaign WHERE plan = ?1 ORDER BY id";
        let found: Vec<i64> = self.to.query(text, [&wanted.plan], |row| Ok(row.get(0)?))?;
        for campaign in found.into_iter().filter(|it| !excluded.contains(it)) {
            if self.to.identity(campaign)? != *wanted {
                continue;
            }
            let own = self.to.cells(campaign)?;
            let mut pairs = cells.iter().filter_map(|(index, cell)| Some((own.get(index)?, cell)));
            if pairs.all(|(own, cell)| own.is_compatible(cell)) {
                return Ok(Some((campaign, own)));
            }
        }
        Ok(None)
    }

    /// Adds a campaign with the head of campaign `was`, and returns its number.
    pub fn head(&self, was: i64) -> Result<i64, StoreError> {
        let text = format!("{} WHERE id = ?1", self.from.format.select("campaign"));
        let position = |name: &str| {
            let mut columns = schema::columns_of("campaign").iter();
            columns.position(|column| column.name == name).expect("a campaign has this column")
        };
        let (experiment, resolved) = (position("experiment"), position("resolved"));
        for mut values in self.from.values(&text, [was])? {
            // The output assigns its own number.
            values[0] = Value::Null;
            // The JSON of an input is not trusted. The text is trusted, because it was compared with the plan.
            values[resolved] = match &values[experiment] {
                Value::Text(text) => Resolved::json_of_text(text).map_or(Value::Null, Value::Text),
                _ => Value::Null,
            };
            self.to.insert("campaign", &values)?;
        }
        Ok(self.to.connection.last_insert_rowid())
    }

    /// Adds the missing facts of the environment, and keeps the earlier start time. The fact about spared
    /// measurements is added only if the predictions of the input are kept (`predicted`).
    pub fn environment(&self, was: i64, campaign: i64, new: bool, predicted: bool) -> Result<(), StoreError> {
        let facts = "SELECT key, value FROM environment WHERE campaign = ?1 ORDER BY position";
        let known = if new { Vec::new() } else { self.to.values(facts, [campaign])? };
        for fact in self.from.values(facts, [was])? {
            let spared = fact[0] == Value::Text(fact::SPARED.to_owned());
            // Compared with `known` only: one part may repeat a fact for each of its cells.
            if !known.contains(&fact) && (predicted || !spared) {
                self.to.add_fact(campaign, &fact[0], &fact[1])?;
            }
        }
        for began in self.from.values("SELECT started_at FROM campaign WHERE id = ?1", [was])? {
            let earlier = "UPDATE campaign SET started_at = min(started_at, ?2) WHERE id = ?1";
            self.to.execute(earlier, params![campaign, began[0]])?;
        }
        Ok(())
    }
}
