//! `lowtide plan`: shows the plan of `run` without running it.

use super::plan_of;
use crate::args::{Format, PlanArguments};
use crate::failure::Failure;
use crate::output;
use lowtide_core::Bytes;
use lowtide_host::block::Disk;
use lowtide_lab::experiment::{Filesystem, Length};
use lowtide_lab::plan::{Longest, Plan, PlanTarget};
use lowtide_lab::witness::share_of_life;

/// Prints the cells with their data and duration and, for a terminal, a summary.
pub fn run(arguments: &PlanArguments) -> Result<u8, Failure> {
    let plan = plan_of(&arguments.experiment)?;
    let rows = plan.cells.iter().map(|cell| {
        let longest = match cell.settings.load.length {
            Length::For(span) => span.to_string(),
            Length::Requests(number) => format!("{number} requests"),
            Length::UntilSteady { max, .. } => format!("until steady, at most {max}"),
        };
        vec![cell.index.to_string(), cell.label(), cell.data.to_string(), longest]
    });
    let head = ["cell", "factors", "data", "measured for"];
    output::print_table(&head, &rows.collect::<Vec<_>>(), arguments.format, || json(&plan))?;
    if arguments.format == Format::Table {
        output::print(&format!("\n{}", summary(&plan)))?;
    }
    Ok(0)
}

fn summary(plan: &Plan) -> String {
    let Longest { limited, unlimited } = plan.longest();
    let counted = match unlimited {
        0 => String::new(),
        cells => format!("\nplus {cells} cells that end after a number of requests"),
    };
    let writes = writes(plan);
    let (time, parallel) = match plan.target {
        PlanTarget::Simulated(_) => ("virtual", format!("{} independent groups", plan.groups.len())),
        PlanTarget::Host(_) | PlanTarget::Block(_) | PlanTarget::Attached(_) => {
            ("real", "one after another".to_owned())
        }
    };
    let (target, cells) = (&plan.experiment.target, plan.cells.len());
    let device = device_lines(plan);
    let tracked = plan.experiment.steps.iter().any(|step| step.repeat.track.is_some());
    let rounds = if tracked { "\nrounds end as soon as they are steady" } else { "" };
    let ignored: String = plan.ignored().iter().map(|line| format!("\n{line}")).collect();
    format!(
        "target {target}: {cells} cells ({parallel})\nat most {} of {time} time{counted}{rounds}\n\
         {writes}{device}{ignored}",
        span(limited.as_secs_f64())
    )
}

/// Write rate of a fast SATA drive, for estimates before the measurement.
const ASSUMED_PER_S: Bytes = Bytes::new(500_000_000);

/// The bytes written, the time to fill, and the share of a real drive's rated life.
fn writes(plan: &Plan) -> String {
    let filled = plan.prepared_bytes();
    if plan.target.is_simulated() {
        return format!("filling writes {:.1} GiB; the load writes at the target's rate", filled.as_gib());
    }
    if plan.experiment.load.work.is_transactions() {
        return format!(
            "loading and copying databases writes about {:.1} GiB, not counting the load",
            filled.as_gib()
        );
    }
    let load = plan.load_bytes(ASSUMED_PER_S);
    let mut text = format!(
        "filling writes {:.1} GiB, {} at 500 MB/s\nthe load writes at most {:.1} GiB at that rate",
        filled.as_gib(),
        span(filled.get() as f64 / ASSUMED_PER_S.get() as f64),
        load.as_gib()
    );
    let disk = match &plan.target {
        PlanTarget::Block(block) => Some(block.disk.clone()),
        PlanTarget::Host(spec) => Disk::beneath(spec.path()),
        PlanTarget::Simulated(_) | PlanTarget::Attached(_) => None,
    };
    if filled + load > Bytes::ZERO {
        text.push_str(&match disk.and_then(|disk| share_of_life(&disk, filled + load)) {
            Some((share, why)) => {
                format!("\nthat is at most {:.3} % of the drive's rated life ({why})", 100.0 * share)
            }
            None => "\nthe share of the drive's rated life is unknown".to_owned(),
        });
    }
    text
}

/// `45 s`, `12 min`, `14.0 h`.
fn span(seconds: f64) -> String {
    match seconds {
        _ if seconds < 120.0 => format!("{seconds:.0} s"),
        _ if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// The block device that would be overwritten, the steps on it, and objections to it.
fn device_lines(plan: &Plan) -> String {
    let PlanTarget::Block(block) = &plan.target else {
        return String::new();
    };
    let identity = &block.disk.identity;
    if block.only_read {
        return format!("\n{} is only read: {identity}", block.disk.node.display());
    }
    let mut lines = format!(
        "\nall data on {} will be lost: {identity}\nto run it, add --destroy '{}'",
        block.disk.node.display(),
        identity.serial
    );
    let mut add = |line: String| {
        if !lines.contains(&line) {
            lines.push_str(&line);
        }
    };
    for cell in &plan.cells {
        let preparation = &cell.settings.preparation;
        for purge in [cell.purge_before, preparation.purge] {
            for command in purge.commands(&block.disk) {
                add(format!("\nthe drive erases itself: {command}"));
            }
        }
        let layout = &preparation.layout;
        if layout.filesystem != Filesystem::None {
            let options = match &layout.mount_options {
                options if options.is_empty() => String::new(),
                options => format!(" with {options}"),
            };
            add(format!(
                "\n{} is made before each cell, mounted{options}, and wiped at the end",
                layout.filesystem
            ));
        }
        if let Some(scheduler) = &preparation.scheduler {
            add(format!("\nthe I/O scheduler is {scheduler} until the end"));
        }
    }
    match lowtide_host::block::examine(&block.disk) {
        Err(error) => lines.push_str(&format!("\nit cannot be examined: {error}")),
        Ok(objections) => {
            for objection in objections {
                let remedy = if objection.is_data() { " (unless --force-signature)" } else { "" };
                lines.push_str(&format!("\nrefused: {objection}{remedy}"));
            }
        }
    }
    lines
}

fn json(plan: &Plan) -> serde_json::Value {
    let cells: Vec<_> = plan
        .cells
        .iter()
        .map(|cell| {
            let load = &cell.settings.load;
            serde_json::json!({
                "cell": cell.index, "step": cell.step, "factors": cell.factors().into_iter().map(|it| (it.name, it.level)).collect::<std::collections::BTreeMap<_, _>>(),
                "repetition": cell.repetition, "data_bytes": cell.data.get(),
                "longest_s": load.longest().map(|span| span.as_secs_f64()),
            })
        })
        .collect();
    serde_json::json!({
        "experiment": plan.experiment.name, "target": plan.experiment.target.to_string(), "seed": plan.seed.get(),
        "scale": plan.scale, "filled_bytes": plan.prepared_bytes().get(), "ignored": plan.ignored(), "cells": cells,
    })
}
