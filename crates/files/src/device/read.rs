//! Reads a device: its file, the device it is `like`, its mode, and the devices it refers to.
//!
//! ```text
//! NAME:MODE ─► Shelf ─► file ─► like, overlaid ─► mode, overlaid ─► File ─► parts ─► Device
//! ```

use super::file::{File, Reference, references};
use super::name::Part;
use super::{Device, DeviceError, DeviceFileError, DeviceName, UnknownMode, list};
use crate::catalogue::{self, CatalogueError, is_path};
use lowtide_device::DeviceSpec;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::{Table, Value};

/// Maximum depth of references between devices.
pub(super) const DEEPEST: usize = 8;

/// The table that holds a file's modes.
const MODE: &str = "mode";

/// Sources of device files: texts stored with a campaign, the catalogue, and the file system.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shelf<'a> {
    /// Texts stored with a campaign. They are searched first. If there are any, no path is opened: a store may come
    /// from a stranger, and the file may have changed since.
    pub(super) stored: &'a [String],
}

/// A device file and the requested mode.
pub(super) struct Found<'a> {
    pub(super) path: String,
    pub(super) text: Cow<'a, str>,
    pub(super) mode: Option<String>,
}

impl<'a> Shelf<'a> {
    /// Finds the device file of a name.
    pub(super) fn find(self, part: &Part) -> Result<Found<'a>, DeviceError> {
        self.find_but(part, &[])
    }

    /// As [`Shelf::find`], but skips the texts in `but`: a file may have the same name as the device it refers to.
    fn find_but(self, part: &Part, but: &[String]) -> Result<Found<'a>, DeviceError> {
        if let Some(found) = self.stored_but(part, but) {
            return Ok(found);
        }
        let wanted = part.file.as_str();
        if is_path(wanted) && !self.stored.is_empty() {
            let source = std::io::Error::other("it was not kept with the campaign");
            return Err(CatalogueError::Read { what: "device", path: wanted.to_owned(), source }.into());
        }
        if is_path(wanted) {
            let text = std::fs::read_to_string(wanted).map_err(|source| CatalogueError::Read {
                what: "device",
                path: wanted.to_owned(),
                source,
            })?;
            return Ok(Found { path: wanted.to_owned(), text: text.into(), mode: part.mode.clone() });
        }
        let Some(known) = list::known(wanted) else {
            return Err(CatalogueError::unknown("device", wanted, list::names()).into());
        };
        let mode = match (&known.mode, &part.mode) {
            (Some(_), Some(mode)) => {
                let (device, mode) = (wanted.to_owned(), mode.clone());
                return Err(UnknownMode { device, mode, modes: Vec::new() }.into());
            }
            (own, asked) => own.as_ref().or(asked.as_ref()).cloned(),
        };
        Ok(Found { path: known.entry.path.to_owned(), text: known.entry.text.into(), mode })
    }

    /// As [`Shelf::find`], but only among the stored texts.
    pub(super) fn stored(self, part: &Part) -> Option<Found<'a>> {
        self.stored_but(part, &[])
    }

    fn stored_but(self, part: &Part, but: &[String]) -> Option<Found<'a>> {
        self.stored.iter().filter(|text| !but.contains(text)).find_map(|text| {
            let table: Table = toml::from_str(text).ok()?;
            let mode = match table.get("name").and_then(Value::as_str) {
                Some(name) if name == part.file => part.mode.clone(),
                _ if part.mode.is_some() => return None,
                name => Some(modes(name?, &table).find(|(_, name)| *name == part.file)?.0.to_owned()),
            };
            Some(Found { path: part.file.clone(), text: text.into(), mode })
        })
    }
}

/// The modes in a device file, each with the name of the resulting device.
pub(super) fn modes<'a>(device: &str, file: &'a Table) -> impl Iterator<Item = (&'a str, String)> {
    let modes = file.get(MODE).and_then(Value::as_table).into_iter().flatten();
    modes.map(move |(mode, changes)| {
        let own = changes.get("name").and_then(Value::as_str);
        (mode.as_str(), own.map_or_else(|| format!("{device}-{mode}"), str::to_owned))
    })
}

