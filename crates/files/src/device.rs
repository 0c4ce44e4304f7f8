//! Device files: reading the description of a simulated device, its name, price and sources.
//!
//! A file holds one table that says what kind of device it is. It may begin with another (`like`) and change some of
//! its keys. A device made of others names them, and their files are read too. Leaves out the models; see crate `lowtide-device`.

use crate::catalogue;
use lowtide_device::DeviceSpec;
use lowtide_device::array::{ArrayParameters, ArraySpec};
use lowtide_device::cache::{CacheParameters, CacheSpec};
use lowtide_device::disk::DiskSpec;
use lowtide_device::flash::FlashSpec;
use lowtide_device::log::{LogParameters, LogSpec};
use lowtide_device::volume::VolumeSpec;
use lowtide_record::{Campaign, Cell};
use serde::Deserialize;
use std::path::PathBuf;
use toml::{Table, Value};

/// How deep one device may refer to another.
const DEEPEST: usize = 8;

/// The most members an array may have.
const MOST_MEMBERS: usize = 1024;

/// What a device file says, with every device it refers to.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// The name it is called by.
    pub name: String,
    /// A line for people: maker, model, year.
    pub title: String,
    /// What it cost when it was new, in US dollars. It is of one device: what begins with another has a price of its own, or none.
    pub price_usd: Option<f64>,
    /// The published numbers that were used to choose parameters, as `study:row` (`e02:3`).
    pub fitted_to: Vec<String>,
    /// The model.
    pub spec: DeviceSpec,
    /// The files it was read from.
    pub texts: Vec<String>,
    /// The paths of those that it refers to and that are not of the catalogue.
    pub files: Vec<PathBuf>,
}

/// Why a device file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeviceFileError {
    /// The text is not what a device file holds; what TOML says, with line and column.
    #[error("{0}")]
    Text(#[from] toml::de::Error),
    /// There is no table for a kind of device, or more than one.
    #[error(
        "a device file holds one of [flash], [disk], [array], [cache], [log], [volume]; this one holds {found}"
    )]
    Kinds {
        /// How many it holds.
        found: usize,
    },
    /// An array does not say what it is made of.
    #[error(
        "[array] needs either `members = [\"name\", …]`, or `member = \"name\"` and `count` from 1 to {MOST_MEMBERS}"
    )]
    Members,
    /// A device it refers to.
    #[error("it refers to `{name}`: {reason}")]
    Reference {
        /// The device's name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    #[serde(default, deserialize_with = "price")]
    price_usd: Option<f64>,
    #[serde(default)]
    fitted_to: Vec<String>,
    #[serde(default)]
    flash: Option<FlashSpec>,
    #[serde(default)]
    disk: Option<DiskSpec>,
    #[serde(default)]
    array: Option<ArrayTable>,
    #[serde(default)]
    cache: Option<CacheTable>,
    #[serde(default)]
    log: Option<LogTable>,
    #[serde(default)]
    volume: Option<VolumeSpec>,
}

fn price<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let price = f64::deserialize(deserializer)?;
    if (1e-2..=1e9).contains(&price) {
        return Ok(Some(price));
    }
    Err(serde::de::Error::custom(format!(
        "{price} is not a price: write dollars, from 0.01 to a thousand million"
    )))
}

/// The table `[cache]`: two devices by name, and how one caches the other.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct CacheTable {
    flash: String,
    backing: String,
    #[serde(flatten)]
    parameters: CacheParameters,
}

/// The table `[log]`: a device by name, and how a log lies on it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct LogTable {
    over: String,
    #[serde(flatten)]
    parameters: LogParameters,
}

/// The table `[array]`: members by name, one after the other or so many of one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ArrayTable {
    #[serde(default)]
    members: Vec<String>,
    #[serde(default)]
    member: Option<String>,
    #[serde(default)]
    count: Option<usize>,
    #[serde(flatten)]
    parameters: ArrayParameters,
}

impl ArrayTable {
    /// The names of the members, and how many of each in a row.
    fn members(&self) -> Result<Vec<(&str, usize)>, DeviceFileError> {
        match (&self.member, self.count, self.members.as_slice()) {
            (Some(member), Some(count), []) if (1..=MOST_MEMBERS).contains(&count) => {
                Ok(vec![(member, count)])
            }
            (None, None, members) if !members.is_empty() => {
                Ok(members.iter().map(|member| (member.as_str(), 1)).collect())
            }
            _ => Err(DeviceFileError::Members),
        }
    }
}

/// Reads a device file and those it refers to.
///
/// # Errors
/// [`DeviceFileError`] says what is wrong, with line and column where the text is.
pub fn parse(text: &str) -> Result<Device, DeviceFileError> {
    read(text, DEEPEST)
}

