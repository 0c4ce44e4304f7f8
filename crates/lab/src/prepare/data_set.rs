//! Data sets: loaded databases. Each cell gets a copy, so that all cells start equal.
//!
//! A data set is loaded and checked once for all cells with the same files, with settings for speed. Crate
//! `lowtide-oltp` defines the contents, and module `home` the place of the copies.

use crate::experiment::{Oltp, Settings as CellSettings};
use lowtide_core::{Bytes, Seed};
use lowtide_engines::tpcc::Scale;
use lowtide_engines::{Durability, Settings};
use lowtide_oltp::{OltpError, Places, check, instance, snapshot};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The buffer pool during loading, and the maximum size of the log.
const WHILE_LOADING: Bytes = Bytes::gib(1);
/// Bytes of log that a loaded database keeps.
const LOG_LEFT: Bytes = Bytes::mib(32);

/// Magic numbers (<linux/magic.h>) of filesystems whose files can share blocks: Btrfs, XFS, bcachefs. A filesystem
/// that was made without this feature is full sooner than expected.
const SHARING: [u64; 3] = [0x9123_683e, 0x5846_5342, 0xca45_1a4e];

/// The destination of copies of data sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copies {
    /// The filesystem of the data sets, whose files may share blocks.
    SameFilesystem,
    /// A file with the contents of a simulated drive, on the filesystem of the data sets.
    Contents,
    /// A block device.
    Device,
}

/// The data sets of a campaign. Dropping them removes them.
#[derive(Debug)]
pub(crate) struct DataSets {
    folder: PathBuf,
    run: PathBuf,
    copies: Copies,
    sets: Vec<DataSet>,
}

/// The loaded databases of all instances.
#[derive(Debug, Clone)]
pub(crate) struct DataSet {
    key: Key,
    /// The directories of each instance. Its server is stopped.
    places: Vec<Places>,
    /// The number of rows that violate each consistency condition, by name; empty if the conditions were not checked.
    pub conditions: Vec<(String, i64)>,
    /// Bytes of all files.
    pub bytes: Bytes,
    /// Bytes of logs in separate directories. `bytes` includes them.
    pub log_bytes: Bytes,
}

/// The settings on which the files of a data set depend.
#[derive(Debug, Clone, PartialEq)]
struct Key {
    settings: Settings,
    warehouses: u32,
    instances: u32,
    separate_log: bool,
}

impl Key {
    fn of(cell: &CellSettings, oltp: &Oltp) -> Key {
        let Settings { engine, programs, data_files, options, .. } = oltp.settings.clone();
        let settings = Settings { engine, programs, data_files, options, ..Settings::default() };
        let separate_log = oltp.log_directory.is_some() || log_device(cell).is_some();
        Key { settings, warehouses: oltp.warehouses, instances: oltp.instances, separate_log }
    }
}

/// The simulated device of a cell's log, if it differs from the device of its data.
pub(crate) fn log_device(cell: &CellSettings) -> Option<&str> {
    let wanted = cell.load.work.transactions()?.log_device.as_deref();
    wanted.filter(|name| cell.device.as_deref() != Some(name))
}

/// The warehouses of instance `number`.
pub(crate) fn share(oltp: &Oltp, number: u32) -> Scale {
    let first =
        |number: u32| (u64::from(oltp.warehouses) * u64::from(number) / u64::from(oltp.instances)) as u32 + 1;
    Scale { warehouses: first(number)..=first(number + 1) - 1, ..Scale::warehouses(oltp.warehouses) }
}

impl DataSets {
    /// No data sets yet. `folder` is for the data sets alone, and `run` for the sockets of their servers.
    pub fn new(folder: PathBuf, run: PathBuf, copies: Copies) -> DataSets {
        DataSets { folder, run, copies, sets: Vec::new() }
    }

