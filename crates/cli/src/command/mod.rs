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

use crate::args::{CampaignArguments, ExperimentArguments};
use crate::failure::Failure;
use lowtide_lab::ask;
use lowtide_lab::plan::Plan;
use lowtide_lab::record::Campaign;
use lowtide_lab::report::Report;
use lowtide_lab::store::Store;
use std::path::Path;

/// The plan of what the user asked for.
fn plan_of(arguments: &ExperimentArguments) -> Result<Plan, Failure> {
    arguments.asked().plan()
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

/// The report of the campaign the user means.
fn stored_report(arguments: &CampaignArguments) -> Result<Report, Failure> {
    let store = Store::open_existing(&arguments.store)?;
    let number = store.find(arguments.campaign.as_deref())?;
    ask::report(&store, number, &store.load(number)?)
}
