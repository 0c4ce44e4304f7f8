//! Checks a whole part before anything of it is taken: it may come from a machine that lost power, from a
//! worker with a bug, or from a stranger.
//!
//! ```text
//!   file      an intact database with the tables of a store and nothing else, no rows without a cell
//!   campaign  what its head says is what its plan says; its cells are those of the plan
//!   cell      intervals in order, numbers that can be, histograms that decode and count what their interval counted,
//!             an end as the writer writes it
//! ```
//!
//! Campaigns of other programs (`import`) have no plan, and may have gaps and histograms that count other
//! operations than their intervals: of those only their consistency with themselves is checked. Not here:
//! whether numbers are true: a part that consistently claims that a drive is fast is believed.

use super::add::IMPORTED;
use super::{Store, StoreError, schema, whole};
use crate::experiment::Experiment;
use crate::plan::{Plan, PlannedCell};
use lowtide_core::{Latency, Seed};
use lowtide_engines::tpcc::Kind;
use lowtide_files::device;
use lowtide_record::{Campaign, Cell, Done, Percentiles, Row, Status};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeSet;
use std::path::Path;

/// What is wrong with a part, in words.
type Wrong = String;

/// An error that says what is wrong with a part.
fn bad(path: &Path, what: impl Into<Wrong>) -> StoreError {
    StoreError::BadPart { path: path.to_owned(), what: what.into() }
}

