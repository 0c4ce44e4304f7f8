//! Runs the selected experiments that have published numbers or claims, concurrently.
//!
//! Experiments share the cores: the groups of all experiments form one work queue. Each experiment has its own store,
//! in a directory that the caller provides. Totals are in `summary`.

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

/// A selected experiment with its plan.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Its name.
    pub name: String,
    /// The plan of the experiment.
    pub plan: Plan,
}

/// The result of a selection.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Experiments to run.
    pub taken: Vec<Chosen>,
    /// Experiments that need real servers and are omitted without `real_servers`.
    pub left_out: Vec<Chosen>,
}

/// A completed experiment with its comparisons.
#[derive(Debug, Clone)]
pub struct Study {
    /// The campaign.
    pub campaign: Campaign,
    /// Published numbers, each with the model's number.
    pub comparisons: Vec<Comparison>,
    /// Checked claims.
    pub claims: Vec<Checked>,
    /// Number of failed cells.
    pub failed: u32,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

/// An error in the selection.
#[derive(Debug, thiserror::Error)]
pub enum ChooseError {
    /// A name is neither a study nor an experiment with published numbers.
    #[error("nothing is compared with published numbers under the name `{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// All accepted names.
        accepted: Vec<String>,
    },
    /// The named experiments need real servers, which were not requested.
    #[error("`{name}` needs real database servers, in wall time{}", .longest.map_or(String::new(), |longest| format!(": at most {longest} of load")))]
    RealServers {
        /// The name.
        name: String,
        /// The maximum measuring time in total, if it is limited.
        longest: Option<Nanos>,
    },
    /// An experiment cannot be planned.
    #[error(transparent)]
    Experiment(#[from] BadInput),
}

/// An error that ends a validation.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// A campaign cannot be run.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// A store cannot be read.
    #[error(transparent)]
    Store(#[from] lowtide_lab::store::StoreError),
    /// An experiment of the catalogue is invalid.
    #[error("an experiment of the catalogue cannot be used: {0}")]
    Experiment(#[from] BadInput),
    /// An experiment in a store cannot be parsed.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// Plans the experiments of the catalogue that have comparisons.
///
/// A name selects one experiment, or all experiments of a study such as `e06`. An empty `names` selects all of them.
/// Experiments on real servers take wall time and need a machine of their own. They are omitted unless `real_servers`
/// is set.
///
/// # Errors
/// [`ChooseError`] if a name is unknown, if all experiments of a name need real servers that were not requested, or
/// if an experiment cannot be planned.
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

/// The experiments of the catalogue that have comparisons, each with all names that select it.
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

/// Published numbers that the selected experiments exclude. If `whole`, also numbers that no experiment compares.
pub fn excused(chosen: &[Chosen], whole: bool) -> Vec<NotCompared> {
    let own = chosen.iter().flat_map(|chosen| chosen.plan.experiment.not_compared.iter().cloned());
    let list = whole.then(experiment::compared_by_none).into_iter().flatten();
    let mut all: Vec<NotCompared> = own.chain(list).collect();
    all.sort_by_key(|excuse| excuse.rows.first().map(|row| (row.study.clone(), row.line)));
    all
}

/// Runs the selected experiments into stores in `directory`, and compares the results.
///
/// # Errors
/// [`ValidateError`] if a store or a campaign fails. Stores that were written stay in the directory.
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
    // The longest groups start first, so that all cores finish at about the same time. Data size estimates duration.
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

/// Total bytes of data in the cells of a group.
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

/// Completes a campaign, and compares its results with published numbers.
fn compare(running: Running<'_>) -> Result<Study, ValidateError> {
    let (store, outcome) = running.finish()?;
    let campaign = store.load(outcome.campaign)?;
    let latencies = |cell, from_ns, to_ns| store.latency(outcome.campaign, cell, from_ns, to_ns).ok();
    let comparisons = comparisons(&campaign, &latencies)?;
    let claims = claims(&campaign, &latencies)?;
    Ok(Study { campaign, comparisons, claims, failed: outcome.failed, interrupted: outcome.interrupted })
}
