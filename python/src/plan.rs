//! Plans: what would be run, and which cells of it stay together.
//!
//! Leaves out running them; see `run`.

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

/// The source of an experiment or a device: a name or path, or a text that errors call by the name.
pub fn source(name: String, text: Option<String>) -> Source {
    match text {
        None => Source::Named(name),
        Some(text) => Source::Text { name, text },
    }
}

/// Plans an experiment: the one of that name or path, or the one in `text`, which errors call `name`.
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

/// What an experiment runs on, as it would be typed, before that is looked for: it may be of another machine.
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

    /// The target as it would be typed.
    #[getter]
    fn target(&self) -> String {
        self.plan.experiment.target.to_string()
    }

    /// The experiment with every override in it; addresses of servers without their passwords.
    #[getter]
    fn experiment(&self) -> String {
        self.plan.experiment.without_passwords(self.plan.experiment.text())
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.plan.seed.get()
    }

    /// Sizes and times are divided by this.
    #[getter]
    fn scale(&self) -> u64 {
        self.plan.scale
    }

    /// Whether it runs on models in virtual time.
    #[getter]
    fn simulated(&self) -> bool {
        self.plan.target.is_simulated()
    }

    /// Whether it attaches drives, which the program `lowtide` serves.
    #[getter]
    pub fn attached(&self) -> bool {
        matches!(self.plan.target, PlanTarget::Attached(_))
    }

    /// The serial number of the block device that it runs on, or what stands for it.
    #[getter]
    fn serial(&self) -> Option<String> {
        match &self.plan.target {
            PlanTarget::Block(block) => Some(block.disk.identity.serial.clone()),
            PlanTarget::Simulated(_) | PlanTarget::Attached(_) | PlanTarget::Host(_) => None,
        }
    }

    /// A text that is the same for plans that measure the same.
    #[getter]
    fn identity(&self) -> String {
        self.plan.identity()
    }

    /// What the experiment asks for and the target cannot do.
    #[getter]
    fn ignored(&self) -> Vec<String> {
        self.plan.ignored()
    }

    /// The command line that runs it.
    #[getter]
    fn command(&self) -> String {
        self.asked.command()
    }

    /// The cells that share a history and run in order, group by group.
    #[getter]
    fn groups(&self) -> Vec<Vec<usize>> {
        self.plan.groups.clone()
    }

    /// What each group runs on, as it would be typed: its device, or the target.
    #[getter]
    fn group_targets(&self) -> Vec<String> {
        let of = |group: &Vec<usize>| {
            let device = group.first().and_then(|cell| self.plan.cells[*cell].settings.device.clone());
            device.map_or_else(|| self.target(), |device| format!("device:{device}"))
        };
        self.plan.groups.iter().map(of).collect()
    }

    /// The cells.
    fn cells(&self) -> Table {
        Table::new(frame::planned(&self.plan))
    }
}
