//! Translates settings into server options, and lists the settings without a counterpart.
//!
//! The server lists its options (`--help --verbose`), so no list for each version of MariaDB and MySQL is needed
//! here.

use super::preset;
use crate::{OltpError, Places};
use lowtide_core::Bytes;
use lowtide_core::suggest::nearest;
use lowtide_engines::{Durability, Engine, Preset, Settings};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Size of each file of a shared tablespace except the last, which grows.
const DATA_FILE: Bytes = Bytes::mib(128);

/// The smallest redo log that servers accept.
const LEAST_LOG: u64 = 4 << 20;

/// Maximum sessions of a server of our own: 2000 terminals and one for administration.
const CONNECTIONS: &str = "2001";

/// Options that lowtide sets itself: locations, access, user and logging.
const OURS: [&str; 21] = [
    "aria_log_dir_path",
    "basedir",
    "bind_address",
    "chroot",
    "console",
    "datadir",
    "extra_port",
    "innodb_data_home_dir",
    "innodb_log_group_home_dir",
    "innodb_tmpdir",
    "innodb_undo_directory",
    "local_infile",
    "log_error",
    "networking",
    "pid_file",
    "plugin_dir",
    "port",
    "slave_load_tmpdir",
    "socket",
    "tmpdir",
    "user",
];

/// Prefixes that the server strips from option names.
const PREFIXES: [&str; 5] = ["skip_", "disable_", "enable_", "loose_", "maximum_"];

/// Returns whether an option is lowtide's own, with or without prefixes. After `loose_` the server accepts
/// abbreviations.
fn is_ours(name: &str) -> bool {
    let name = underscored(name).to_lowercase();
    let cut = name.strip_prefix("loose_").filter(|rest| !rest.is_empty());
    OURS.contains(&name.as_str())
        || cut.is_some_and(|rest| OURS.iter().any(|ours| ours.starts_with(rest)))
        || PREFIXES.iter().any(|prefix| name.strip_prefix(prefix).is_some_and(is_ours))
}

/// The options of a server, with their defaults.
#[derive(Debug, Default)]
pub(super) struct Known(BTreeMap<String, String>);

impl Known {
    /// Parses the output of `--help --verbose`: after a line of dashes, one name and value per line.
    pub(super) fn from_help(help: &str) -> Known {
        let table = help.lines().skip_while(|line| !line.starts_with("---")).skip(1);
        let pairs = table.take_while(|line| !line.trim().is_empty()).map(|line| {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            (underscored(name), value.trim().to_owned())
        });
        Known(pairs.collect())
    }
    /// Returns whether there are no options.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Returns whether the server has this option.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
    /// Returns whether the server accepts an option as the user wrote it, with or without prefixes.
    fn accepts(&self, name: &str) -> bool {
        let plain = underscored(name);
        self.has(&plain)
            || PREFIXES.iter().any(|prefix| plain.strip_prefix(prefix).is_some_and(|rest| self.has(rest)))
            || plain.starts_with("loose_")
            || plain.starts_with("plugin_load")
            || plain.starts_with("performance_schema_")
    }
}

fn underscored(name: &str) -> String {
    name.trim().replace('-', "_")
}

/// The options of a server's start.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Names, with underscores, and values; a later value overrides an earlier one.
    pub(super) set: Vec<(String, String)>,
    /// The requested settings without a counterpart, each with the reason.
    pub(super) ignored: Vec<String>,
}

