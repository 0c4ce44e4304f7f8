//! Plans: the cells that would run, and their groups.
//!
//! Plans are run in `run`.

use crate::errors::detached;
use crate::table::Table;
use lowtide_lab::plan::{Plan as LabPlan, PlanTarget};
use lowtide_report::frame;
use lowtide_studies::ask::{Asked, Source};
use pyo3::prelude::*;

/// A plan: an experiment, resolved and checked.
#[pyclass(frozen, module = "lowtide._native")]
pub struct Plan {
    pub asked: Asked,
    pub plan: LabPlan,
}

/// The source of an experiment or a device: a name or path, or a text that errors call `name`.
pub fn source(name: String, text: Option<String>) -> Source {
    match text {
        None => Source::Named(name),
        Some(text) => Source::Text { name, text },
    }
}

/// Plans the experiment with the given name or path, or the experiment in `text`, which errors call `name`.
#[pyfunction]
#[pyo3(signature = (name, text=None, *, set=Vec::new(), target=None, scale=1, seed=1))]
pub fn plan(
    py: Python<'_>,
    name: String,
    text: Option<String>,
    set: Vec<String>,
    target: Option<String>,
    scale: u64,
    seed: u64,
) -> PyResult<Plan> {
    detached(py, || {
        let asked = Asked { source: source(name, text), target, set, scale, seed };
        let plan = asked.plan()?;
        Ok(Plan { asked, plan })
    })
}

/// Returns an experiment's target as the user would write it. The target is not looked up, so it may be on another
/// machine.
#[pyfunction]
#[pyo3(signature = (name, text=None, *, set=Vec::new(), target=None))]
pub fn target_of(
    py: Python<'_>,
    name: String,
    text: Option<String>,
    set: Vec<String>,
    target: Option<String>,
) -> PyResult<String> {
    detached(py, || {
        let asked = Asked { source: source(name, text), target, set, scale: 1, seed: 1 };
        Ok(asked.experiment()?.target.to_string())
    })
}

#[pymethods]
impl Plan {
    /// The experiment's name.
    #[getter]
    fn name(&self) -> &str {
        &self.plan.experiment.name
    }

    /// The experiment's title.
    #[getter]
    fn title(&self) -> &str {
        &self.plan.experiment.title
    }

    /// The target as the user would write it.
    #[getter]
    fn target(&self) -> String {
        self.plan.experiment.target.to_string()
    }

    /// The experiment's text with every override applied, without the passwords of server addresses.
    #[getter]
    fn experiment(&self) -> String {
        self.plan.experiment.without_passwords(self.plan.experiment.text())
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.plan.seed.get()
    }

    /// The scale: sizes and times are divided by this number.
    #[getter]
    fn scale(&self) -> u64 {
        self.plan.scale
    }

    /// `True` if the plan runs on models in virtual time.
    #[getter]
    fn simulated(&self) -> bool {
        self.plan.target.is_simulated()
    }

    /// `True` if the plan attaches drives, which the program `lowtide` serves.
    #[getter]
    pub fn attached(&self) -> bool {
        matches!(self.plan.target, PlanTarget::Attached(_))
    }

    /// The serial number of the target block device, or its substitute; `None` for other targets.
    #[getter]
    fn serial(&self) -> Option<String> {
        match &self.plan.target {
            PlanTarget::Block(block) => Some(block.disk.identity.serial.clone()),
            PlanTarget::Simulated(_) | PlanTarget::Attached(_) | PlanTarget::Host(_) => None,
        }
    }

    /// A fingerprint that is equal for plans with equal measurements.
    #[getter]
    fn identity(&self) -> String {
        self.plan.identity()
    }

    /// Requested features that the target does not support.
    #[getter]
    fn ignored(&self) -> Vec<String> {
        self.plan.ignored()
    }

    /// The command line that runs the plan.
    #[getter]
    fn command(&self) -> String {
        self.asked.command()
    }

    /// Groups of cells. The cells of a group share a history and run in order.
    #[getter]
    fn groups(&self) -> Vec<Vec<usize>> {
        self.plan.groups.clone()
    }

    /// The target of each group, as the user would write it: the group's device, or the target of the plan.
    #[getter]
    fn group_targets(&self) -> Vec<String> {
        let of = |group: &Vec<usize>| {
            let device = group.first().and_then(|cell| self.plan.cells[*cell].settings.device.clone());
            device.map_or_else(|| self.target(), |device| format!("device:{device}"))
        };
        self.plan.groups.iter().map(of).collect()
    }

    /// Returns a table of the cells.
    fn cells(&self) -> Table {
        Table::new(frame::planned(&self.plan))
    }
}
