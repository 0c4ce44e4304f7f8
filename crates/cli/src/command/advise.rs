//! `lowtide advise`: chooses a device, its fill and the memory for a load. `lowtide_studies::advise` has the trials
//! and the choice.

use crate::args::{AdviseArguments, Format};
use crate::failure::{FAILED, Failure};
use crate::output::EXPERIMENT;
use crate::{interrupt, output};
use lowtide_files::output::{CommandFiles, Output};
use lowtide_studies::advise::{Advice, advise, candidates, report};

/// Prints the advice; exit code 1 if no device meets all requirements.
pub fn run(arguments: &AdviseArguments) -> Result<u8, Failure> {
    let question = arguments
        .question()
        .map_err(|message| Failure::usage(message, "`lowtide advise --help` has examples"))?;
    let mut files = CommandFiles::default();
    let candidates = candidates(&question)?;
    candidates.iter().for_each(|one| files.add_device(&one.target, &one.device.files));
    let file = arguments.output.as_deref().map(|path| Output::file(EXPERIMENT, path, &files)).transpose()?;
    let advice = advise(&question, candidates, &interrupt::flag(), &|text| output::say(text))?;
    let report = report(&advice);
    match arguments.format {
        Format::Csv => output::print(&report.table_csv("candidates").expect("the report has this table"))?,
        format => output::print_report(&report, format)?,
    }
    match (&file, advice.choice()) {
        (Some(file), Some(_)) => write(file, &advice)?,
        (Some(file), None) => {
            output::say(format_args!("no device is chosen, so {} is not written", file.path().display()))
        }
        (None, _) => {}
    }
    Ok(if advice.choice().is_some() { 0 } else { FAILED })
}

/// Writes the experiment that checks the choice, with the command that runs it.
fn write(file: &Output, advice: &Advice) -> Result<(), Failure> {
    let (row, trial) = advice.choice().expect("a device is chosen");
    let scale = if trial.scale > 1 { format!(" --scale 1/{}", trial.scale) } else { String::new() };
    let path = file.path().display().to_string();
    let path = if path.contains('/') { path } else { format!("./{path}") };
    let command = format!("lowtide run {path}{scale} --seed {}", trial.seed);
    let text = format!(
        "# What `lowtide advise` chose: {} of data at {} on {}.\n# The same figures again: {command}\n{}",
        advice.question.data,
        advice.question.rate_words(),
        row.candidate.device.name,
        trial.experiment
    );
    file.write(text.as_bytes())?;
    output::say(format_args!("the experiment: {command}"));
    Ok(())
}