/// Turns an error into one about the part's contents, unless it comes from the machine.
fn told(path: &Path, error: StoreError) -> StoreError {
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
    /// Opens a store whose campaigns are to be taken into another: reads it as it is at one instant, never
    /// writes to it, and checks it as a file.
    ///
    /// # Errors
    /// [`StoreError::BadPart`] if it holds anything that no writer puts there; others if it cannot be read.
    pub(super) fn open_part(path: &Path) -> Result<Store, StoreError> {
        let store = Store::open_existing(path).map_err(|error| told(path, error))?;
        let fail = |error| told(path, StoreError::on(path)(error));
        // A file in WAL mode that is opened to be read leaves other files beside it.
        store.connection.execute_batch("PRAGMA query_only = ON; BEGIN;").map_err(fail)?;
        file(&store.connection).map_err(fail)?.map_or(Ok(()), |wrong| Err(bad(path, wrong)))?;
        Ok(store)
    }

    /// The numbers of the campaigns of a part.
    ///
    /// # Errors
    /// As [`Store::open_part`].
    pub(super) fn campaigns_of_part(&self) -> Result<Vec<i64>, StoreError> {
        let text = "SELECT id FROM campaign ORDER BY id";
        let all = self.connection.prepare(text).and_then(|mut statement| {
            statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()
        });
        all.map_err(|error| told(&self.path, StoreError::on(&self.path)(error)))
    }

    /// Checks a campaign of a part.
    ///
    /// # Errors
    /// As [`Store::open_part`].
    pub(super) fn check(&self, number: i64) -> Result<(), StoreError> {
        let path = &self.path;
        let told = |error| told(path, error);
        let plan: String = self
            .connection
            .query_row("SELECT plan FROM campaign WHERE id = ?1", [number], |row| row.get(0))
            .map_err(|error| told(StoreError::on(path)(error)))?;
        let campaign = self.head(number).map_err(told)?;
        let imported = plan == IMPORTED;
        if !imported {
            head(&campaign, &plan).map_or(Ok(()), |wrong| Err(bad(path, wrong)))?;
        }
        let planned = if imported { None } else { replanned(&campaign, &plan) };
        for cell in
            whole::numbers(&self.connection, number, None).map_err(|e| told(StoreError::on(path)(e)))?
        {
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
        let path = &self.path;
        let of_cell = |wrong: Wrong| bad(path, format!("cell {number}: {wrong}"));
        let fail = |error| match told(path, error) {
            StoreError::BadPart { what, .. } => of_cell(what),
            other => other,
        };
        let on = |error| fail(StoreError::on(path)(error));
        let status = "SELECT status FROM cell WHERE campaign = ?1 AND cell = ?2";
        let status: String = self
            .connection
            .prepare_cached(status)
            .and_then(|mut it| it.query_row(params![campaign, number], |row| row.get(0)))
            .map_err(on)?;
        if !["pending", "done", "failed", "spared"].contains(&status.as_str()) {
            return Err(of_cell(format!("it is `{status}`, and cells are pending, done, failed or spared")));
        }
        let cell = self.cell_as_stored(campaign, number).map_err(fail)?;
        if let Some(plan) = plan {
            let planned = plan.cells.get(number as usize).filter(|planned| is_planned(&cell, planned));
            planned.ok_or_else(|| of_cell("it is not the cell that the plan has".to_owned()))?;
        }
        let wrong = values(&cell).or_else(|| intervals(&cell, imported)).or_else(|| end(&cell, imported));
        wrong.map_or(Ok(()), |wrong| Err(of_cell(wrong)))?;
        let mut histograms = Histograms { cell: &cell, imported, seen: BTreeSet::new(), wrong: None };
        let take = &mut |start_ns, op: &str, latency: &Latency| histograms.take(start_ns, op, latency);
        self.each_latency(campaign, number, 0, u64::MAX, take).map_err(fail)?;
        histograms.end().map_or(Ok(()), |wrong| Err(of_cell(wrong)))
    }

    /// Checks that a campaign of a part is `campaign` of this store: head and cells agree on what was
    /// planned.
    ///
    /// # Errors
    /// [`StoreError::AnotherCampaign`], [`StoreError::BadPart`], or others where a store cannot be read.
    pub(super) fn check_is_of(&self, part: &Store, was: i64, campaign: i64) -> Result<(), StoreError> {
        const HEAD: &str = "SELECT plan, name, title, experiment, target, device, seed, scale, version FROM campaign WHERE id = ?1";
        let here = StoreError::on(&self.path);
        let there = |error| told(&part.path, StoreError::on(&part.path)(error));
        let theirs = whole::identity(&part.connection, was).map_err(there)?;
        let ours = whole::identity(&self.connection, campaign).map_err(&here)?;
        if (&theirs.plan, &theirs.on_device) != (&ours.plan, &ours.on_device) {
            return Err(StoreError::AnotherCampaign { path: part.path.clone(), name: ours.name, campaign });
        }
        let row = |connection: &Connection, campaign: i64| {
            whole::rows(connection, HEAD, params![campaign]).map(|mut rows| rows.pop().unwrap_or_default())
        };
        let own = row(&self.connection, campaign).map_err(&here)?;
        let other = row(&part.connection, was).map_err(there)?;
        let columns = ["plan", "name", "title", "experiment", "target", "device", "seed", "scale", "version"];
        if let Some(column) = (0..columns.len()).find(|&at| own.get(at) != other.get(at)) {
            let what = format!("the {} of its campaign is another than here", columns[column]);
            return Err(bad(&part.path, what));
        }
        let known = whole::numbers(&self.connection, campaign, None).map_err(&here)?;
        let mut plan: Option<Option<Plan>> = None;
        for number in whole::numbers(&part.connection, was, None).map_err(there)? {
            let planned = whole::planned(&part.connection, &part.format, was, number).map_err(there)?;
            let planned_here =
                whole::planned(&self.connection, &self.format, campaign, number).map_err(&here)?;
            let is_ours = match planned_here {
                Some(here) => Some(here) == planned,
                // This store found the cell needless. If the plan cannot be made again, the range of its
                // numbers is known.
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
                let what = format!("cell {number}: it is not the cell that the campaign has here");
                return Err(bad(&part.path, what));
            }
        }
        Ok(())
    }
}

/// What is wrong with a database as a file.
fn file(connection: &Connection) -> rusqlite::Result<Option<Wrong>> {
    let format = schema::version(connection)?;
    let mut objects = connection.prepare("SELECT type, name FROM sqlite_schema ORDER BY name")?;
    let objects: Vec<(String, String)> =
        objects.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    for (kind, name) in &objects {
        if kind != "table" || schema::known_columns(name).is_none() {
            return Ok(Some(format!("it has the {kind} `{name}`, which no store has")));
        }
        if !schema::fits(name, &schema::columns(connection, name)?, format) {
            return Ok(Some(format!("its table `{name}` has other columns than that of a store")));
        }
    }
    let needed = ["campaign", "environment", "cell"].into_iter().chain(whole::tables_since(format));
    if let Some(missing) = needed.into_iter().find(|name| objects.iter().all(|(_, other)| other != name)) {
        return Ok(Some(format!("it has no table `{missing}`")));
    }
    let encoding: String = connection.query_row("PRAGMA encoding", [], |row| row.get(0))?;
    if encoding != "UTF-8" {
        return Ok(Some(format!("its texts are {encoding}, and those of a store UTF-8")));
    }
    let intact: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if intact != "ok" {
        return Ok(Some(format!("SQLite finds it damaged: {}", intact.lines().last().unwrap_or_default())));
    }
    strays(connection, format)
}

/// Rows that belong to nothing.
fn strays(connection: &Connection, format: i32) -> rusqlite::Result<Option<Wrong>> {
    let find = |text: String| connection.query_row(&text, [], |row| row.get::<_, Value>(0)).optional();
    for table in ["environment", "cell"] {
        let text =
            format!("SELECT campaign FROM {table} WHERE campaign NOT IN (SELECT id FROM campaign) LIMIT 1");
        if find(text)?.is_some() {
            return Ok(Some(format!("`{table}` has rows of a campaign that it has not")));
        }
    }
    for table in whole::tables_since(format) {
        let text = format!(
            "SELECT cell FROM {table} t WHERE NOT EXISTS
             (SELECT 1 FROM cell c WHERE c.campaign = t.campaign AND c.cell = t.cell) LIMIT 1"
        );
        if find(text)?.is_some() {
            return Ok(Some(format!("`{table}` has rows of a cell that it has not")));
        }
    }
    let of_intervals = ["histogram", "transactions"];
    for table in whole::tables_since(format).filter(|table| of_intervals.contains(table)) {
        let text = format!(
            "SELECT cell FROM {table} t WHERE NOT EXISTS (SELECT 1 FROM interval i
             WHERE i.campaign = t.campaign AND i.cell = t.cell AND i.start_ns = t.start_ns) LIMIT 1"
        );
        if let Some(cell) = find(text)? {
            let cell = if let Value::Integer(cell) = cell { cell } else { -1 };
            return Ok(Some(format!("cell {cell}: `{table}` has rows of an interval that it has not")));
        }
    }
    if whole::tables_since(format).any(|table| table == "oltp") {
        let text = "SELECT cell FROM transactions t WHERE NOT EXISTS
                    (SELECT 1 FROM oltp o WHERE o.campaign = t.campaign AND o.cell = t.cell) LIMIT 1";
        if let Some(Value::Integer(cell)) = find(text.to_owned())? {
            return Ok(Some(format!("cell {cell}: it has transactions, and no database")));
        }
    }
    Ok(None)
}

