//! Runs a plan in separate threads, while the calling thread delivers progress events and checks for signals.
//!
//! ```text
//!   calling thread: every 100 ms ─► progress(event), signals? ─► interrupt flag ─┐
//!   campaign thread ─► groups on as many threads as asked for ─► store ◄─────────┘ ends in good order
//! ```
//!
//! Plans are in `plan`. Campaigns are read back in `campaign`.

use crate::errors::{Raised, bad_input};
use crate::plan::Plan;
use crate::progress::{Event, Heard};
use lowtide_files::output;
use lowtide_lab::campaign::{self, CampaignError};
use lowtide_live::{Offer, attached};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Interval at which the calling thread checks for signals and delivers progress events.
const LOOK: Duration = Duration::from_millis(100);

/// The outcome of a campaign.
#[pyclass(frozen, get_all, module = "lowtide._native")]
pub struct Outcome {
    /// The campaign's number in the store.
    campaign: i64,
    /// Number of failed cells.
    failed: u32,
    /// `True` if the campaign was interrupted.
    interrupted: bool,
    /// Messages to the user.
    notes: Vec<String>,
}

/// Runs all groups of a plan, or the given groups, and stores the results. `progress` is called with a dict for each
/// event, and `look` ten times a second. An exception from either callable, or Ctrl-C, stops the campaign cleanly and
/// is then raised.
#[pyfunction]
#[pyo3(signature = (plan, store, *, groups=None, resume=false, jobs=None, destroy=None, force_signature=false, progress=None,
                    look=None))]
#[allow(clippy::too_many_arguments, reason = "they are keywords")]
pub fn run<'py>(
    py: Python<'py>,
    plan: &Plan,
    store: PathBuf,
    groups: Option<Vec<usize>>,
    resume: bool,
    jobs: Option<usize>,
    destroy: Option<String>,
    force_signature: bool,
    progress: Option<Bound<'py, PyAny>>,
    look: Option<Bound<'py, PyAny>>,
) -> PyResult<Outcome> {
    let mut planned = plan.plan.clone();
    let all = planned.groups.len();
    if let Some(wrong) = groups.iter().flatten().find(|group| **group >= all) {
        let error =
            bad_input(format!("the plan has no group {wrong}"), format!("groups from 0 to {}", all - 1));
        return Err(error.into_exception(py));
    }
    if plan.attached() {
        attached::set_server(server_of);
        program().map_err(|text| bad_input(NEEDED, text).into_exception(py))?;
    }
    // Check the store's path against the plan's files here. The campaign checks all other files.
    output::store(&store, &plan.asked.files(&planned))
        .map_err(|error| Raised::from(error).into_exception(py))?;
    planned.allow(destroy, force_signature);
    if let Some(groups) = &groups {
        planned.keep_groups(groups);
    }
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = jobs.unwrap_or_else(cores).clamp(1, planned.groups.len().max(1));
    let about = plan.about();
    let interrupt = Arc::new(AtomicBool::new(false));
    let heard = Arc::new(Heard::new(progress.is_some()));
    let (sender, ended) = channel();
    let ended: Ended = Mutex::new(ended);
    let worker = {
        let (interrupt, heard) = (Arc::clone(&interrupt), Arc::clone(&heard));
        let whole = move || {
            let run = || campaign::run(&planned, &store, &about, resume, &interrupt, &*heard);
            // The store is closed before the outcome is sent, so that the caller can open it again.
            let outcome = campaign::with_jobs(jobs, || run().map(|(_, outcome)| outcome));
            // Sending fails only if the receiver is gone because the process ends.
            let _ = sender.send(outcome);
        };
        std::thread::Builder::new().name("lowtide".to_owned()).spawn(whole)?
    };
    let mut teller = Teller { progress, look, notes: Vec::new(), raised: None };
    let result: Result<_, RecvTimeoutError> = loop {
        match py.detach(|| receive(&ended)) {
            Err(RecvTimeoutError::Timeout) => {
                if !teller.tell(py, heard.take()) {
                    interrupt.store(true, Ordering::Relaxed);
                }
            }
            over => break over,
        }
    };
    let joined = py.detach(|| worker.join());
    teller.tell(py, heard.take());
    let raised = |error: Raised| error.into_exception(py);
    let outcome: Result<_, CampaignError> = match (result, joined) {
        (Ok(outcome), _) => outcome,
        (Err(_), Err(payload)) => return Err(raised(Raised::panic(&*payload))),
        (Err(_), Ok(())) => unreachable!("a thread that ends well has sent what came of it"),
    };
    if let Some(error) = teller.raised {
        noted(py, &error, heard.campaign());
        return Err(error);
    }
    let outcome = outcome.map_err(|error| raised(error.into()))?;
    Ok(Outcome {
        campaign: outcome.campaign,
        failed: outcome.failed,
        interrupted: outcome.interrupted,
        notes: teller.notes,
    })
}

type Ended = Mutex<Receiver<Result<campaign::Outcome, CampaignError>>>;

/// Waits for the outcome for at most [`LOOK`].
fn receive(ended: &Ended) -> Result<Result<campaign::Outcome, CampaignError>, RecvTimeoutError> {
    ended.lock().expect("nobody else waits").recv_timeout(LOOK)
}

/// Delivers the events of a campaign.
struct Teller<'py> {
    progress: Option<Bound<'py, PyAny>>,
    /// Another callable that can stop the campaign by raising an exception.
    look: Option<Bound<'py, PyAny>>,
    notes: Vec<String>,
    /// The exception that stopped the campaign, from a signal or a callable.
    raised: Option<PyErr>,
}

impl<'py> Teller<'py> {
    /// Delivers events and checks for signals. Returns `false` if the campaign must stop.
    fn tell(&mut self, py: Python<'py>, events: Vec<Event>) -> bool {
        for event in events {
            if let Event::Note { text } = &event {
                self.notes.push(text.clone());
            }
            if let (Some(progress), None) = (&self.progress, &self.raised) {
                let told = event.into_dict(py).and_then(|event| progress.call1((event,)));
                self.raised = told.err();
            }
        }
        if let (Some(look), None) = (&self.look, &self.raised) {
            self.raised = look.call0().err();
        }
        // A second signal does not shorten the clean stop.
        if let (Err(error), None) = (py.check_signals(), &self.raised) {
            self.raised = Some(error);
        }
        self.raised.is_none()
    }
}

/// Adds a note on resuming the campaign to an exception, if Python supports notes (3.11 and later).
fn noted(py: Python<'_>, error: &PyErr, campaign: Option<i64>) {
    if let Some(number) = campaign {
        let note = format!(
            "campaign {number} was ended in good order: what was measured is in its store, and `resume=True` goes on"
        );
        let _ = error.value(py).call_method1("add_note", (note,));
    }
}

const NEEDED: &str =
    "this experiment attaches a drive, which the program `lowtide` serves, and that is not in PATH";

/// Finds the program `lowtide` in `PATH`.
fn program() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("lowtide")).find(|file| file.is_file());
    found.ok_or_else(|| "`cargo build --release` makes it: put `target/release` into PATH".to_owned())
}

fn server_of(offer: &Offer) -> std::io::Result<Command> {
    Ok(attached::server_command(&program().map_err(std::io::Error::other)?, offer))
}
