//! `lowtide store merge`: merges stores of several machines, or of parts of a campaign.

use crate::args::MergeArguments;
use crate::failure::Failure;
use crate::output;
use lowtide_files::table;
use lowtide_lab::store::{self, Merged};

/// Merges all campaigns of all stores, or none, and prints the result for each.
pub fn run(arguments: &MergeArguments) -> Result<u8, Failure> {
    let (store, merged) = store::merge(&arguments.stores, &arguments.output)?;
    let listed = store.campaigns()?;
    let row = |it: &Merged| {
        let into = listed.iter().find(|campaign| campaign.id == it.campaign);
        let done = into.map(|it| format!("{} of {}", it.done, it.cells)).unwrap_or_default();
        let added = if it.new { "new".to_owned() } else { format!("+{} cells", it.cells) };
        let from = format!("{}:{}", it.from.display(), it.was);
        vec![from, it.name.clone(), it.campaign.to_string(), added, done]
    };
    let rows: Vec<_> = merged.iter().map(row).collect();
    let head = ["from", "experiment", "campaign", "added", "cells done"];
    output::print(&table::plain(&head, &rows, output::columns()))?;
    Ok(0)
}
