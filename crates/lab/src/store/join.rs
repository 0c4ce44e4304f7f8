//! Combines one campaign from parts that arrive while it runs.
//!
//! ```text
//!   part ──adopt──► a new campaign       part ──resume_part──► the campaign that it would resume
//!   part ──join───► that campaign, with the cells that were measured in the part
//!   campaign ──extract──► a part with some of its cells, which a run elsewhere resumes
//!   part in use ──snapshot──► a part with the cells that have ended
//! ```
//!
//! Module `merge` determines which campaigns belong together; here the caller names the campaign.
//!
//! # Not handled
//! The transfer of parts between machines.

use super::merge::Merging;
use super::tables::Progress;
use super::{Store, StoreError};
use std::path::Path;

impl Store {
    /// Copies the only campaign of a part as a new campaign, and returns its number.
    ///
    /// # Errors
    /// [`StoreError::BadPart`] if the contents of the part are invalid; others if it does not have exactly one
    /// campaign, or one of the stores fails.
    pub fn adopt(&mut self, part: &Path) -> Result<i64, StoreError> {
        let (part, was) = only(Store::open_part(part)?)?;
        part.check(was)?;
        self.copy(&part, was, |_| true)
    }

    /// Resumes the last campaign with the plan of a part, as [`Store::resume`]. Returns its number and the done
    /// cells.
    ///
    /// # Errors
    /// As [`Store::resume`]; [`StoreError`] if the part does not have exactly one campaign.
    pub fn resume_part(&mut self, part: &Path) -> Result<(i64, Vec<u32>), StoreError> {
        let (part, was) = only(Store::open_part(part)?)?;
        let identity = part.tables().identity(was)?;
        self.resume_as(&identity.plan, &identity.name, identity.on_device)
    }

    /// Copies the measured, predicted and failed cells of a part into a campaign, and removes pending cells that the
    /// part found unneeded. A cell is replaced only by a cell of higher rank: done ranks above predicted, and
    /// predicted above failed. Returns the cells that became done.
    ///
    /// # Errors
    /// [`StoreError::AnotherCampaign`] if the part belongs to another campaign, [`StoreError::BadPart`] if its
    /// contents are invalid; others if one of the stores fails. After an error nothing has changed.
    pub fn join(&mut self, part: &Path, campaign: i64) -> Result<Vec<u32>, StoreError> {
        let (part, was) = only(Store::open_part(part)?)?;
        self.check_is_of(&part, was, campaign)?;
        part.check(was)?;
        let from = part.tables();
        self.transaction(|to| {
            let numbers = from.numbers(was, None)?;
            let mut gained = Vec::new();
            for &number in &numbers {
                let Some(cell) = from.cell(was, number)? else { continue };
                if cell.progress() == Progress::Pending {
                    continue;
                }
                let before = to.cell(campaign, number)?.map_or(Progress::Pending, |before| before.progress());
                if cell.progress() > before {
                    to.put(campaign, number, &cell)?;
                    gained.extend(cell.is_done().then_some(number));
                }
            }
            for number in to.numbers(campaign, Some("pending"))? {
                if !numbers.contains(&number) {
                    to.remove(campaign, number)?;
                }
            }
            Merging { to, from }.environment(was, campaign, false, true)?;
            Ok(gained)
        })
    }

    /// Creates a part at `path`, which must not exist, with a copy of the campaign in which all but the given cells
    /// are pending.
    ///
    /// # Errors
    /// [`StoreError`] if one of the stores fails.
    pub fn extract(&self, campaign: i64, cells: &[u32], path: &Path) -> Result<(), StoreError> {
        Store::open(path)?.copy(self, campaign, |number| cells.contains(&number)).map(drop)
    }

    /// Copies a campaign of another store as a new campaign. Cells for which `keep` is false become pending.
    fn copy(&mut self, from: &Store, was: i64, keep: impl Fn(u32) -> bool) -> Result<i64, StoreError> {
        let from = from.tables();
        self.transaction(|to| {
            let merging = Merging { to, from };
            let campaign = merging.head(was)?;
            for number in from.numbers(was, None)? {
                let Some(cell) = from.cell(was, number)? else { continue };
                let cell = if keep(number) { cell } else { cell.not_begun() };
                to.put(campaign, number, &cell)?;
            }
            merging.environment(was, campaign, true, true)?;
            Ok(campaign)
        })
    }
}

/// Creates a part at `path`, which must not exist, from a part that may be in use, with the cells that have ended.
///
/// # Errors
/// [`StoreError`] if the part does not have exactly one campaign, or one of the stores fails.
pub fn snapshot(part: &Path, path: &Path) -> Result<(), StoreError> {
    let (from, was) = only(Store::open_existing(part)?)?;
    let pending = from.tables().numbers(was, Some("pending"))?;
    Store::open(path)?.copy(&from, was, |number| !pending.contains(&number)).map(drop)
}

