//! `lowtide store export`: the raw numbers of a campaign, or its load as a fio job.

use super::{campaign_of, damaged};
use crate::args::{ExportArguments, RawFormat};
use crate::failure::Failure;
use crate::output::{self, EXPORT};
use lowtide_core::Seed;
use lowtide_files::catalogue as files;
use lowtide_files::output::{CommandFiles, Output};
use lowtide_lab::experiment::{Experiment, Override};
use lowtide_lab::fio_job::fio_job;
use lowtide_lab::plan::Plan;
use lowtide_studies::ask::{self, Raw};
use std::io::{self, Write};

/// Exports a campaign. The same experiment, device and seed give the same bytes.
pub fn run(arguments: &ExportArguments) -> Result<u8, Failure> {
    match arguments.format {
        RawFormat::Csv => raw(arguments, Raw::Csv),
        RawFormat::Json => raw(arguments, Raw::Json),
        RawFormat::Transactions => raw(arguments, Raw::Transactions),
        RawFormat::Fio => job(arguments),
    }
}

/// Exports the numbers of a campaign.
fn raw(arguments: &ExportArguments, format: Raw) -> Result<u8, Failure> {
    if arguments.experiment.is_some() {
        return Err(Failure::usage(
            "an experiment has no numbers to export",
            "use `--format fio` for its load, or leave out `--experiment` to export a campaign of the store",
        ));
    }
    let file = output_file(arguments, &CommandFiles::default())?;
    let campaign = campaign_of(&arguments.campaign)?;
    let export = ask::export(&campaign, format)?;
    write(file.as_ref(), |out| export.write(out))?;
    Ok(damaged([&campaign]))
}

/// Exports the fio job of an experiment, or of the experiment of a campaign.
fn job(arguments: &ExportArguments) -> Result<u8, Failure> {
    let (plan, file) = match &arguments.experiment {
        Some(name) => {
            let plan = plan_of_load(arguments, name)?;
            let mut files = plan.files();
            files.add_named("the experiment", name);
            (plan, output_file(arguments, &files)?)
        }
        None => {
            // Checked before the store is read, and again when the input files of the plan are known.
            output_file(arguments, &CommandFiles::default())?;
            let plan = plan_of_campaign(arguments)?;
            let file = output_file(arguments, &plan.files())?;
            (plan, file)
        }
    };
    let job =
        fio_job(&plan).map_err(|error| Failure::usage(error, "export an experiment with a `[workload]`"))?;
    write(file.as_ref(), |out| out.write_all(job.as_bytes()))?;
    Ok(0)
}

/// The output file, if one is named.
fn output_file(arguments: &ExportArguments, files: &CommandFiles) -> Result<Option<Output>, Failure> {
    Ok(arguments.output.as_ref().map(|path| Output::file(EXPORT, path, files)).transpose()?)
}

/// Writes to the output file or, without one, to standard output.
fn write(
    file: Option<&Output>,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    match file {
        Some(file) => Ok(file.write_with(content)?),
        None => output::print_by(content),
    }
}

/// The plan of an experiment, for its load.
fn plan_of_load(arguments: &ExportArguments, name: &str) -> Result<Plan, Failure> {
    let file = files::experiment(name)?;
    let set: Vec<Override> = arguments.set.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    Ok(Plan::new(Experiment::parse(&file.path, &file.text, &set)?, Seed::new(1), 1)?)
}

/// The plan of the experiment of a campaign.
fn plan_of_campaign(arguments: &ExportArguments) -> Result<Plan, Failure> {
    let campaign = campaign_of(&arguments.campaign)?;
    if campaign.is_imported() {
        return Err(Failure::usage(
            format!("{} was imported: there is no experiment to make a job of", campaign.name),
            "the environment in its report has the options of its jobs",
        ));
    }
    let experiment = Experiment::parse("the experiment in the store", &campaign.experiment, &[])?;
    Ok(Plan::new(experiment, Seed::new(campaign.seed), campaign.scale)?)
}
