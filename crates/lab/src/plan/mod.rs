//! The plan: the cells, their order, their target and their dependencies.
//!
//! The plan makes all decisions and checks that are possible before anything is written: devices exist, data fits,
//! sizes are scaled. Cells that share history are in one group and run in order; groups are independent. Module
//! `campaign` carries out the plan.

mod block;
pub(crate) mod cells;
mod databases;
pub mod identity;
mod ignored;
mod order;
mod target;
mod traced;

pub(crate) use block::erase;
pub use target::{PlanTarget, PlannedBlock, PlannedDevice};

use crate::experiment::{BadInput, Experiment, Length, Level, Precondition, Purge, Settings};
use lowtide_core::{Bytes, Nanos, Seed, Trace};
use lowtide_files::output::CommandFiles;
use lowtide_host::HostError;
use lowtide_host::target::Layout;
use lowtide_record::FactorLevel;

/// The plan of a campaign.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The experiment.
    pub experiment: Experiment,
    /// The seed of every random choice.
    pub seed: Seed,
    /// The scale: sizes and durations are divided by this number.
    pub scale: u64,
    /// The target under test.
    pub target: PlanTarget,
    /// The cells in plan order.
    pub cells: Vec<PlannedCell>,
    /// Groups of cells that share history, as indices of cells in order.
    pub groups: Vec<Vec<usize>>,
    /// A suffix of the identity, for a plan that is interleaved with other plans or that skips cells; else empty.
    pub identity_suffix: String,
}

/// One combination of factor values × one repetition, ready to run.
#[derive(Debug, Clone)]
pub struct PlannedCell {
    /// Position in the plan.
    pub index: u32,
    /// The name of its step, if the experiment has steps.
    pub step: Option<String>,
    /// The levels of the factors, as written (not scaled).
    pub point: Vec<Level>,
    /// Repetition, from 1.
    pub repetition: u32,
    /// The purge of the step, if this is its first cell; else [`Purge::None`].
    pub purge_before: Purge,
    /// The precondition of the step, if this is its first cell.
    pub precondition: Option<Precondition>,
    /// Its settings, scaled.
    pub settings: Settings,
    /// Bytes of data under test, scaled.
    pub data: Bytes,
    /// Bytes the host may address on the target; for files, the size of their filesystem.
    pub capacity: Bytes,
}

/// The maximum measuring time of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Longest {
    /// The sum over the cells that have a time limit.
    pub limited: Nanos,
    /// Cells without a time limit, which end after a number of requests.
    pub unlimited: usize,
}

impl Longest {
    /// The time of all cells; `None` if a cell has no limit.
    pub fn of_all(self) -> Option<Nanos> {
        (self.unlimited == 0).then_some(self.limited)
    }
}

impl Plan {
    /// Facts about the target, by name, for the store.
    pub fn environment(&self) -> Vec<(String, String)> {
        let trace = self.trace().map(|trace| ("trace".to_owned(), traced::describe(trace)));
        self.target.environment(self.scale).into_iter().chain(trace).collect()
    }

    /// Files that outputs must not replace: the file under test, and all input files except the experiment itself.
    pub fn files(&self) -> CommandFiles {
        let mut files = CommandFiles::default();
        self.target.add_files(&mut files);
        if let Some(replay) = self.experiment.load.work.trace() {
            files.add("the trace", &replay.path);
        }
        files
    }

    /// The trace, fitted to the data of the first cell.
    fn trace(&self) -> Option<&Trace> {
        self.cells.first()?.settings.load.work.trace()?.trace.as_deref()
    }

    /// Sets the user's consent to overwrite a block device: the serial number, and whether a recognised filesystem or
    /// partition table may be lost. Has no effect on other targets.
    pub fn allow(&mut self, destroy: Option<String>, force_signature: bool) {
        if let PlanTarget::Block(block) = &mut self.target {
            (block.destroy, block.force_signature) = (destroy, force_signature);
        }
    }

    /// Plans an experiment.
    ///
    /// # Errors
    /// [`BadInput`] at the key of an unknown device, or of data that does not fit, for example.
    pub fn new(experiment: Experiment, seed: Seed, scale: u64) -> Result<Plan, BadInput> {
        let mut target = PlanTarget::of(&experiment, scale)?;
        let cells = cells::all(&experiment, &target, scale)?;
        block::check(&experiment, &target, &cells)?;
        if let PlanTarget::Block(planned) = &mut target {
            planned.only_read = block::only_read(&cells);
        }
        let groups = order::groups(&cells, &target);
        Ok(Plan { experiment, seed, scale, target, cells, groups, identity_suffix: String::new() })
    }

