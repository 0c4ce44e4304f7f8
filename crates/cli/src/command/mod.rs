//! The verbs, a file each.

pub mod advise;
pub mod attach;
pub mod baseline;
pub mod bench;
pub mod catalogue;
pub mod compare;
pub mod completions;
pub mod control;
pub mod cost;
pub mod export;
pub mod fit;
pub mod import;
pub mod interleave;
pub mod lifetime;
pub mod logdisk;
pub mod merge;
pub mod plan;
pub mod powercut;
pub mod report;
pub mod run;
pub mod serve;
pub mod show;
pub mod validate;

use crate::args::{CampaignArguments, ExperimentArguments, RunArguments};
use crate::failure::{FAILED, Failure};
use crate::output::{self, REPORT};
use lowtide_files::output::{CommandFiles, Output};
use lowtide_lab::plan::Plan;
use lowtide_lab::store::Store;
use lowtide_record::Campaign;
use lowtide_report::Report;
use lowtide_studies::ask;
use std::path::Path;

/// The most damaged cells that are named one by one.
const MOST_NAMED: usize = 8;

/// The plan of what the user asked for.
fn plan_of(arguments: &ExperimentArguments) -> Result<Plan, Failure> {
    arguments.asked().plan()
}

/// The report of a run, checked with its store against each other and the files that it reads.
fn page_of_run(arguments: &RunArguments, mut files: CommandFiles) -> Result<Output, Failure> {
    lowtide_files::output::store(&arguments.store, &files)?;
    files.add_store(&arguments.store);
    Ok(Output::file(REPORT, &arguments.report, &files)?)
}

/// The campaign the user means.
fn campaign_of(arguments: &CampaignArguments) -> Result<Campaign, Failure> {
    let store = Store::open_existing(&arguments.store)?;
    let number = store.find(arguments.campaign.as_deref())?;
    Ok(store.load(number)?)
}

/// Where the campaign called `NUMBER`, `NAME`, `FILE:NUMBER` or `FILE` is, and what it is called there; the last one of
/// a file alone.
fn place_of<'a>(store: &'a Path, name: &'a str) -> (&'a Path, Option<&'a str>) {
    match name.rsplit_once(':') {
        Some((path, wanted)) if Path::new(path).exists() => (Path::new(path), Some(wanted)),
        // A campaign may be called like a file of the folder; a store has a `/` in its path, or ends in `.db`.
        _ if (name.contains('/') || name.ends_with(".db")) && Path::new(name).exists() => {
            (Path::new(name), None)
        }
        _ => (store, Some(name)),
    }
}

/// The campaign called so (see [`place_of`]), or by the baseline `@NAME`.
fn campaign_named(store: &Path, name: &str) -> Result<Campaign, Failure> {
    let (path, wanted) = place_of(store, name);
    let store = Store::open_existing(path)?;
    if let Some(name) = wanted.and_then(|wanted| wanted.strip_prefix('@')) {
        let baseline = store.baseline(name)?;
        return Ok(match &baseline.store {
            None => store.load(baseline.campaign)?,
            Some(path) => Store::open_existing(path)?.load(baseline.campaign)?,
        });
    }
    Ok(store.load(store.find(wanted)?)?)
}

/// The report of the campaign the user means, and the exit code for it.
fn stored_report(arguments: &CampaignArguments) -> Result<(Report, u8), Failure> {
    let store = Store::open_existing(&arguments.store)?;
    let number = store.find(arguments.campaign.as_deref())?;
    let campaign = store.load(number)?;
    Ok((ask::report(&store, number, &campaign)?, damaged([&campaign])))
}

/// Names the cells of campaigns that do not read back; the exit code for an answer without them.
fn damaged<'a>(campaigns: impl IntoIterator<Item = &'a Campaign>) -> u8 {
    let mut code = 0;
    for campaign in campaigns {
        let cells: Vec<_> = campaign.damaged().collect();
        for cell in cells.iter().take(MOST_NAMED) {
            let reason = cell.failure.as_deref().unwrap_or_default();
            output::say(format_args!(
                "damaged: {}: cell {} ({}): {reason}",
                campaign.name,
                cell.index,
                cell.label()
            ));
        }
        if cells.len() > MOST_NAMED {
            output::say(format_args!("damaged: {}: {} more cells", campaign.name, cells.len() - MOST_NAMED));
        }
        if !cells.is_empty() {
            let again = match campaign.is_imported() {
                true => "import them again",
                false => "the run that measured them measures them again with `--resume`",
            };
            output::say(format_args!("they are left out; {again}"));
            code = FAILED;
        }
    }
    code
}
