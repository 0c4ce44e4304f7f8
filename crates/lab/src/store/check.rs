//! Checks a part completely before it is merged. A part may come from a machine that lost power, from a faulty
//! worker, or from an untrusted source.
//!
//! ```text
//!   file      an intact database with exactly the tables of a store, and no rows without a cell
//!   campaign  its head and its cells match its plan
//!   cell      ordered intervals, possible numbers, histograms that match the counts of their intervals, a valid end
//! ```
//!
//! Imported campaigns have no plan, and may have gaps and histograms whose counts differ from their intervals. Only
//! their consistency is checked.
//!
//! # Not checked
//! The truth of consistent numbers.

use super::add::IMPORTED;
use super::tables::{self, Tables};
use super::{Store, StoreError, schema};
use crate::experiment::Experiment;
use crate::plan::{Plan, PlannedCell};
use lowtide_core::{Latency, Seed};
use lowtide_engines::tpcc::Kind;
use lowtide_files::device;
use lowtide_record::analysis::Verdict;
use lowtide_record::{Campaign, Cell, Done, Percentiles, Row, Status};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeSet;
use std::path::Path;

/// The result of a check. The error is the message for [`StoreError::BadPart`].
type Checked = Result<(), String>;

fn bad(path: &Path, what: impl Into<String>) -> StoreError {
    StoreError::BadPart { path: path.to_owned(), what: what.into() }
}

/// Converts an error into [`StoreError::BadPart`], unless its cause is the machine.
fn blame_part(path: &Path, error: StoreError) -> StoreError {
    use rusqlite::ErrorCode::{
        CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, OutOfMemory, PermissionDenied, ReadOnly,
        SystemIoFailure,
    };
    match error {
        StoreError::Sqlite { sqlite, path: at } => match sqlite.sqlite_error_code() {
            Some(
                CannotOpen | DatabaseBusy | DatabaseLocked | DiskFull | OutOfMemory | PermissionDenied
                | ReadOnly | SystemIoFailure,
            ) => StoreError::Sqlite { sqlite, path: at },
            _ => bad(path, sqlite.to_string()),
        },
        StoreError::Damaged { what, .. } => bad(path, what),
        other => other,
    }
}

impl Store {
    /// Opens a store whose campaigns will be merged into another store, and checks the file. Reads one snapshot of
    /// the store, and never writes to it.
    ///
    /// # Errors
    /// [`StoreError::BadPart`] if the file is invalid; others if it cannot be read.
    pub(super) fn open_part(path: &Path) -> Result<Store, StoreError> {
        let store = Store::open_existing(path).map_err(|error| blame_part(path, error))?;
        let fail = |error| blame_part(path, StoreError::on(path)(error));
        // Opening a file in WAL mode creates two files next to it, so the connection must not write.
        store.connection.execute_batch("PRAGMA query_only = ON; BEGIN;").map_err(fail)?;
        file(&store.connection).map_err(fail)?.map_err(|wrong| bad(path, wrong))?;
        Ok(store)
    }

    /// The numbers of the campaigns of a part.
    ///
    /// # Errors
    /// As [`Store::open_part`].
    pub(super) fn campaigns_of_part(&self) -> Result<Vec<i64>, StoreError> {
        let all = self.tables().query("SELECT id FROM campaign ORDER BY id", [], |row| Ok(row.get(0)?));
        all.map_err(|error| blame_part(&self.path, error))
    }

    /// Checks a campaign of a part.
    ///
    /// # Errors
    /// As [`Store::open_part`].
    pub(super) fn check(&self, number: i64) -> Result<(), StoreError> {
        let blame = |error| blame_part(&self.path, error);
        let plan = self.tables().identity(number).map_err(blame)?.plan;
        let campaign = self.head(number).map_err(blame)?;
        let imported = plan == IMPORTED;
        let mut planned = None;
        if !imported {
            head(&campaign, &plan).map_err(|wrong| bad(&self.path, wrong))?;
            planned = replanned(&campaign, &plan);
        }
        for cell in self.tables().numbers(number, None).map_err(blame)? {
            self.check_cell(number, cell, planned.as_ref(), imported)?;
        }
        Ok(())
    }

