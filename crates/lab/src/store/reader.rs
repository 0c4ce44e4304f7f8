//! Reading campaigns back, as records.

use super::{Store, StoreError, schema, whole};
use lowtide_core::measure::{Cause, Gap};
use lowtide_core::{Bytes, Distribution, Latency, Nanos};
use lowtide_engines::tpcc::Kind;
use lowtide_record::column::{Column, Value as Number};
use lowtide_record::latency_parts::Gatherer;
use lowtide_record::{Campaign, Cell, Done, Predicted, Row, Status};
use rusqlite::types::{FromSql, Value};
use rusqlite::{OptionalExtension, params};
use serde::de::DeserializeOwned;
use std::num::TryFromIntError;
use std::sync::Arc;

/// A campaign in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its number.
    pub id: i64,
    /// The experiment's name.
    pub name: String,
    /// The target as written.
    pub target: String,
    /// When it began.
    pub started_at: String,
    /// Cells that are done.
    pub done: u32,
    /// Cells that failed.
    pub failed: u32,
    /// Cells that were not measured by choice; their levels are predicted.
    pub spared: u32,
    /// Cells in all.
    pub cells: u32,
}

impl Store {
    /// The campaigns, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn campaigns(&self) -> Result<Vec<Listed>, StoreError> {
        let fail = StoreError::on(&self.path);
        let mut statement = self
            .connection
            .prepare(
                "SELECT id, name, target, started_at,
                 (SELECT count(*) FROM cell WHERE campaign = id AND status = 'done'),
                 (SELECT count(*) FROM cell WHERE campaign = id AND status = 'failed'),
                 (SELECT count(*) FROM cell WHERE campaign = id AND status = 'spared'),
                 (SELECT count(*) FROM cell WHERE campaign = id) FROM campaign ORDER BY id",
            )
            .map_err(&fail)?;
        let listed = statement.query_map([], |row| {
            Ok(Listed {
                id: row.get(0)?,
                name: row.get(1)?,
                target: row.get(2)?,
                started_at: row.get(3)?,
                done: row.get(4)?,
                failed: row.get(5)?,
                spared: row.get(6)?,
                cells: row.get(7)?,
            })
        });
        listed.map_err(&fail)?.collect::<rusqlite::Result<_>>().map_err(&fail)
    }

    /// The number of a campaign given by number, by name (the last of it), or not at all (the last).
    ///
    /// # Errors
    /// [`StoreError::NoCampaign`] with the nearest name.
    pub fn find(&self, wanted: Option<&str>) -> Result<i64, StoreError> {
        let campaigns = self.campaigns()?;
        let found = match wanted {
            None => campaigns.last(),
            Some(wanted) => {
                let number = wanted.parse::<i64>().ok();
                campaigns.iter().rfind(|listed| number == Some(listed.id) || listed.name == wanted)
            }
        };
        found.map(|listed| listed.id).ok_or_else(|| {
            let wanted = wanted.unwrap_or("at all");
            let near =
                lowtide_core::suggest::nearest(wanted, campaigns.iter().map(|listed| listed.name.as_str()));
            StoreError::NoCampaign {
                path: self.path.clone(),
                wanted: wanted.to_owned(),
                near: near.map(str::to_owned),
            }
        })
    }

    /// A whole campaign. Cells whose values do not read back are [`Status::Damaged`], and say why.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read, or holds no such campaign.
    pub fn load(&self, campaign: i64) -> Result<Campaign, StoreError> {
        let mut loaded = self.head(campaign)?;
        loaded.cells = self.cells(campaign)?;
        Ok(loaded)
    }

    /// A campaign without its cells.
    pub(super) fn head(&self, campaign: i64) -> Result<Campaign, StoreError> {
        let fail = StoreError::on(&self.path);
        let text = format!("{} WHERE id = ?1", self.format.select("campaign"));
        let mut loaded = self
            .connection
            .query_row(&text, [campaign], |row| {
                Ok(Campaign {
                    name: row.get("name")?,
                    title: row.get("title")?,
                    experiment: row.get("experiment")?,
                    resolved: row.get("resolved")?,
                    target: row.get("target")?,
                    devices: row
                        .get::<_, Option<String>>("device")?
                        .map_or_else(Vec::new, |texts| device_texts(&texts)),
                    seed: row.get::<_, i64>("seed")? as u64,
                    scale: row.get::<_, i64>("scale")? as u64,
                    version: row.get("version")?,
                    started_at: row.get("started_at")?,
                    command: row.get("command")?,
                    environment: Vec::new(),
                    cells: Vec::new(),
                })
            })
            .optional()
            .map_err(&fail)?
            .ok_or_else(|| StoreError::NoCampaign {
                path: self.path.clone(),
                wanted: campaign.to_string(),
                near: None,
            })?;
        let mut statement = self
            .connection
            .prepare("SELECT key, value FROM environment WHERE campaign = ?1 ORDER BY position")
            .map_err(&fail)?;
        let facts = statement.query_map([campaign], |row| Ok((row.get(0)?, row.get(1)?))).map_err(&fail)?;
        loaded.environment = facts.collect::<rusqlite::Result<_>>().map_err(&fail)?;
        Ok(loaded)
    }

    fn cells(&self, campaign: i64) -> Result<Vec<Cell>, StoreError> {
        let numbers = whole::numbers(&self.connection, campaign, None).map_err(StoreError::on(&self.path))?;
        let one = |number| match self.cell(campaign, number) {
            Err(error) => Ok(self.damaged_cell(campaign, number, error.damage()?)),
            cell => cell,
        };
        numbers.into_iter().map(one).collect()
    }

    /// A cell, with the latencies of its measured window.
    fn cell(&self, campaign: i64, number: u32) -> Result<Cell, StoreError> {
        let mut cell = self.cell_as_stored(campaign, number)?;
        self.read_latency(campaign, &mut cell)?;
        Ok(cell)
    }

    /// A cell without anything that is in histograms.
    pub(super) fn cell_as_stored(&self, campaign: i64, index: u32) -> Result<Cell, StoreError> {
        let fail = StoreError::on(&self.path);
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT step, factors, repetition, status, failure, data_bytes, capacity_bytes, raw_bytes, threads,
                 read_share, written_before_bytes, counters_before, wear, verdict
                 FROM cell WHERE campaign = ?1 AND cell = ?2",
            )
            .map_err(&fail)?;
        let mut found = statement.query(params![campaign, index]).map_err(&fail)?;
        let row = found.next().map_err(&fail)?.ok_or_else(|| StoreError::Damaged {
            path: self.path.clone(),
            what: format!("there is no cell {index}"),
        })?;
        let text = |column: usize| row.get::<_, Option<String>>(column).map_err(&fail);
        let bytes = |column: usize| {
            row.get::<_, Option<i64>>(column).map(|n| n.map(|n| Bytes::new(n as u64))).map_err(&fail)
        };
        let format = self.format.version;
        let factors = text(1)?.map(|stored| self.format.factors(stored));
        let mut cell = Cell {
            index,
            step: text(0)?,
            factors: self.json(factors, "factors")?.unwrap_or_default(),
            repetition: row.get(2).map_err(&fail)?,
            status: match text(3)?.as_deref() {
                Some("done") => Status::Done,
                Some("failed") => Status::Failed,
                Some("spared") => Status::Spared,
                _ => Status::Pending,
            },
            failure: text(4)?,
            data: bytes(5)?.unwrap_or_default(),
            capacity: bytes(6)?.unwrap_or_default(),
            raw_capacity: bytes(7)?,
            threads: row.get(8).map_err(&fail)?,
            read_share: row.get(9).map_err(&fail)?,
            written_before: bytes(10)?,
            counters_before: self.json(text(11)?, "counters")?,
            wear: self.json(text(12)?, "wear")?.unwrap_or_default(),
            verdict: self.json(text(13)?, "verdict")?,
            rows: self.rows(campaign, index)?.into(),
            ..Cell::default()
        };
        if format >= schema::DATABASES {
            self.oltp(campaign, &mut cell)?;
        }
        if format >= schema::CURVES {
            self.curve(campaign, &mut cell).map_err(&fail)?;
        }
        if format >= schema::GAPS {
            cell.gaps = self.gaps(campaign, index)?;
        }
        Ok(cell)
    }

    /// What is still known of a cell that does not read back.
    fn damaged_cell(&self, campaign: i64, index: u32, what: String) -> Cell {
        let column = |name: &str| {
            let text = format!("SELECT {name} FROM cell WHERE campaign = ?1 AND cell = ?2");
            self.connection.query_row(&text, params![campaign, index], |row| row.get::<_, Value>(0)).ok()
        };
        let text = |name| column(name).and_then(|value| String::column_result((&value).into()).ok());
        let number = |name| column(name).and_then(|value| i64::column_result((&value).into()).ok());
        let factors =
            text("factors").and_then(|stored| serde_json::from_str(&self.format.factors(stored)).ok());
        let bytes = |name| Bytes::new(number(name).unwrap_or(0).max(0) as u64);
        Cell {
            index,
            factors: factors.unwrap_or_default(),
            repetition: number("repetition").and_then(|it| it.try_into().ok()).unwrap_or(1),
            step: text("step"),
            status: Status::Damaged,
            failure: Some(what),
            data: bytes("data_bytes"),
            capacity: bytes("capacity_bytes"),
            threads: number("threads").and_then(|it| it.try_into().ok()).unwrap_or(1),
            read_share: column("read_share")
                .and_then(|value| f64::column_result((&value).into()).ok())
                .unwrap_or_default(),
            ..Cell::default()
        }
    }

    /// What of a cell does not read back, with every histogram of it; `None` where all of it does.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub(super) fn damage(&self, campaign: i64, number: u32) -> Result<Option<String>, StoreError> {
        let read = self.cell_as_stored(campaign, number);
        match read.and_then(|_| self.each_latency(campaign, number, 0, u64::MAX, &mut |_, _, _| {})) {
            Ok(()) => Ok(None),
            Err(error) => error.damage().map(Some),
        }
    }

    fn json<T: DeserializeOwned>(&self, text: Option<String>, what: &str) -> Result<Option<T>, StoreError> {
        let read = text.map(|text| serde_json::from_str(&text)).transpose();
        read.map_err(|error| StoreError::Damaged {
            path: self.path.clone(),
            what: format!("{what}: {error}"),
        })
    }

    /// The intervals of a cell, in order.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn rows(&self, campaign: i64, cell: u32) -> Result<Vec<Row>, StoreError> {
        let fail = StoreError::on(&self.path);
        let select = self.format.select("interval");
        let text = format!("{select} WHERE campaign = ?1 AND cell = ?2 ORDER BY start_ns");
        let mut statement = self.connection.prepare_cached(&text).map_err(&fail)?;
        let mut found = statement.query(params![campaign, cell]).map_err(&fail)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(&fail)? {
            let start: i64 = row.get(2).map_err(&fail)?;
            let damaged = |what: &str| StoreError::Damaged {
                path: self.path.clone(),
                what: format!("the interval at {} s {what}", start as f64 / 1e9),
            };
            let mut read = Row::default();
            if numbers(Row::COLUMNS, &mut read, row, 2).map_err(&fail)?.is_err() {
                return Err(damaged("has a negative number"));
            }
            if read.end_ns < read.start_ns {
                return Err(damaged("ends before it begins"));
            }
            let counters = row.get(2 + Row::COLUMNS.len()).map_err(&fail)?;
            read.counters = self.json(counters, "counters")?;
            rows.push(read);
        }
        Ok(rows)
    }

    /// What is known of a cell's database, and its transactions in the rows that are there already.
    fn oltp(&self, campaign: i64, cell: &mut Cell) -> Result<(), StoreError> {
        let fail = StoreError::on(&self.path);
        let facts = self
            .connection
            .query_row(
                "SELECT facts FROM oltp WHERE campaign = ?1 AND cell = ?2",
                params![campaign, cell.index],
                |row| row.get::<_, String>(0),
            )
            .optional();
        cell.oltp = self.json(facts.map_err(&fail)?, "a database")?;
        if cell.oltp.is_none() {
            return Ok(());
        }
        let select = self.format.select("transactions");
        let text = format!("{select} WHERE campaign = ?1 AND cell = ?2 ORDER BY start_ns");
        let mut statement = self.connection.prepare_cached(&text).map_err(&fail)?;
        let mut found = statement.query(params![campaign, cell.index]).map_err(&fail)?;
        while let Some(row) = found.next().map_err(&fail)? {
            let start_ns = row.get::<_, i64>(2).map_err(&fail)? as u64;
            let kind: String = row.get(3).map_err(&fail)?;
            let kind = Kind::ALL.iter().position(|known| known.name() == kind);
            let at = cell.rows.binary_search_by_key(&start_ns, |row| row.start_ns);
            let (Some(kind), Ok(at)) = (kind, at) else {
                let what = format!(
                    "transactions of `{}` at {} s",
                    row.get::<_, String>(3).map_err(&fail)?,
                    start_ns as f64 / 1e9
                );
                return Err(StoreError::Damaged { path: self.path.clone(), what });
            };
            let transactions = Arc::make_mut(&mut cell.rows)[at].transactions.get_or_insert_default();
            if numbers(Done::COLUMNS, &mut transactions.kinds[kind], row, 4).map_err(&fail)?.is_err() {
                let what = format!("transactions at {} s have a negative number", start_ns as f64 / 1e9);
                return Err(StoreError::Damaged { path: self.path.clone(), what });
            }
        }
        Ok(())
    }

    /// How long a cell took, and what is predicted of it.
    fn curve(&self, campaign: i64, cell: &mut Cell) -> rusqlite::Result<()> {
        let mut took = self
            .connection
            .prepare_cached("SELECT took_ns FROM device_time WHERE campaign = ?1 AND cell = ?2")?;
        let took = took.query_row(params![campaign, cell.index], |row| row.get::<_, i64>(0)).optional()?;
        cell.took = took.map(|ns| Nanos::new(ns as u64));
        let mut predicted = self.connection.prepare_cached(
            "SELECT level_mib_per_s, low_mib_per_s, high_mib_per_s FROM predicted WHERE campaign = ?1 AND cell = ?2",
        )?;
        let of = |row: &rusqlite::Row<'_>| {
            Ok(Predicted { level: row.get(0)?, low: row.get(1)?, high: row.get(2)? })
        };
        cell.predicted = predicted.query_row(params![campaign, cell.index], of).optional()?;
        Ok(())
    }

    /// When lowtide did not run, in order.
    fn gaps(&self, campaign: i64, cell: u32) -> Result<Vec<Gap>, StoreError> {
        let fail = StoreError::on(&self.path);
        let text = "SELECT at_ns, length_ns, cause FROM gap WHERE campaign = ?1 AND cell = ?2 ORDER BY at_ns";
        let mut statement = self.connection.prepare_cached(text).map_err(&fail)?;
        let mut found = statement.query(params![campaign, cell]).map_err(&fail)?;
        let mut gaps = Vec::new();
        while let Some(row) = found.next().map_err(&fail)? {
            let number = |column: usize| row.get::<_, i64>(column).map_err(&fail);
            let (at, length): (i64, i64) = (number(0)?, number(1)?);
            let cause: String = row.get(2).map_err(&fail)?;
            let known = Cause::ALL.into_iter().find(|known| known.name() == cause);
            let (Ok(at_ns), Ok(length_ns), Some(cause)) = (u64::try_from(at), u64::try_from(length), known)
            else {
                let what = format!("a gap of {length} ns at {at} ns, `{cause}`");
                return Err(StoreError::Damaged { path: self.path.clone(), what });
            };
            gaps.push(Gap { at_ns, length: Nanos::new(length_ns), cause });
        }
        Ok(gaps)
    }

    /// The latencies of a cell in the intervals that begin between two instants of its measurement (nanoseconds),
    /// reads and writes together.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn latency(&self, campaign: i64, cell: u32, from_ns: u64, to_ns: u64) -> Result<Latency, StoreError> {
        let mut all = Latency::default();
        self.each_latency(campaign, cell, from_ns, to_ns, &mut |_, _, latency| all.merge(latency))?;
        Ok(all)
    }

    /// Hands out every histogram of a cell in order: the beginning of its interval in nanoseconds, what it is of (`read`,
    /// `write`, or a kind of transaction), and the histogram.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn histograms(
        &self,
        campaign: i64,
        cell: u32,
        each: &mut dyn FnMut(u64, &str, &Latency),
    ) -> Result<(), StoreError> {
        self.each_latency(campaign, cell, 0, u64::MAX, each).map_err(|error| match error {
            StoreError::Damaged { path, what } => {
                StoreError::Damaged { path, what: format!("cell {cell}: {what}") }
            }
            other => other,
        })
    }

    /// Merges the histograms of the measured window into the cell's.
    fn read_latency(&self, campaign: i64, cell: &mut Cell) -> Result<(), StoreError> {
        let (from_ns, to_ns, _) = cell.window();
        let starts = cell.rows.iter().map(|row| row.start_ns);
        let starts: Vec<u64> = starts.filter(|start| (from_ns..to_ns).contains(start)).collect();
        let mut gatherer = Gatherer::new(starts.len());
        let mut kinds: Option<[Latency; Kind::ALL.len()]> = cell.oltp.as_ref().map(|_| Default::default());
        self.each_latency(campaign, cell.index, from_ns, to_ns, &mut |start_ns, op, latency| {
            gatherer.add(starts.partition_point(|start| *start < start_ns), op == "read", latency);
            let kind = Kind::ALL.iter().position(|kind| kind.name() == op);
            if let Some((kind, kinds)) = kind.zip(kinds.as_mut()) {
                kinds[kind].merge(latency);
            }
        })?;
        if let (Some(kinds), Some(oltp)) = (kinds, &mut cell.oltp) {
            oltp.latency = kinds.map(Distribution::from);
        }
        let (read, write, parts) = gatherer.finish();
        (cell.read_latency, cell.write_latency, cell.latency_parts) = (read, write, Arc::new(parts));
        Ok(())
    }

    /// Hands out the histograms of the intervals between two instants in order, each with its beginning and operation.
    pub(super) fn each_latency(
        &self,
        campaign: i64,
        cell: u32,
        from_ns: u64,
        to_ns: u64,
        each: &mut dyn FnMut(u64, &str, &Latency),
    ) -> Result<(), StoreError> {
        let fail = StoreError::on(&self.path);
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT start_ns, op, hdr FROM histogram
                 WHERE campaign = ?1 AND cell = ?2 AND start_ns >= ?3 AND start_ns < ?4 ORDER BY start_ns, op",
            )
            .map_err(&fail)?;
        let range = params![campaign, cell, from_ns as i64, to_ns.min(i64::MAX as u64) as i64];
        let mut found = statement.query(range).map_err(&fail)?;
        while let Some(row) = found.next().map_err(&fail)? {
            let start_ns: i64 = row.get(0).map_err(&fail)?;
            let op: String = row.get(1).map_err(&fail)?;
            let hdr: Vec<u8> = row.get(2).map_err(&fail)?;
            let latency = Latency::from_bytes(&hdr).ok_or_else(|| StoreError::Damaged {
                path: self.path.clone(),
                what: format!("the histogram of `{op}` at {} s does not decode", start_ns as f64 / 1e9),
            })?;
            each(start_ns as u64, &op, &latency);
        }
        Ok(())
    }
}

/// The device files as the store keeps them: a JSON list of texts, or the one text of an older store.
fn device_texts(stored: &str) -> Vec<String> {
    serde_json::from_str(stored).unwrap_or_else(|_| vec![stored.to_owned()])
}

/// Reads the numbers of a record from the columns from `first` on.
///
/// # Errors
/// The inner one where a whole number is negative.
fn numbers<R>(
    columns: &[Column<R>],
    record: &mut R,
    row: &rusqlite::Row<'_>,
    first: usize,
) -> rusqlite::Result<Result<(), TryFromIntError>> {
    for (place, column) in columns.iter().enumerate() {
        match column.value {
            Number::Real { set, .. } => set(record, row.get(first + place)?),
            Number::Whole { set, .. } => match u64::try_from(row.get::<_, i64>(first + place)?) {
                Ok(number) => set(record, number),
                Err(negative) => return Ok(Err(negative)),
            },
        }
    }
    Ok(Ok(()))
}
