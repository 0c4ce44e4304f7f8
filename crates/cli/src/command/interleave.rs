//! `lowtide run --interleave`: runs several experiments with interleaved cells into one store, and compares them.

use crate::args::RunArguments;
use crate::failure::Failure;
use crate::show::Show;
use crate::{interrupt, output};
use lowtide_files::output::CommandFiles;
use lowtide_lab::campaign::{self, Progress as _};
use lowtide_lab::plan::Plan;
use lowtide_lab::store::About;
use lowtide_record::Campaign;
use lowtide_report::Report;
use lowtide_report::compare::Question;
use lowtide_studies::ask::{Asked, Source};
use lowtide_studies::interleave::Turns;

/// Runs the experiments, and compares the results of all other experiments with the first.
pub fn run(arguments: &RunArguments) -> Result<u8, Failure> {
    let names = || std::iter::once(&arguments.experiment.experiment).chain(&arguments.others);
    let plan = |name: &String| {
        let mut plan =
            Asked { source: Source::Named(name.clone()), ..arguments.experiment.asked() }.plan()?;
        plan.allow(arguments.destroy.clone(), arguments.force_signature);
        Ok(plan)
    };
    let turns = Turns::of(names().map(plan).collect::<Result<Vec<Plan>, Failure>>()?)?;
    if let Some(jobs) = arguments.jobs {
        let groups = turns.plans().iter().map(|plan| plan.groups.len()).sum();
        campaign::set_jobs(usize::from(jobs).min(groups));
    }
    let mut files = CommandFiles::default();
    for (plan, name) in turns.plans().iter().zip(names()) {
        files.extend(plan.files());
        files.add_named("the experiment", name);
    }
    let page = super::page_of_run(arguments, files)?;
    let about = About {
        started_at: jiff::Timestamp::now().to_string(),
        command: arguments.command(),
        environment: Vec::new(),
    };
    let flag = interrupt::flag();
    let title = turns.plans().iter().map(|plan| plan.experiment.name.as_str()).collect::<Vec<_>>().join(", ");
    let show = Show::begin(arguments, &title, turns.cells(), &flag)?;
    if turns.plans().iter().any(|plan| !plan.target.is_simulated()) {
        show.note(
            "interleaved: each cell's target is prepared anew, because other experiments use it in between",
        );
    }
    let outcome = turns.run(&arguments.store, &about, arguments.resume, &flag, &show);
    drop(show);
    let (store, outcomes) = outcome?;
    let load = |outcome: &campaign::Outcome| store.load(outcome.campaign);
    let campaigns: Vec<Campaign> = outcomes.iter().map(load).collect::<Result<_, _>>()?;
    let (report, _) = Report::compare(&campaigns.iter().collect::<Vec<_>>(), &Question::default());
    output::print_report(&report, arguments.format)?;
    page.write(report.html().as_bytes())?;
    let numbers: Vec<String> = outcomes.iter().map(|outcome| outcome.campaign.to_string()).collect();
    output::say(format_args!(
        "report: {}   store: {} (campaigns {})",
        arguments.report.display(),
        arguments.store.display(),
        numbers.join(" and ")
    ));
    let interrupted = outcomes.iter().any(|outcome| outcome.interrupted);
    let failed = outcomes.iter().map(|outcome| outcome.failed).sum();
    let steady = || campaigns.iter().flat_map(|campaign| &campaign.cells).all(super::is_steady);
    Ok(super::exit_code(arguments, interrupted, failed, steady))
}