    fn check_cell(
        &self,
        campaign: i64,
        number: u32,
        plan: Option<&Plan>,
        imported: bool,
    ) -> Result<(), StoreError> {
        let of_cell = |wrong: String| bad(&self.path, format!("cell {number}: {wrong}"));
        let blame = |error| match blame_part(&self.path, error) {
            StoreError::BadPart { what, .. } => of_cell(what),
            other => other,
        };
        let status = "SELECT status FROM cell WHERE campaign = ?1 AND cell = ?2";
        let status = self.tables().one(status, params![campaign, number], |row| Ok(row.get(0)?));
        let status: String = status.map_err(blame)?.unwrap_or_default();
        if !["pending", "done", "failed", "spared"].contains(&status.as_str()) {
            return Err(of_cell(format!("its status `{status}` is not pending, done, failed or spared")));
        }
        let cell = self.cell_as_stored(campaign, number).map_err(blame)?;
        if let Some(plan) = plan {
            let planned = plan.cells.get(number as usize).filter(|planned| is_planned(&cell, planned));
            planned.ok_or_else(|| of_cell("it does not match the plan".to_owned()))?;
        }
        let row = values(&cell).and_then(|()| intervals(&cell, imported)).and_then(|()| end(&cell, imported));
        row.map_err(of_cell)?;
        let mut histograms = Histograms { cell: &cell, imported, seen: BTreeSet::new(), checked: Ok(()) };
        let check = &mut |start_ns, op: &str, latency: &Latency| histograms.check(start_ns, op, latency);
        self.each_latency(campaign, number, 0, u64::MAX, check).map_err(blame)?;
        histograms.finish().map_err(of_cell)
    }

    /// Checks that campaign `was` of a part is `campaign` of this store: their heads and planned cells are equal.
    ///
    /// # Errors
    /// [`StoreError::AnotherCampaign`], [`StoreError::BadPart`], or others if a store cannot be read.
    pub(super) fn check_is_of(&self, part: &Store, was: i64, campaign: i64) -> Result<(), StoreError> {
        const COLUMNS: [&str; 9] =
            ["plan", "name", "title", "experiment", "target", "device", "seed", "scale", "version"];
        let blame = |error| blame_part(&part.path, error);
        let (here, there) = (self.tables(), part.tables());
        let theirs = there.identity(was).map_err(blame)?;
        let ours = here.identity(campaign)?;
        if (&theirs.plan, &theirs.on_device) != (&ours.plan, &ours.on_device) {
            return Err(StoreError::AnotherCampaign { path: part.path.clone(), name: ours.name, campaign });
        }
        let head = format!("SELECT {} FROM campaign WHERE id = ?1", COLUMNS.join(", "));
        let row = |tables: Tables<'_>, campaign: i64| {
            tables.values(&head, [campaign]).map(|mut rows| rows.pop().unwrap_or_default())
        };
        let (own, other) = (row(here, campaign)?, row(there, was).map_err(blame)?);
        if let Some(at) = (0..COLUMNS.len()).find(|&at| own.get(at) != other.get(at)) {
            let what = format!("the {} of its campaign differs from the store's", COLUMNS[at]);
            return Err(bad(&part.path, what));
        }
        let known = here.numbers(campaign, None)?;
        let mut plan: Option<Option<Plan>> = None;
        for number in there.numbers(was, None).map_err(blame)? {
            let planned = there.planned(was, number).map_err(blame)?;
            let is_ours = match here.planned(campaign, number)? {
                Some(here) => Some(here) == planned,
                // This store removed the cell as unneeded. If the plan cannot be made again, only the range of its
                // cell numbers is known.
                None => {
                    if plan.is_none() {
                        plan = Some(replanned(&self.head(campaign)?, &ours.plan));
                    }
                    match plan.as_ref().and_then(Option::as_ref) {
                        Some(plan) => plan.cells.get(number as usize).is_some_and(|planned| {
                            part.cell_as_stored(was, number).is_ok_and(|cell| is_planned(&cell, planned))
                        }),
                        None => known.last().is_some_and(|last| number < *last),
                    }
                }
            };
            if !is_ours {
                let what = format!("cell {number}: it does not match the cell of the store");
                return Err(bad(&part.path, what));
            }
        }
        Ok(())
    }
}

/// Checks a database as a file.
fn file(connection: &Connection) -> rusqlite::Result<Checked> {
    let format = schema::version(connection)?;
    let mut objects = connection.prepare("SELECT type, name FROM sqlite_schema ORDER BY name")?;
    let objects: Vec<(String, String)> =
        objects.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    for (kind, name) in &objects {
        if kind != "table" || schema::known_columns(name).is_none() {
            return Ok(Err(format!("it has an unexpected {kind} `{name}`")));
        }
        if !schema::fits(name, &schema::columns(connection, name)?, format) {
            return Ok(Err(format!("table `{name}` does not have the columns of a store")));
        }
    }
    let needed = ["campaign", "environment", "cell"].into_iter().chain(tables::of_cells_in(format));
    if let Some(missing) = needed.into_iter().find(|name| objects.iter().all(|(_, other)| other != name)) {
        return Ok(Err(format!("table `{missing}` is missing")));
    }
    let encoding: String = connection.query_row("PRAGMA encoding", [], |row| row.get(0))?;
    if encoding != "UTF-8" {
        return Ok(Err(format!("its text encoding is {encoding}, not UTF-8")));
    }
    let intact: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if intact != "ok" {
        let damage = intact.lines().last().unwrap_or_default();
        return Ok(Err(format!("it fails SQLite's integrity check: {damage}")));
    }
    orphans(connection, format)
}

