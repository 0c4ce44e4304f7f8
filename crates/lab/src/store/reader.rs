//! Reading campaigns back, as records.

use super::writer::percentiles;
use super::{Store, StoreError, schema};
use crate::latency_parts::{Gatherer, LatencyParts};
use crate::record::{Campaign, Cell, Done, Predicted, Row, Status};
use lowtide_core::{Bytes, Latency, Nanos};
use lowtide_oltp::tpcc::Kind;
use rusqlite::{OptionalExtension, params};
use serde::de::DeserializeOwned;

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
                spared: row.get(5)?,
                cells: row.get(6)?,
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

    /// A whole campaign.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read or holds values that do not read back.
    pub fn load(&self, campaign: i64) -> Result<Campaign, StoreError> {
        let fail = StoreError::on(&self.path);
        let mut loaded = self
            .connection
            .query_row(
                "SELECT name, title, experiment, target, device, seed, scale, version, started_at, command
                 FROM campaign WHERE id = ?1",
                [campaign],
                |row| {
                    Ok(Campaign {
                        name: row.get(0)?,
                        title: row.get(1)?,
                        experiment: row.get(2)?,
                        target: row.get(3)?,
                        devices: row
                            .get::<_, Option<String>>(4)?
                            .map_or_else(Vec::new, |texts| device_texts(&texts)),
                        seed: row.get::<_, i64>(5)? as u64,
                        scale: row.get::<_, i64>(6)? as u64,
                        version: row.get(7)?,
                        started_at: row.get(8)?,
                        command: row.get(9)?,
                        environment: Vec::new(),
                        cells: Vec::new(),
                    })
                },
            )
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
        loaded.cells = self.cells(campaign)?;
        Ok(loaded)
    }

    fn cells(&self, campaign: i64) -> Result<Vec<Cell>, StoreError> {
        let fail = StoreError::on(&self.path);
        let mut statement = self
            .connection
            .prepare(
                "SELECT cell, step, factors, repetition, status, failure, data_bytes, capacity_bytes, raw_bytes, threads,
                 read_share, written_before_bytes, counters_before, wear, verdict
                 FROM cell WHERE campaign = ?1 ORDER BY cell",
            )
            .map_err(&fail)?;
        let databases = schema::knows_databases(&self.connection).map_err(&fail)?;
        let curves = schema::knows_curves(&self.connection).map_err(&fail)?;
        let mut rows = statement.query([campaign]).map_err(&fail)?;
        let mut cells = Vec::new();
        while let Some(row) = rows.next().map_err(&fail)? {
            let text = |column: usize| row.get::<_, Option<String>>(column).map_err(&fail);
            let bytes = |column: usize| {
                row.get::<_, Option<i64>>(column).map(|n| n.map(|n| Bytes::new(n as u64))).map_err(&fail)
            };
            let index: u32 = row.get(0).map_err(&fail)?;
            let status = match text(4)?.as_deref() {
                Some("done") => Status::Done,
                Some("failed") => Status::Failed,
                Some("spared") => Status::Spared,
                _ => Status::Pending,
            };
            let mut cell = Cell {
                index,
                step: text(1)?,
                factors: self.json(text(2)?, "factors")?.unwrap_or_default(),
                repetition: row.get(3).map_err(&fail)?,
                status,
                failure: text(5)?,
                data: bytes(6)?.unwrap_or_default(),
                capacity: bytes(7)?.unwrap_or_default(),
                raw_capacity: bytes(8)?,
                threads: row.get(9).map_err(&fail)?,
                read_share: row.get(10).map_err(&fail)?,
                written_before: bytes(11)?,
                counters_before: self.json(text(12)?, "counters")?,
                wear: self.json(text(13)?, "wear")?.unwrap_or_default(),
                verdict: self.json(text(14)?, "verdict")?,
                rows: self.rows(campaign, index)?,
                read_latency: Latency::default(),
                write_latency: Latency::default(),
                latency_parts: LatencyParts::default(),
                oltp: None,
                took: None,
                predicted: None,
            };
            if databases {
                self.oltp(campaign, &mut cell)?;
            }
            if curves {
                self.curve(campaign, &mut cell).map_err(&fail)?;
            }
            self.read_latency(campaign, &mut cell)?;
            cells.push(cell);
        }
        Ok(cells)
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
        let mut statement = self
            .connection
            .prepare_cached("SELECT * FROM interval WHERE campaign = ?1 AND cell = ?2 ORDER BY start_ns")
            .map_err(&fail)?;
        let mut found = statement.query(params![campaign, cell]).map_err(&fail)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(&fail)? {
            let number = |column: usize| row.get::<_, i64>(column).map(|n| n as u64).map_err(&fail);
            rows.push(Row {
                start_ns: number(2)?,
                end_ns: number(3)?,
                reads: number(4)?,
                read_bytes: number(5)?,
                writes: number(6)?,
                write_bytes: number(7)?,
                errors: number(8)?,
                read: percentiles(row, 9).map_err(&fail)?,
                write: percentiles(row, 15).map_err(&fail)?,
                counters: self.json(row.get(21).map_err(&fail)?, "counters")?,
                transactions: None,
            });
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
        let mut statement = self
            .connection
            .prepare_cached("SELECT * FROM transactions WHERE campaign = ?1 AND cell = ?2 ORDER BY start_ns")
            .map_err(&fail)?;
        let mut found = statement.query(params![campaign, cell.index]).map_err(&fail)?;
        while let Some(row) = found.next().map_err(&fail)? {
            let number = |column: usize| row.get::<_, i64>(column).map(|n| n as u64).map_err(&fail);
            let (start_ns, kind): (u64, String) = (number(2)?, row.get(3).map_err(&fail)?);
            let kind = Kind::ALL.iter().position(|known| known.name() == kind);
            let at = cell.rows.binary_search_by_key(&start_ns, |row| row.start_ns);
            let (Some(kind), Ok(at)) = (kind, at) else {
                let what = format!("transactions of cell {}", cell.index);
                return Err(StoreError::Damaged { path: self.path.clone(), what });
            };
            cell.rows[at].transactions.get_or_insert_default().kinds[kind] = Done {
                committed: number(4)?,
                rolled_back: number(5)?,
                retries: number(6)?,
                latency: percentiles(row, 7).map_err(&fail)?,
            };
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
        self.each_latency(campaign, cell, 0, u64::MAX, each)
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
            oltp.latency = kinds;
        }
        (cell.read_latency, cell.write_latency, cell.latency_parts) = gatherer.finish();
        Ok(())
    }

    /// Hands out the histograms of the intervals between two instants in order, each with its beginning and operation.
    fn each_latency(
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
                what: format!("a histogram of cell {cell}"),
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
