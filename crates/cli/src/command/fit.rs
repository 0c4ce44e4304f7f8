//! `lowtide fit`: a device file from what was measured.
//!
//! Leaves out the fitting (`lowtide_lab::fit`).

use super::campaign_named;
use crate::args::{FitArguments, Format};
use crate::failure::Failure;
use crate::{interrupt, output};
use lowtide_core::Seed;
use lowtide_lab::fit::{self, Measured, Question};
use std::path::Path;

/// Fits, prints what was found, and writes the file.
pub fn run(arguments: &FitArguments) -> Result<u8, Failure> {
    let help = "lowtide fit --help says what is accepted";
    if !matches!(arguments.format, Format::Table | Format::Json) {
        return Err(Failure::usage("a fit is printed as table or json", help));
    }
    if let Some(path) = &arguments.output {
        output::check_writable(path)?;
    }
    let stem =
        arguments.output.as_deref().and_then(Path::file_stem).map(|it| it.to_string_lossy().into_owned());
    let question = Question {
        name: arguments.name.clone().or(stem).unwrap_or_else(|| "fitted".to_owned()),
        like: arguments.like.clone(),
        capacity: arguments.capacity,
        block: arguments.block,
        threads: arguments.threads,
        fixed: arguments.fixed().map_err(|why| Failure::usage(why, help))?,
        predict: arguments.predict.clone(),
        seed: Seed::new(arguments.seed),
    };
    let measured = measured(arguments, &question, help)?;
    let fitted = fit::fit(&measured, &question, &interrupt::flag())?;
    fitted.notes.iter().for_each(output::say);
    output::print(&match arguments.format {
        Format::Json => fit::json(&fitted),
        _ => fit::table(&fitted, 4096.0, output::columns()),
    })?;
    match &arguments.output {
        Some(path) => {
            output::write_file(path, fitted.device.as_bytes())?;
            let path = path.display();
            output::say(format_args!(
                "device: {path}   run anything on it: lowtide run NAME --target device:./{path}"
            ));
        }
        None => output::say("the device file is written with `-o FILE`"),
    }
    Ok(0)
}

/// What was measured: a table where the source is a file that is no store, else a campaign.
fn measured(arguments: &FitArguments, question: &Question, help: &str) -> Result<Measured, Failure> {
    let path = Path::new(&arguments.source);
    let is_store = |path: &Path| lowtide_lab::store::Store::open_existing(path).is_ok();
    if path.is_file() && !is_store(path) {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| Failure::usage(format_args!("{}: {error}", path.display()), help))?;
        return Ok(fit::of_csv(path, &text, question, arguments.data)?);
    }
    Ok(fit::of_campaign(&campaign_named(&arguments.store, &arguments.source)?)?)
}
