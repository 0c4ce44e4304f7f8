//! Preparing files of the host: made, filled, and removed after the campaign.
//!
//! Leaves out purging: a file has nothing to erase, and the filesystem it lies on stays as it is.

use crate::plan::PlannedCell;
use lowtide_core::Seed;
use lowtide_host::HostError;
use lowtide_host::target::{Layout, Preparation, Progress, Target, TargetSpec};
use std::sync::atomic::AtomicBool;

/// Files ready for their cell's load.
#[derive(Debug)]
pub struct PreparedFiles {
    pub(crate) target: Target,
}

impl PreparedFiles {
    /// Makes the files that `cell` asks for.
    ///
    /// # Errors
    /// [`HostError`] where the target is refused or cannot be written.
    pub fn prepare(
        spec: &TargetSpec,
        cell: &PlannedCell,
        seed: Seed,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, HostError> {
        let settings = &cell.settings;
        let layout = Layout::split(cell.data, settings.preparation.layout.files, settings.load.block)?;
        let how = Preparation { spec, layout, seed, keep: false, interrupt };
        Ok(PreparedFiles { target: Target::prepare(&how, progress)? })
    }
}
