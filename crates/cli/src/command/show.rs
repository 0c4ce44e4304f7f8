//! `lowtide store show`: lists the campaigns of a store, or prints the report of one.

use super::stored_report;
use crate::args::ShowArguments;
use crate::failure::Failure;
use crate::output;
use lowtide_lab::store::{Listed, Store};

/// Lists campaigns, or prints the report of a named one.
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
    let json = |campaign: &Listed| {
        serde_json::json!({
            "campaign": campaign.id, "experiment": campaign.name, "target": campaign.target,
            "started_at": campaign.started_at, "cells_done": campaign.done,
            "cells_predicted": campaign.spared, "cells": campaign.cells,
        })
    };
    output::print_table(&head, &rows, arguments.format, || listed.iter().map(json).collect())?;
    Ok(0)
}
