//! Preparation: a target with exactly the history its cell asks for.
//!
//! A load takes a [`PreparedDrive`] or a [`PreparedHost`], and only this stage makes them, so that nothing is
//! measured on a target that was not prepared. Not here: the measurement (`load`).

mod block;
pub mod data_set;
mod database;
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
    /// Bytes of the filesystem they lie on, or of the device.
    pub(crate) capacity: Bytes,
    /// Whether it is known to turn.
    pub(crate) rotational: bool,
    /// Host bytes written since the last purge; `None` where nobody knows.
    pub(crate) written_before: Option<Bytes>,
}

/// A target of the host: files, or a block device. It is held from the beginning of a campaign to its end.
pub trait HostTarget {
    /// The file, directory or device, as the user named it.
    fn path(&self) -> &Path;

    /// The device, where that is the target.
    fn disk(&self) -> Option<&Disk> {
        None
    }

    /// Gives the target the history that `cell` asks for.
    ///
    /// # Errors
    /// [`HostError`] where it is refused, or cannot be done.
    fn prepare(
        &mut self,
        cell: &PlannedCell,
        seed: Seed,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<PreparedHost<'_>, HostError>;

    /// The filesystem made for the cell, and the options that the kernel mounted it with.
    fn mounted(&self) -> Option<String> {
        None
    }

    /// Counts bytes that the load has written.
    fn count(&mut self, _written: Bytes) {}

    /// Discards data that a load could not use, so that no later cell reuses it.
    ///
    /// # Errors
    /// [`HostError`] where they cannot be removed.
    fn give_up(&mut self) -> Result<(), HostError> {
        Ok(())
    }

    /// Undoes what was changed for the campaign, but for data on a device.
    ///
    /// # Errors
    /// [`HostError`] where something cannot be undone.
    fn finish(self: Box<Self>) -> Result<(), HostError>;
}

/// In which order data of the host is written for the first time.
fn fill_order(cell: &PlannedCell) -> Order {
    match cell.settings.preparation.fill {
        // Of what is real nobody knows how much NAND there is.
        Fill::Random | Fill::Aged => Order::Random(cell.settings.load.block),
        Fill::Sequential | Fill::None => Order::Sequential,
    }
}

/// Leaves the target at `path` alone for a while.
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
