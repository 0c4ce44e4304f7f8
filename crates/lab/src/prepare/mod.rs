//! Preparation: a target with exactly the history its cell asks for.
//!
//! A load takes a [`PreparedDrive`] or a [`PreparedHost`]. Only this stage makes these types, so no unprepared target
//! can be measured. The measurement is in module `load`.

mod block;
pub mod data_set;
mod database;
mod directory;
mod drive;
pub mod drives;
mod files;
pub mod home;

pub use block::Block;
pub use database::Database;
pub use drive::{History, PreparedDrive};
pub use files::Files;

use crate::experiment::Fill;
use crate::plan::PlannedCell;
use lowtide_core::{Bytes, Nanos, Seed};
use lowtide_host::HostError;
use lowtide_host::block::Disk;
use lowtide_host::target::{Order, Progress, TestData};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Files, or a device, of the host, ready for their cell's load.
#[derive(Debug)]
pub struct PreparedHost<'a> {
    pub(crate) data: &'a TestData,
    /// Bytes of the filesystem of the files, or of the device.
    pub(crate) capacity: Bytes,
    /// Whether the device is known to be rotational.
    pub(crate) rotational: bool,
    /// Host bytes written since the last purge; `None` if unknown.
    pub(crate) written_before: Option<Bytes>,
}

/// A target of the host: files, or a block device. A campaign holds its target from beginning to end.
pub trait HostTarget {
    /// The file, directory or device, as the user named it.
    fn path(&self) -> &Path;

    /// The device, if the target is one.
    fn disk(&self) -> Option<&Disk> {
        None
    }

    /// Gives the target the history that `cell` asks for.
    ///
    /// # Errors
    /// [`HostError`] if the target is refused, or an operation fails.
    fn prepare(
        &mut self,
        cell: &PlannedCell,
        seed: Seed,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<PreparedHost<'_>, HostError>;

    /// The filesystem made for the cell, and its mount options as the kernel reports them.
    fn mounted(&self) -> Option<String> {
        None
    }

    /// Counts bytes that the load has written.
    fn count(&mut self, _written: Bytes) {}

    /// Discards the data after a failed load, so that no later cell reuses it.
    ///
    /// # Errors
    /// [`HostError`] if a file cannot be removed.
    fn give_up(&mut self) -> Result<(), HostError> {
        Ok(())
    }

    /// Undoes all changes made for the campaign, except data on a device.
    ///
    /// # Errors
    /// [`HostError`] if a change cannot be undone.
    fn finish(self: Box<Self>) -> Result<(), HostError>;
}

/// The order in which the fill writes data of the host.
fn fill_order(cell: &PlannedCell) -> Order {
    match cell.settings.preparation.fill {
        // The NAND capacity of a real drive is unknown, so the data cannot be aged.
        Fill::Random | Fill::Aged => Order::Random(cell.settings.load.block),
        Fill::Sequential | Fill::None => Order::Sequential,
    }
}

/// Waits for `idle`, unless `interrupt` is set.
pub(crate) fn wait(idle: Nanos, path: &Path, interrupt: &AtomicBool) -> Result<(), HostError> {
    let begin = Instant::now();
    while begin.elapsed().as_nanos() < u128::from(idle.get()) {
        if interrupt.load(Ordering::Relaxed) {
            return Err(HostError::Interrupted(path.to_owned()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
