//! A campaign whose groups are run elsewhere: a store that is held meanwhile, and takes their parts as they come.
//!
//! Leaves out how parts travel and where they are run; `lowtide.distributed` does that.

use crate::errors::{Raised, detached};
use crate::plan::Plan;
use lowtide_lab::store::{self, About, Store, StoreError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Mutex;

/// Makes a part of a plan in which nothing is measured yet, at a path where there is nothing.
#[pyfunction]
pub fn begin(py: Python<'_>, plan: &Plan, part: PathBuf) -> PyResult<()> {
    detached(py, || Ok(Store::open(&part)?.begin(&plan.plan, &plan.about()).map(drop)?))
}

/// Makes a part, at a path where there is nothing, of one that may be written to meanwhile: with the cells that have ended.
#[pyfunction]
pub fn snapshot(py: Python<'_>, part: PathBuf, copy: PathBuf) -> PyResult<()> {
    detached(py, || Ok(store::snapshot(&part, &copy)?))
}

impl Plan {
    /// What a campaign says of itself that begins now, here.
    pub fn about(&self) -> About {
        About {
            started_at: jiff::Timestamp::now().to_string(),
            command: self.asked.command(),
            environment: self.plan.environment(),
        }
    }
}

/// A store which nobody else writes to until it is closed, and a campaign in it once that has begun.
#[pyclass(frozen, module = "lowtide._native")]
pub struct Parts {
    open: Mutex<Option<Open>>,
}

/// Tells a bad part, in whose place another may come, from a store that cannot take any.
fn raised(error: StoreError) -> Raised {
    if error.is_of_part() { Raised::BadPart(error.into()) } else { error.into() }
}

struct Open {
    store: Store,
    /// Whether it was made for this.
    new: bool,
    resume: bool,
    /// The campaign's number.
    campaign: Option<i64>,
}

impl Parts {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        what: impl FnOnce(&mut Open) -> Result<T, Raised> + Send,
    ) -> PyResult<T> {
        detached(py, || {
            let mut open = self.open.lock().expect("nobody panics while holding it");
            what(open.as_mut().expect("it is closed last"))
        })
    }
}

#[pymethods]
impl Parts {
    /// Opens a store, making it where there is none, or with `resume` one that is there; it is held from now on.
    #[new]
    fn new(py: Python<'_>, store: PathBuf, resume: bool) -> PyResult<Self> {
        detached(py, || {
            let new = !store.exists();
            let held = if resume { Store::open_to_resume(&store)? } else { Store::open(&store)? };
            let open = Open { store: held, new, resume, campaign: None };
            Ok(Parts { open: Mutex::new(Some(open)) })
        })
    }

    /// Begins a campaign with a part of it; with `resume`, goes on with the last one of the same plan. Its number, and the cells
    /// that are done.
    fn begin(&self, py: Python<'_>, part: PathBuf) -> PyResult<(i64, Vec<u32>)> {
        self.with(py, |open| {
            let (campaign, done) = if open.resume {
                open.store.resume_part(&part).map_err(raised)?
            } else {
                (open.store.adopt(&part).map_err(raised)?, Vec::new())
            };
            open.campaign = Some(campaign);
            Ok((campaign, done))
        })
    }

    /// Takes what was measured in a part, once it is checked; which cells came and are done.
    fn join(&self, py: Python<'_>, part: PathBuf) -> PyResult<Vec<u32>> {
        self.with(py, |open| open.store.join(&part, open.campaign.expect("it has begun")).map_err(raised))
    }

    /// Makes a part with these cells as they are here, at a path where there is nothing.
    fn extract(&self, py: Python<'_>, cells: Vec<u32>, part: PathBuf) -> PyResult<()> {
        self.with(py, |open| Ok(open.store.extract(open.campaign.expect("it has begun"), &cells, &part)?))
    }

    /// Closes the store, after which nothing else is asked; one that was made for this and has no campaign is removed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || match self.open.lock().expect("nobody panics while holding it").take() {
            Some(open) if open.new => Ok(open.store.close_or_remove_empty()?),
            _ => Ok(()),
        })
    }
}