    /// Keeps the groups of part `number` (from 1) of `of` parts. The identity of the plan and the numbers of its
    /// cells do not change, so that the measured parts can be joined.
    pub fn keep_part(&mut self, number: usize, of: usize) {
        self.retain_groups(|index| index % of == number - 1);
    }

    /// Keeps the groups at these positions, as [`Plan::keep_part`] does. Unknown positions are ignored.
    pub fn keep_groups(&mut self, kept: &[usize]) {
        self.retain_groups(|index| kept.contains(&index));
    }

    fn retain_groups(&mut self, is_kept: impl Fn(usize) -> bool) {
        let mut indices = 0..;
        self.groups.retain(|_| indices.next().is_some_and(&is_kept));
    }

    /// The identity in the store: a campaign is resumed only by a plan with an equal identity. The identities of two
    /// plans are equal if and only if the plans make the same measurements, on any device of the host.
    pub fn identity(&self) -> String {
        let devices: String =
            self.target.devices().flat_map(|planned| &planned.device.texts).cloned().collect();
        let target = &self.experiment.target;
        let trace: String =
            self.trace().map(|trace| format!("\ntrace {:016x}", traced::digest(trace))).unwrap_or_default();
        format!(
            "{}\n{devices}\n{target} seed {} scale 1/{}{trace}{}",
            self.experiment.without_passwords(self.experiment.text()),
            self.seed.get(),
            self.scale,
            self.identity_suffix
        )
    }

    /// The identity of the block device under test, which a resumed campaign must use; `None` for other targets.
    pub fn on_device(&self) -> Option<String> {
        match &self.target {
            PlanTarget::Block(planned) => Some(planned.disk.identity.to_string()),
            PlanTarget::Simulated(_) | PlanTarget::Attached(_) | PlanTarget::Host(_) => None,
        }
    }

    /// The seed of a cell.
    pub fn cell_seed(&self, cell: &PlannedCell) -> Seed {
        self.seed.part("cell", u64::from(cell.index))
    }

    /// Messages about settings of the experiment that the target ignores.
    pub fn ignored(&self) -> Vec<String> {
        ignored::all(&self.cells, &self.target)
    }

    /// The maximum measuring time of all cells.
    pub fn longest(&self) -> Longest {
        let spans = self.cells.iter().map(|cell| cell.settings.load.longest());
        let unlimited = spans.clone().filter(Option::is_none).count();
        let limited = spans.flatten().fold(0, |sum: u64, span| sum.saturating_add(span.get()));
        Longest { limited: Nanos::new(limited), unlimited }
    }

    /// The most bytes that the loads of all cells write to a target that accepts `per_second` bytes a second. Loads
    /// that end after a number of requests do not depend on the rate.
    pub fn load_bytes(&self, per_second: Bytes) -> Bytes {
        let of = |cell: &PlannedCell| {
            let load = &cell.settings.load;
            let writes = 1.0 - load.workload().read_share;
            let most = match load.length {
                Length::Requests(number) => (load.block * number).get() as f64,
                length => {
                    let longest = length.longest().map_or(0.0, |longest| longest.as_secs_f64());
                    longest * per_second.get() as f64
                }
            };
            Bytes::new((most * writes) as u64)
        };
        self.cells.iter().map(of).sum()
    }

    /// Bytes written to prepare the cells.
    pub fn prepared_bytes(&self) -> Bytes {
        // Cells of databases have a precondition only on simulated drives.
        let is_preconditioned =
            !self.experiment.load.work.is_transactions() || matches!(self.target, PlanTarget::Attached(_));
        let times = |cell: &PlannedCell| cell.precondition.map_or(0, |it| it.times);
        let passes = |cell: &PlannedCell| cell.data * u64::from(times(cell));
        self.filled_bytes() + self.cells.iter().filter(|_| is_preconditioned).map(passes).sum()
    }

