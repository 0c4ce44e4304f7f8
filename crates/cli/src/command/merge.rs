//! `lowtide store merge`: stores of many machines, or of parts of a campaign, as one.

use crate::args::MergeArguments;
use crate::failure::Failure;
use crate::output;
use lowtide_files::table;
use lowtide_lab::store::{self, Merged};

/// Takes all campaigns of all stores, or none, and says what became of them.
pub fn run(arguments: &MergeArguments) -> Result<u8, Failure> {
    let (store, merged) = store::merge(&arguments.stores, &arguments.output)?;
    let listed = store.campaigns()?;
    let row = |it: &Merged| {
        let whole = listed.iter().find(|campaign| campaign.id == it.campaign);
        let of = whole.map(|it| format!("{} of {}", it.done, it.cells)).unwrap_or_default();
        let came = if it.new { "new".to_owned() } else { format!("+{} cells", it.cells) };
        vec![format!("{}:{}", it.from.display(), it.was), it.name.clone(), it.campaign.to_string(), came, of]
    };
    let rows: Vec<_> = merged.iter().map(row).collect();
    let head = ["from", "experiment", "campaign", "came", "cells done in the end"];
    output::print(&table::plain(&head, &rows, output::columns()))?;
    Ok(0)
}
