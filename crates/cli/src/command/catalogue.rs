//! `lowtide devices` and `lowtide experiments`: the devices and experiments that come with the program.

use crate::args::{CatalogueArguments, CatalogueVerb};
use crate::failure::Failure;
use crate::output;
use lowtide_files::catalogue;
use lowtide_files::device::{self, Class, Listed};
use lowtide_files::passwords;
use lowtide_files::table;
use lowtide_lab::experiment::Experiment;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum width of the column of names; a longer name takes its own line.
const WIDEST_NAME: usize = 30;

/// Lists simulated devices, or prints the file of one.
pub fn devices(arguments: &CatalogueArguments) -> Result<u8, Failure> {
    match &arguments.verb {
        Some(CatalogueVerb::Show { name }) => output::print(&passwords::without(&device::show(name)?))?,
        None | Some(CatalogueVerb::List) => output::print(&by_class(device::catalogue(), output::columns()))?,
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

/// Lists devices by class and year, devices without a year last. Modes are listed below the device of their file.
fn by_class(all: &[Listed], columns: usize) -> String {
    let mut classes: BTreeMap<Class, Vec<&Listed>> = BTreeMap::new();
    for listed in all.iter().filter(|listed| listed.mode.is_none()) {
        classes.entry(Class::of(&listed.device)).or_default().push(listed);
    }
    let modes =
        |of: &Listed| all.iter().filter(move |it| it.mode.is_some() && it.entry == of.entry).collect();
    let mut text = String::new();
    for (class, mut devices) in classes {
        // The sort is stable, and devices are sorted by name.
        devices.sort_by_key(|listed| listed.device.year.unwrap_or(u16::MAX));
        writeln!(text, "{}", class.title()).expect("a string takes it");
        for listed in devices {
            let Listed { device, .. } = listed;
            let year = device.year.map_or_else(String::new, |year| year.to_string());
            let title = device.title.strip_suffix(&format!(" ({year})")).unwrap_or(&device.title);
            row(&mut text, &format!("  {}", device.name), &year, title, columns);
            let modes: Vec<&Listed> = modes(listed);
            for mode in modes {
                let name = format!("    :{}", mode.mode.as_deref().unwrap_or_default());
                row(&mut text, &name, "", differs(&mode.device.title, &device.title), columns);
            }
        }
        text.push('\n');
    }
    text.push_str("NAME:MODE names a device in one of its modes, DATA+LOG two devices: data on the\n");
    text.push_str("first, the log on the second.");
    text
}

/// The end of a title, from the first part that differs from the other title.
fn differs<'a>(title: &'a str, other: &str) -> &'a str {
    let equal = title.char_indices().zip(other.chars()).find(|((_, one), other)| one != other);
    let equal = equal.map_or(title.len().min(other.len()), |((at, _), _)| at);
    let end = &title[title[..equal].rfind(", ").map_or(0, |at| at + 2)..];
    end.rsplit_once(" (").map_or(end, |(end, _)| end)
}

/// Adds a device; a long title continues in its own column on the next line.
fn row(text: &mut String, name: &str, year: &str, title: &str, columns: usize) {
    let title_at = 2 + WIDEST_NAME + 2 + "2011  ".len();
    let mut line = format!("{name:<width$}", width = 2 + WIDEST_NAME + 2);
    if name.chars().count() > 2 + WIDEST_NAME {
        writeln!(text, "{name}").expect("a string takes it");
        line = " ".repeat(2 + WIDEST_NAME + 2);
    }
    write!(line, "{year:<4}  ").expect("a string takes it");
    for word in title.split(' ') {
        let (used, word_length) = (line.chars().count(), word.chars().count());
        if used > title_at && used + 1 + word_length > columns {
            writeln!(text, "{}", line.trim_end()).expect("a string takes it");
            line = " ".repeat(title_at);
        } else if used > title_at {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(text, "{}", line.trim_end()).expect("a string takes it");
}
