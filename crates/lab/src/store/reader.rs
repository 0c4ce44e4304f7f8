//! Reads campaigns back as records.

use super::error::Fault;
use super::{Store, StoreError, schema};
use lowtide_core::measure::{Cause, Gap};
use lowtide_core::suggest::nearest;
use lowtide_core::{Bytes, Distribution, Latency, Nanos};
use lowtide_engines::tpcc::Kind;
use lowtide_record::column::{Column, Value as Number};
use lowtide_record::latency_parts::Gatherer;
use lowtide_record::{Campaign, Cell, Done, Predicted, Row, Status};
use rusqlite::params;
use rusqlite::types::{FromSql, Value};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// An entry in the list of campaigns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its number.
    pub id: i64,
    /// The experiment's name.
    pub name: String,
    /// The target, as written in the experiment.
    pub target: String,
    /// Start time (RFC 3339).
    pub started_at: String,
    /// Number of done cells.
    pub done: u32,
    /// Number of failed cells.
    pub failed: u32,
    /// Number of skipped cells; their levels are predicted.
    pub spared: u32,
    /// Number of all cells.
    pub cells: u32,
}

impl Store {
    /// The campaigns, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn campaigns(&self) -> Result<Vec<Listed>, StoreError> {
        let text = "SELECT id, name, target, started_at,
                    (SELECT count(*) FROM cell WHERE campaign = id AND status = 'done'),
                    (SELECT count(*) FROM cell WHERE campaign = id AND status = 'failed'),
                    (SELECT count(*) FROM cell WHERE campaign = id AND status = 'spared'),
                    (SELECT count(*) FROM cell WHERE campaign = id) FROM campaign ORDER BY id";
        self.tables().query(text, [], |row| {
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
        })
    }

    /// Finds a campaign by number or name, and returns its number. If several campaigns have the name, the last is
    /// found. With `None`, finds the last campaign of the store.
    ///
    /// # Errors
    /// [`StoreError::NoCampaign`] with the nearest name, if there is no such campaign; others if the store cannot be
    /// read.
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
            let wanted = wanted.unwrap_or("at all").to_owned();
            let near = nearest(&wanted, campaigns.iter().map(|listed| listed.name.as_str()));
            StoreError::NoCampaign { path: self.path.clone(), near: near.map(str::to_owned), wanted }
        })
    }

    /// A complete campaign. Cells that cannot be read back are [`Status::Damaged`], with the reason.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read, or has no such campaign.
    pub fn load(&self, campaign: i64) -> Result<Campaign, StoreError> {
        let mut loaded = self.head(campaign)?;
        let numbers = self.tables().numbers(campaign, None)?;
        let one = |number| match self.cell(campaign, number) {
            Err(error) => Ok(self.damaged_cell(campaign, number, error.damage()?)),
            cell => cell,
        };
        loaded.cells = numbers.into_iter().map(one).collect::<Result<_, _>>()?;
        Ok(loaded)
    }

    /// A campaign without its cells.
    pub(super) fn head(&self, campaign: i64) -> Result<Campaign, StoreError> {
        let text = format!("{} WHERE id = ?1", self.format.select("campaign"));
        let loaded = self.tables().one(&text, [campaign], |row| {
            let devices: Option<String> = row.get("device")?;
            Ok(Campaign {
                name: row.get("name")?,
                title: row.get("title")?,
                experiment: row.get("experiment")?,
                resolved: row.get("resolved")?,
                target: row.get("target")?,
                devices: devices.map(device_texts).unwrap_or_default(),
                seed: row.get::<_, i64>("seed")? as u64,
                scale: row.get::<_, i64>("scale")? as u64,
                version: row.get("version")?,
                started_at: row.get("started_at")?,
                command: row.get("command")?,
                environment: Vec::new(),
                cells: Vec::new(),
            })
        })?;
        let (path, wanted) = (self.path.clone(), campaign.to_string());
        let mut loaded = loaded.ok_or(StoreError::NoCampaign { path, wanted, near: None })?;
        let facts = "SELECT key, value FROM environment WHERE campaign = ?1 ORDER BY position";
        loaded.environment = self.tables().query(facts, [campaign], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(loaded)
    }

    /// A cell, with the latencies of its measured window.
    fn cell(&self, campaign: i64, number: u32) -> Result<Cell, StoreError> {
        let mut cell = self.cell_as_stored(campaign, number)?;
        self.read_latency(campaign, &mut cell)?;
        Ok(cell)
    }

    /// A cell without its histograms.
    pub(super) fn cell_as_stored(&self, campaign: i64, index: u32) -> Result<Cell, StoreError> {
        let text = "SELECT step, factors, repetition, status, failure, data_bytes, capacity_bytes, raw_bytes, threads,
                    read_share, written_before_bytes, counters_before, wear, verdict
                    FROM cell WHERE campaign = ?1 AND cell = ?2";
        let cell = self.tables().one(text, params![campaign, index], |row| {
            let bytes =
                |column: usize| row.get::<_, Option<i64>>(column).map(|n| n.map(|n| Bytes::new(n as u64)));
            let status: Option<String> = row.get(3)?;
            let factors: Option<String> = row.get(1)?;
            Ok(Cell {
                index,
                step: row.get(0)?,
                factors: json(factors.map(|stored| self.format.factors(stored)), "factors")?
                    .unwrap_or_default(),
                repetition: row.get(2)?,
                status: match status.as_deref() {
                    Some("done") => Status::Done,
                    Some("failed") => Status::Failed,
                    Some("spared") => Status::Spared,
                    _ => Status::Pending,
                },
                failure: row.get(4)?,
                data: bytes(5)?.unwrap_or_default(),
                capacity: bytes(6)?.unwrap_or_default(),
                raw_capacity: bytes(7)?,
                threads: row.get(8)?,
                read_share: row.get(9)?,
                written_before: bytes(10)?,
                counters_before: json(row.get(11)?, "counters")?,
                wear: json(row.get(12)?, "wear")?.unwrap_or_default(),
                verdict: json(row.get(13)?, "verdict")?,
                ..Cell::default()
            })
        })?;
        let missing = || Fault::Damaged(format!("there is no cell {index}")).at(&self.path);
        let mut cell = cell.ok_or_else(missing)?;
        cell.rows = self.rows(campaign, index)?.into();
        let format = self.format.version;
        if format >= schema::DATABASES {
            self.oltp(campaign, &mut cell)?;
        }
        if format >= schema::CURVES {
            self.curve(campaign, &mut cell)?;
        }
        if format >= schema::GAPS {
            cell.gaps = self.gaps(campaign, index)?;
        }
        Ok(cell)
    }

    /// The readable attributes of a damaged cell.
    fn damaged_cell(&self, campaign: i64, index: u32, damage: String) -> Cell {
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
            failure: Some(damage),
            data: bytes("data_bytes"),
            capacity: bytes("capacity_bytes"),
            threads: number("threads").and_then(|it| it.try_into().ok()).unwrap_or(1),
            read_share: column("read_share")
                .and_then(|value| f64::column_result((&value).into()).ok())
                .unwrap_or_default(),
            ..Cell::default()
        }
    }

    /// The damage to a cell, including its histograms; `None` if the entire cell can be read back.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub(super) fn damage(&self, campaign: i64, number: u32) -> Result<Option<String>, StoreError> {
        let read = self.cell_as_stored(campaign, number);
        match read.and_then(|_| self.each_latency(campaign, number, 0, u64::MAX, &mut |_, _, _| {})) {
            Ok(()) => Ok(None),
            Err(error) => error.damage().map(Some),
        }
    }

    /// The intervals of a cell, in order.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn rows(&self, campaign: i64, cell: u32) -> Result<Vec<Row>, StoreError> {
        let select = self.format.select("interval");
        let text = format!("{select} WHERE campaign = ?1 AND cell = ?2 ORDER BY start_ns");
        self.tables().query(&text, params![campaign, cell], |row| {
            let start: i64 = row.get(2)?;
            let damaged =
                |how: &str| Fault::Damaged(format!("the interval at {} s {how}", start as f64 / 1e9));
            let mut read = Row::default();
            numbers(Row::COLUMNS, &mut read, row, 2, || damaged("has a negative number"))?;
            if read.end_ns < read.start_ns {
                return Err(damaged("ends before it begins"));
            }
            read.counters = json(row.get(2 + Row::COLUMNS.len())?, "counters")?;
            Ok(read)
        })
    }

    /// Reads the record of a cell's database, and adds its transactions to the rows.
    fn oltp(&self, campaign: i64, cell: &mut Cell) -> Result<(), StoreError> {
        let of_cell = params![campaign, cell.index];
        let facts = "SELECT facts FROM oltp WHERE campaign = ?1 AND cell = ?2";
        cell.oltp = self.tables().one(facts, of_cell, |row| json(row.get(0)?, "a database"))?.flatten();
        if cell.oltp.is_none() {
            return Ok(());
        }
        let select = self.format.select("transactions");
        let text = format!("{select} WHERE campaign = ?1 AND cell = ?2 ORDER BY start_ns");
        let rows = Arc::make_mut(&mut cell.rows);
        self.tables().for_each(&text, of_cell, |row| {
            let start_ns = row.get::<_, i64>(2)? as u64;
            let seconds = start_ns as f64 / 1e9;
            let name: String = row.get(3)?;
            let kind = Kind::ALL.iter().position(|known| known.name() == name);
            let at = rows.binary_search_by_key(&start_ns, |row| row.start_ns);
            let (Some(kind), Ok(at)) = (kind, at) else {
                return Err(Fault::Damaged(format!("transactions of `{name}` at {seconds} s")));
            };
            let transactions = rows[at].transactions.get_or_insert_default();
            numbers(Done::COLUMNS, &mut transactions.kinds[kind], row, 4, || {
                Fault::Damaged(format!("transactions at {seconds} s have a negative number"))
            })
        })
    }

    /// Reads the device time of a cell, and its predicted level.
    fn curve(&self, campaign: i64, cell: &mut Cell) -> Result<(), StoreError> {
        let of_cell = params![campaign, cell.index];
        let took = "SELECT took_ns FROM device_time WHERE campaign = ?1 AND cell = ?2";
        let nanos = |row: &rusqlite::Row<'_>| Ok(Nanos::new(row.get::<_, i64>(0)? as u64));
        cell.took = self.tables().one(took, of_cell, nanos)?;
        let predicted = "SELECT level_mib_per_s, low_mib_per_s, high_mib_per_s FROM predicted
                         WHERE campaign = ?1 AND cell = ?2";
        cell.predicted = self.tables().one(predicted, of_cell, |row| {
            Ok(Predicted { level: row.get(0)?, low: row.get(1)?, high: row.get(2)? })
        })?;
        Ok(())
    }

    /// The gaps during which lowtide did not run, in order.
    fn gaps(&self, campaign: i64, cell: u32) -> Result<Vec<Gap>, StoreError> {
        let text = "SELECT at_ns, length_ns, cause FROM gap WHERE campaign = ?1 AND cell = ?2 ORDER BY at_ns";
        self.tables().query(text, params![campaign, cell], |row| {
            let (at, length): (i64, i64) = (row.get(0)?, row.get(1)?);
            let cause: String = row.get(2)?;
            let known = Cause::ALL.into_iter().find(|known| known.name() == cause);
            match (u64::try_from(at), u64::try_from(length), known) {
                (Ok(at_ns), Ok(length), Some(cause)) => Ok(Gap { at_ns, length: Nanos::new(length), cause }),
                _ => Err(Fault::Damaged(format!("a gap of {length} ns at {at} ns, `{cause}`"))),
            }
        })
    }

    /// The latencies of a cell, reads and writes together, in the intervals that begin in `from_ns..to_ns` of its
    /// measurement.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub fn latency(&self, campaign: i64, cell: u32, from_ns: u64, to_ns: u64) -> Result<Latency, StoreError> {
        let mut all = Latency::default();
        self.each_latency(campaign, cell, from_ns, to_ns, &mut |_, _, latency| all.merge(latency))?;
        Ok(all)
    }

    /// Calls `each` with every histogram of a cell, in order: the start of its interval in nanoseconds, the operation
    /// (`read`, `write`, or a kind of transaction), and the histogram.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
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

    /// Calls `each` with the histograms of the intervals that begin in a range, in order: start, operation,
    /// histogram.
    pub(super) fn each_latency(
        &self,
        campaign: i64,
        cell: u32,
        from_ns: u64,
        to_ns: u64,
        each: &mut dyn FnMut(u64, &str, &Latency),
    ) -> Result<(), StoreError> {
        let text = "SELECT start_ns, op, hdr FROM histogram
                    WHERE campaign = ?1 AND cell = ?2 AND start_ns >= ?3 AND start_ns < ?4 ORDER BY start_ns, op";
        let range = params![campaign, cell, from_ns as i64, to_ns.min(i64::MAX as u64) as i64];
        self.tables().for_each(text, range, |row| {
            let (start_ns, op, hdr): (i64, String, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let latency = Latency::from_bytes(&hdr).ok_or_else(|| {
                let seconds = start_ns as f64 / 1e9;
                Fault::Damaged(format!("the histogram of `{op}` at {seconds} s does not decode"))
            })?;
            each(start_ns as u64, &op, &latency);
            Ok(())
        })
    }
}

fn json<T: DeserializeOwned>(text: Option<String>, name: &str) -> Result<Option<T>, Fault> {
    let read = text.map(|text| serde_json::from_str(&text)).transpose();
    read.map_err(|error| Fault::Damaged(format!("{name}: {error}")))
}

/// The device files in column `device`: a JSON list of texts, or the one text of an older store.
fn device_texts(stored: String) -> Vec<String> {
    serde_json::from_str(&stored).unwrap_or_else(|_| vec![stored])
}

/// Reads the numbers of a record from the columns that begin at `first`. `negative` is the error for a negative
/// number.
fn numbers<R>(
    columns: &[Column<R>],
    record: &mut R,
    row: &rusqlite::Row<'_>,
    first: usize,
    negative: impl Fn() -> Fault,
) -> Result<(), Fault> {
    for (offset, column) in columns.iter().enumerate() {
        match column.value {
            Number::Real { set, .. } => set(record, row.get(first + offset)?),
            Number::Whole { set, .. } => {
                let number = u64::try_from(row.get::<_, i64>(first + offset)?);
                set(record, number.map_err(|_| negative())?);
            }
        }
    }
    Ok(())
}
