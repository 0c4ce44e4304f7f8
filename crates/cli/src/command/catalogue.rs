//! `lowtide devices` and `lowtide experiments`: what comes with the program.

use crate::args::{CatalogueArguments, CatalogueVerb};
use crate::failure::Failure;
use crate::output;
use lowtide_files::catalogue;
use lowtide_files::device::{self, Listed};
use lowtide_files::passwords;
use lowtide_files::table;
use lowtide_lab::experiment::Experiment;

/// Lists simulated devices, or prints the file of one.
pub fn devices(arguments: &CatalogueArguments) -> Result<u8, Failure> {
    match &arguments.verb {
        Some(CatalogueVerb::Show { name }) => output::print(&passwords::without(&device::show(name)?))?,
        None | Some(CatalogueVerb::List) => {
            let row = |listed: &Listed| vec![listed.device.name.clone(), listed.device.title.clone()];
            let rows: Vec<Vec<String>> = device::catalogue().iter().map(row).collect();
            output::print(&table::plain(&["name", "title"], &rows, output::columns()))?;
        }
    }
    Ok(0)
}

/// Lists experiments, or prints the file of one.
pub fn experiments(arguments: &CatalogueArguments) -> Result<u8, Failure> {
    match &arguments.verb {
        Some(CatalogueVerb::Show { name }) => {
            output::print(&passwords::without(&catalogue::experiment(name)?.text))?;
        }
        None | Some(CatalogueVerb::List) => {
            let row = |entry: &catalogue::Entry| {
                let experiment = Experiment::parse(entry.path, entry.text, &[]);
                vec![
                    entry.name.to_owned(),
                    experiment.map_or_else(|_| String::new(), |experiment| experiment.title),
                ]
            };
            let rows: Vec<Vec<String>> = catalogue::experiments().iter().map(row).collect();
            output::print(&table::plain(&["name", "title"], &rows, output::columns()))?;
        }
    }
    Ok(0)
}