    /// Returns the data set of a cell, and loads it first if necessary. `progress` is called with the loaded share.
    ///
    /// # Errors
    /// [`OltpError`] if the data set cannot be loaded, or `interrupt` is set.
    pub fn get(
        &mut self,
        cell: &CellSettings,
        oltp: &Oltp,
        seed: Seed,
        interrupt: &Arc<AtomicBool>,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<DataSet, OltpError> {
        let key = Key::of(cell, oltp);
        if let Some(set) = self.sets.iter().find(|set| set.key == key) {
            return Ok(set.clone());
        }
        let folder = self.folder.join(format!("set-{}", self.sets.len()));
        self.check_space_to_load(oltp.data())?;
        let set = load(key, oltp, &folder, &self.run, seed, interrupt, progress);
        match &set {
            Ok(set) => self.sets.push(set.clone()),
            // An incomplete data set is useless.
            Err(_) => drop(std::fs::remove_dir_all(&folder)),
        }
        set
    }

    /// Refuses to load databases if there is not enough space for them and a copy.
    fn check_space_to_load(&self, needed: Bytes) -> Result<(), OltpError> {
        let folder = &self.folder;
        make_directory(folder)?;
        match self.copies.take_space(folder) {
            true => {
                let what = "for databases, which are loaded first, and a copy for each cell";
                check_space(folder, needed * 2, what)
            }
            false => check_space(folder, needed, "for databases, which are loaded first"),
        }
    }

    /// Refuses a copy of `copy` bytes if there is not enough space.
    ///
    /// # Errors
    /// [`OltpError::Invalid`] with the directory and its free space.
    pub fn check_space_for(&self, copy: Bytes) -> Result<(), OltpError> {
        match self.copies.take_space(&self.folder) {
            true => check_space(&self.folder, copy, "for a cell's copy of the loaded databases"),
            false => Ok(()),
        }
    }
}

impl Copies {
    /// Returns whether copies take space on the filesystem of the data sets.
    fn take_space(self, folder: &Path) -> bool {
        let kind = || u64::try_from(rustix::fs::statfs(folder).ok()?.f_type).ok();
        match self {
            Copies::SameFilesystem => !kind().is_some_and(|kind| SHARING.contains(&kind)),
            Copies::Contents => true,
            Copies::Device => false,
        }
    }
}

/// Refuses a folder with less free space than needed.
fn check_space(folder: &Path, needed: Bytes, what: &str) -> Result<(), OltpError> {
    let free = free(folder);
    if free >= needed {
        return Ok(());
    }
    Err(OltpError::Invalid(format!(
        "about {needed} are needed below {} {what}, and {free} are free there: a smaller share, such as `--scale 1/20`, or \
         a directory (`target.directory`, or TMPDIR for devices) where there is more",
        folder.display()
    )))
}

impl Drop for DataSets {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl DataSet {
    /// Copies instance `number` to the directories of a cell.
    ///
    /// # Errors
    /// [`OltpError`] if a file cannot be copied, or `interrupt` is set.
    pub fn copy_to(&self, number: u32, places: &Places, interrupt: &AtomicBool) -> Result<(), OltpError> {
        let from = &self.places[number as usize];
        snapshot::copy(&from.data, &places.data, interrupt, &|_| ())?;
        match (&from.log, &places.log) {
            (Some(from), Some(to)) => snapshot::copy(from, to, interrupt, &|_| ()).map(drop),
            _ => Ok(()),
        }
    }
}

fn load(
    key: Key,
    oltp: &Oltp,
    folder: &Path,
    run: &Path,
    seed: Seed,
    interrupt: &Arc<AtomicBool>,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<DataSet, OltpError> {
    make_directory(folder)?;
    let settings = Settings {
        data_file_size: oltp.of_instance().data_file_size,
        buffer_pool: Some(WHILE_LOADING),
        log_size: Some((oltp.data() / 2).min(WHILE_LOADING)),
        durability: Some(Durability::None),
        ..key.settings.clone()
    };
    let (mut all, mut conditions) = (Vec::new(), Vec::<(String, i64)>::new());
    for number in 0..key.instances {
        let own = |what: &str| folder.join(format!("{what}-{number}"));
        let log = key.separate_log.then(|| own("log"));
        let places = Places { data: own("data"), log, run: run.join(format!("load-{number}")) };
        make(&places)?;
        let scale = share(oltp, number);
        let mut instance = instance::start(&settings, &places, interrupt)?;
        let database = instance.database();
        let share = |share: f64| progress((f64::from(number) + share) / f64::from(key.instances));
        let loaded = database.load(&scale, seed, interrupt, &share).and_then(|()| {
            if oltp.check {
                add(&mut conditions, check::all(&*database, &scale)?);
            }
            Ok(())
        });
        loaded.map_err(|seen| instance::why(std::slice::from_mut(&mut instance), seen))?;
        drop(database);
        instance.stop()?;
        shrink(&settings, &places, interrupt)?;
        all.push(places);
    }
    let log_bytes = all.iter().filter_map(|places: &Places| places.log.as_deref()).map(size).sum();
    let bytes = log_bytes + all.iter().map(|places| size(&places.data)).sum();
    Ok(DataSet { key, places: all, conditions, bytes, log_bytes })
}

/// Shrinks the log, so that it fits into a cell with a small log. During loading the log is large, for speed.
fn shrink(settings: &Settings, places: &Places, interrupt: &Arc<AtomicBool>) -> Result<(), OltpError> {
    if !settings.engine.has_sized_log() {
        return Ok(());
    }
    let small = Settings { log_size: Some(LOG_LEFT), ..settings.clone() };
    instance::start(&small, places, interrupt)?.stop()
}

/// Adds the numbers of violating rows of one more instance.
pub(crate) fn add(sums: &mut Vec<(String, i64)>, conditions: Vec<check::Condition>) {
    for condition in conditions {
        match sums.iter_mut().find(|(name, _)| *name == condition.name) {
            Some((_, broken)) => *broken += condition.broken,
            None => sums.push((condition.name.to_string(), condition.broken)),
        }
    }
}

/// Creates the directories of an instance.
///
/// # Errors
/// [`OltpError::Io`] if a directory cannot be created.
pub fn make(places: &Places) -> Result<(), OltpError> {
    let all = [Some(&places.data), places.log.as_ref(), Some(&places.run)];
    all.into_iter().flatten().try_for_each(|path| make_directory(path))
}

fn make_directory(path: &Path) -> Result<(), OltpError> {
    std::fs::create_dir_all(path).map_err(|source| OltpError::Io { path: path.to_owned(), source })
}

/// Free bytes on the filesystem of a directory.
fn free(path: &Path) -> Bytes {
    let free = rustix::fs::statvfs(path).map(|stat| stat.f_bavail * stat.f_frsize);
    Bytes::new(free.unwrap_or(u64::MAX))
}

/// Bytes of the files below a directory.
fn size(path: &Path) -> Bytes {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(path) else { return Bytes::ZERO };
    let each = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => Bytes::new(metadata.blocks() * 512),
        Err(_) => Bytes::ZERO,
    });
    each.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::plan::Plan;

