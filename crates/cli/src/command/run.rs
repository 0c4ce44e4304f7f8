//! `lowtide run`: plans, measures, stores and reports an experiment.

use super::{exit_code, is_steady, plan_of};
use crate::args::RunArguments;
use crate::failure::Failure;
use crate::show::Show;
use crate::{interrupt, output};
use lowtide_lab::campaign;
use lowtide_lab::store::About;
use lowtide_live::attached;
use lowtide_record::Status;
use lowtide_report::Report;
use lowtide_studies::{adaptive, ask};

/// Runs an experiment, and prints its report.
pub fn run(arguments: &RunArguments) -> Result<u8, Failure> {
    if arguments.interleave {
        return super::interleave::run(arguments);
    }
    attached::set_server(super::attach::server_of);
    let mut plan = plan_of(&arguments.experiment)?;
    plan.allow(arguments.destroy.clone(), arguments.force_signature);
    let adaptive = match arguments.adaptive {
        true => Some(adaptive::prepare(&mut plan, arguments.precision.0)?),
        false => None,
    };
    if let Some(part) = arguments.part {
        plan.keep_part(part.number, part.of);
    }
    if let Some(jobs) = arguments.jobs {
        campaign::set_jobs(usize::from(jobs).min(plan.groups.len()));
    }
    let page = super::page_of_run(arguments, arguments.experiment.asked().files(&plan))?;
    let about = About {
        started_at: jiff::Timestamp::now().to_string(),
        command: match arguments.adaptive {
            true => arguments.experiment.asked().command() + &arguments.adaptively(),
            false => arguments.experiment.asked().command(),
        },
        environment: plan.environment(),
    };
    let flag = interrupt::flag();
    let title = format!("{}, {}", plan.experiment.name, plan.experiment.target);
    let show = Show::begin(arguments, &title, plan.cells.len(), &flag)?;
    let (store, resume) = (&arguments.store, arguments.resume);
    let outcome = match &adaptive {
        Some(adaptive) => adaptive::run((&plan, adaptive), store, &about, resume, &flag, &show),
        None => campaign::run(&plan, store, &about, resume, &flag, &show),
    };
    drop(show);
    let (store, outcome) = outcome?;
    let campaign = store.load(outcome.campaign)?;
    let report = ask::report(&store, outcome.campaign, &campaign)?;
    output::print_report(&report, arguments.format)?;
    page.write(report.html().as_bytes())?;
    let store = arguments.store.display();
    output::say(format_args!(
        "report: {}   store: {store} (campaign {})",
        arguments.report.display(),
        outcome.campaign
    ));
    let all = || campaign.cells.iter().all(|cell| cell.status == Status::Spared || is_steady(cell));
    let steady = || Report::rounds_are_steady(&campaign).unwrap_or_else(all);
    Ok(exit_code(arguments, outcome.interrupted, outcome.failed, steady))
}
