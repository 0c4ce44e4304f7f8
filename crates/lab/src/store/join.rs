//! One campaign out of parts that come while it goes on.
//!
//! ```text
//!   part ──adopt──► a new campaign       part ──goes_on_with──► the campaign that it would resume
//!   part ──join───► that campaign, with the cells that were measured in the part
//!   campaign ──extract──► a part with some of its cells, from which a run elsewhere goes on
//!   part that is written to ──snapshot──► a part with the cells that have ended
//! ```
//!
//! Where `merge` finds out what belongs together, here it is known. Not here: how parts travel.

use super::merge::Merging;
use super::whole::{Standing, cell, identity, numbers, put, remove};
use super::{Store, StoreError};
use std::path::Path;

impl Store {
    /// Takes the one campaign of a part as a new one; its number.
    ///
    /// # Errors
    /// [`StoreError::BadPart`] where the part is not one that a writer left; others where it has not one campaign, or one of
    /// the stores fails.
    pub fn adopt(&mut self, part: &Path) -> Result<i64, StoreError> {
        let (part, was) = only(Store::open_part(part)?)?;
        part.check(was)?;
        self.copy(&part, was, |_| true)
    }

    /// The last campaign with the plan of a part, cleared of cells that were cut off; its number and which cells are done.
    ///
    /// # Errors
    /// As [`Store::resume`]; [`StoreError`] where the part has not one campaign.
    pub fn goes_on_with(&mut self, part: &Path) -> Result<(i64, Vec<u32>), StoreError> {
        let (part, was) = only(Store::open_part(part)?)?;
        let asked = identity(&part.connection, was).map_err(StoreError::on(&part.path))?;
        self.resume_as(&asked.plan, &asked.name, asked.on_device)
    }

