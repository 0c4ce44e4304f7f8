//! `lowtide store import`: measurements of other programs as a campaign.

use crate::args::ImportArguments;
use crate::failure::Failure;
use crate::output;
use lowtide_files::output::CommandFiles;
use lowtide_lab::import::{Options, import};
use lowtide_lab::store::Store;
use lowtide_studies::ask;

/// Reads all files, adds one campaign, and prints its report.
pub fn run(arguments: &ImportArguments) -> Result<u8, Failure> {
    let options = Options {
        kind: arguments.kind,
        name: arguments.name.clone(),
        size: arguments.size,
        command: arguments.command(),
    };
    let mut files = CommandFiles::default();
    arguments.files.iter().for_each(|path| files.add("an input", path));
    lowtide_files::output::store(&arguments.store, &files)?;
    let imported = import(&arguments.files, &options)?;
    imported.notes.iter().for_each(output::say);
    let mut store = Store::open(&arguments.store)?;
    let number = store.add(imported)?;
    let report = ask::report(&store, number, &store.load(number)?)?;
    output::print_report(&report, arguments.format)?;
    output::say(format_args!("store: {} (campaign {number})", arguments.store.display()));
    Ok(0)
}