    /// Bytes written to fill the cells.
    fn filled_bytes(&self) -> Bytes {
        if self.experiment.load.work.is_transactions() {
            // The data is loaded once, and copied for each cell.
            let loaded = self.cells.first().map_or(Bytes::ZERO, |cell| cell.data);
            return loaded + self.cells.iter().map(|cell| cell.data).sum();
        }
        if matches!(self.target, PlanTarget::Host(_)) {
            // Files are reused until a cell needs other files.
            let same = |a: &PlannedCell, b: &PlannedCell| a.files().ok() == b.files().ok();
            let filled = self.cells.chunk_by(same).filter_map(|cells| cells.first());
            return filled.map(|cell| cell.data).sum();
        }
        let filled = |cell: &&PlannedCell| cell.settings.preparation.fill != crate::experiment::Fill::None;
        self.cells.iter().filter(filled).map(|cell| cell.data).sum()
    }
}

impl PlannedCell {
    /// The files of its data, on a target of the host.
    ///
    /// # Errors
    /// [`HostError::Invalid`] if the data is too small for the number of files.
    pub fn files(&self) -> Result<Layout, HostError> {
        Layout::split(self.data, self.settings.preparation.layout.files, self.settings.load.block)
    }

    /// Its factors, for records.
    pub fn factors(&self) -> Vec<FactorLevel> {
        self.point.iter().map(FactorLevel::from).collect()
    }

    /// A short label for progress lines.
    pub fn label(&self) -> String {
        let step = self.step.iter().cloned();
        let factors = self.point.iter().map(|level| format!("{} {level}", level.factor()));
        let repetition = (self.repetition > 1).then(|| format!("repetition {}", self.repetition));
        let label = step.chain(factors).chain(repetition).collect::<Vec<_>>().join(", ");
        if label.is_empty() { format!("cell {}", self.index) } else { label }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str, scale: u64) -> Result<Plan, BadInput> {
        Plan::new(Experiment::parse("test.toml", text, &[])?, Seed::new(1), scale)
    }

    fn refused(text: &str) -> String {
        format!("{:?}", miette::Report::new(plan(text, 1).expect_err(text)))
    }

    const BASE: &str = r#"
        name = "t"
        target.device = "intel-320-160gb"
        [workload]
        pattern = "random-write"
        block = "16KiB"
        duration = "1h"
    "#;

    #[test]
    fn cells_that_share_history_are_one_group() {
        let sweep = "[sweep]\nfile_size = [\"10GiB\", \"20GiB\"]\n[repeat]\ntimes = 2\n";
        let together = plan(&format!("{BASE}\n{sweep}"), 1).expect("plans");
        assert_eq!(together.groups, [[0, 1, 2, 3]]);
        let apart = plan(&format!("{BASE}\n{sweep}[before-each-cell]\npurge = \"secure-erase\"\n"), 1)
            .expect("plans");
        assert_eq!(apart.groups.len(), 4);
    }

    #[test]
    fn skipped_groups_do_not_change_the_identity() {
        let text = format!(
            "{BASE}\n[sweep]\nfile_size = [\"10GiB\", \"20GiB\", \"30GiB\"]\n[before-each-cell]\npurge = \"secure-erase\"\n"
        );
        let complete = plan(&text, 1).expect("plans");
        let mut part = complete.clone();
        part.keep_groups(&[2, 0, 9]);
        assert_eq!(part.groups, [[0], [2]]);
        assert_eq!((part.identity(), part.cells.len()), (complete.identity(), 3));
    }

    #[test]
    fn steps_that_erase_begin_a_new_group() {
        let steps = "[[step]]\nname = \"a\"\npurge-before = \"secure-erase\"\n[[step]]\nname = \"b\"\n\
                     [[step]]\nname = \"c\"\npurge-before = \"secure-erase\"\n[sweep]\nfile_size = [\"10GiB\", \"20GiB\"]";
        let plan = plan(&format!("{BASE}\n{steps}"), 1).expect("plans");
        assert_eq!(plan.groups, [vec![0, 1, 2, 3], vec![4, 5]]);
    }

    #[test]
    fn scale_divides_sizes_and_durations_but_not_labels() {
        let plan = plan(&format!("{BASE}\nfile_size = \"16GiB\""), 16).expect("plans");
        assert_eq!(plan.cells[0].data, Bytes::gib(1));
        assert_eq!(plan.cells[0].settings.load.length.longest(), Some(Nanos::from_secs(225)));
        assert_eq!(plan.cells[0].capacity, Bytes::new(10_000_000_000 / 4096 * 4096));
    }

