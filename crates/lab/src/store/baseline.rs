//! Baselines: names for campaigns that others are compared with.
//!
//! They are kept in a table of the store that is made with the first of them. A baseline may name a campaign of another
//! store, by that store's whole path. Not here: where a name is asked for; `compare @NAME`.

use super::{Store, StoreError};
use lowtide_core::suggest::nearest;
use rusqlite::{OptionalExtension, params};
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
    /// The store that has it, where that is another one.
    pub store: Option<PathBuf>,
    /// When it was set (RFC 3339).
    pub set_at: String,
}

/// Whether a baseline may be called so: letters, digits, `-`, `_` and `.`.
pub fn is_baseline_name(name: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && name.chars().all(fine)
}

impl Store {
    /// The baselines, by name.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn baselines(&self) -> Result<Vec<Baseline>, StoreError> {
        let fail = StoreError::on(&self.path);
        let there = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'baseline'";
        let there = self.connection.query_row(there, [], |_| Ok(())).optional().map_err(&fail)?;
        if there.is_none() {
            return Ok(Vec::new());
        }
        let mut statement = self
            .connection
            .prepare("SELECT name, campaign, store, set_at FROM baseline ORDER BY name")
            .map_err(&fail)?;
        let all = statement.query_map([], |row| {
            Ok(Baseline {
                name: row.get(0)?,
                campaign: row.get(1)?,
                store: row.get::<_, Option<String>>(2)?.map(PathBuf::from),
                set_at: row.get(3)?,
            })
        });
        all.map_err(&fail)?.collect::<rusqlite::Result<_>>().map_err(&fail)
    }

    /// The baseline of this name.
    ///
    /// # Errors
    /// [`StoreError::NoBaseline`] with the nearest name.
    pub fn baseline(&self, name: &str) -> Result<Baseline, StoreError> {
        let all = self.baselines()?;
        let near = nearest(name, all.iter().map(|it| it.name.as_str())).map(str::to_owned);
        all.into_iter().find(|it| it.name == name).ok_or_else(|| StoreError::NoBaseline {
            path: self.path.clone(),
            wanted: name.to_owned(),
            near,
        })
    }

    /// Sets a baseline; with `replace`, in place of one of the same name, which is handed back.
    ///
    /// # Errors
    /// [`StoreError::BaselineExists`] without `replace`; others where the store cannot be written.
    pub fn set_baseline(
        &mut self,
        baseline: &Baseline,
        replace: bool,
    ) -> Result<Option<Baseline>, StoreError> {
        let fail = StoreError::on(&self.path);
        let before = self.baselines()?.into_iter().find(|it| it.name == baseline.name);
        if let (Some(before), false) = (&before, replace) {
            let (path, before) = (self.path.clone(), Box::new(before.clone()));
            return Err(StoreError::BaselineExists { path, before });
        }
        let store = baseline.store.as_ref().map(|path| path.to_string_lossy().into_owned());
        let transaction = self.connection.transaction().map_err(&fail)?;
        transaction.execute(TABLE, []).map_err(&fail)?;
        transaction
            .execute(
                "INSERT OR REPLACE INTO baseline (name, campaign, store, set_at) VALUES (?1, ?2, ?3, ?4)",
                params![baseline.name, baseline.campaign, store, baseline.set_at],
            )
            .map_err(&fail)?;
        transaction.commit().map_err(&fail)?;
        Ok(before)
    }

    /// Forgets a baseline, which is handed back; its campaign stays.
    ///
    /// # Errors
    /// [`StoreError::NoBaseline`] where there is none; others where the store cannot be written.
    pub fn remove_baseline(&mut self, name: &str) -> Result<Baseline, StoreError> {
        let found = self.baseline(name)?;
        let removed = self.connection.execute("DELETE FROM baseline WHERE name = ?1", [name]);
        removed.map_err(StoreError::on(&self.path)).map(|_| found)
    }
}
