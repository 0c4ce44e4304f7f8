//! `lowtide fit`: makes a device file from measurements. `lowtide_studies::fit` fits the parameters.

use super::campaign_named;
use crate::args::{FitArguments, PlainFormat};
use crate::failure::Failure;
use crate::output::DEVICE;
use crate::{interrupt, output};
use lowtide_core::{Bytes, Seed};
use lowtide_files::output::{CommandFiles, Output};
use lowtide_studies::fit::{self, Like, Measured, Question};
use std::io::Read;
use std::path::Path;

/// The first bytes of an SQLite file.
const SQLITE: &[u8; 16] = b"SQLite format 3\0";
/// Maximum size of a table.
const LARGEST: Bytes = Bytes::mib(256);

/// Fits a device, prints its parameters, and writes the device file.
pub fn run(arguments: &FitArguments) -> Result<u8, Failure> {
    let help = "see `lowtide fit --help`";
    let mut files = CommandFiles::default();
    files.add("the file of measurements", &arguments.source);
    let like = arguments.like.as_deref().map(Like::read).transpose()?;
    like.iter().for_each(|like| files.add_device(&like.name, &like.files));
    let file = arguments.output.as_deref().map(|path| Output::file(DEVICE, path, &files)).transpose()?;
    let stem =
        arguments.output.as_deref().and_then(Path::file_stem).map(|it| it.to_string_lossy().into_owned());
    let question = Question {
        name: arguments.name.clone().or(stem).unwrap_or_else(|| "fitted".to_owned()),
        like,
        capacity: arguments.capacity,
        block: arguments.block,
        threads: arguments.threads,
        fixed: fit::Fixed::parse(&arguments.fix)?,
        predict: arguments.predict.clone(),
        seed: Seed::new(arguments.seed),
        budget: arguments.budget,
    };
    let measured = measured(arguments, &question, help)?;
    let fitted = fit::fit(&measured, &question, &interrupt::flag())?;
    fitted.notes.iter().for_each(output::say);
    output::print(&match arguments.format {
        PlainFormat::Json => fit::json(&fitted),
        PlainFormat::Table => fit::table(&fitted, output::columns()),
    })?;
    match file {
        Some(file) => {
            file.write(fitted.device.as_bytes())?;
            let path = file.path().display();
            output::say(format_args!(
                "device: {path}   run an experiment on it: lowtide run NAME --target device:./{path}"
            ));
        }
        None => output::say("to write the device file, add `-o FILE`"),
    }
    Ok(0)
}

/// The measurements: a table if the source is a file other than a store, else a campaign.
fn measured(arguments: &FitArguments, question: &Question, help: &str) -> Result<Measured, Failure> {
    let path = Path::new(&arguments.source);
    if path.is_file() && !is_store(path) {
        let text = read(path);
        let text = text.map_err(|error| Failure::usage(format_args!("{}: {error}", path.display()), help))?;
        return Ok(fit::of_csv(path, &text, question, arguments.data)?);
    }
    Ok(fit::of_campaign(&campaign_named(&arguments.store, &arguments.source)?)?)
}

/// Returns whether a file begins like an SQLite file.
fn is_store(path: &Path) -> bool {
    let mut head = [0; SQLITE.len()];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == *SQLITE
}

fn read(path: &Path) -> std::io::Result<String> {
    let size = std::fs::metadata(path)?.len();
    if size > LARGEST.get() {
        let size = Bytes::new(size);
        return Err(std::io::Error::other(format!("a table of {size} is larger than {LARGEST}")));
    }
    std::fs::read_to_string(path)
}