/// Checks that every row belongs to a row of its parent table.
fn orphans(connection: &Connection, format: i32) -> rusqlite::Result<Checked> {
    let find = |text: String| connection.query_row(&text, [], |row| row.get::<_, Value>(0)).optional();
    for table in ["environment", "cell"] {
        let text =
            format!("SELECT campaign FROM {table} WHERE campaign NOT IN (SELECT id FROM campaign) LIMIT 1");
        if find(text)?.is_some() {
            return Ok(Err(format!("table `{table}` has rows of a missing campaign")));
        }
    }
    let without_parent = |table: &str, parent: &str, also: &str| {
        format!(
            "SELECT cell FROM {table} t WHERE NOT EXISTS
             (SELECT 1 FROM {parent} p WHERE p.campaign = t.campaign AND p.cell = t.cell {also}) LIMIT 1"
        )
    };
    for table in tables::of_cells_in(format) {
        if find(without_parent(table, "cell", ""))?.is_some() {
            return Ok(Err(format!("table `{table}` has rows of a missing cell")));
        }
    }
    for table in tables::of_cells_in(format).filter(|table| ["histogram", "transactions"].contains(table)) {
        if let Some(cell) = find(without_parent(table, "interval", "AND p.start_ns = t.start_ns"))? {
            let cell = if let Value::Integer(cell) = cell { cell } else { -1 };
            return Ok(Err(format!("cell {cell}: table `{table}` has rows of a missing interval")));
        }
    }
    if tables::of_cells_in(format).any(|table| table == "oltp")
        && let Some(Value::Integer(cell)) = find(without_parent("transactions", "oltp", ""))?
    {
        return Ok(Err(format!("cell {cell}: it has transactions but no database")));
    }
    Ok(Ok(()))
}

/// Checks the row of a campaign against its plan, which contains all inputs as text.
fn head(campaign: &Campaign, plan: &str) -> Checked {
    if natural(campaign.scale).is_none() || campaign.scale == 0 {
        return Err("its scale is not a positive number".to_owned());
    }
    if campaign.version != env!("CARGO_PKG_VERSION") {
        // Plans of other versions may be written differently.
        return Ok(());
    }
    let Some(rest) = plan.strip_prefix(campaign.experiment.as_str()) else {
        return Err("its experiment does not match its plan".to_owned());
    };
    let inputs = format!("\n{} seed {} scale 1/{}", campaign.target, campaign.seed, campaign.scale);
    let ends = |at: usize| matches!(rest.as_bytes().get(at + inputs.len()), None | Some(b'\n'));
    if !rest.match_indices(&inputs).any(|(at, _)| ends(at)) {
        return Err("its target, seed or scale does not match its plan".to_owned());
    }
    if !campaign.devices.iter().all(|device| rest.contains(device.as_str())) {
        return Err("its device file does not match its plan".to_owned());
    }
    Ok(())
}

/// Makes the plan of a campaign again; `None` if that is impossible on this machine. Never opens a file that the
/// experiment names, because the part is untrusted.
fn replanned(campaign: &Campaign, plan: &str) -> Option<Plan> {
    let table: toml::Table = campaign.experiment.parse().ok()?;
    if campaign.version != env!("CARGO_PKG_VERSION")
        || campaign.devices.is_empty()
        || table.iter().any(|(key, value)| names_files(key, value))
    {
        return None;
    }
    let experiment = Experiment::parse("the experiment in the store", &campaign.experiment, &[]).ok()?;
    let made = Plan::new(experiment, Seed::new(campaign.seed), campaign.scale).ok()?;
    plan.starts_with(&made.identity()).then_some(made)
}

