//! `lowtide fit`: a device file from what was measured.
//!
//! Not here: the fitting (`lowtide_studies::fit`).

use super::campaign_named;
use crate::args::{FitArguments, FitFormat};
use crate::failure::Failure;
use crate::output::DEVICE;
use crate::{interrupt, output};
use lowtide_core::{Bytes, Seed};
use lowtide_files::output::{CommandFiles, Output};
use lowtide_studies::fit::{self, Like, Measured, Question};
use std::io::Read;
use std::path::Path;

/// How files of SQLite begin.
const SQLITE: &[u8; 16] = b"SQLite format 3\0";
/// The largest table that is read.
const LARGEST: Bytes = Bytes::mib(256);

/// Fits, prints what was found, and writes the file.
pub fn run(arguments: &FitArguments) -> Result<u8, Failure> {
    let help = "lowtide fit --help says what is accepted";
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
        FitFormat::Json => fit::json(&fitted),
        FitFormat::Table => fit::table(&fitted, output::columns()),
    })?;
    match file {
        Some(file) => {
            file.write(fitted.device.as_bytes())?;
            let path = file.path().display();
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
    if path.is_file() && !is_store(path) {
        let text = read(path);
        let text = text.map_err(|error| Failure::usage(format_args!("{}: {error}", path.display()), help))?;
        return Ok(fit::of_csv(path, &text, question, arguments.data)?);
    }
    Ok(fit::of_campaign(&campaign_named(&arguments.store, &arguments.source)?)?)
}

/// Whether a file begins as those of SQLite do, be it damaged behind that.
fn is_store(path: &Path) -> bool {
    let mut head = [0; SQLITE.len()];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == *SQLITE
}

fn read(path: &Path) -> std::io::Result<String> {
    let size = std::fs::metadata(path)?.len();
    if size > LARGEST.get() {
        let size = Bytes::new(size);
        return Err(std::io::Error::other(format!("{size}, and tables of up to {LARGEST} are read")));
    }
    std::fs::read_to_string(path)
}
