//! A directory of this machine as the home of databases ([`Directory`]).
//!
//! # Not handled
//! The history of the disk below the directory, which is unknown.

use super::data_set::Copies;
use super::home::{self, Home, Ready};
use crate::cell_error::CellError;
use crate::plan::PlannedCell;
use lowtide_core::{Counters, Seed};
use lowtide_host::HostError;
use lowtide_host::block::{Disk, Traffic};
use lowtide_oltp::Folder;
use lowtide_record::analysis::Medium;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A directory of lowtide in the user's directory.
pub(crate) struct Directory {
    own: Folder,
    /// The disk below the directory, if it is visible.
    disk: Option<Disk>,
}

impl Directory {
    /// Creates the directory in the user's directory.
    ///
    /// # Errors
    /// As [`home::own`].
    pub fn within(path: &Path) -> Result<Directory, HostError> {
        let own = home::own(path)?;
        Ok(Directory { disk: Disk::beneath(own.path()), own })
    }
}

impl Home for Directory {
    fn directory(&self) -> Option<&Path> {
        Some(self.own.path())
    }

    fn copies(&self) -> Copies {
        Copies::SameFilesystem
    }

    fn prepare(&mut self, cell: &PlannedCell, _: Seed, _: &Arc<AtomicBool>) -> Result<Ready, CellError> {
        let (data, capacity) = (self.own.path().join("cell"), cell.capacity);
        Ok(Ready { data, log: None, capacity, raw_capacity: None, medium: Medium::Other, written: None })
    }

    fn activity(&self) -> (Option<Traffic>, Option<Counters>) {
        (self.disk.as_ref().and_then(Disk::traffic), None)
    }

    fn finish(self: Box<Self>) -> Result<(), HostError> {
        home::remove(self.own)
    }
}
