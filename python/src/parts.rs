//! A campaign whose groups run on other machines. Its store stays locked and merges their parts as they arrive.
//!
//! `lowtide.distributed` chooses the machines and transfers the parts.

use crate::errors::{Raised, detached};
use crate::plan::Plan;
use lowtide_lab::store::{self, About, Store, StoreError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Mutex;

/// Creates a part of a plan without measurements, at an unused path.
#[pyfunction]
pub fn begin(py: Python<'_>, plan: &Plan, part: PathBuf) -> PyResult<()> {
    detached(py, || Ok(Store::open(&part)?.begin(&plan.plan, &plan.about()).map(drop)?))
}

/// Copies the completed cells of a part to an unused path. The original may be written to during the copy.
#[pyfunction]
pub fn snapshot(py: Python<'_>, part: PathBuf, copy: PathBuf) -> PyResult<()> {
    detached(py, || Ok(store::snapshot(&part, &copy)?))
}

impl Plan {
    /// The description of a campaign that starts now on this machine.
    pub fn about(&self) -> About {
        About {
            started_at: jiff::Timestamp::now().to_string(),
            command: self.asked.command(),
            environment: self.plan.environment(),
        }
    }
}

/// A store that is locked against other writers until it is closed. It holds one campaign once `begin` was called.
#[pyclass(frozen, module = "lowtide._native")]
pub struct Parts {
    open: Mutex<Option<Open>>,
}

/// Distinguishes a bad part, which can be replaced, from a failure of the store.
fn raised(error: StoreError) -> Raised {
    if error.is_of_part() { Raised::BadPart(error.into()) } else { error.into() }
}

struct Open {
    store: Store,
    /// `true` if the store was created here.
    new: bool,
    resume: bool,
    /// The campaign's number, once it has begun.
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
    /// Opens and locks a store. Without `resume`, a missing store is created; with `resume`, the store must exist.
    #[new]
    fn new(py: Python<'_>, store: PathBuf, resume: bool) -> PyResult<Self> {
        detached(py, || {
            let new = !store.exists();
            let held = if resume { Store::open_to_resume(&store)? } else { Store::open(&store)? };
            let open = Open { store: held, new, resume, campaign: None };
            Ok(Parts { open: Mutex::new(Some(open)) })
        })
    }

    /// Begins a campaign from a part. With `resume`, continues the newest campaign of the part's plan. Returns the
    /// campaign's number and the cells that are done.
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

    /// Checks a part and merges its measurements. Returns the merged cells that are done.
    fn join(&self, py: Python<'_>, part: PathBuf) -> PyResult<Vec<u32>> {
        self.with(py, |open| open.store.join(&part, open.campaign.expect("it has begun")).map_err(raised))
    }

    /// Creates a part with the current state of these cells, at an unused path.
    fn extract(&self, py: Python<'_>, cells: Vec<u32>, part: PathBuf) -> PyResult<()> {
        self.with(py, |open| Ok(open.store.extract(open.campaign.expect("it has begun"), &cells, &part)?))
    }

    /// Closes the store. Removes a store that was created here and has no campaign. No other method may be called
    /// afterwards.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || match self.open.lock().expect("nobody panics while holding it").take() {
            Some(open) if open.new => Ok(open.store.close_or_remove_empty()?),
            _ => Ok(()),
        })
    }
}