/// Returns whether a value of an experiment, or a nested value, names a file that a plan would read.
fn names_files(key: &str, value: &toml::Value) -> bool {
    match value {
        // A device given as a table: `device = { data = "…", log = "…" }`.
        toml::Value::Table(table) if key.contains("device") => {
            table.values().any(|value| names_files(key, value))
        }
        toml::Value::Table(table) => table.iter().any(|(key, value)| names_files(key, value)),
        toml::Value::Array(all) => all.iter().any(|value| names_files(key, value)),
        toml::Value::String(text) => key == "trace" || key.contains("device") && device::names_files(text),
        _ => false,
    }
}

fn is_planned(cell: &Cell, planned: &PlannedCell) -> bool {
    let workload = planned.settings.load.workload();
    cell.index == planned.index
        && cell.step == planned.step
        && cell.factors == planned.factors()
        && cell.repetition == planned.repetition
        && (cell.data, cell.capacity) == (planned.data, planned.capacity)
        && cell.threads == workload.threads
        && cell.read_share == workload.read_share
}

/// A number read from a signed column; `None` if the column was negative.
fn natural(number: u64) -> Option<u64> {
    i64::try_from(number).ok().map(|_| number)
}

/// Checks the values of a cell's own row.
fn values(cell: &Cell) -> Checked {
    let sizes = [
        ("data_bytes", Some(cell.data.get())),
        ("capacity_bytes", Some(cell.capacity.get())),
        ("raw_bytes", cell.raw_capacity.map(|raw| raw.get())),
        ("written_before_bytes", cell.written_before.map(|written| written.get())),
        ("took_ns", cell.took.map(|took| took.get())),
    ];
    let negative = sizes.iter().find(|(_, number)| number.is_some_and(|number| natural(number).is_none()));
    if let Some((column, _)) = negative {
        return Err(format!("its `{column}` is negative"));
    }
    if cell.repetition == 0 {
        return Err("its repetition is 0, but repetitions count from 1".to_owned());
    }
    if !(0.0..=1.0).contains(&cell.read_share) {
        return Err(format!("its share of reads is {}, not between 0 and 1", cell.read_share));
    }
    let Some(it) = cell.predicted else { return Ok(()) };
    let ordered = it.low <= it.level && it.level <= it.high;
    let finite = [it.level, it.low, it.high].iter().all(|number| number.is_finite());
    if ordered && finite { Ok(()) } else { Err("its predicted level lies outside its interval".to_owned()) }
}

/// Checks the numbers of a cell's intervals.
fn intervals(cell: &Cell, imported: bool) -> Checked {
    let mut expected = 0;
    for row in cell.rows.iter() {
        let at = |what: &str| Err(format!("{} {what}", interval(row.start_ns)));
        let counts = [row.reads, row.read_bytes, row.writes, row.write_bytes, row.errors];
        if counts.iter().chain([&row.start_ns, &row.end_ns]).any(|number| natural(*number).is_none()) {
            return at("has a negative number");
        }
        if row.end_ns < row.start_ns || row.end_ns == row.start_ns && !imported {
            return at("ends before it begins");
        }
        if row.start_ns != expected && !imported {
            return at(&format!(
                "does not begin at the end of the previous interval, at {}",
                seconds(expected)
            ));
        }
        expected = row.end_ns;
        let device = [(row.reads, row.read_bytes), (row.writes, row.write_bytes)];
        if row.transactions.is_none() && device.iter().any(|(count, bytes)| *count == 0 && *bytes > 0) {
            return at("has bytes but no operations");
        }
        let kinds = row.transactions.iter().flat_map(|it| &it.kinds);
        for done in kinds.clone() {
            if [done.committed, done.rolled_back, done.retries].iter().any(|it| natural(*it).is_none()) {
                return at("has a negative number of transactions");
            }
        }
        let latencies = [&row.read, &row.write].into_iter().chain(kinds.map(|done| &done.latency));
        if !imported && !latencies.clone().all(are_ordered) || !latencies.clone().all(are_numbers) {
            return at("has impossible latencies");
        }
    }
    Ok(())
}

fn are_numbers(it: &Percentiles) -> bool {
    let all = [it.p50_ns, it.p95_ns, it.p99_ns, it.p999_ns, it.max_ns];
    it.mean_ns.is_finite() && it.mean_ns >= 0.0 && all.iter().all(|number| natural(*number).is_some())
}

fn are_ordered(it: &Percentiles) -> bool {
    [it.p50_ns, it.p95_ns, it.p99_ns, it.p999_ns, it.max_ns].is_sorted()
}

