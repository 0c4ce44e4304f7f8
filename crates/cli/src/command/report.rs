//! `lowtide report`: the HTML report again, and its figures as files.

use super::stored_report;
use crate::args::ReportArguments;
use crate::failure::Failure;
use crate::output;

/// Writes the report of a campaign.
pub fn run(arguments: &ReportArguments) -> Result<u8, Failure> {
    let report = stored_report(&arguments.campaign)?;
    output::write_file(&arguments.output, report.html().as_bytes())?;
    output::say(format_args!("report: {}", arguments.output.display()));
    if let Some(directory) = &arguments.figures {
        std::fs::create_dir_all(directory).map_err(|error| Failure::writing(directory, &error))?;
        let figures = report.figures();
        for (name, svg) in &figures {
            output::write_file(&directory.join(name), svg.as_bytes())?;
        }
        output::say(format_args!("{} figures: {}", figures.len(), directory.display()));
    }
    Ok(0)
}
