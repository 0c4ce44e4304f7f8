//! One campaign out of parts that come while it goes on.
//!
//! ```text
//!   part ──adopt──► a new campaign       part ──goes_on_with──► the campaign that it would resume
//!   part ──join───► that campaign, with the cells that were measured in the part
//!   campaign ──extract──► a part with some of its cells, from which a run elsewhere goes on
//!   part that is written to ──snapshot──► a part with the cells that have ended
//! ```
//!
//! Where `merge` finds out what belongs together, here it is known. Leaves out how parts travel.

use super::merge::Merging;
use super::whole::{Standing, cell, identity, numbers, put, remove};
use super::{Store, StoreError};
use std::path::Path;

impl Store {
    /// Takes the one campaign of a part as a new one; its number.
    ///
    /// # Errors
    /// [`StoreError`] where the part has not one campaign, or one of the stores fails.
    pub fn adopt(&mut self, part: &Path) -> Result<i64, StoreError> {
        let (part, was) = only(part)?;
        self.copy(&part, was, |_| true)
    }

    /// The last campaign with the plan of a part, cleared of cells that were cut off; its number and which cells are done.
    ///
    /// # Errors
    /// As [`Store::resume`]; [`StoreError`] where the part has not one campaign.
    pub fn goes_on_with(&mut self, part: &Path) -> Result<(i64, Vec<u32>), StoreError> {
        let (part, was) = only(part)?;
        let asked = identity(&part.connection, was).map_err(StoreError::on(&part.path))?;
        self.resume_as(&asked.plan, &asked.name, asked.on_device)
    }

    /// Takes the cells that were measured or failed in a part into a campaign, and leaves out those that were found
    /// needless there; a cell that is done stays as it is. Which cells came and are done.
    ///
    /// # Errors
    /// [`StoreError::AnotherCampaign`] where it is no part of that campaign; others where one of the stores fails.
    pub fn join(&mut self, part: &Path, campaign: i64) -> Result<Vec<u32>, StoreError> {
        let (from, was) = only(part)?;
        let (there, here) = (StoreError::on(&from.path), StoreError::on(&self.path));
        let transaction = self.connection.transaction().map_err(&here)?;
        let theirs = identity(&from.connection, was).map_err(&there)?;
        let ours = identity(&transaction, campaign).map_err(&here)?;
        if (&theirs.plan, &theirs.on_device) != (&ours.plan, &ours.on_device) {
            return Err(StoreError::AnotherCampaign { path: part.to_owned(), name: ours.name, campaign });
        }
        let known = numbers(&from.connection, was, None).map_err(&there)?;
        let mut came = Vec::new();
        for &number in &known {
            let Some(whole) = cell(&from.connection, was, number).map_err(&there)? else { continue };
            let before = cell(&transaction, campaign, number).map_err(&here)?;
            let before = before.map_or(Standing::Pending, |before| before.standing());
            if whole.standing() > before {
                put(&transaction, campaign, number, &whole).map_err(&here)?;
                came.extend((whole.standing() == Standing::Done).then_some(number));
            }
        }
        for number in numbers(&transaction, campaign, Some("pending")).map_err(&here)? {
            if !known.contains(&number) {
                remove(&transaction, campaign, number).map_err(&here)?;
            }
        }
        Merging { to: &transaction, at: &self.path, from: &from }.environment(was, campaign, false)?;
        transaction.commit().map_err(&here)?;
        Ok(came)
    }

    /// Makes a part at `path`, where there is nothing yet: a campaign, of which the given cells are as they are here, and
    /// the others not begun.
    ///
    /// # Errors
    /// [`StoreError`] where one of the stores fails.
    pub fn extract(&self, campaign: i64, cells: &[u32], path: &Path) -> Result<(), StoreError> {
        Store::open(path)?.copy(self, campaign, |number| cells.contains(&number)).map(drop)
    }

    /// A new campaign with what another store has of one; cells that are not kept are not begun.
    fn copy(&mut self, from: &Store, was: i64, keep: impl Fn(u32) -> bool) -> Result<i64, StoreError> {
        let (there, here) = (StoreError::on(&from.path), StoreError::on(&self.path));
        let transaction = self.connection.transaction().map_err(&here)?;
        let merging = Merging { to: &transaction, at: &self.path, from };
        let campaign = merging.head(was)?;
        for number in numbers(&from.connection, was, None).map_err(&there)? {
            let Some(whole) = cell(&from.connection, was, number).map_err(&there)? else { continue };
            let whole = if keep(number) { whole } else { whole.not_begun() };
            put(&transaction, campaign, number, &whole).map_err(&here)?;
        }
        merging.environment(was, campaign, true)?;
        transaction.commit().map_err(&here)?;
        Ok(campaign)
    }
}

/// Makes a part at `path`, where there is nothing yet, of one that may be written to meanwhile: with the cells that have
/// ended by now.
///
/// # Errors
/// [`StoreError`] where the part has not one campaign, or one of the stores fails.
pub fn snapshot(part: &Path, path: &Path) -> Result<(), StoreError> {
    let (from, was) = only(part)?;
    let pending = numbers(&from.connection, was, Some("pending")).map_err(StoreError::on(part))?;
    Store::open(path)?.copy(&from, was, |number| !pending.contains(&number)).map(drop)
}

/// A store that has one campaign, and its number.
fn only(part: &Path) -> Result<(Store, i64), StoreError> {
    let store = Store::open_existing(part)?;
    let all = store.campaigns()?;
    match all.as_slice() {
        [one] => Ok((store, one.id)),
        all => Err(StoreError::NotAStore {
            path: part.to_owned(),
            found: format!("a part has one campaign, and this one has {}", all.len()),
        }),
    }
}
