//! `lowtide plan`: what `run` would do.

use super::plan_of;
use crate::args::{Format, PlanArguments};
use crate::failure::Failure;
use crate::output;
use lowtide_lab::experiment::Length;
use lowtide_lab::plan::{Plan, PlanTarget};
use lowtide_lab::table;

/// Shows the cells, their data and their time.
pub fn run(arguments: &PlanArguments) -> Result<u8, Failure> {
    let plan = plan_of(&arguments.experiment)?;
    let text = match arguments.format {
        Format::Json => json(&plan),
        format => {
            let rows = plan.cells.iter().map(|cell| {
                let longest = match cell.settings.load.length {
                    Length::For(span) => span.to_string(),
                    Length::Requests(number) => format!("{number} requests"),
                    Length::UntilSteady { max, .. } => format!("until steady, at most {max}"),
                };
                vec![cell.index.to_string(), cell.label(), cell.data.to_string(), longest]
            });
            let head = ["cell", "factors", "data", "measured for"];
            let rows: Vec<Vec<String>> = rows.collect();
            match format {
                Format::Csv => table::csv(&head, &rows),
                Format::Markdown => table::markdown(&head, &rows),
                _ => format!("{}\n\n{}", table::plain(&head, &rows, output::columns()), summary(&plan)),
            }
        }
    };
    output::print(&text)?;
    Ok(0)
}

fn summary(plan: &Plan) -> String {
    let longest = plan.cells.iter().map(|cell| cell.settings.load.longest());
    let counted = longest.clone().filter(Option::is_none).count();
    let hours = longest.flatten().map(|span| span.as_secs_f64()).sum::<f64>() / 3600.0;
    let counted = match counted {
        0 => String::new(),
        cells => format!("\nbesides {cells} cells that end after so many requests"),
    };
    let written = plan.prepared_bytes().as_gib();
    let (time, parallel) = match plan.target {
        PlanTarget::Simulated(_) => ("virtual", format!("{} independent groups", plan.groups.len())),
        PlanTarget::Host(_) | PlanTarget::Block(_) => ("real", "one after the other".to_owned()),
    };
    let (target, cells) = (&plan.experiment.target, plan.cells.len());
    let device = device_lines(plan);
    let tracked = plan.experiment.steps.iter().any(|step| step.repeat.track.is_some());
    let rounds = if tracked { "\nrounds end as soon as they are steady" } else { "" };
    let ignored: String = plan.ignored().iter().map(|line| format!("\n{line}")).collect();
    format!(
        "target {target}: {cells} cells ({parallel})\nat most {:.2} h of {time} time{counted}{rounds}\n\
         filling writes {written:.1} GiB, and the load what the target takes{device}{ignored}",
        hours.max(0.0) + 0.0
    )
}

/// Which block device would be overwritten, and what speaks against it.
fn device_lines(plan: &Plan) -> String {
    let PlanTarget::Block(block) = &plan.target else { return String::new() };
    let identity = &block.disk.identity;
    if block.only_read {
        return format!("\n{} is only read: {identity}", block.disk.node.display());
    }
    let mut lines = format!(
        "\nall data on {} will be lost: {identity}\nto run it, add --destroy '{}'",
        block.disk.node.display(),
        identity.serial
    );
    match lowtide_host::block::examine(&block.disk) {
        Err(error) => lines.push_str(&format!("\nit cannot be examined: {error}")),
        Ok(objections) => {
            for objection in objections {
                let way = if objection.is_data() { " (unless --force-signature)" } else { "" };
                lines.push_str(&format!("\nrefused: {objection}{way}"));
            }
        }
    }
    lines
}

fn json(plan: &Plan) -> String {
    let cells: Vec<_> = plan
        .cells
        .iter()
        .map(|cell| {
            let load = &cell.settings.load;
            serde_json::json!({
                "cell": cell.index, "step": cell.step, "factors": cell.factors().into_iter().collect::<std::collections::BTreeMap<_, _>>(),
                "repetition": cell.repetition, "data_bytes": cell.data.get(),
                "longest_s": load.longest().map(|span| span.as_secs_f64()),
            })
        })
        .collect();
    let whole = serde_json::json!({
        "experiment": plan.experiment.name, "target": plan.experiment.target.to_string(), "seed": plan.seed.get(),
        "scale": plan.scale, "filled_bytes": plan.prepared_bytes().get(), "ignored": plan.ignored(), "cells": cells,
    });
    format!("{whole:#}\n")
}
