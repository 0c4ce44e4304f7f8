//! `lowtide store baseline`: names of campaigns, which `compare` accepts as `@NAME`.

use crate::args::{BaselineArguments, BaselineVerb, Format};
use crate::failure::Failure;
use crate::output;
use lowtide_lab::store::{Baseline, Store, is_baseline_name};
use std::path::Path;

/// Sets, lists or removes baselines.
pub fn run(arguments: &BaselineArguments) -> Result<u8, Failure> {
    let store = &arguments.store;
    match &arguments.verb {
        BaselineVerb::Set { name, campaign, replace } => set(store, name, campaign, *replace)?,
        BaselineVerb::List { format } => list(store, *format)?,
        BaselineVerb::Remove { name } => {
            let name = name.strip_prefix('@').unwrap_or(name);
            let removed = Store::open_to_resume(store)?.remove_baseline(name)?;
            output::say(format_args!("@{name} is removed; {} is kept", location(&removed, store)));
        }
    }
    Ok(0)
}

fn set(path: &Path, name: &str, campaign: &str, replace: bool) -> Result<(), Failure> {
    let name = name.strip_prefix('@').unwrap_or(name);
    if !is_baseline_name(name) {
        let help = "letters, digits, `-`, `_` and `.`, such as `before-upgrade`";
        return Err(Failure::usage(format_args!("`{name}` is no name for a baseline"), help));
    }
    let (other, wanted) = super::locate(path, campaign);
    let number = Store::open_existing(other)?.find(wanted)?;
    // The path of another store is absolute, so that the baseline works in any directory.
    let absolute = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let baseline = Baseline {
        name: name.to_owned(),
        campaign: number,
        store: (absolute(other) != absolute(path)).then(|| absolute(other)),
        set_at: jiff::Timestamp::now().to_string(),
    };
    let before = Store::open_to_resume(path)?.set_baseline(&baseline, replace)?;
    let before = before.map(|before| format!(", no longer {}", location(&before, path))).unwrap_or_default();
    output::say(format_args!("@{name} is {}{before}", location(&baseline, path)));
    Ok(())
}

fn location(baseline: &Baseline, path: &Path) -> String {
    format!("campaign {} of {}", baseline.campaign, baseline.store.as_deref().unwrap_or(path).display())
}

fn list(path: &Path, format: Format) -> Result<(), Failure> {
    let store = Store::open_existing(path)?;
    let own = store.campaigns()?;
    let all = store.baselines()?;
    let experiment = |baseline: &Baseline| {
        let elsewhere = |path| Store::open_existing(path).and_then(|store| store.campaigns());
        let listed = match &baseline.store {
            None => own.clone(),
            Some(path) => elsewhere(path).unwrap_or_default(),
        };
        let campaign = listed.into_iter().find(|it| it.id == baseline.campaign);
        campaign.map_or_else(|| ["missing".to_owned(), String::new()], |it| [it.name, it.target])
    };
    let head = ["baseline", "campaign", "store", "experiment", "target", "set (UTC)"];
    let row = |it: &Baseline| {
        let [experiment, target] = experiment(it);
        let set_at = it.set_at.get(..16).unwrap_or(&it.set_at).replace('T', " ");
        let store = it.store.as_deref().unwrap_or(path).display().to_string();
        vec![format!("@{}", it.name), it.campaign.to_string(), store, experiment, target, set_at]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let json = |(it, row): (&Baseline, &Vec<String>)| {
        serde_json::json!({
            "baseline": it.name, "campaign": it.campaign, "store": row[2], "experiment": row[3],
            "target": row[4], "set_at": it.set_at,
        })
    };
    output::print_table(&head, &rows, format, || all.iter().zip(&rows).map(json).collect())
}