fn read(text: &str, depth: usize) -> Result<Device, DeviceFileError> {
    let mut texts = vec![text.to_owned()];
    let mut files = Vec::new();
    let own: Table = toml::from_str(text)?;
    let file: File = if own.contains_key("like") {
        merged(own, &mut texts, &mut files, depth)?.try_into()?
    } else {
        // From the text itself, so that an error names its line.
        toml::from_str(text)?
    };
    let File { name, title, price_usd, mut fitted_to, flash, disk, array, cache, log, volume } = file;
    let mut parts = Parts { depth, texts: &mut texts, files: &mut files, fitted_to: &mut fitted_to };
    let mut specs = Vec::new();
    specs.extend(flash.map(DeviceSpec::Flash));
    specs.extend(disk.map(DeviceSpec::Disk));
    specs.extend(volume.map(DeviceSpec::Volume));
    if let Some(array) = array {
        specs.push(DeviceSpec::Array(parts.array(array)?));
    }
    if let Some(CacheTable { flash, backing, parameters }) = cache {
        let (flash, backing) = (Box::new(parts.device(&flash)?), Box::new(parts.device(&backing)?));
        specs.push(DeviceSpec::Cache(CacheSpec { parameters, flash, backing }));
    }
    if let Some(LogTable { over, parameters }) = log {
        let over = Box::new(parts.device(&over)?);
        specs.push(DeviceSpec::Log(LogSpec { parameters, over }));
    }
    let found = specs.len();
    let Some(spec) = specs.pop().filter(|_| found == 1) else { return Err(DeviceFileError::Kinds { found }) };
    Ok(Device { name, title, price_usd, fitted_to, spec, texts, files })
}

/// Where the parts of a composite are gathered: their texts, and what they were fitted to.
struct Parts<'a> {
    depth: usize,
    texts: &'a mut Vec<String>,
    files: &'a mut Vec<PathBuf>,
    fitted_to: &'a mut Vec<String>,
}

impl Parts<'_> {
    /// The device of that name; its texts and what it was fitted to are noted, once each.
    fn device(&mut self, name: &str) -> Result<DeviceSpec, DeviceFileError> {
        let text = text_of(name, self.files, self.depth)?;
        let fail = |error: DeviceFileError| match error {
            DeviceFileError::Reference { .. } => error,
            error => DeviceFileError::Reference { name: name.to_owned(), reason: error.to_string() },
        };
        let device = read(&text, self.depth - 1).map_err(fail)?;
        for (all, its) in [(&mut *self.texts, device.texts), (&mut *self.fitted_to, device.fitted_to)] {
            for new in its {
                if !all.contains(&new) {
                    all.push(new);
                }
            }
        }
        self.files.extend(device.files);
        Ok(device.spec)
    }

    fn array(&mut self, table: ArrayTable) -> Result<ArraySpec, DeviceFileError> {
        let mut members = Vec::new();
        for (name, count) in table.members()? {
            let member = self.device(name)?;
            members.extend(std::iter::repeat_n(member, count));
        }
        Ok(ArraySpec { parameters: table.parameters, members })
    }
}

