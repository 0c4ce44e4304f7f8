//! Baselines: names for campaigns that other campaigns are compared with.
//!
//! The table of baselines is created with the first baseline of a store. A baseline may name a campaign of another
//! store, by the absolute path of that store. The comparison (`compare @NAME`) is in crate `lowtide-cli`.

use super::{Store, StoreError};
use lowtide_core::suggest::nearest;
use rusqlite::params;
use std::path::PathBuf;

pub(super) const TABLE: &str = "CREATE TABLE IF NOT EXISTS baseline (
  name TEXT PRIMARY KEY, campaign INTEGER NOT NULL, store TEXT, set_at TEXT NOT NULL) WITHOUT ROWID";

/// A name for a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Baseline {
    /// The name, without `@`.
    pub name: String,
    /// The campaign's number.
    pub campaign: i64,
    /// The path of the store that has the campaign; `None` if it is the store of the baseline.
    pub store: Option<PathBuf>,
    /// Time at which the baseline was set (RFC 3339).
    pub set_at: String,
}

/// Returns whether a text is a valid name of a baseline: letters, digits, `-`, `_` and `.`.
pub fn is_baseline_name(name: &str) -> bool {
    let accepted = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && name.chars().all(accepted)
}

impl Store {
    /// The baselines, sorted by name.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn baselines(&self) -> Result<Vec<Baseline>, StoreError> {
        let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'baseline'";
        if self.tables().one(table, [], |_| Ok(()))?.is_none() {
            return Ok(Vec::new());
        }
        self.tables().query("SELECT name, campaign, store, set_at FROM baseline ORDER BY name", [], |row| {
            let store: Option<String> = row.get(2)?;
            let store = store.map(PathBuf::from);
            Ok(Baseline { name: row.get(0)?, campaign: row.get(1)?, store, set_at: row.get(3)? })
        })
    }

    /// The baseline of this name.
    ///
    /// # Errors
    /// [`StoreError::NoBaseline`] with the nearest name, if there is no such baseline; others if the store cannot be
    /// read.
    pub fn baseline(&self, name: &str) -> Result<Baseline, StoreError> {
        let all = self.baselines()?;
        let near = nearest(name, all.iter().map(|it| it.name.as_str())).map(str::to_owned);
        all.into_iter().find(|it| it.name == name).ok_or_else(|| StoreError::NoBaseline {
            path: self.path.clone(),
            wanted: name.to_owned(),
            near,
        })
    }

    /// Sets a baseline. With `replace`, an existing baseline of the same name is replaced and returned.
    ///
    /// # Errors
    /// [`StoreError::BaselineExists`] if the baseline exists and `replace` is false; others if the store cannot be
    /// written.
    pub fn set_baseline(
        &mut self,
        baseline: &Baseline,
        replace: bool,
    ) -> Result<Option<Baseline>, StoreError> {
        let before = self.baselines()?.into_iter().find(|it| it.name == baseline.name);
        if let (Some(before), false) = (&before, replace) {
            let (path, before) = (self.path.clone(), Box::new(before.clone()));
            return Err(StoreError::BaselineExists { path, before });
        }
        let store = baseline.store.as_ref().map(|path| path.to_string_lossy().into_owned());
        self.transaction(|tables| {
            tables.execute(TABLE, [])?;
            tables.execute(
                "INSERT OR REPLACE INTO baseline (name, campaign, store, set_at) VALUES (?1, ?2, ?3, ?4)",
                params![baseline.name, baseline.campaign, store, baseline.set_at],
            )
        })?;
        Ok(before)
    }

    /// Removes and returns a baseline; its campaign stays.
    ///
    /// # Errors
    /// [`StoreError::NoBaseline`] if it does not exist; others if the store cannot be written.
    pub fn remove_baseline(&mut self, name: &str) -> Result<Baseline, StoreError> {
        let found = self.baseline(name)?;
        self.tables().execute("DELETE FROM baseline WHERE name = ?1", [name])?;
        Ok(found)
    }
}
