//! `lowtide store show`: the campaigns of a store, or the answer of one.

use super::stored_report;
use crate::args::{Format, ShowArguments};
use crate::failure::Failure;
use crate::output;
use lowtide_files::table;
use lowtide_lab::store::Store;

/// Lists campaigns, or prints the report of the one that is named.
pub fn run(arguments: &ShowArguments) -> Result<u8, Failure> {
    if arguments.campaign.campaign.is_some() {
        let (report, code) = stored_report(&arguments.campaign)?;
        output::print_report(&report, arguments.format)?;
        return Ok(code);
    }
    let listed = Store::open_existing(&arguments.campaign.store)?.campaigns()?;
    let head = ["campaign", "experiment", "target", "begun (UTC)", "cells done"];
    let rows: Vec<Vec<String>> = listed
        .iter()
        .map(|campaign| {
            let begun = campaign.started_at.get(..16).unwrap_or(&campaign.started_at).replace('T', " ");
            let mut cells = format!("{} of {}", campaign.done, campaign.cells);
            if campaign.spared > 0 {
                cells += &format!(", {} predicted", campaign.spared);
            }
            vec![campaign.id.to_string(), campaign.name.clone(), campaign.target.clone(), begun, cells]
        })
        .collect();
    output::print(&match arguments.format {
        Format::Table => table::plain(&head, &rows, output::columns()),
        Format::Csv => table::csv(&head, &rows),
        Format::Markdown => table::markdown(&head, &rows),
        Format::Json => {
            let all: Vec<_> = listed
                .iter()
                .map(|campaign| {
                    serde_json::json!({
                        "campaign": campaign.id, "experiment": campaign.name, "target": campaign.target,
                        "started_at": campaign.started_at, "cells_done": campaign.done,
                        "cells_predicted": campaign.spared, "cells": campaign.cells,
                    })
                })
                .collect();
            format!("{:#}\n", serde_json::Value::Array(all))
        }
    })?;
    Ok(0)
}