/// What is wrong with a campaign's own row: the plan holds, as text, all that was asked for.
fn head(campaign: &Campaign, plan: &str) -> Option<Wrong> {
    if natural(campaign.scale).is_none() || campaign.scale == 0 {
        return Some("its scale is not a whole number from 1 on".to_owned());
    }
    if campaign.version != env!("CARGO_PKG_VERSION") {
        // Another version may have written its plan differently.
        return None;
    }
    let Some(rest) = plan.strip_prefix(campaign.experiment.as_str()) else {
        return Some("its experiment is not that of its plan".to_owned());
    };
    let asked = format!("\n{} seed {} scale 1/{}", campaign.target, campaign.seed, campaign.scale);
    let ends = |at: usize| rest[at + asked.len()..].is_empty() || rest[at + asked.len()..].starts_with('\n');
    if !rest.match_indices(&asked).any(|(at, _)| ends(at)) {
        return Some("its target, seed or scale is not that of its plan".to_owned());
    }
    let device = campaign.devices.iter().find(|device| !rest.contains(device.as_str()));
    device.map(|_| "its device file is not that of its plan".to_owned())
}

/// The plan of a campaign, made again; `None` where that cannot be done here. A stranger's experiment opens no files.
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

/// Whether a value of an experiment, or one in it, names a file that a plan would read.
fn names_files(key: &str, value: &toml::Value) -> bool {
    match value {
        // A device in a table of its own: `device = { data = "…", log = "…" }`.
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

/// A number as the store keeps it; `None` of a negative one.
fn natural(number: u64) -> Option<u64> {
    i64::try_from(number).ok().map(|_| number)
}

/// What is wrong with the values of a cell's own row.
fn values(cell: &Cell) -> Option<Wrong> {
    let sizes = [
        ("data_bytes", Some(cell.data.get())),
        ("capacity_bytes", Some(cell.capacity.get())),
        ("raw_bytes", cell.raw_capacity.map(|raw| raw.get())),
        ("written_before_bytes", cell.written_before.map(|written| written.get())),
        ("took_ns", cell.took.map(|took| took.get())),
    ];
    let negative = sizes.iter().find(|(_, number)| number.is_some_and(|number| natural(number).is_none()));
    if let Some((column, _)) = negative {
        return Some(format!("its `{column}` is negative"));
    }
    if cell.repetition == 0 {
        return Some("repetitions count from 1".to_owned());
    }
    if !(0.0..=1.0).contains(&cell.read_share) {
        return Some(format!("its share of reads is {}, and a share is from 0 to 1", cell.read_share));
    }
    let it = cell.predicted?;
    let ordered = it.low <= it.level && it.level <= it.high;
    let finite = [it.level, it.low, it.high].iter().all(|number| number.is_finite());
    (!ordered || !finite).then(|| "its predicted level lies outside of its interval".to_owned())
}

/// What is wrong with the numbers of a cell's intervals.
fn intervals(cell: &Cell, imported: bool) -> Option<Wrong> {
    let mut expected = 0;
    for row in cell.rows.iter() {
        let at = |what: &str| Some(format!("{} {what}", interval(row.start_ns)));
        let counts = [row.reads, row.read_bytes, row.writes, row.write_bytes, row.errors];
        if counts.iter().chain([&row.start_ns, &row.end_ns]).any(|number| natural(*number).is_none()) {
            return at("has a negative number");
        }
        if row.end_ns < row.start_ns || row.end_ns == row.start_ns && !imported {
            return at("ends before it begins");
        }
        if row.start_ns != expected && !imported {
            return at(&format!("does not begin where the one before ends, at {}", seconds(expected)));
        }
        expected = row.end_ns;
        let device = [(row.reads, row.read_bytes), (row.writes, row.write_bytes)];
        if row.transactions.is_none() && device.iter().any(|(count, bytes)| *count == 0 && *bytes > 0) {
            return at("moved bytes, and no operation");
        }
        let kinds = row.transactions.iter().flat_map(|it| &it.kinds);
        for done in kinds.clone() {
            if [done.committed, done.rolled_back, done.retries].iter().any(|it| natural(*it).is_none()) {
                return at("has a negative number of transactions");
            }
        }
        let latencies = [&row.read, &row.write].into_iter().chain(kinds.map(|done| &done.latency));
        if !imported && !latencies.clone().all(are_ordered) || !latencies.clone().all(are_numbers) {
            return at("has latencies that cannot be");
        }
    }
    None
}

fn are_numbers(it: &Percentiles) -> bool {
    let all = [it.p50_ns, it.p95_ns, it.p99_ns, it.p999_ns, it.max_ns];
    it.mean_ns.is_finite() && it.mean_ns >= 0.0 && all.iter().all(|number| natural(*number).is_some())
}

fn are_ordered(it: &Percentiles) -> bool {
    [it.p50_ns, it.p95_ns, it.p99_ns, it.p999_ns, it.max_ns].is_sorted()
}

/// What is wrong with how a cell ended.
fn end(cell: &Cell, imported: bool) -> Option<Wrong> {
    use lowtide_record::analysis::Verdict;
    let said = |wrong: &str| Some(wrong.to_owned());
    match cell.status {
        Status::Done if cell.rows.is_empty() => return said("it is done, and has no intervals"),
        Status::Done if cell.verdict.is_none() => return said("it is done, and has no verdict"),
        Status::Done if cell.failure.is_some() => return said("it is done, and says why it failed"),
        Status::Done
            if !imported && cell.oltp.is_some() && cell.rows.iter().any(|row| row.transactions.is_none()) =>
        {
            return said("it is of a database, and has intervals without transactions");
        }
        Status::Failed if cell.failure.is_none() => return said("it failed, and does not say why"),
        Status::Spared if cell.predicted.is_none() => {
            return said("it was spared, and has no predicted level");
        }
        Status::Pending | Status::Failed | Status::Spared if cell.verdict.is_some() => {
            return said("it has a verdict, and was not measured to its end");
        }
        _ => {}
    }
    let Some(Verdict::Steady(estimate)) = &cell.verdict else { return None };
    let numbers = [estimate.mean, estimate.half_width];
    if numbers.iter().any(|number| !number.is_finite() || *number < 0.0) {
        return said("its level is not a number");
    }
    let last = cell.rows.last().map_or(0, |row| row.end_ns);
    (estimate.from_ns >= estimate.to_ns || estimate.to_ns > last)
        .then(|| "its steady window is not one of its measurement".to_owned())
}

/// The histograms of a cell, beside its intervals.
struct Histograms<'a> {
    cell: &'a Cell,
    imported: bool,
    /// Intervals, and which of their operations have a histogram.
    seen: BTreeSet<(u64, usize)>,
    wrong: Option<Wrong>,
}

/// Operations in the order of their indices: reads, writes, kinds of transaction.
const OPERATIONS: usize = 2 + Kind::ALL.len();

impl Histograms<'_> {
    /// What an interval says of an operation: how many there were, and how long they took.
    fn counted(row: &Row, operation: usize) -> (u64, Percentiles) {
        let of = |done: &Done| (done.ended(), done.latency);
        match (operation, &row.transactions) {
            (0, None) => (row.reads, row.read),
            (1, None) => (row.writes, row.write),
            (_, Some(transactions)) if operation >= 2 => of(&transactions.kinds[operation - 2]),
            _ => (0, Percentiles::default()),
        }
    }

    fn take(&mut self, start_ns: u64, op: &str, latency: &Latency) {
        let at = self.cell.rows.binary_search_by_key(&start_ns, |row| row.start_ns);
        let mut names = ["read", "write"].into_iter().chain(Kind::ALL.iter().map(|kind| kind.name()));
        let (Ok(at), Some(operation)) = (at, names.position(|name| name == op)) else {
            self.say(start_ns, &format!("has a histogram of `{op}`, which is no operation of it"));
            return;
        };
        let (count, percentiles) = Histograms::counted(&self.cell.rows[at], operation);
        self.seen.insert((start_ns, operation));
        if self.imported {
            return;
        }
        if latency.count() != count {
            let what = format!("counts {count} of `{op}`, and their histogram {}", latency.count());
            self.say(start_ns, &what);
        } else if !same(&Percentiles::of(latency), &percentiles) {
            self.say(start_ns, &format!("has latencies of `{op}` that are not those of their histogram"));
        }
    }

    fn say(&mut self, start_ns: u64, what: &str) {
        self.wrong.get_or_insert_with(|| format!("{} {what}", interval(start_ns)));
    }

    /// What is wrong with all of them.
    fn end(mut self) -> Option<Wrong> {
        if !self.imported {
            for row in self.cell.rows.iter() {
                let is_missing = |operation: &usize| {
                    Histograms::counted(row, *operation).0 > 0
                        && !self.seen.contains(&(row.start_ns, *operation))
                };
                if (0..OPERATIONS).any(|operation| is_missing(&operation)) {
                    self.say(row.start_ns, "counts operations, and has no histogram of them");
                }
            }
        }
        self.wrong
    }
}

/// Whether percentiles are the same, a mean up to how it was added up.
fn same(one: &Percentiles, other: &Percentiles) -> bool {
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
