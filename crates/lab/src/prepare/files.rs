//! Preparation of files of the host. The files are created and filled for the first cell, reused by later cells with
//! the same files, replaced for a cell with different files, and removed after the campaign.
//!
//! # Not handled
//! Purges, which files do not support.

use super::{HostTarget, PreparedHost, fill_order, wait};
use crate::plan::PlannedCell;
use lowtide_core::Seed;
use lowtide_host::HostError;
use lowtide_host::target::{Layout, Preparation, Progress, Target, TargetSpec, remove_left_over};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The files of a campaign. Dropping it removes them, and the files of killed campaigns.
#[derive(Debug)]
pub struct Files<'a> {
    spec: &'a TargetSpec,
    made: Option<(Layout, Target)>,
}

impl<'a> Files<'a> {
    /// No files yet, of `spec`.
    pub fn new(spec: &'a TargetSpec) -> Self {
        Files { spec, made: None }
    }

    /// Removes the files.
    ///
    /// # Errors
    /// [`HostError`] if a file cannot be removed.
    pub fn remove(&mut self) -> Result<(), HostError> {
        self.made.take().map_or(Ok(()), |(_, target)| target.remove())
    }

    fn clean(&mut self) -> Result<(), HostError> {
        self.remove().and(remove_left_over(self.spec))
    }
}

impl HostTarget for Files<'_> {
    fn path(&self) -> &Path {
        self.spec.path()
    }

    /// Creates the files of `cell`, unless the previous cell had the same files. Different files of the previous cell
    /// are removed first, so that only the files of one cell exist at a time.
    fn prepare(
        &mut self,
        cell: &PlannedCell,
        seed: Seed,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<PreparedHost<'_>, HostError> {
        let layout = cell.files()?;
        if !matches!(&self.made, Some((made, _)) if *made == layout) {
            self.remove()?;
            let order = fill_order(cell);
            let how = Preparation { spec: self.spec, layout, order, seed, keep: false, interrupt };
            self.made = Some((layout, Target::prepare(&how, progress)?));
        }
        wait(cell.settings.preparation.idle, self.spec.path(), interrupt)?;
        let (_, target) = self.made.as_ref().expect("the files were created above");
        let (data, capacity) = (target.data(), cell.capacity);
        Ok(PreparedHost { data, capacity, rotational: false, written_before: None })
    }

    fn give_up(&mut self) -> Result<(), HostError> {
        self.remove()
    }

    fn finish(mut self: Box<Self>) -> Result<(), HostError> {
        self.clean()
    }
}

impl Drop for Files<'_> {
    fn drop(&mut self) {
        // `finish` reports errors.
        let _ = self.clean();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::plan::{Plan, PlanTarget};
    use lowtide_core::Bytes;
    use lowtide_host::target::Order;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn only_the_files_of_one_cell_exist_at_a_time_and_are_reused() {
        let directory = tempfile::tempdir().expect("a directory");
        let text = format!(
            "name = \"t\"\ntarget.directory = {:?}\n[workload]\nblock = \"4KiB\"\nduration = \"1s\"\n\
             [sweep]\npattern = [\"random-write\", \"random-read\"]\nfile_size = [\"1MiB\", \"2MiB\"]\nthreads = [1, 2]\n",
            directory.path()
        );
        let experiment = Experiment::parse("test.toml", &text, &[]).expect("valid");
        let plan = Plan::new(experiment, Seed::new(1), 1).expect("plans");
        assert_eq!(plan.prepared_bytes(), Bytes::mib(6));
        assert!(plan.cells[0].capacity > plan.cells[0].data, "the filesystem's");
        assert_eq!(plan.ignored(), ["files are always filled, in order: `fill = \"none\"` is ignored"]);
        let PlanTarget::Host(spec) = &plan.target else { panic!("a target of the host") };

        let left = TargetSpec::File(directory.path().join("lowtide-0005.dat"));
        let layout = Layout::split(Bytes::mib(1), 1, Bytes::kib(4)).expect("valid");
        let goes_on = AtomicBool::new(false);
        let (order, seed) = (Order::Sequential, Seed::new(1));
        let how = Preparation { spec: &left, layout, order, seed, keep: false, interrupt: &goes_on };
        std::mem::forget(Target::prepare(&how, &mut |_| ()).expect("prepared"));

        let mut filled = Bytes::ZERO;
        let mut files = Files::new(spec);
        let mut made = Vec::new();
        for cell in &plan.cells {
            let mut last = Bytes::ZERO;
            let prepared = files.prepare(cell, Seed::new(1), &goes_on, &mut |progress| last = progress.done);
            let path = &prepared.expect("prepared").data.files()[0];
            let metadata = std::fs::metadata(path).expect("there");
            assert_eq!(metadata.len(), cell.data.get());
            made.push(metadata.ino());
            filled += last;
            assert_eq!(std::fs::read_dir(directory.path()).expect("listed").count(), 2);
        }
        assert!(made.chunks(2).all(|pair| pair[0] == pair[1]), "{made:?}");
        assert_eq!(filled, plan.prepared_bytes());
        drop(files);
        let names: Vec<_> =
            std::fs::read_dir(directory.path()).expect("listed").flatten().map(|e| e.file_name()).collect();
        assert_eq!(names, ["lowtide-0005.dat"], "this process still holds it");
    }
}
