//! Adding to a store what is whole: the head and the cells of a campaign that begins, and campaigns of other programs.
//!
//! Not here: what comes while a campaign runs (`writer`).

use super::writer::{CellEnd, Entry, Measured, write};
use super::{Store, StoreError};
use lowtide_core::Bytes;
use lowtide_record::{Campaign, FactorLevel, Status};
use rusqlite::{Connection, params};

/// The plan of a campaign that was not planned here: no plan is equal to it.
pub(super) const IMPORTED: &str = "imported";

/// A campaign of another program, ready for [`Store::add`].
#[derive(Debug)]
pub struct Imported {
    /// The campaign; its cells have no rows yet.
    pub campaign: Campaign,
    /// The rows of each cell, with their histograms.
    pub measured: Vec<Vec<Measured>>,
    /// What the user should know of what was left out.
    pub notes: Vec<String>,
}

/// A campaign without its cells.
pub(super) struct Head<'a> {
    pub(super) name: &'a str,
    pub(super) title: &'a str,
    pub(super) experiment: &'a str,
    pub(super) resolved: Option<&'a str>,
    pub(super) target: &'a str,
    pub(super) device: Option<&'a str>,
    pub(super) seed: u64,
    pub(super) scale: u64,
    pub(super) started_at: &'a str,
    pub(super) command: &'a str,
    pub(super) plan: &'a str,
    pub(super) environment: &'a [(String, String)],
}

/// A cell as it is planned.
pub(super) struct Planned<'a> {
    pub(super) index: u32,
    pub(super) step: Option<&'a str>,
    pub(super) factors: &'a [FactorLevel],
    pub(super) repetition: u32,
    pub(super) data: Bytes,
    pub(super) capacity: Bytes,
    pub(super) threads: u32,
    pub(super) read_share: f64,
}

/// Adds a campaign without cells; its number.
pub(super) fn campaign(connection: &Connection, head: &Head<'_>) -> rusqlite::Result<i64> {
    connection.execute(
        "INSERT INTO campaign (name, title, experiment, target, device, seed, scale, version, started_at,
         command, plan, resolved) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        params![
            head.name,
            head.title,
            head.experiment,
            head.target,
            head.device,
            head.seed as i64,
            head.scale as i64,
            env!("CARGO_PKG_VERSION"),
            head.started_at,
            head.command,
            head.plan,
            head.resolved,
        ],
    )?;
    let campaign = connection.last_insert_rowid();
    for (position, (key, value)) in head.environment.iter().enumerate() {
        connection.execute(
            "INSERT INTO environment (campaign, position, key, value) VALUES (?1, ?2, ?3, ?4)",
            params![campaign, position as i64, key, value],
        )?;
    }
    Ok(campaign)
}

/// Adds a cell that is still to be measured.
pub(super) fn cell(connection: &Connection, campaign: i64, cell: &Planned<'_>) -> rusqlite::Result<()> {
    let factors = serde_json::to_string(cell.factors).expect("factors serialise");
    connection
        .execute(
            "INSERT INTO cell (campaign, cell, step, factors, repetition, status, data_bytes, capacity_bytes,
             threads, read_share) VALUES (?1, ?2, ?3, ?4, ?5, 'pending', ?6, ?7, ?8, ?9)",
            params![
                campaign,
                cell.index,
                cell.step,
                factors,
                cell.repetition,
                cell.data.get() as i64,
                cell.capacity.get() as i64,
                cell.threads,
                cell.read_share,
            ],
        )
        .map(drop)
}

impl Store {
    /// Adds a campaign of another program, whole or not at all; its number.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be written.
    pub fn add(&mut self, imported: Imported) -> Result<i64, StoreError> {
        let fail = StoreError::on(&self.path);
        let Imported { campaign: record, measured, .. } = imported;
        let transaction = self.connection.transaction().map_err(&fail)?;
        let head = Head {
            name: &record.name,
            title: &record.title,
            experiment: &record.experiment,
            resolved: None,
            target: &record.target,
            device: None,
            seed: record.seed,
            scale: record.scale,
            started_at: &record.started_at,
            command: &record.command,
            plan: IMPORTED,
            environment: &record.environment,
        };
        let campaign = campaign(&transaction, &head).map_err(&fail)?;
        for (it, rows) in record.cells.into_iter().zip(measured) {
            let planned = Planned {
                index: it.index,
                step: None,
                factors: &it.factors,
                repetition: it.repetition,
                data: it.data,
                capacity: it.capacity,
                threads: it.threads,
                read_share: it.read_share,
            };
            cell(&transaction, campaign, &planned).map_err(&fail)?;
            for row in rows {
                write(&transaction, campaign, &Entry::Interval(it.index, Box::new(row))).map_err(&fail)?;
            }
            let end = match (it.status, it.verdict) {
                (Status::Done, Some(verdict)) => CellEnd::Done { verdict, wear: it.wear },
                _ => CellEnd::Failed(it.failure.unwrap_or_default()),
            };
            write(&transaction, campaign, &Entry::End(it.index, end)).map_err(&fail)?;
        }
        transaction.commit().map_err(&fail)?;
        Ok(campaign)
    }
}