impl Options {
    /// Translates `settings` for a server with the options `known`, whose socket and data are in `places`.
    ///
    /// # Errors
    /// [`OltpError::Invalid`] for invalid values and for options that the server does not have.
    pub(super) fn new(settings: &Settings, places: &Places, known: &Known) -> Result<Options, OltpError> {
        let mut options = Options::default();
        let with_preset = settings.preset.map(|it| match it {
            Preset::Y2010 => {
                let gone = preset::GONE_SINCE_2010.iter().filter(|gone| !known.has(gone.name));
                options.ignored.extend(gone.map(|gone| format!("{}: {}", gone.name, gone.why)));
                let preset = preset::of_2010();
                for (name, value) in &preset.options {
                    options.set_first(known, "preset 2010", &[name], value);
                }
                preset::over(preset, settings)
            }
        });
        let settings = with_preset.as_ref().unwrap_or(settings);
        options.places(settings, places, known)?;
        match settings.engine {
            Engine::Mariadb => options.innodb(settings, known)?,
            Engine::MariadbAria => options.aria(settings, known)?,
            Engine::MariadbMyisam => options.myisam(settings, known),
            other => return Err(OltpError::Invalid(format!("`{}` is not MariaDB", other.name()))),
        }
        for (name, value) in &settings.options {
            if is_ours(name) {
                return Err(OltpError::Invalid(format!("the option `{name}` of MariaDB is set by lowtide")));
            }
            if !known.accepts(name) {
                return Err(unknown(name, known));
            }
            if name.contains(['\n', '=', '[', '#']) || value.contains('\n') {
                return Err(OltpError::Invalid(format!(
                    "option `{name}`: a name or a value with a line of its own"
                )));
            }
            options.set(&underscored(name), value);
        }
        Ok(options)
    }
    /// The contents of the server's option file.
    pub(super) fn file(&self) -> String {
        let lines = self.set.iter().map(|(name, value)| match value.as_str() {
            "" => format!("{name}\n"),
            value => format!("{name} = {value}\n"),
        });
        std::iter::once("[mysqld]\n".to_owned()).chain(lines).collect()
    }
    /// The option names without duplicates.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let names: std::collections::BTreeSet<&str> =
            self.set.iter().map(|(name, _)| name.as_str()).collect();
        names.into_iter()
    }

    fn set(&mut self, name: &str, value: impl ToString) {
        self.set.push((name.to_owned(), value.to_string()));
    }
    /// Sets the first of `names` that the server has. If it has none, lists `asked` as ignored.
    fn set_first(&mut self, known: &Known, asked: &str, names: &[&str], value: impl ToString) {
        match names.iter().find(|name| known.has(name)) {
            Some(name) => self.set(name, value),
            None => self.ignored.push(format!("{asked}: this server has no `{}`", names.join("`, `"))),
        }
    }
    fn ignore(&mut self, asked: bool, what: &str) {
        if asked {
            self.ignored.push(what.to_owned());
        }
    }

    /// Sets the locations, and the options that isolate the server.
    fn places(&mut self, settings: &Settings, places: &Places, known: &Known) -> Result<(), OltpError> {
        let data = text(&places.data)?;
        self.set("datadir", data);
        if let Some(base) = base(settings) {
            self.set("basedir", text(&base)?);
        }
        // Temporary files are on the target: they can be large, and are part of the load.
        self.set("tmpdir", data);
        self.set("socket", text(&places.run.join("socket"))?);
        self.set("pid_file", text(&places.run.join("pid"))?);
        self.set("skip_networking", "1");
        self.set("skip_name_resolve", "1");
        self.set("local_infile", "1");
        self.set("max_connections", CONNECTIONS);
        self.set("character_set_server", "latin1");
        self.set("collation_server", "latin1_bin");
        // Features that would add I/O or network traffic to the experiment.
        for (name, value) in
            [("feedback", "OFF"), ("mysqlx", "OFF"), ("innodb_buffer_pool_load_at_startup", "OFF")]
        {
            if known.has(name) {
                self.set(name, value);
            }
        }
        // MySQL 8 keeps a binary log by default, but lists no value as this option's default.
        if known.0.get("log_bin").is_some_and(|value| !["FALSE", "OFF", "0"].contains(&value.as_str())) {
            self.set("skip_log_bin", "");
        }
        if let Some(log) = &places.log {
            let name = match settings.engine {
                Engine::MariadbAria => "aria_log_dir_path",
                _ => "innodb_log_group_home_dir",
            };
            self.set_first(known, "a log of its own place", &[name], text(log)?);
        }
        Ok(())
    }

    fn innodb(&mut self, settings: &Settings, known: &Known) -> Result<(), OltpError> {
        self.set("default_storage_engine", "InnoDB");
        if let Some(size) = settings.buffer_pool {
            self.set("innodb_buffer_pool_size", size.get());
        }
        self.set(
            "innodb_flush_log_at_trx_commit",
            match settings.durability.unwrap_or_default() {
                Durability::Full => 1,
                Durability::Second => 2,
                Durability::None => 0,
            },
        );
        if let Some(method) = &settings.flush_method {
            self.set_first(
                known,
                "flush_method",
                &["innodb_flush_method"],
                one_line("flush_method", method)?,
            );
        }
        if let Some(on) = settings.doublewrite {
            self.set_first(known, "doublewrite", &["innodb_doublewrite"], on_off(on));
        }
        if let Some(on) = settings.flush_neighbours {
            // 2 writes all dirty neighbours of an extent, adjacent or not: the behaviour until 2013, `area` in
            // Percona Server.
            let all = if settings.preset == Some(Preset::Y2010) { 2 } else { 1 };
            self.set_first(known, "flush_neighbours", &["innodb_flush_neighbors"], if on { all } else { 0 });
        }
        if let Some(pages) = settings.io_capacity {
            let least = 100;
            if pages < least {
                return Err(OltpError::Invalid(format!("io_capacity {pages}: at least {least}")));
            }
            self.set_first(known, "io_capacity", &["innodb_io_capacity"], pages);
            // Otherwise a server that falls behind may exceed the limit without bound.
            self.set_first(known, "io_capacity", &["innodb_io_capacity_max"], pages.saturating_mul(2));
        }
        if let Some(threshold) = settings.read_ahead {
            if threshold > 64 {
                return Err(OltpError::Invalid(format!(
                    "read_ahead {threshold}: 0 to 64 pages of an extent"
                )));
            }
            self.set_first(known, "read_ahead", &["innodb_read_ahead_threshold"], threshold);
            self.set_first(known, "read_ahead", &["innodb_random_read_ahead"], "OFF");
        }
        if let Some(size) = settings.log_size {
            self.log_size(size, known)?;
        }
        if let Some(files) = settings.data_files {
            if !(1..=1000).contains(&files) {
                return Err(OltpError::Invalid(format!("data_files {files}: 1 to 1000")));
            }
            // The first file holds InnoDB's own data and has a minimum size.
            let size =
                settings.data_file_size.unwrap_or(DATA_FILE).max(Bytes::mib(12)).align_up(Bytes::mib(1));
            let mib = size.get() >> 20;
            let mut path: String = (1..files).map(|n| format!("ibdata{n}:{mib}M;")).collect();
            path.push_str(&format!("ibdata{files}:{mib}M:autoextend"));
            self.set("innodb_file_per_table", "OFF");
            self.set("innodb_data_file_path", path);
            let growing =
                format!("data_files: each has {size}, and the last grows: InnoDB fills them in turn");
            self.ignore(files > 1, &growing);
        }
        Ok(())
    }
    fn log_size(&mut self, size: Bytes, known: &Known) -> Result<(), OltpError> {
        if size.get() < LEAST_LOG {
            return Err(OltpError::Invalid(format!("log_size {size}: at least {}", Bytes::new(LEAST_LOG))));
        }
        if known.has("innodb_redo_log_capacity") {
            self.set("innodb_redo_log_capacity", size.get());
        } else if known.has("innodb_log_files_in_group") {
            self.set("innodb_log_files_in_group", 2);
            self.set("innodb_log_file_size", size.get() / 2);
        } else {
            self.set_first(known, "log_size", &["innodb_log_file_size"], size.get());
        }
        Ok(())
    }

    fn aria(&mut self, settings: &Settings, known: &Known) -> Result<(), OltpError> {
        if !known.has("aria_pagecache_buffer_size") {
            return Err(OltpError::Invalid(
                "this server has no Aria: it is MySQL, or was built without".to_owned(),
            ));
        }
        self.set("default_storage_engine", "Aria");
        if let Some(size) = settings.buffer_pool {
            self.set("aria_pagecache_buffer_size", size.get());
        }
        if let Some(size) = settings.log_size {
            self.set_first(known, "log_size", &["aria_log_file_size"], size.get());
        }
        let relaxed = settings.durability.is_some_and(|it| it != Durability::Full);
        self.ignore(
            relaxed,
            "durability: Aria writes its log with every statement, and has no word for less",
        );
        self.without_innodb(settings);
        Ok(())
    }
    fn myisam(&mut self, settings: &Settings, known: &Known) {
        self.set("default_storage_engine", "MyISAM");
        if let Some(size) = settings.buffer_pool {
            self.set_first(known, "buffer_pool", &["key_buffer_size"], size.get());
            self.ignored.push(
                "buffer_pool: MyISAM keeps only indexes in it; rows are the kernel's to keep".to_owned(),
            );
        }
        let waits = settings.durability != Some(Durability::None);
        self.ignore(waits, "durability: MyISAM never waits for the device; the option `flush` closes files after a statement");
        self.ignore(settings.log_size.is_some(), "log_size: MyISAM has no log");
        self.without_innodb(settings);
    }
    fn without_innodb(&mut self, settings: &Settings) {
        let why = "InnoDB has it, this engine has not";
        let asked = [
            (settings.flush_method.is_some(), "flush_method"),
            (settings.doublewrite.is_some(), "doublewrite"),
            (settings.flush_neighbours.is_some(), "flush_neighbours"),
            (settings.io_capacity.is_some(), "io_capacity"),
            (settings.read_ahead.is_some(), "read_ahead"),
            (settings.data_files.is_some(), "data_files"),
        ];
        for (asked, name) in asked {
            self.ignore(asked, &format!("{name}: {why}"));
        }
    }
}

