//! `lowtide report`: rewrites the HTML report of a campaign, and writes its figures as files.

use super::stored_report;
use crate::args::ReportArguments;
use crate::failure::Failure;
use crate::output::{self, FIGURES, REPORT_AGAIN};
use lowtide_files::output::{CommandFiles, Output, OutputFolder};

/// Writes the report and the figures.
pub fn run(arguments: &ReportArguments) -> Result<u8, Failure> {
    let page = Output::file(REPORT_AGAIN, &arguments.output, &CommandFiles::default())?;
    let others = CommandFiles::default().and("the report", &arguments.output);
    let directory = arguments.figures.as_deref();
    let folder = directory.map(|path| OutputFolder::new(FIGURES, path, &others)).transpose()?;
    let (report, code) = stored_report(&arguments.campaign)?;
    let mut figures = Vec::new();
    if let Some(folder) = &folder {
        folder.make()?;
        // All files are checked before the first is written.
        for (name, svg) in report.figures() {
            figures.push((folder.file(&name)?, svg));
        }
    }
    page.write(report.html().as_bytes())?;
    output::say(format_args!("report: {}", arguments.output.display()));
    if let Some(folder) = &folder {
        for (file, svg) in &figures {
            file.write(svg.as_bytes())?;
        }
        output::say(format_args!("{} figures: {}", figures.len(), folder.path().display()));
    }
    Ok(code)
}
