//! Inserts campaigns and cells: campaigns that begin, and complete campaigns of other programs.
//!
//! Rows that arrive while a campaign runs are in module `writer`.

use super::tables::Tables;
use super::writer::{CellEnd, Entry, Measured, write};
use super::{Store, StoreError};
use lowtide_record::{Campaign, Cell, Status};
use rusqlite::params;

/// The plan of an imported campaign, which equals no other plan.
pub(super) const IMPORTED: &str = "imported";

/// A campaign of another program, ready for [`Store::add`].
#[derive(Debug)]
pub struct Imported {
    /// The campaign; its cells have no rows yet.
    pub campaign: Campaign,
    /// The rows of each cell, with their histograms.
    pub measured: Vec<Vec<Measured>>,
    /// Notes for the user about data that was not imported.
    pub notes: Vec<String>,
}

/// Adds a campaign without its cells, and returns its number.
pub(super) fn campaign(tables: Tables<'_>, head: &Campaign, plan: &str) -> Result<i64, StoreError> {
    let devices = serde_json::to_string(&head.devices).expect("texts serialise");
    tables.execute(
        "INSERT INTO campaign (name, title, experiment, target, device, seed, scale, version, started_at,
         command, plan, resolved) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        params![
            head.name,
            head.title,
            head.experiment,
            head.target,
            (!head.devices.is_empty()).then_some(devices),
            head.seed as i64,
            head.scale as i64,
            env!("CARGO_PKG_VERSION"),
            head.started_at,
            head.command,
            plan,
            head.resolved,
        ],
    )?;
    let campaign = tables.connection.last_insert_rowid();
    for (position, (key, value)) in head.environment.iter().enumerate() {
        tables.execute(
            "INSERT INTO environment (campaign, position, key, value) VALUES (?1, ?2, ?3, ?4)",
            params![campaign, position as i64, key, value],
        )?;
    }
    Ok(campaign)
}

/// Adds a pending cell.
pub(super) fn cell(tables: Tables<'_>, campaign: i64, cell: &Cell) -> Result<(), StoreError> {
    let factors = serde_json::to_string(&cell.factors).expect("factors serialise");
    tables.execute(
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
}

impl Store {
    /// Adds a campaign of another program in one transaction, and returns its number.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written.
    pub fn add(&mut self, imported: Imported) -> Result<i64, StoreError> {
        let Imported { campaign: record, measured, .. } = imported;
        self.transaction(|tables| {
            let campaign = campaign(tables, &record, IMPORTED)?;
            for (it, rows) in record.cells.into_iter().zip(measured) {
                cell(tables, campaign, &it)?;
                for row in rows {
                    write(tables, campaign, &Entry::Interval(it.index, Box::new(row)))?;
                }
                let end = match (it.status, it.verdict) {
                    (Status::Done, Some(verdict)) => CellEnd::Done { verdict, wear: it.wear },
                    _ => CellEnd::Failed(it.failure.unwrap_or_default()),
                };
                write(tables, campaign, &Entry::End(it.index, end))?;
            }
            Ok(campaign)
        })
    }
}