/// Checks the status of a cell against its rows and its verdict.
fn end(cell: &Cell, imported: bool) -> Checked {
    let is_done = cell.status == Status::Done;
    let lacks_transactions =
        !imported && cell.oltp.is_some() && cell.rows.iter().any(|row| row.transactions.is_none());
    let faults = [
        (is_done && cell.rows.is_empty(), "it is done but has no intervals"),
        (is_done && cell.verdict.is_none(), "it is done but has no verdict"),
        (is_done && cell.failure.is_some(), "it is done but has a reason for failure"),
        (is_done && lacks_transactions, "it has a database, but intervals without transactions"),
        (cell.status == Status::Failed && cell.failure.is_none(), "it failed without a reason"),
        (
            cell.status == Status::Spared && cell.predicted.is_none(),
            "it was spared but has no predicted level",
        ),
        (!is_done && cell.verdict.is_some(), "it has a verdict but was not measured to the end"),
    ];
    if let Some((_, fault)) = faults.into_iter().find(|(applies, _)| *applies) {
        return Err(fault.to_owned());
    }
    let Some(Verdict::Steady(estimate)) = &cell.verdict else { return Ok(()) };
    let numbers = [estimate.mean, estimate.half_width];
    if numbers.iter().any(|number| !number.is_finite() || *number < 0.0) {
        return Err("its level is negative or not a number".to_owned());
    }
    let last = cell.rows.last().map_or(0, |row| row.end_ns);
    if estimate.from_ns >= estimate.to_ns || estimate.to_ns > last {
        return Err("its steady window is not within its measurement".to_owned());
    }
    Ok(())
}

/// Checks the histograms of a cell against its intervals.
struct Histograms<'a> {
    cell: &'a Cell,
    imported: bool,
    /// The interval start (ns) and the operation of every histogram read so far.
    seen: BTreeSet<(u64, usize)>,
    checked: Checked,
}

/// Operations in the order of their indices: reads, writes, kinds of transaction.
const OPERATIONS: usize = 2 + Kind::ALL.len();

impl Histograms<'_> {
    /// The number of operations in an interval, and their latencies.
    fn counted(row: &Row, operation: usize) -> (u64, Percentiles) {
        let of = |done: &Done| (done.ended(), done.latency);
        match (operation, &row.transactions) {
            (0, None) => (row.reads, row.read),
            (1, None) => (row.writes, row.write),
            (_, Some(transactions)) if operation >= 2 => of(&transactions.kinds[operation - 2]),
            _ => (0, Percentiles::default()),
        }
    }

    fn check(&mut self, start_ns: u64, op: &str, latency: &Latency) {
        let at = self.cell.rows.binary_search_by_key(&start_ns, |row| row.start_ns);
        let mut names = ["read", "write"].into_iter().chain(Kind::ALL.iter().map(|kind| kind.name()));
        let (Ok(at), Some(operation)) = (at, names.position(|name| name == op)) else {
            return self.fail(start_ns, &format!("has a histogram of the unknown operation `{op}`"));
        };
        let (count, percentiles) = Histograms::counted(&self.cell.rows[at], operation);
        self.seen.insert((start_ns, operation));
        if self.imported {
            return;
        }
        if latency.count() != count {
            let what = format!("counts {count} of `{op}`, but the histogram has {}", latency.count());
            self.fail(start_ns, &what);
        } else if !are_equal(&Percentiles::of(latency), &percentiles) {
            self.fail(start_ns, &format!("has latencies of `{op}` that differ from its histogram"));
        }
    }

    /// Records the first fault.
    fn fail(&mut self, start_ns: u64, what: &str) {
        if self.checked.is_ok() {
            self.checked = Err(format!("{} {what}", interval(start_ns)));
        }
    }

    /// The result, after all histograms were read.
    fn finish(mut self) -> Checked {
        if !self.imported {
            for row in self.cell.rows.iter() {
                let is_missing = |operation: usize| {
                    Histograms::counted(row, operation).0 > 0
                        && !self.seen.contains(&(row.start_ns, operation))
                };
                if (0..OPERATIONS).any(is_missing) {
                    self.fail(row.start_ns, "counts operations but has no histogram of them");
                }
            }
        }
        self.checked
    }
}

/// Returns whether percentiles are equal. Means may differ by rounding, which depends on the order of addition.
fn are_equal(one: &Percentiles, other: &Percentiles) -> bool {
    let mean_is_close = (one.mean_ns - other.mean_ns).abs() <= one.mean_ns * 1e-9;
    mean_is_close && Percentiles { mean_ns: 0.0, ..*one } == Percentiles { mean_ns: 0.0, ..*other }
}

fn interval(start_ns: u64) -> String {
    format!("the interval at {}", seconds(start_ns))
}

fn seconds(ns: u64) -> String {
    format!("{} s", ns as i64 as f64 / 1e9)
}

#[cfg(test)]
mod tests;