/// The folder above that of the user's programs. A server that was unpacked there finds its messages below this
/// folder, not at the path compiled into it.
pub(super) fn base(settings: &Settings) -> Option<PathBuf> {
    let programs = settings.programs.as_deref()?;
    programs.canonicalize().ok()?.parent().filter(|base| base.join("share").is_dir()).map(Path::to_owned)
}

fn unknown(name: &str, known: &Known) -> OltpError {
    let near = nearest(&underscored(name), known.0.keys().map(String::as_str));
    let offer = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    OltpError::Invalid(format!("option `{name}`: this server does not have it{offer}"))
}

fn on_off(on: bool) -> &'static str {
    if on { "ON" } else { "OFF" }
}

fn one_line<'a>(what: &str, value: &'a str) -> Result<&'a str, OltpError> {
    if value.contains(['\n', '\r']) {
        return Err(OltpError::Invalid(format!("{what}: a value with a line of its own")));
    }
    Ok(value)
}

/// Returns a path as text, if the option file can represent it.
fn text(path: &Path) -> Result<&str, OltpError> {
    let plain = path.to_str().filter(|path| !path.contains(['\n', '\\', '"', '#']));
    plain.ok_or_else(|| {
        OltpError::Invalid(format!("{}: a server's option file cannot hold this path", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "mysqld  Ver 10\n\nVariables (--variable-name=value)\n---- ----\n\
        innodb-buffer-pool-size                 134217728\ninnodb-flush-method      O_DIRECT\n\
        innodb-log-file-size  100663296\naria-pagecache-buffer-size  1\nlog-bin   (No default value)\n\
        innodb-io-capacity 200\n\nTo see what values a running server is using, type\n";

    fn places() -> Places {
        Places { data: "/d".into(), log: None, run: "/r".into() }
    }

    fn lines(settings: &Settings, help: &str) -> Result<(String, Vec<String>), String> {
        let options = Options::new(settings, &places(), &Known::from_help(help));
        options.map(|options| (options.file(), options.ignored)).map_err(|error| error.to_string())
    }

    #[test]
    fn each_setting_becomes_an_option_or_a_line_that_says_why_not() {
        let settings = Settings {
            engine: Engine::Mariadb,
            buffer_pool: Some(Bytes::new(1 << 30)),
            durability: Some(Durability::Second),
            doublewrite: Some(false),
            log_size: Some(Bytes::new(64 << 20)),
            options: vec![("innodb-io-capacity".into(), "500".into())],
            ..Settings::default()
        };
        let (file, ignored) = lines(&settings, HELP).expect("they can be");
        for line in [
            "innodb_buffer_pool_size = 1073741824\n",
            "innodb_flush_log_at_trx_commit = 2\n",
            "innodb_log_file_size = 67108864\n",
            "socket = /r/socket\n",
            "innodb_io_capacity = 500\n",
        ] {
            assert!(file.contains(line), "{line} in {file}");
        }
        assert_eq!(ignored, ["doublewrite: this server has no `innodb_doublewrite`"]);
        assert!(file.contains("skip_log_bin\n"), "{file}");
        let off = HELP.replace("log-bin   (No default value)", "log-bin   FALSE");
        assert!(!lines(&settings, &off).expect("they can be").0.contains("log_bin"));
    }

    #[test]
    fn where_a_server_lies_and_who_reaches_it_is_not_an_option() {
        let help =
            HELP.replace("innodb-io-capacity 200", "datadir /x\nport 3306\nskip-networking FALSE\nuser x");
        for name in [
            "datadir",
            "skip-networking",
            "skip_skip_networking",
            "loose-datadi",
            "Port",
            "user",
            "skip_log_error",
        ] {
            let settings = Settings {
                engine: Engine::Mariadb,
                options: vec![(name.to_owned(), "1".to_owned())],
                ..Settings::default()
            };
            let error = lines(&settings, &help).expect_err(name);
            assert_eq!(error, format!("the option `{name}` of MariaDB is set by lowtide"));
        }
        let loose = vec![("loose_rocksdb_block_size".to_owned(), "4096".to_owned())];
        let settings = Settings { engine: Engine::Mariadb, options: loose, ..Settings::default() };
        assert!(lines(&settings, &help).is_ok());
    }

    #[test]
    fn a_log_of_several_files_and_one_of_a_given_capacity_are_as_large_together() {
        let settings =
            Settings { engine: Engine::Mariadb, log_size: Some(Bytes::new(64 << 20)), ..Settings::default() };
        let old = HELP.replace("innodb-flush-method", "innodb-log-files-in-group");
        assert!(lines(&settings, &old).expect("they can be").0.contains("innodb_log_file_size = 33554432\n"));
        let new = HELP.replace("innodb-flush-method", "innodb-redo-log-capacity");
        assert!(
            lines(&settings, &new).expect("they can be").0.contains("innodb_redo_log_capacity = 67108864\n")
        );
    }

    #[test]
    fn what_cannot_be_is_said_with_the_nearest_name() {
        let settings = |options: &[(&str, &str)]| Settings {
            engine: Engine::Mariadb,
            options: options.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            ..Settings::default()
        };
        let error = lines(&settings(&[("innodb_io_capacty", "1")]), HELP).expect_err("mistyped");
        assert!(error.contains("did you mean `innodb_io_capacity`?"), "{error}");
        let error = lines(&settings(&[("innodb_io_capacity", "1\nuser=root")]), HELP).expect_err("two lines");
        assert!(error.contains("a line of its own"), "{error}");
        let mut small = settings(&[]);
        small.log_size = Some(Bytes::new(1 << 20));
        assert!(lines(&small, HELP).expect_err("too small").contains("at least 4MiB"));
        let mut aria = settings(&[]);
        aria.engine = Engine::MariadbAria;
        assert!(lines(&aria, &HELP.replace("aria", "x")).expect_err("MySQL").contains("no Aria"));
    }

    #[test]
    fn engines_without_a_word_say_so() {
        let settings = Settings {
            engine: Engine::MariadbMyisam,
            io_capacity: Some(200),
            log_size: Some(Bytes::new(64 << 20)),
            ..Settings::default()
        };
        let (_, ignored) = lines(&settings, HELP).expect("they can be");
        assert_eq!(ignored.len(), 3, "{ignored:?}");
    }
}