    fn plan(text: &str) -> Plan {
        let text =
            format!("name = \"test\"\n{text}[before-each-cell]\nlayout = {{ filesystem = \"xfs\" }}\n");
        Plan::new(Experiment::parse("test.toml", &text, &[]).expect("valid"), Seed::new(1), 1).expect("plans")
    }

    /// Symptom: a cell with its log on the device of its data got a data set with a separate log, and its server did
    /// not start. Cause: any `log_device` counted as a separate device. Fix: the log is separate only if the devices
    /// differ, and both cases have a data set of their own.
    #[test]
    fn logs_are_separate_only_on_a_device_of_their_own() {
        let text = "target.device = \"intel-x25-e-32gb\"\n[oltp]\nengine = \"postgresql\"\nduration = \"1s\"\n\
                    [sweep]\nlog_device = [\"intel-x25-e-32gb\", \"raptor-10k-150gb\"]\n";
        let plan = plan(text);
        let key = |cell: usize| {
            let cell = &plan.cells[cell].settings;
            Key::of(cell, cell.load.work.transactions().expect("databases"))
        };
        assert_eq!([key(0).separate_log, key(1).separate_log], [false, true]);
        assert_ne!(key(0), key(1), "a data set for each case");
        let devices = [0, 1].map(|cell| log_device(&plan.cells[cell].settings));
        assert_eq!(devices, [None, Some("raptor-10k-150gb")]);
    }

    #[test]
    fn a_directory_for_the_log_of_a_simulated_drive_is_refused() {
        let text = |target: &str| {
            format!("name = \"test\"\n{target}\n[oltp]\nduration = \"1s\"\nlog-directory = \"/tmp\"\n")
        };
        let error = Experiment::parse("test.toml", &text("target.device = \"intel-x25-e-32gb\""), &[]);
        let said = format!("{:?}", miette::Report::new(error.expect_err("refused")));
        assert!(said.contains("a directory of this machine for the log"), "{said}");
        assert!(said.contains("log_device"), "{said}");
        Experiment::parse("test.toml", &text("target.directory = \"/tmp\""), &[]).expect("a real target");
    }

    #[test]
    fn a_copy_that_does_not_fit_is_refused_unless_it_takes_no_space() {
        let folder = tempfile::tempdir().expect("a folder");
        let sets = |copies| DataSets::new(folder.path().join("sets"), folder.path().join("run"), copies);
        let most = free(folder.path()) + Bytes::gib(1);
        for (copies, half, all) in [
            // A data set and its copy need slightly more than the free space.
            (Copies::Contents, false, false),
            (Copies::Device, true, false),
        ] {
            let loaded = [most / 2, most].map(|needed| sets(copies).check_space_to_load(needed));
            assert_eq!(loaded.each_ref().map(Result::is_ok), [half, all], "{copies:?}: {loaded:?}");
        }
        let contents = sets(Copies::Contents);
        contents.check_space_to_load(Bytes::mib(1)).expect("it fits");
        let error = contents.check_space_for(most).expect_err("too much").to_string();
        assert!(
            error.contains(&folder.path().display().to_string()) && error.contains("free there"),
            "{error}"
        );
        contents.check_space_for(Bytes::mib(1)).expect("it fits");
        sets(Copies::Device).check_space_for(most).expect("no space is needed");
    }
}
