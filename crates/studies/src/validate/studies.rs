//! Runs the chosen experiments that have published numbers or claims, concurrently.
//!
//! Experiments share the cores: the groups of all of them are one pool of work. Each keeps its numbers in a store of
//! its own, in a directory that the caller chose. Not here: adding up (`summary`).

use super::{claims, comparisons};
use lowtide_core::{Bytes, Nanos, Seed};
use lowtide_files::catalogue;
use lowtide_lab::campaign::{self, CampaignError, Named, Progress, Running};
use lowtide_lab::experiment::{self, BadInput, Experiment, NotCompared, Unreadable};
use lowtide_lab::plan::Plan;
use lowtide_lab::store::About;
use lowtide_record::Campaign;
use lowtide_report::{Checked, Comparison};
use rayon::prelude::*;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// An experiment that was chosen, planned.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Its name.
    pub name: String,
    /// What it will do.
    pub plan: Plan,
}

/// The experiments that were chosen.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Those that run.
    pub taken: Vec<Chosen>,
    /// Those that need real servers, which were not requested.
    pub left_out: Vec<Chosen>,
}

/// An experiment that was run, and what it says of published numbers.
#[derive(Debug, Clone)]
pub struct Study {
    /// The records.
    pub campaign: Campaign,
    /// Published numbers beside the model's.
    pub comparisons: Vec<Comparison>,
    /// Sentences that were checked.
    pub claims: Vec<Checked>,
    /// Cells that failed.
    pub failed: u32,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

/// Why nothing was chosen.
#[derive(Debug, thiserror::Error)]
pub enum ChooseError {
    /// A name is neither a study nor an experiment with published numbers.
    #[error("nothing is compared with published numbers under the name `{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// What there is.
        accepted: Vec<String>,
    },
    /// The name needs real servers, which were not requested.
    #[error("`{name}` needs real database servers, in wall time{}", .longest.map_or(String::new(), |longest| format!(": at most {longest} of load")))]
    RealServers {
        /// The name.
        name: String,
        /// The longest total measuring time of its cells, where that is limited.
        longest: Option<Nanos>,
    },
    /// An experiment cannot be planned.
    #[error(transparent)]
    Experiment(#[from] BadInput),
}

/// Why validating ended early.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// A campaign could not be run.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// A campaign could not be read back.
    #[error(transparent)]
    Store(#[from] lowtide_lab::store::StoreError),
    /// An experiment of the catalogue does not parse.
    #[error("an experiment of the catalogue cannot be used: {0}")]
    Experiment(#[from] BadInput),
    /// An experiment does not read back from its store.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// Plans the experiments of the catalogue that compare something, or those of them that are named: by their own
/// name or by a study's, such as `e06`. Experiments on real servers take wall time and a machine of their
/// own, so without `real_servers` they are left out.
///
/// # Errors
/// [`ChooseError`] for an unknown name, for a name of which nothing is left without `real_servers`, or where an
/// experiment cannot be planned.
pub fn choose(names: &[String], seed: Seed, scale: u64, real_servers: bool) -> Result<Choice, ChooseError> {
    let all = compared()?;
    if let Some(name) = names.iter().find(|name| !all.iter().any(|(known, _)| known.contains(name))) {
        let mut accepted: Vec<String> = all.into_iter().flat_map(|(known, _)| known).collect();
        accepted.sort_unstable();
        accepted.dedup();
        return Err(ChooseError::Unknown { name: name.clone(), accepted });
    }
    let is_meant = |known: &[String]| names.is_empty() || names.iter().any(|name| known.contains(name));
    let mut meant = Vec::new();
    for (known, experiment) in all.into_iter().filter(|(known, _)| is_meant(known)) {
        let name = experiment.name.clone();
        meant.push((known, Chosen { name, plan: Plan::new(experiment, seed, scale)? }));
    }
    let (taken, left_out): (Vec<_>, Vec<_>) =
        meant.into_iter().partition(|(_, one)| real_servers || one.plan.target.is_simulated());
    for name in names {
        let named = |(known, _): &&(Vec<String>, Chosen)| known.contains(name);
        if let (None, Some((_, one))) = (taken.iter().find(named), left_out.iter().find(named)) {
            let longest = one.plan.longest().of_all();
            return Err(ChooseError::RealServers { name: name.clone(), longest });
        }
    }
    let plans = |all: Vec<(Vec<String>, Chosen)>| all.into_iter().map(|(_, one)| one).collect();
    Ok(Choice { taken: plans(taken), left_out: plans(left_out) })
}

/// The experiments of the catalogue that compare something, with the names that mean each.
fn compared() -> Result<Vec<(Vec<String>, Experiment)>, BadInput> {
    let mut all = Vec::new();
    for entry in catalogue::experiments() {
        let experiment = Experiment::parse(entry.path, entry.text, &[])?;
        let rows = experiment.published.iter().map(|published| published.published.study.clone());
        let claims = experiment.claims.iter().map(|claim| claim.study.to_owned());
        let mut known: Vec<String> = rows.chain(claims).collect();
        known.sort_unstable();
        known.dedup();
        if !known.is_empty() {
            known.push(experiment.name.clone());
            all.push((known, experiment));
        }
    }
    Ok(all)
}

/// What the chosen experiments leave out of their studies, and with `whole` what no experiment compares.
pub fn excused(chosen: &[Chosen], whole: bool) -> Vec<NotCompared> {
    let own = chosen.iter().flat_map(|chosen| chosen.plan.experiment.not_compared.iter().cloned());
    let list = whole.then(experiment::compared_by_none).into_iter().flatten();
    let mut all: Vec<NotCompared> = own.chain(list).collect();
    all.sort_by_key(|excuse| excuse.rows.first().map(|row| (row.study.clone(), row.line)));
    all
}

/// Runs the chosen experiments into stores in `directory`, and compares.
///
/// # Errors
/// [`ValidateError`] where a store fails; what was measured stays in the directory.
pub fn run(
    chosen: &[Chosen],
    directory: &Path,
    started_at: &str,
    interrupt: &Arc<AtomicBool>,
    progress: &dyn Progress,
) -> Result<Vec<Study>, ValidateError> {
    let named = Named::of_each(chosen.iter().map(|chosen| (&chosen.plan, &chosen.name)), progress);
    let begin = |(chosen, progress)| begin(chosen, directory, started_at, interrupt, progress);
    let running =
        chosen.iter().zip(&named).map(begin).collect::<Result<Vec<Running<'_>>, ValidateError>>()?;
    let groups = chosen.iter().zip(&running).flat_map(|(chosen, running)| {
        chosen.plan.groups.iter().map(move |group| (running, group, data(&chosen.plan, group)))
    });
    let mut groups: Vec<_> = groups.collect();
    // Those that take longest first, so that the cores end together. How much data there is tells nearly enough.
    groups.sort_by_key(|(_, _, data)| std::cmp::Reverse(*data));
    let (virtual_time, wall_time): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|(running, _, _)| running.is_simulated());
    campaign::on_all_cores(&virtual_time, |(running, group, _)| running.run_group(group));
    wall_time.iter().for_each(|(running, group, _)| running.run_group(group));
    drop((virtual_time, wall_time));
    let studies: Vec<Result<Study, ValidateError>> = running.into_par_iter().map(compare).collect();
    let mut studies = studies.into_iter().collect::<Result<Vec<Study>, ValidateError>>()?;
    studies.sort_by_key(|study| study.comparisons.first().map(|first| (first.study.clone(), first.line)));
    Ok(studies)
}

/// Bytes of data over the cells of a group.
fn data(plan: &Plan, group: &[usize]) -> Bytes {
    group.iter().map(|index| plan.cells[*index].data).sum()
}

fn begin<'a>(
    chosen: &'a Chosen,
    directory: &Path,
    started_at: &str,
    interrupt: &'a Arc<AtomicBool>,
    progress: &'a Named<'a>,
) -> Result<Running<'a>, ValidateError> {
    let Chosen { name, plan } = chosen;
    let scale = if plan.scale > 1 { format!(" --scale 1/{}", plan.scale) } else { String::new() };
    let about = About {
        started_at: started_at.to_owned(),
        command: format!("lowtide run {name} --seed {}{scale}", plan.seed.get()),
        environment: plan.environment(),
    };
    let path = directory.join(format!("{name}.db"));
    Ok(Running::begin(plan, &path, &about, false, interrupt, progress)?)
}

/// Waits for the last rows of a campaign, and puts the published numbers beside the model's.
fn compare(running: Running<'_>) -> Result<Study, ValidateError> {
    let (store, outcome) = running.finish()?;
    let campaign = store.load(outcome.campaign)?;
    let latencies = |cell, from_ns, to_ns| store.latency(outcome.campaign, cell, from_ns, to_ns).ok();
    let comparisons = comparisons(&campaign, &latencies)?;
    let claims = claims(&campaign, &latencies)?;
    Ok(Study { campaign, comparisons, claims, failed: outcome.failed, interrupted: outcome.interrupted })
}