/// Reads one device and all devices it refers to.
pub(super) struct Reader<'a> {
    shelf: Shelf<'a>,
    /// Levels of reference still allowed.
    depth: usize,
    /// The text of the file and of those that it is `like`.
    chain: Vec<String>,
    texts: Vec<String>,
    files: Vec<PathBuf>,
    /// The referenced devices that were given by path, written out as tables.
    inlined: BTreeMap<String, Table>,
    fitted_to: Vec<String>,
}

/// Reads a device by name.
pub(super) fn named(shelf: Shelf<'_>, name: &DeviceName) -> Result<Device, DeviceError> {
    match &name.log {
        None => shelf.find(&name.data).and_then(|found| of_file(shelf, found)),
        Some(_) => {
            let path = name.to_string();
            let text = composition(shelf, name, DEEPEST)?;
            text_of(shelf, &text, None, DEEPEST).map_err(|reason| DeviceError::File { path, reason })
        }
    }
}

/// Reads a device from its file.
pub(super) fn of_file(shelf: Shelf<'_>, found: Found<'_>) -> Result<Device, DeviceError> {
    let Found { path, text, mode } = found;
    text_of(shelf, &text, mode.as_deref(), DEEPEST).map_err(|reason| named_error(path, reason))
}

fn named_error(path: String, reason: DeviceFileError) -> DeviceError {
    match reason {
        DeviceFileError::Mode(unknown) => unknown.into(),
        reason => DeviceError::File { path, reason },
    }
}

/// Reads a device from its text.
pub(super) fn of_text(shelf: Shelf<'_>, text: &str) -> Result<Device, DeviceFileError> {
    text_of(shelf, text, None, DEEPEST)
}

fn text_of(
    shelf: Shelf<'_>,
    text: &str,
    mode: Option<&str>,
    depth: usize,
) -> Result<Device, DeviceFileError> {
    let (chain, texts) = (vec![text.to_owned()], vec![text.to_owned()]);
    let (files, inlined, fitted_to) = (Vec::new(), BTreeMap::new(), Vec::new());
    Reader { shelf, depth, chain, texts, files, inlined, fitted_to }.read(text, mode)
}

/// Writes a composition as a device file: a linear array without a controller, data first, log last.
pub(super) fn composition(shelf: Shelf<'_>, name: &DeviceName, depth: usize) -> Result<String, DeviceError> {
    let read = |part: &Part| {
        if part.file.contains('+') && !is_path(&part.file) {
            return Err(DeviceError::Composition { name: name.to_string() });
        }
        let found = shelf.find(part)?;
        text_of(shelf, &found.text, found.mode.as_deref(), depth.saturating_sub(1))
            .map_err(|reason| named_error(found.path, reason))
    };
    let parts = name.parts().map(read).collect::<Result<Vec<Device>, DeviceError>>()?;
    let names: Vec<&str> = parts.iter().map(|device| device.name.as_str()).collect();
    let titles: Vec<&str> = parts.iter().map(|device| device.title.as_str()).collect();
    let members = name.parts().map(|part| Value::from(part.to_string())).collect();
    let text = |text: String| Value::String(text);
    Ok(format!(
        "# A composition: data files at the beginning, the log at the end.\nname  = {}\ntitle = {}\n\n[array]\nlevel   = \"linear\"\n\
         members = {}   # data files, log\nlatency = \"0us\"   # no controller: two devices of one server\nrequest = \"0us\"\n",
        text(names.join("+")),
        text(format!("Data on {}", titles.join("; log on "))),
        Value::Array(members),
    ))
}