/// The table with what it is like underneath.
fn merged(
    mut own: Table,
    texts: &mut Vec<String>,
    files: &mut Vec<PathBuf>,
    depth: usize,
) -> Result<Table, DeviceFileError> {
    let Some(Value::String(name)) = own.remove("like") else { return Ok(own) };
    let text = text_of(&name, files, depth)?;
    let base: Table = toml::from_str(&text)?;
    texts.push(text);
    let mut base = merged(base, texts, files, depth - 1)?;
    // What is twice as large, or of other NAND, costs something else.
    base.remove("price-usd");
    overlay(&mut base, own);
    Ok(base)
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

/// The text of a device that is referred to; its path is noted where it is not of the catalogue.
fn text_of(name: &str, files: &mut Vec<PathBuf>, depth: usize) -> Result<String, DeviceFileError> {
    let fail = |reason: String| DeviceFileError::Reference { name: name.to_owned(), reason };
    if depth == 0 {
        return Err(fail("devices refer to each other in a circle".to_owned()));
    }
    let found = catalogue::device(name).map_err(|error| fail(error.to_string()))?;
    if catalogue::is_path(name) {
        files.push(PathBuf::from(name));
    }
    Ok(found.text.into_owned())
}

/// The device of a cell at full size, by the files that the campaign kept; `None` on the host, and where no file is
/// readable any more.
pub fn of_cell(campaign: &Campaign, cell: &Cell) -> Option<Device> {
    let target = campaign.target.strip_prefix("device:")?;
    let wanted = cell.level("device").unwrap_or(target);
    let devices: Vec<Device> = campaign.devices.iter().filter_map(|text| parse(text).ok()).collect();
    let named = devices.iter().position(|device| device.name == wanted);
    // The user's own file is wanted by its path, and the first is what the target names.
    let own = (cell.factor("device").is_none() && !devices.is_empty()).then_some(0);
    devices.into_iter().nth(named.or(own)?)
}

#[cfg(test)]
mod tests {
    const PAIR: &str =
        "name = 'pair'\ntitle = 'Two'\n[array]\nlevel = 'stripe'\nlatency = '1us'\nrequest = '1us'\n";

    #[test]
    fn an_array_reads_its_members() {
        for members in
            ["members = ['intel-320-160gb', 'intel-320-160gb']", "member = 'intel-320-160gb'\ncount = 2"]
        {
            let device =
                super::parse(&format!("{PAIR}{members}\n")).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(device.texts.len(), 2, "its own and its members', once");
            assert!(device.fitted_to.contains(&"e02:3".to_owned()), "what its members were fitted to");
            assert!(device.spec.capacity().get() > 319_000_000_000, "{}", device.spec.capacity());
        }
    }

    #[test]
    fn a_price_is_not_that_of_a_device_it_is_like() {
        let like = "like = 'virident-tachion-400'\nname = 'double'\ntitle = 'Twice as large'\n";
        let price = |text: &str| super::parse(text).unwrap_or_else(|error| panic!("{error}")).price_usd;
        assert_eq!(price(like), None);
        assert_eq!(price(&format!("{like}price-usd = 20000\n")), Some(20_000.0));
    }

    #[test]
    fn an_array_without_members_or_with_strange_keys_is_told() {
        for (line, told) in [
            ("", "needs either `members"),
            ("members = ['intel-320-160gb']\ncount = 2", "needs either `members"),
            ("member = 'intel-320-160gb'\ncount = 0", "needs either `members"),
            ("members = ['intel-320-160g']", "intel-320-160gb"),
            ("member = 'intel-320-160gb'\ncount = 2\nchunks = '64KiB'", "chunks"),
        ] {
            let error = super::parse(&format!("{PAIR}{line}\n")).expect_err(line).to_string();
            assert!(error.contains(told), "{line}: {error}");
        }
    }

    #[test]
    fn a_cache_reads_both_devices() {
        let file =
            "name = 'cached'\ntitle = 'Two'\n[cache]\nbacking = 'sata-7k2-1tb'\nflash = 'intel-320-160gb'\n";
        let device =
            super::parse(&format!("{file}mode = 'write-back'\n")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((device.texts.len(), device.spec.capacity().get() / 1_000_000_000), (3, 1000));
        for (line, told) in [
            ("mode = 'write-around'", "write-through"),
            ("mode = 'write-back'\nlines = '4KiB'", "lines"),
            ("", "mode"),
        ] {
            let error = super::parse(&format!("{file}{line}\n")).expect_err(line).to_string();
            assert!(error.contains(told), "{line}: {error}");
        }
    }

    #[test]
    fn a_log_reads_the_device_it_lies_on() {
        let file = "name = 'logged'\ntitle = 'A log'\n[log]\nover = 'mtron-32gb'\n";
        let device = super::parse(file).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((device.texts.len(), device.fitted_to.len()), (2, 2));
        assert!((27..29).contains(&(device.spec.capacity().get() / 1_000_000_000)));
        device.spec.validate().unwrap_or_else(|error| panic!("{error}"));
        for (line, told) in [
            ("segment = '1000kB'", "segment: 1MB is none of 1MiB, 2MiB, 3MiB and so on up to 64MiB"),
            ("segment = '128MiB'", "segment: 128MiB is none of"),
            ("reserve = 0.01", "reserve: 0.01 is not a share from 0.02 to 0.9"),
            ("reserve = 9", "reserve: 9 is not a share from 0.02 to 0.9"),
            ("latency = '0s'", "latency: needs some time"),
        ] {
            let device = super::parse(&format!("{file}{line}\n")).unwrap_or_else(|error| panic!("{error}"));
            let error = device.spec.validate().expect_err(line).to_string();
            assert!(error.starts_with(told), "{line}: {error}");
        }
        let error = device.spec.scaled(2000).validate().expect_err("32 segments do not fit").to_string();
        assert!(error.starts_with("over"), "{error}");
    }

    #[test]
    fn a_log_over_nothing_over_itself_or_with_strange_keys_is_told() {
        let file = |keys: &str| format!("name = 'logged'\ntitle = 'A log'\n[log]\n{keys}\n");
        for (keys, told) in [
            ("", "missing field `over`"),
            ("over = 'mtron-32g'", "unknown device `mtron-32g`: did you mean `mtron-32gb`?"),
            ("over = 'mtron-32gb'\nsegments = '1MiB'", "segments"),
        ] {
            let error = super::parse(&file(keys)).expect_err(keys).to_string();
            assert!(error.contains(told), "{keys}: {error}");
        }
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("logged.toml");
        let text = file(&format!("over = '{}'", path.display()));
        std::fs::write(&path, &text).expect("written");
        let error = super::parse(&text).expect_err("it lies on itself").to_string();
        assert!(error.ends_with("devices refer to each other in a circle"), "{error}");
    }

    #[test]
    fn every_device_that_comes_with_the_program_is_valid_at_every_scale() {
        for entry in crate::catalogue::devices() {
            let device = super::parse(entry.text).unwrap_or_else(|error| panic!("{}: {error}", entry.path));
            assert_eq!(device.name, entry.name);
            // Many dies need room on each: a 64th of some drives is too small.
            for scale in [1, 8, 16] {
                device
                    .spec
                    .scaled(scale)
                    .validate()
                    .unwrap_or_else(|error| panic!("{} 1/{scale}: {error}", entry.path));
            }
        }
    }
}
