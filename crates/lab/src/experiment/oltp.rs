//! `[oltp]`, an alternative to `[workload]`: TPC-C on a database whose data is on the target.
//!
//! The meaning of the settings for each engine is in crate `lowtide-oltp`. Module `plan` checks that the data fits on
//! the target.

use super::level::Level;
use super::load::{Load, Pattern};
use super::read::{Entry, Table};
use super::schema;
use super::words::Word;
use super::work::Work;
use lowtide_core::{Bytes, Nanos};
use lowtide_engines::{Durability, Engine, Preset, Settings};
use lowtide_oltp::Address;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Approximate bytes of a warehouse in a database.
const WAREHOUSE: Bytes = Bytes::mib(100);
/// Approximate bytes of a database without warehouses: items, logs and the files of the server.
const EMPTY: Bytes = Bytes::mib(200);

/// TPC-C on a database, with every default filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Oltp {
    /// Settings of each instance.
    pub settings: Settings,
    /// Warehouses, over all instances.
    pub warehouses: u32,
    /// Concurrent servers.
    pub instances: u32,
    /// Addresses of existing servers of the user; empty if lowtide starts the servers.
    #[serde(skip)]
    pub servers: Vec<Address>,
    /// Whether terminals have keying and think times.
    pub think: bool,
    /// Whether the consistency conditions are checked before and after each cell.
    pub check: bool,
    /// A separate directory for the log.
    pub log_directory: Option<PathBuf>,
    /// A separate simulated device for the log.
    pub log_device: Option<String>,
}

impl Oltp {
    /// Approximate bytes of the loaded databases.
    pub fn data(&self) -> Bytes {
        WAREHOUSE * u64::from(self.warehouses) + EMPTY * u64::from(self.instances)
    }

    /// The settings of each instance. Data files are sized so that the data fills all of them and the last grows
    /// little.
    pub(crate) fn of_instance(&self) -> Settings {
        let share = self.data() / u64::from(self.instances.max(1));
        let data_file_size = self.settings.data_files.map(|files| share * 4 / 5 / u64::from(files.max(1)));
        Settings { data_file_size, ..self.settings.clone() }
    }

    /// The settings with data and memory divided by `scale`. The number of warehouses may become 0.
    pub(crate) fn scaled(&self, scale: u64) -> Oltp {
        let smaller = |size: Bytes| size / scale;
        let warehouses = u32::try_from(u64::from(self.warehouses) / scale).expect("not more than before");
        let settings = Settings {
            buffer_pool: self.settings.buffer_pool.map(smaller),
            log_size: self.settings.log_size.map(smaller),
            ..self.settings.clone()
        };
        Oltp { warehouses, settings, ..self.clone() }
    }

    /// Applies a factor's level, if it is a setting of databases.
    pub(super) fn set(&mut self, level: &Level) {
        let settings = &mut self.settings;
        match level {
            Level::Engine(engine) => settings.engine = *engine,
            Level::Programs(path) => settings.programs = Some(path.into()),
            Level::Warehouses(warehouses) => self.warehouses = *warehouses,
            Level::Instances(instances) => self.instances = *instances,
            Level::BufferPool(size) => settings.buffer_pool = Some(*size),
            Level::Durability(durability) => settings.durability = Some(*durability),
            Level::FlushMethod(method) => settings.flush_method = Some(method.clone()),
            Level::Doublewrite(on) => settings.doublewrite = Some(*on),
            Level::FlushNeighbours(on) => settings.flush_neighbours = Some(*on),
            Level::IoCapacity(capacity) => settings.io_capacity = Some(*capacity),
            Level::ReadAhead(pages) => settings.read_ahead = Some(*pages),
            Level::LogSize(size) => settings.log_size = Some(*size),
            Level::LogDevice(device) => self.log_device = Some(device.clone()),
            Level::DataFiles(files) => settings.data_files = Some(*files),
            _ => {}
        }
    }
}

impl Word for Engine {
    const WHAT: &'static str = "engine";
    const WORDS: &'static [(&'static str, Self)] = &Engine::NAMES;
}

impl Word for Durability {
    const WHAT: &'static str = "durability";
    const WORDS: &'static [(&'static str, Self)] = &Durability::NAMES;
}

impl Word for Preset {
    const WHAT: &'static str = "preset";
    const WORDS: &'static [(&'static str, Self)] = &Preset::NAMES;
}

/// Reads `[oltp]`.
pub(super) fn read(table: &Table<'_>) -> Load {
    table.only(&schema::OLTP);
    let mut load = Load {
        pattern: Pattern::RandomMixed,
        block: Bytes::kib(16),
        threads: 16,
        work: Work::Transactions(Box::new(transactions(table))),
        ..Load::default()
    };
    load.set_factors(table, &schema::OLTP);
    table.update("steady", &mut load.steady, Entry::word);
    load.set_length(table);
    load.interval = load.interval.max(Nanos::new(1));
    load
}

/// Reads the keys that are not factors.
fn transactions(table: &Table<'_>) -> Oltp {
    let preset = table.get("preset").and_then(|entry| entry.word());
    let servers = table.get("servers").map_or_else(Vec::new, |entry| texts(&entry));
    let (mut think, mut check) = (false, true);
    table.update("think", &mut think, Entry::boolean);
    table.update("check", &mut check, Entry::boolean);
    let log_directory = table.get("log-directory").and_then(|entry| entry.text("\"/data/log\""));
    let options = table.get("options").and_then(|entry| entry.table());
    let options = options.map_or_else(Vec::new, |options| {
        let option = |entry: Entry<'_>| {
            let value = entry.string("\"…\"")?;
            Some((entry.name, value))
        };
        options.in_order().into_iter().filter_map(option).collect()
    });
    Oltp {
        settings: Settings { preset, options, ..Settings::default() },
        warehouses: 1,
        instances: 1,
        servers: servers.into_iter().map(Address::new).collect(),
        think,
        check,
        log_directory: log_directory.map(PathBuf::from),
        log_device: None,
    }
}

/// Reads a string or a list of strings.
fn texts(entry: &Entry<'_>) -> Vec<String> {
    let example = "\"mariadb://user:password@host/tpcc\"";
    match entry.elements() {
        None => entry.text(example).into_iter().collect(),
        Some(elements) => elements.iter().filter_map(|it| it.text(example)).collect(),
    }
}
