//! `lowtide advise`: which device for so much data at a rate, how full, with how much memory, for how long and how much.
//!
//! Not here: the trials and the choice (`lowtide_studies::advise`).

use crate::args::{AdviseArguments, Format};
use crate::failure::{FAILED, Failure};
use crate::output::EXPERIMENT;
use crate::{interrupt, output};
use lowtide_files::output::{CommandFiles, Output};
use lowtide_studies::advise::{Advice, advise, candidates, report};

/// Advises.
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
        Format::Csv => {
            output::print(&report.table_csv("candidates").expect("the report has all candidates"))?
        }
        format => output::print_report(&report, format)?,
    }
    match (&file, advice.choice()) {
        (Some(file), Some(_)) => write(file, &advice)?,
        (Some(file), None) => {
            output::say(format_args!("nothing is chosen, so {} is not written", file.path().display()))
        }
        (None, _) => {}
    }
    Ok(if advice.choice().is_some() { 0 } else { FAILED })
}

/// Writes the experiment that the choice was checked by, with the command that runs it again.
fn write(file: &Output, advice: &Advice) -> Result<(), Failure> {
    let (row, trial) = advice.choice().expect("there is one");
    let scale = if trial.scale > 1 { format!(" --scale 1/{}", trial.scale) } else { String::new() };
    let named = file.path().display().to_string();
    let named = if named.contains('/') { named } else { format!("./{named}") };
    let command = format!("lowtide run {named}{scale} --seed {}", trial.seed);
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