impl Reader<'_> {
    fn read(mut self, text: &str, mode: Option<&str>) -> Result<Device, DeviceFileError> {
        let mut own: Table = toml::from_str(text)?;
        let mut file: File = if mode.is_some() || own.contains_key("like") {
            own = self.resolved(own, mode)?;
            own.clone().try_into()?
        } else {
            // Parsed from the original text, so that an error has line and column.
            toml::from_str(text)?
        };
        self.fitted_to.append(&mut file.fitted_to);
        let mut specs = file.specs(|name| self.device(name))?;
        let found = specs.len();
        let Some(spec) = specs.pop().filter(|_| found == 1) else {
            return Err(DeviceFileError::Kinds { found });
        };
        self.keep(own, mode.is_some());
        let File { name, title, year, interface, price_usd, .. } = file;
        let Reader { texts, files, fitted_to, .. } = self;
        Ok(Device { name, title, year, interface, price_usd, fitted_to, spec, texts, files })
    }

    /// Puts the self-contained text of the device first in `texts`. For a mode, this text has every key. If the
    /// device refers to files by path, their contents replace the paths.
    fn keep(&mut self, mut table: Table, is_mode: bool) {
        if self.files.is_empty() {
            if is_mode {
                self.texts.insert(0, stated(&table));
            }
            return;
        }
        table.remove(MODE);
        for reference in references(&mut table) {
            if let Some(inlined) = reference.as_str().and_then(|name| self.inlined.get(name)) {
                *reference = Value::Table(inlined.clone());
            }
        }
        self.texts[0] = written_out(&table);
    }

    /// Resolves inheritance: overlays the file on the device it is `like`, then overlays the mode.
    fn resolved(&mut self, mut own: Table, mode: Option<&str>) -> Result<Table, DeviceFileError> {
        let modes = match own.remove(MODE) {
            Some(Value::Table(modes)) => modes,
            _ => Table::new(),
        };
        if let Some(Value::String(like)) = own.remove("like") {
            let mut base = self.base(&like)?;
            // A price is not inherited: a device with another capacity or other NAND has another price.
            base.remove("price-usd");
            overlay(&mut base, own);
            own = base;
        }
        let Some(mode) = mode else { return Ok(own) };
        let name = |own: &Table| own.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(changes) = modes.get(mode) else {
            let modes = modes.keys().cloned().collect();
            return Err(UnknownMode { device: name(&own), mode: mode.to_owned(), modes }.into());
        };
        let fault = |fault| DeviceFileError::BadMode { mode: mode.to_owned(), fault };
        let Some(mut changes) = changes.as_table().cloned() else { return Err(fault("is not a table")) };
        if changes.contains_key("like") || changes.contains_key(MODE) {
            return Err(fault("changes keys of its file: `like` and modes of its own are not accepted"));
        }
        if !changes.contains_key("name") {
            changes.insert("name".to_owned(), format!("{}-{mode}", name(&own)).into());
        }
        if !changes.contains_key("title") {
            let title = own.get("title").and_then(Value::as_str).unwrap_or_default();
            changes.insert("title".to_owned(), format!("{title}, {mode}").into());
        }
        overlay(&mut own, changes);
        Ok(own)
    }

    /// The table of the device that a file is `like`.
    fn base(&mut self, like: &str) -> Result<Table, DeviceFileError> {
        let name = DeviceName::new(like);
        let fail = |error: DeviceError| reference(like, error);
        self.go_deeper(like)?;
        self.files.extend(name.paths());
        let base = match &name.log {
            None => {
                let found = self.shelf.find_but(&name.data, &self.chain).map_err(fail)?;
                self.chain.push(found.text.to_string());
                if name.paths().next().is_none() {
                    self.note(&found.text);
                }
                self.resolved(toml::from_str(&found.text)?, found.mode.as_deref()).map_err(|error| {
                    match error {
                        DeviceFileError::Mode(unknown) => fail(unknown.into()),
                        error => error,
                    }
                })?
            }
            Some(_) => toml::from_str(&composition(self.shelf, &name, self.depth).map_err(fail)?)?,
        };
        self.depth += 1;
        Ok(base)
    }

    /// Reads a referenced device. Adds its texts and fitted numbers to those of this device, without duplicates.
    fn device(&mut self, reference: &Reference) -> Result<DeviceSpec, DeviceFileError> {
        let device = match reference {
            Reference::Name(name) => self.named_device(name)?,
            Reference::Table(table) => self.table_device(table)?,
        };
        for row in device.fitted_to {
            if !self.fitted_to.contains(&row) {
                self.fitted_to.push(row);
            }
        }
        self.files.extend(device.files);
        Ok(device.spec)
    }

    /// Reads a device that is referenced by name.
    fn named_device(&mut self, name: &str) -> Result<Device, DeviceFileError> {
        self.go_deeper(name)?;
        let named = DeviceName::new(name);
        let device = match &named.log {
            None => {
                let found = self.shelf.find_but(&named.data, &self.chain);
                let found = found.map_err(|error| reference(name, error))?;
                text_of(self.shelf, &found.text, found.mode.as_deref(), self.depth)
            }
            Some(_) => {
                let text = composition(self.shelf, &named, self.depth);
                text_of(self.shelf, &text.map_err(|error| reference(name, error))?, None, self.depth)
            }
        };
        let device = device.map_err(|error| within(name, error))?;
        self.depth += 1;
        let is_path = named.paths().next().is_some();
        self.files.extend(named.paths());
        if is_path {
            let table = toml::from_str(&device.texts[0]).expect("a device was read from it");
            self.inlined.insert(name.to_owned(), table);
        }
        device.texts.iter().skip(usize::from(is_path)).for_each(|text| self.note(text));
        Ok(device)
    }

    /// Reads a device that is referenced as a table.
    fn table_device(&mut self, table: &Table) -> Result<Device, DeviceFileError> {
        let name = table.get("name").and_then(Value::as_str).unwrap_or("a table");
        self.go_deeper(name)?;
        let text = toml::to_string(table).expect("what was read can be written");
        let device = text_of(self.shelf, &text, None, self.depth).map_err(|error| within(name, error))?;
        self.depth += 1;
        device.texts.iter().skip(1).for_each(|text| self.note(text));
        Ok(device)
    }

    fn note(&mut self, text: &str) {
        if !self.texts.iter().any(|known| known == text) {
            self.texts.push(text.to_owned());
        }
    }

    fn go_deeper(&mut self, name: &str) -> Result<(), DeviceFileError> {
        let Some(depth) = self.depth.checked_sub(1) else {
            let reason = "devices refer to each other in a circle".to_owned();
            return Err(DeviceFileError::Reference { name: name.to_owned(), reason });
        };
        self.depth = depth;
        Ok(())
    }
}

