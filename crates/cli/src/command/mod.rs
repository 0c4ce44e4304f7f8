//! The verbs, one file each, and the look-up of campaigns.

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
use crate::failure::{FAILED, Failure, INTERRUPTED, NO_STEADY_STATE};
use crate::output::{self, REPORT};
use lowtide_files::output::{CommandFiles, Output};
use lowtide_lab::plan::Plan;
use lowtide_lab::store::Store;
use lowtide_record::analysis::Verdict;
use lowtide_record::{Campaign, Cell};
use lowtide_report::Report;
use lowtide_studies::ask;
use std::path::Path;

/// Maximum number of damaged cells that are named.
const MOST_NAMED: usize = 8;

/// The plan of the experiment in the arguments.
fn plan_of(arguments: &ExperimentArguments) -> Result<Plan, Failure> {
    arguments.asked().plan()
}

/// The report file of a run. It and the store are checked against each other and the files that the run reads.
fn page_of_run(arguments: &RunArguments, mut files: CommandFiles) -> Result<Output, Failure> {
    lowtide_files::output::store(&arguments.store, &files)?;
    files.add_store(&arguments.store);
    Ok(Output::file(REPORT, &arguments.report, &files)?)
}

/// The campaign in the arguments.
fn campaign_of(arguments: &CampaignArguments) -> Result<Campaign, Failure> {
    let store = Store::open_existing(&arguments.store)?;
    let number = store.find(arguments.campaign.as_deref())?;
    Ok(store.load(number)?)
}

/// The store and the name in it of a campaign `NUMBER`, `NAME`, `FILE:NUMBER` or `FILE`; `None` is the last campaign.
fn locate<'a>(store: &'a Path, name: &'a str) -> (&'a Path, Option<&'a str>) {
    match name.rsplit_once(':') {
        Some((path, wanted)) if Path::new(path).exists() => (Path::new(path), Some(wanted)),
        // A campaign may have the name of a file: only a path with a `/` or ending in `.db` is a store.
        _ if (name.contains('/') || name.ends_with(".db")) && Path::new(name).exists() => {
            (Path::new(name), None)
        }
        _ => (store, Some(name)),
    }
}

/// The campaign of a name (see [`locate`]), or of a baseline `@NAME`.
fn campaign_named(store: &Path, name: &str) -> Result<Campaign, Failure> {
    let (path, wanted) = locate(store, name);
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

/// The report of the campaign in the arguments, and its exit code.
fn stored_report(arguments: &CampaignArguments) -> Result<(Report, u8), Failure> {
    let store = Store::open_existing(&arguments.store)?;
    let number = store.find(arguments.campaign.as_deref())?;
    let campaign = store.load(number)?;
    Ok((ask::report(&store, number, &campaign)?, damaged([&campaign])))
}

/// The exit code of a run. `is_steady` is needed only with `--require-steady`.
fn exit_code(
    arguments: &RunArguments,
    interrupted: bool,
    failed: u32,
    is_steady: impl FnOnce() -> bool,
) -> u8 {
    if interrupted {
        output::say(format_args!("interrupted; resume with: {} --resume", arguments.command()));
        return INTERRUPTED;
    }
    match failed {
        0 if arguments.require_steady && !is_steady() => NO_STEADY_STATE,
        0 => 0,
        _ => FAILED,
    }
}

fn is_steady(cell: &Cell) -> bool {
    matches!(cell.verdict, Some(Verdict::Steady(_)))
}

/// Reports the damaged cells of campaigns; returns the exit code for results without them.
fn damaged<'a>(campaigns: impl IntoIterator<Item = &'a Campaign>) -> u8 {
    let mut code = 0;
    for campaign in campaigns {
        let name = &campaign.name;
        let cells: Vec<_> = campaign.damaged().collect();
        for cell in cells.iter().take(MOST_NAMED) {
            let reason = cell.failure.as_deref().unwrap_or_default();
            output::say(format_args!("damaged: {name}: cell {} ({}): {reason}", cell.index, cell.label()));
        }
        if cells.len() > MOST_NAMED {
            output::say(format_args!("damaged: {name}: {} more cells", cells.len() - MOST_NAMED));
        }
        if !cells.is_empty() {
            let remedy = match campaign.is_imported() {
                true => "to restore them, import them again",
                false => "to measure them again, repeat the run with `--resume`",
            };
            output::say(format_args!("damaged cells are omitted; {remedy}"));
            code = FAILED;
        }
    }
    code
}