    #[test]
    fn utilisation_is_a_share_of_the_space_for_data() {
        let text = format!(
            "{BASE}\n[before-each-cell]\nlayout = {{ partition = \"100GiB\", reserve = 0.2 }}\n\
             [sweep]\nutilisation = [0.5, 1]\n"
        );
        let cells = plan(&text, 1).expect("plans").cells;
        assert_eq!([cells[0].data, cells[1].data], [Bytes::gib(40), Bytes::gib(80)]);
        let xfs = plan(&text.replace("reserve", "filesystem = \"xfs\", reserve"), 1).expect("plans").cells;
        assert!(xfs[1].data < Bytes::gib(80) && xfs[1].data > Bytes::gib(79), "{}", xfs[1].data);
        assert!(xfs.iter().all(|cell| cell.data.get().is_multiple_of(16 << 10)));
        let scaled = plan(&text, 16).expect("plans").cells;
        assert_eq!(scaled[1].data, Bytes::gib(5));
        let files = text.replace("device = \"intel-320-160gb\"", "directory = \"/tmp\"");
        assert!(refused(&files).contains("file_size = "));
    }

    #[test]
    fn swept_partitions_pauses_and_counted_requests_are_scaled() {
        let text = format!(
            "{}\n[sweep]\npartition = [\"64GiB\"]\nidle = [\"0s\", \"32s\"]\n",
            BASE.replace("duration = \"1h\"", "requests = 1000")
        );
        let cells = plan(&text, 16).expect("plans").cells;
        assert_eq!(cells[1].data, Bytes::gib(4));
        assert_eq!(cells[1].settings.preparation.idle, Nanos::from_secs(2));
        assert_eq!(cells[1].settings.load.length, Length::Requests(62));
        assert_eq!(cells[1].label(), "partition 64GiB, idle 32s");
    }

    #[test]
    fn the_longest_time_is_that_of_cells_with_a_limit() {
        let cells = "[[step]]\nname = \"a\"\n[[step]]\nname = \"b\"\nduration = \"2h\"\n\
                     [sweep]\nfile_size = [\"10GiB\", \"20GiB\"]\n";
        let timed = format!("{BASE}\n{cells}");
        let all = plan(&timed, 1).expect("plans").longest();
        assert_eq!((all.unlimited, all.of_all()), (0, Some(Nanos::from_secs(6 * 3600))));
        let counted = timed.replace("duration = \"1h\"", "requests = 1000");
        let some = plan(&counted, 1).expect("plans").longest();
        assert_eq!(some, Longest { limited: Nanos::from_secs(4 * 3600), unlimited: 2 });
        assert_eq!(some.of_all(), None);
    }

    #[test]
    fn unknown_devices_and_data_that_does_not_fit_are_refused() {
        let text = refused(&format!("{BASE}\n[sweep]\nfile_size = [\"10GiB\", \"150GiB\"]"));
        assert!(text.contains("150GiB"), "{text}");
        let text = refused(&BASE.replace("intel-320-160gb", "intel-320"));
        assert!(text.contains("intel-320-160gb"), "{text}");
    }

    #[test]
    fn rates_that_cannot_be_measured_are_refused_at_their_key() {
        let open = format!("{BASE}\narrival = \"fixed\"\n");
        for (rate, fine) in [("1e300", false), ("1e-300", false), ("0.001", true), ("1e9", true)] {
            assert_eq!(plan(&format!("{open}rate = {rate}"), 1).is_ok(), fine, "{rate}");
        }
        let text = refused(&format!("{BASE}\n[sweep]\nrate = [10, 1e300]"));
        assert!(text.contains("1e300") && text.contains("0.001 to 1000000000"), "{text}");
    }

    #[test]
    fn an_experiment_for_a_drive_runs_on_files_and_reports_ignored_settings() {
        let text = include_str!("../../../../experiments/published/intel-320-random-write.toml");
        let text = text.replace("device = \"intel-320-160gb\"", "directory = \"/tmp\"");
        let plan = plan(&text, 1).expect("plans");
        assert_eq!(
            plan.ignored(),
            [
                "files cannot be erased: `purge = \"secure-erase\"` is ignored",
                "files are on an existing filesystem: `filesystem = \"xfs\"` is ignored",
            ]
        );
        assert!(plan.cells.iter().all(|cell| cell.capacity >= cell.data));
    }
}
