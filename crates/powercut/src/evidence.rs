//! The evidence about a loss ([`Evidence`]), and the component at fault ([`Fault`]).
//!
//! ```text
//!   log of the drive ─► Contract ─► did the drive keep its contract?              no: the drive
//!                    └─► flushes ─► is a flush within each acknowledged commit?   no: the path to the drive
//!   kernel messages, reading the files ─► does the filesystem work?              no: the filesystem
//!   a copy of the files, opened elsewhere ─► is it complete?                     yes: the harness, no: the database
//! ```
//!
//! # Not handled
//! Copies of server databases are not opened.

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

/// Largest difference between the recorded times of one event in the drive's log and in the list of commits. Both
/// records use the same clock but read it at different moments.
const CLOCKS_NS: u64 = 1_000_000;

/// The component at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The simulated drive.
    Drive,
    /// The path between database and drive: a flush arrived late or not at all.
    Path,
    /// The filesystem: the drive kept its contract, but the filesystem does not work on its contents.
    Filesystem,
    /// The database.
    Database,
    /// This program: no transaction is lost.
    Harness,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Drive => "the drive did not keep its contract",
            Fault::Path => "a flush did not reach the drive",
            Fault::Filesystem => "the filesystem: it fails, although the drive kept its contract",
            Fault::Database => "the database: the drive kept its contract and the filesystem works",
            Fault::Harness => "this program: a copy of the files is complete",
        })
    }
}

/// The evidence of a round.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// The findings in the drive's log.
    pub(super) findings: Findings,
    /// Start and end of each acknowledged commit, in nanoseconds of `CLOCK_MONOTONIC`.
    pub(super) commits: Vec<(u64, u64)>,
    /// Unreadable files.
    pub(super) unreadable: Vec<String>,
    /// Messages of the kernel.
    pub(super) kernel: Vec<String>,
    /// The damage in a copy of the files, or `Some(None)` if the copy is complete; `None` if it was not opened.
    pub(super) copy: Option<Option<String>>,
}

impl Evidence {
    /// Commits without a flush between start and end.
    pub(super) fn unflushed(&self) -> Vec<(u64, u64)> {
        let flushed = |(from, to): &(u64, u64)| {
            let within =
                |(asked, answered): &(u64, u64)| *asked + CLOCKS_NS >= *from && *answered <= *to + CLOCKS_NS;
            self.findings.flushed.iter().any(within)
        };
        self.commits.iter().filter(|commit| !flushed(commit)).copied().collect()
    }

    /// The component at fault for a loss.
    pub(super) fn fault(&self) -> Fault {
        if self.findings.broken > 0 || !self.findings.failed.is_empty() {
            Fault::Drive
        } else if !self.unflushed().is_empty() {
            Fault::Path
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
            Some(None) => writeln!(f, "copy: complete")?,
            Some(Some(why)) => writeln!(f, "copy: {why}")?,
        }
        self.kernel.iter().try_for_each(|line| writeln!(f, "kernel: {line}"))
    }
}

/// Opens a copy of a database's files in a separate directory and returns the damage; see [`Evidence::copy`].
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
    let mut look = || {
        snapshot::copy(copy, scratch, &never, &|_| {})?;
        let places = Places { data: scratch.to_owned(), log: None, run: scratch.to_owned() };
        let instance = sqlite::start_alone(&places, settings)?;
        let database = instance.database();
        let found = ledger.look(&*database, scale, cut)?;
        let lost = (found.lost > 0).then(|| format!("{} transactions are lost", found.lost));
        Ok::<_, lowtide_oltp::OltpError>(found.damage(false).or(lost).or(contradiction(&*database, scale)?))
    };
    let damage = look().unwrap_or_else(|error| Some(error.to_string()));
    let _ = std::fs::remove_dir_all(scratch);
    Some(damage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_broken_component_is_at_fault() {
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
        let text = filesystem.to_string();
        assert!(
            text.contains("files: tpcc.db: Input/output error") && text.contains("copy: complete"),
            "{text}"
        );
        let missing = Evidence { findings: kept(vec![(ms(12), ms(18)), (ms(32), ms(48))]), ..evidence() };
        assert_eq!((missing.fault(), missing.unflushed()), (Fault::Path, vec![(ms(30), ms(40))]));
        let wrong = Findings { broken: 1, ..kept(vec![]) };
        assert_eq!(Evidence { findings: wrong, ..evidence() }.fault(), Fault::Drive);
    }
}