/// A part, with the number of its only campaign.
fn only(part: Store) -> Result<(Store, i64), StoreError> {
    match part.campaigns_of_part()?.as_slice() {
        [one] => Ok((part, *one)),
        all => Err(StoreError::NotAStore {
            path: part.path,
            found: format!("a part has one campaign, but this store has {}", all.len()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{intervals, plan};
    use super::super::writer::write;
    use super::super::{About, CellEnd, Entry};
    use super::*;
    use lowtide_record::Status;
    use lowtide_record::analysis::Verdict;
    use std::path::PathBuf;

    fn done() -> CellEnd {
        CellEnd::Done { verdict: Verdict::NoSteadyState { reason: "too short".to_owned() }, wear: Vec::new() }
    }

    /// A part with these entries. A cell that is done gets intervals.
    fn part(path: PathBuf, seed: u64, entries: &[Entry]) -> PathBuf {
        let mut store = Store::open(&path).expect("a new store");
        let campaign = store.begin(&plan(4, seed), &About::default()).expect("begins");
        for entry in entries {
            let measured = matches!(entry, Entry::End(_, CellEnd::Done { .. }));
            if let (Entry::End(cell, _), true) = (entry, measured) {
                for interval in intervals(*cell) {
                    write(store.tables(), campaign, &interval).expect("writes");
                }
            }
            write(store.tables(), campaign, entry).expect("writes");
        }
        path
    }

    fn statuses(store: &Store, campaign: i64) -> Vec<(u32, Status)> {
        let cells = store.load(campaign).expect("reads back").cells;
        cells.iter().map(|cell| (cell.index, cell.status)).collect()
    }

    #[test]
    fn parts_are_joined_into_their_campaign() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let begun = part(at("begun.db"), 1, &[]);
        let mut store = Store::open(&at("all.db")).expect("a new store");
        let other = store.adopt(&begun).expect("adopts");
        let campaign = store.adopt(&begun).expect("adopts again, as another campaign");
        assert_eq!((other, campaign), (1, 2));

        let first =
            part(at("1.db"), 1, &[Entry::End(1, done()), Entry::End(2, CellEnd::Failed("x".to_owned()))]);
        assert_eq!(store.join(&first, campaign).expect("joins"), [1]);
        assert_eq!(store.join(&first, campaign).expect("joins again"), [0u32; 0], "it is known");
        // A done cell stays, a failed cell is replaced by a measured one, and an unneeded cell is removed.
        let failed = CellEnd::Failed("y".to_owned());
        let second =
            part(at("2.db"), 1, &[Entry::End(1, failed), Entry::End(2, done()), Entry::Unneeded(vec![3])]);
        assert_eq!(store.join(&second, campaign).expect("joins"), [2]);
        let wanted = [(0, Status::Pending), (1, Status::Done), (2, Status::Done)];
        assert_eq!(statuses(&store, campaign), wanted);
        assert_eq!(statuses(&store, other).len(), 4, "the other campaign has not changed");

        // A snapshot works while the part is open for writing.
        store.extract(campaign, &[2], &at("3.db")).expect("extracts");
        snapshot(&at("3.db"), &at("4.db")).expect("makes another");
        let third = Store::open_existing(&at("4.db")).expect("a store");
        assert_eq!(statuses(&third, 1), [(0, Status::Pending), (1, Status::Pending), (2, Status::Done)]);
        assert_eq!(store.resume_part(&begun).expect("resumes"), (campaign, vec![1, 2]));
    }

    #[test]
    fn a_store_without_a_campaign_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("all.db");
        let begun = part(folder.path().join("begun.db"), 1, &[]);
        for campaigns in [0, 1] {
            let mut store = Store::open(&path).expect("a new store");
            for _ in 0..campaigns {
                store.adopt(&begun).expect("adopts");
            }
            store.close_or_remove_empty().expect("closes");
            let names =
                folder.path().read_dir().expect("reads").map(|entry| entry.expect("reads").file_name());
            let beside: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("all.db")).collect();
            assert_eq!(beside.len(), campaigns, "{beside:?}");
        }
    }

    #[test]
    fn parts_of_another_campaign_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let begun = part(at("begun.db"), 1, &[]);
        let mut store = Store::open(&at("all.db")).expect("a new store");
        let campaign = store.adopt(&begun).expect("adopts");
        let another = part(at("another.db"), 2, &[Entry::End(0, done())]);
        let error = store.join(&another, campaign).expect_err("another seed");
        let wanted = "is not part of campaign 1, `t`: its plan or its block device differs";
        assert!(error.to_string().ends_with(wanted), "{error}");
        assert!(matches!(store.resume_part(&another), Err(StoreError::NothingToResume { .. })));
        store.adopt(&another).expect("adopts");
        drop(store);
        assert!(matches!(snapshot(&at("all.db"), &at("copy.db")), Err(StoreError::NotAStore { .. })));
    }
}
