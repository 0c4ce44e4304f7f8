//! `lowtide devices` and `lowtide experiments`: what comes with the program.

use crate::args::{CatalogueArguments, CatalogueVerb};
use crate::failure::Failure;
use crate::output;
use lowtide_files::catalogue::{self, CatalogueError, Entry, Found};
use lowtide_files::passwords;
use lowtide_files::table;
use lowtide_lab::experiment::Experiment;

/// Lists simulated devices, or prints the file of one.
pub fn devices(arguments: &CatalogueArguments) -> Result<u8, Failure> {
    let title = |entry: &Entry| {
        lowtide_files::device::parse(entry.text).map_or_else(|_| String::new(), |device| device.title)
    };
    list_or_show(arguments, catalogue::devices(), title, catalogue::device)
}

/// Lists experiments, or prints the file of one.
pub fn experiments(arguments: &CatalogueArguments) -> Result<u8, Failure> {
    let title = |entry: &Entry| {
        Experiment::parse(entry.path, entry.text, &[])
            .map_or_else(|_| String::new(), |experiment| experiment.title)
    };
    list_or_show(arguments, catalogue::experiments(), title, catalogue::experiment)
}

fn list_or_show(
    arguments: &CatalogueArguments,
    entries: &[Entry],
    title: impl Fn(&Entry) -> String,
    find: impl Fn(&str) -> Result<Found, CatalogueError>,
) -> Result<u8, Failure> {
    match &arguments.verb {
        Some(CatalogueVerb::Show { name }) => output::print(&passwords::without(&find(name)?.text))?,
        None | Some(CatalogueVerb::List) => {
            let rows: Vec<Vec<String>> =
                entries.iter().map(|entry| vec![entry.name.to_owned(), title(entry)]).collect();
            output::print(&table::plain(&["name", "title"], &rows, output::columns()))?;
        }
    }
    Ok(0)
}
