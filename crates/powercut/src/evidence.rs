//! The cause of a loss, from what is known of the round ([`Evidence`]), and who is at fault for it
//! ([`Fault`]).
//!
//! ```text
//!   log of the drive ─► Contract ─► did the drive keep its contract?              else: the drive
//!                    └─► flushes ─► did one lie within each acknowledged commit?   else: the way to the drive
//!   the kernel's messages, reading the files ─► does the filesystem work?         else: the filesystem
//!   a copy of the files, opened elsewhere ─► is everything in it?                 then: the harness, else: the database
//! ```
//!
//! Not here: copies of servers' databases, which are not opened.

use super::ledger::Ledger;
use super::{Row, contradiction};
use lowtide_core::Nanos;
use lowtide_engines::Settings;
use lowtide_engines::tpcc::Scale;
use lowtide_live::contract::Findings;
use lowtide_oltp::{Places, snapshot, sqlite};
use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Most difference between the clocks of the drive's log and of commits: both are the kernel's, and are read
/// one after the other.
const CLOCKS_NS: u64 = 1_000_000;

/// Who is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The simulated drive.
    Drive,
    /// The way between database and drive: a flush did not arrive, or not in time.
    Way,
    /// The filesystem: the drive kept its contract, and the filesystem does not work on its contents.
    Filesystem,
    /// The database.
    Database,
    /// This program: nothing is missing.
    Harness,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Drive => "the drive did not keep its contract",
            Fault::Way => "a flush did not reach the drive",
            Fault::Filesystem => "the drive kept its contract, and the filesystem fails on what it holds",
            Fault::Database => "the drive kept its contract and the filesystem works: it is the database",
            Fault::Harness => "a copy of the files has everything: it is this program",
        })
    }
}

/// What is known of a round.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// The findings in the drive's log.
    pub(super) findings: Findings,
    /// Acknowledged commits: their begin and end, in nanoseconds of `CLOCK_MONOTONIC`.
    pub(super) commits: Vec<(u64, u64)>,
    /// Files that cannot be read.
    pub(super) unreadable: Vec<String>,
    /// Messages of the kernel.
    pub(super) kernel: Vec<String>,
    /// What is wrong with a copy of the files: `None` inside if nothing is; `None` outside if nobody looked.
    pub(super) copy: Option<Option<String>>,
}

impl Evidence {
    /// Commits within which no flush was asked for and answered.
    pub(super) fn unflushed(&self) -> Vec<(u64, u64)> {
        let flushed = |(from, to): &(u64, u64)| {
            let within =
                |(asked, answered): &(u64, u64)| *asked + CLOCKS_NS >= *from && *answered <= *to + CLOCKS_NS;
            self.findings.flushed.iter().any(within)
        };
        self.commits.iter().filter(|commit| !flushed(commit)).copied().collect()
    }

    /// Who is at fault for a loss.
    pub(super) fn fault(&self) -> Fault {
        if self.findings.broken > 0 || !self.findings.failed.is_empty() {
            Fault::Drive
        } else if !self.unflushed().is_empty() {
            Fault::Way
        } else if !self.unreadable.is_empty() {
            Fault::Filesystem
        } else if self.copy == Some(None) {
            Fault::Harness
        } else {
            Fault::Database
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Findings { requests, flushes, checked, breaches, broken, failed, full, .. } = &self.findings;
        writeln!(f, "fault: {}", self.fault())?;
        writeln!(
            f,
            "drive: {requests} requests, {flushes} flushes, {checked} sectors checked, {broken} wrong"
        )?;
        if *full {
            writeln!(f, "drive: its log was full before the end")?;
        }
        breaches.iter().try_for_each(|breach| writeln!(f, "drive: {breach}"))?;
        for (at_ns, request, errno) in failed {
            writeln!(f, "drive: at {at_ns} ns {request:?} failed with error {errno} while the power was on")?;
        }
        let unflushed = self.unflushed();
        let (commits, without) = (self.commits.len(), unflushed.len());
        writeln!(f, "commits: {commits} acknowledged, {without} of them without a flush of the drive")?;
        for (from, to) in unflushed {
            writeln!(f, "commits: from {from} to {to} ns without a flush")?;
        }
        if self.unreadable.is_empty() {
            writeln!(f, "files: all can be read")?;
        }
        self.unreadable.iter().try_for_each(|why| writeln!(f, "files: {why}"))?;
        match &self.copy {
            None => writeln!(f, "copy: not opened")?,
            Some(None) => writeln!(f, "copy: everything is there")?,
            Some(Some(why)) => writeln!(f, "copy: {why}")?,
        }
        self.kernel.iter().try_for_each(|line| writeln!(f, "kernel: {line}"))
    }
}

/// What is wrong with a copy of the files of a database, opened in a directory of its own; nothing where everything of the
/// ledger is there.
pub(super) fn of_copy(
    row: &Row,
    (copy, scratch): (&Path, &Path),
    (settings, scale): (&Settings, &Scale),
    (mut ledger, cut): (Ledger, Nanos),
) -> Option<Option<String>> {
    if !row.setting.engine.is_embedded() || !copy.exists() {
        return None;
    }
    let never = AtomicBool::new(false);
    let _ = std::fs::remove_dir_all(scratch);
    let look = || {
        snapshot::copy(copy, scratch, &never, &|_| {})?;
        let places = Places { data: scratch.to_owned(), log: None, run: scratch.to_owned() };
        let instance = sqlite::start_alone(&places, settings)?;
        let database = instance.database();
        let found = ledger.look(&*database, scale, cut)?;
        let lost = (found.lost > 0).then(|| format!("{} transactions are lost", found.lost));
        Ok::<_, lowtide_oltp::OltpError>(found.told(false).or(lost).or(contradiction(&*database, scale)?))
    };
    let mut look = look;
    let found = look().unwrap_or_else(|error| Some(error.to_string()));
    let _ = std::fs::remove_dir_all(scratch);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_not_as_it_should_be_is_at_fault() {
        let ms = |ms: u64| ms * 1_000_000;
        let kept = |flushed| Findings { flushed, ..Findings::default() };
        let evidence = || Evidence {
            findings: kept(vec![(ms(12), ms(18)), (ms(32), ms(38))]),
            commits: vec![(ms(10), ms(20)), (ms(30), ms(40))],
            copy: Some(Some("malformed".to_owned())),
            ..Evidence::default()
        };
        assert_eq!(evidence().fault(), Fault::Database);
        assert_eq!(Evidence { copy: Some(None), ..evidence() }.fault(), Fault::Harness);
        let unreadable = vec!["tpcc.db: Input/output error".to_owned()];
        let filesystem = Evidence { unreadable, copy: Some(None), ..evidence() };
        assert_eq!(filesystem.fault(), Fault::Filesystem);
        let told = filesystem.to_string();
        assert!(
            told.contains("files: tpcc.db: Input/output error") && told.contains("copy: everything"),
            "{told}"
        );
        let missing = Evidence { findings: kept(vec![(ms(12), ms(18)), (ms(32), ms(48))]), ..evidence() };
        assert_eq!((missing.fault(), missing.unflushed()), (Fault::Way, vec![(ms(30), ms(40))]));
        let wrong = Findings { broken: 1, ..kept(vec![]) };
        assert_eq!(Evidence { findings: wrong, ..evidence() }.fault(), Fault::Drive);
    }
}
