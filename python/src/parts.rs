//! A campaign whose groups are run elsewhere: a store that takes their parts as they come.
//!
//! Leaves out how parts travel and where they are run; `lowtide.distributed` does that.

use crate::errors::{Raised, detached};
use crate::plan::Plan;
use lowtide_lab::store::{self, About, Store};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Makes a part of a plan in which nothing is measured yet, at a path where there is nothing.
#[pyfunction]
pub fn begin(py: Python<'_>, plan: &Plan, part: PathBuf) -> PyResult<()> {
    detached(py, || Ok(Store::open(&part)?.begin(&plan.plan, &plan.about()).map(drop)?))
}

/// Refuses a store that could not be written to, before anybody measures for it; leaves none where there was none.
#[pyfunction]
pub fn check_store(py: Python<'_>, store: PathBuf) -> PyResult<()> {
    detached(py, || {
        let new = !store.exists();
        let open = Store::open(&store)?;
        if new && open.campaigns()?.is_empty() {
            // While it is held: nobody else has begun anything in it.
            let _ = std::fs::remove_file(&store);
        }
        Ok(())
    })
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

/// A campaign in a store, which nobody else writes to until it is closed.
#[pyclass(frozen, module = "lowtide._native")]
pub struct Parts {
    store: Mutex<Option<Store>>,
    /// Its number.
    #[pyo3(get)]
    campaign: i64,
    /// The cells that were done when it began.
    #[pyo3(get)]
    done: Vec<u32>,
}

impl Parts {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        what: impl FnOnce(&mut Store) -> Result<T, Raised> + Send,
    ) -> PyResult<T> {
        detached(py, || {
            let mut store = self.store.lock().expect("nobody panics while holding it");
            what(store.as_mut().expect("it is closed last"))
        })
    }
}

#[pymethods]
impl Parts {
    /// Begins a campaign with a part of it; with `resume`, goes on with the last one of the same plan.
    #[new]
    fn new(py: Python<'_>, store: PathBuf, part: PathBuf, resume: bool) -> PyResult<Self> {
        detached(py, || {
            let (store, (campaign, done)) = opened(&store, &part, resume)?;
            Ok(Parts { store: Mutex::new(Some(store)), campaign, done })
        })
    }

    /// Takes what was measured in a part; which cells came and are done.
    fn join(&self, py: Python<'_>, part: PathBuf) -> PyResult<Vec<u32>> {
        self.with(py, |store| Ok(store.join(&part, self.campaign)?))
    }

    /// Makes a part with these cells as they are here, at a path where there is nothing.
    fn extract(&self, py: Python<'_>, cells: Vec<u32>, part: PathBuf) -> PyResult<()> {
        self.with(py, |store| Ok(store.extract(self.campaign, &cells, &part)?))
    }

    /// Closes the store, after which nothing else is asked.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.store.lock().expect("nobody panics while holding it").take()));
    }
}

/// The store, the campaign's number in it, and which cells are done.
fn opened(path: &Path, part: &Path, resume: bool) -> Result<(Store, (i64, Vec<u32>)), Raised> {
    if resume {
        let mut store = Store::open_to_resume(path)?;
        let found = store.goes_on_with(part)?;
        return Ok((store, found));
    }
    let mut store = Store::open(path)?;
    let campaign = store.adopt(part)?;
    Ok((store, (campaign, Vec::new())))
}