/// Wraps the error of a referenced device.
fn within(name: &str, error: DeviceFileError) -> DeviceFileError {
    match error {
        DeviceFileError::Reference { .. } => error,
        error => DeviceFileError::Reference { name: name.to_owned(), reason: error.to_string() },
    }
}

fn reference(name: &str, error: DeviceError) -> DeviceFileError {
    match error {
        DeviceError::File { reason: nested @ DeviceFileError::Reference { .. }, .. } => nested,
        error => DeviceFileError::Reference { name: name.to_owned(), reason: error.to_string() },
    }
}

/// Formats a mode as a device file with every key, for storage with a campaign.
fn stated(table: &Table) -> String {
    let keys = toml::to_string(table).expect("what was read can be written");
    format!("# A mode with every key of its device; their sources are in the device file.\n{keys}")
}

/// Formats a device file whose paths are replaced by file contents, for storage with a campaign.
fn written_out(table: &Table) -> String {
    let keys = toml::to_string(table).expect("what was read can be written");
    format!("# Devices that were named by their paths are written out here.\n{keys}")
}

fn overlay(base: &mut Table, changes: Table) {
    for (key, value) in changes {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => overlay(under, over),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// The device name used in results: a mode that is in the catalogue has its own name.
pub(super) fn canonical(name: &DeviceName) -> String {
    let part = |part: &Part| {
        let known = part.mode.as_ref().filter(|_| !is_path(&part.file)).and_then(|mode| {
            let entry = catalogue::devices().iter().find(|entry| entry.name == part.file)?;
            list::mode_of(entry, mode)
        });
        known.map_or_else(|| part.to_string(), str::to_owned)
    };
    name.parts().map(part).collect::<Vec<_>>().join("+")
}
