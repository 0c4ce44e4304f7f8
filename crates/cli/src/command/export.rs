//! `lowtide export`: every raw number of a campaign, or its load as a job of fio.

use super::campaign_of;
use crate::args::{ExportArguments, RawFormat};
use crate::failure::Failure;
use crate::output;
use lowtide_core::Seed;
use lowtide_lab::ask::{self, Raw};
use lowtide_lab::catalogue as files;
use lowtide_lab::experiment::{Experiment, Override};
use lowtide_lab::fio_job::fio_job;
use lowtide_lab::plan::Plan;

/// Writes a campaign as CSV or JSON, the same bytes for the same experiment, device and seed; or a job of fio.
pub fn run(arguments: &ExportArguments) -> Result<u8, Failure> {
    if let (Some(_), RawFormat::Csv | RawFormat::Json | RawFormat::Transactions) =
        (&arguments.experiment, arguments.format)
    {
        return Err(Failure::usage(
            "an experiment has no numbers to export",
            "`--format fio` gives its load; without `--experiment`, a campaign of the store is exported",
        ));
    }
    let raw = |format| ask::export(&campaign_of(&arguments.campaign)?, format);
    let bytes = match arguments.format {
        RawFormat::Csv => raw(Raw::Csv)?,
        RawFormat::Json => raw(Raw::Json)?,
        RawFormat::Transactions => raw(Raw::Transactions)?,
        RawFormat::Fio => job(arguments)?.into_bytes(),
    };
    match &arguments.output {
        Some(path) => output::write_file(path, &bytes)?,
        None => output::print(&String::from_utf8(bytes).expect("exports are text"))?,
    }
    Ok(0)
}

/// The job of an experiment, or of the one that a campaign ran.
fn job(arguments: &ExportArguments) -> Result<String, Failure> {
    let plan = match &arguments.experiment {
        Some(name) => {
            let found = files::experiment(name)?;
            let set: Vec<Override> =
                arguments.set.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
            Plan::new(Experiment::parse(&found.path, &found.text, &set)?, Seed::new(1), 1)?
        }
        None => {
            let campaign = campaign_of(&arguments.campaign)?;
            if campaign.is_imported() {
                return Err(Failure::usage(
                    format!("{} was imported: there is no experiment to make a job of", campaign.name),
                    "the options of its jobs stand in the environment of the report",
                ));
            }
            let experiment = Experiment::parse("the experiment in the store", &campaign.experiment, &[])?;
            Plan::new(experiment, Seed::new(campaign.seed), campaign.scale)?
        }
    };
    fio_job(&plan).map_err(|error| Failure::usage(error, "export an experiment with a `[workload]`"))
}