    /// Takes the cells that were measured, predicted or failed in a part into a campaign, and leaves out those that were found
    /// needless there; measured wins over predicted, predicted over failed, and what stands as well here stays as it is.
    /// Which cells came and are done.
    ///
    /// # Errors
    /// [`StoreError::AnotherCampaign`] where it is no part of that campaign, [`StoreError::BadPart`] where it holds what no writer
    /// leaves; others where one of the stores fails. Then nothing of it was taken.
    pub fn join(&mut self, part: &Path, campaign: i64) -> Result<Vec<u32>, StoreError> {
        let (from, was) = only(Store::open_part(part)?)?;
        self.check_is_of(&from, was, campaign)?;
        from.check(was)?;
        let (there, here) = (StoreError::on(&from.path), StoreError::on(&self.path));
        let transaction = self.connection.transaction().map_err(&here)?;
        let known = numbers(&from.connection, was, None).map_err(&there)?;
        let mut came = Vec::new();
        for &number in &known {
            let Some(whole) = cell(&from.connection, &from.format, was, number).map_err(&there)? else {
                continue;
            };
            if whole.standing() == Standing::Pending {
                continue;
            }
            let before = cell(&transaction, &self.format, campaign, number).map_err(&here)?;
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
        let merging = Merging { to: &transaction, format: &self.format, at: &self.path, from: &from };
        merging.environment(was, campaign, false, true)?;
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
        let merging = Merging { to: &transaction, format: &self.format, at: &self.path, from };
        let campaign = merging.head(was)?;
        for number in numbers(&from.connection, was, None).map_err(&there)? {
            let Some(whole) = cell(&from.connection, &from.format, was, number).map_err(&there)? else {
                continue;
            };
            let whole = if keep(number) { whole } else { whole.not_begun() };
            put(&transaction, campaign, number, &whole).map_err(&here)?;
        }
        merging.environment(was, campaign, true, true)?;
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
    let (from, was) = only(Store::open_existing(part)?)?;
    let pending = numbers(&from.connection, was, Some("pending")).map_err(StoreError::on(part))?;
    Store::open(path)?.copy(&from, was, |number| !pending.contains(&number)).map(drop)
}

/// A part, with the number of its only campaign.
fn only(part: Store) -> Result<(Store, i64), StoreError> {
    match part.campaigns_of_part()?.as_slice() {
        [one] => Ok((part, *one)),
        all => Err(StoreError::NotAStore {
            path: part.path,
            found: format!("a part has one campaign, and this one has {}", all.len()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::intervals;
    use super::super::writer::write;
    use super::super::{About, CellEnd, Entry};
    use super::*;
    use crate::experiment::Experiment;
    use crate::plan::Plan;
    use lowtide_core::Seed;
    use lowtide_record::Status;
    use lowtide_record::analysis::Verdict;
    use std::path::PathBuf;

    const TEXT: &str = "name = 't'\ntarget.device = 'intel-320-160gb'\n[before-each-cell]\npurge = 'secure-erase'\n\
        [workload]\npattern = 'random-write'\nblock = '4KiB'\nduration = '1min'\n[sweep]\nthreads = [1, 2, 3, 4]\n";

    fn plan(seed: u64) -> Plan {
        Plan::new(Experiment::parse("t.toml", TEXT, &[]).expect("valid"), Seed::new(seed), 1).expect("plans")
    }

    fn done() -> CellEnd {
        CellEnd::Done { verdict: Verdict::NoSteadyState { reason: "too short".to_owned() }, wear: Vec::new() }
    }

    /// A part with what became of some of its cells.
    fn part(path: PathBuf, seed: u64, entries: &[Entry]) -> PathBuf {
        let mut store = Store::open(&path).expect("a new store");
        let campaign = store.begin(&plan(seed), &About::default()).expect("begins");
        for entry in entries {
            let measured = matches!(entry, Entry::End(_, CellEnd::Done { .. }));
            if let (Entry::End(cell, _), true) = (entry, measured) {
                for interval in intervals(*cell) {
                    write(&store.connection, campaign, &interval).expect("is written");
                }
            }
            write(&store.connection, campaign, entry).expect("is written");
        }
        path
    }

    fn statuses(store: &Store, campaign: i64) -> Vec<(u32, Status)> {
        let cells = store.load(campaign).expect("reads back").cells;
        cells.iter().map(|cell| (cell.index, cell.status)).collect()
    }

    #[test]
    fn parts_come_into_the_campaign_that_they_are_of() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let begun = part(at("begun.db"), 1, &[]);
        let mut store = Store::open(&at("all.db")).expect("a new store");
        let other = store.adopt(&begun).expect("adopts");
        let campaign = store.adopt(&begun).expect("adopts again: a campaign of its own");
        assert_eq!((other, campaign), (1, 2));

        let first =
            part(at("1.db"), 1, &[Entry::End(1, done()), Entry::End(2, CellEnd::Failed("x".to_owned()))]);
        assert_eq!(store.join(&first, campaign).expect("joins"), [1]);
        assert_eq!(store.join(&first, campaign).expect("joins again"), [0u32; 0], "it is known");
        // What is done stays; what failed elsewhere may be measured; what is needless there is left out.
        let failed = CellEnd::Failed("y".to_owned());
        let second =
            part(at("2.db"), 1, &[Entry::End(1, failed), Entry::End(2, done()), Entry::Spared(vec![3])]);
        assert_eq!(store.join(&second, campaign).expect("joins"), [2]);
        let is = [(0, Status::Pending), (1, Status::Done), (2, Status::Done)];
        assert_eq!(statuses(&store, campaign), is);
        assert_eq!(statuses(&store, other).len(), 4, "the other campaign is as it was");

        // A part of some of it, which may be written to while another is made of it.
        store.extract(campaign, &[2], &at("3.db")).expect("extracts");
        snapshot(&at("3.db"), &at("4.db")).expect("makes another");
        let third = Store::open_existing(&at("4.db")).expect("a store");
        assert_eq!(statuses(&third, 1), [(0, Status::Pending), (1, Status::Pending), (2, Status::Done)]);
        assert_eq!(store.goes_on_with(&begun).expect("goes on"), (campaign, vec![1, 2]));
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
    fn what_is_no_part_of_a_campaign_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let begun = part(at("begun.db"), 1, &[]);
        let mut store = Store::open(&at("all.db")).expect("a new store");
        let campaign = store.adopt(&begun).expect("adopts");
        let another = part(at("another.db"), 2, &[Entry::End(0, done())]);
        let error = store.join(&another, campaign).expect_err("another seed");
        assert!(
            error
                .to_string()
                .ends_with("is no part of campaign 1, `t`: its plan or its block device is another")
        );
        assert!(matches!(store.goes_on_with(&another), Err(StoreError::NothingToResume { .. })));
        store.adopt(&another).expect("adopts");
        drop(store);
        assert!(matches!(snapshot(&at("all.db"), &at("copy.db")), Err(StoreError::NotAStore { .. })));
    }
}
