//! Loaded databases, kept aside: each cell gets a copy, so that all of them start equal.
//!
//! Loaded once for all cells whose files would be the same, with settings for speed, and checked then. Not here: what
//! is in them (crate `lowtide-oltp`), and where the copies lie (`home`).

use crate::experiment::{Oltp, Settings as Asked};
use lowtide_core::{Bytes, Seed};
use lowtide_engines::tpcc::Scale;
use lowtide_engines::{Durability, Engine, Settings};
use lowtide_oltp::{OltpError, Places, check, instance, snapshot};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Memory for pages while data are loaded, and the most bytes of log.
const WHILE_LOADING: Bytes = Bytes::gib(1);
/// Bytes of log that a loaded database keeps.
const LOG_LEFT: Bytes = Bytes::mib(32);

/// Filesystems whose files can share blocks, by <linux/magic.h>: Btrfs, XFS, bcachefs. One that was made without that is
/// found out when it is full.
const SHARING: [u64; 3] = [0x9123_683e, 0x5846_5342, 0xca45_1a4e];

/// Where copies of data sets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copies {
    /// Beside them, where blocks may be shared.
    Beside,
    /// Beside them, in a file that holds what lies on a simulated drive.
    InContents,
    /// To a device.
    Elsewhere,
}

/// The data sets of a campaign. Dropping them removes them.
#[derive(Debug)]
pub(crate) struct DataSets {
    folder: PathBuf,
    run: PathBuf,
    copies: Copies,
    sets: Vec<DataSet>,
}

/// Loaded databases, an instance each.
#[derive(Debug, Clone)]
pub(crate) struct DataSet {
    of: Made,
    /// An instance each, stopped.
    places: Vec<Places>,
    /// Rows that break each condition of consistency, by its name; empty where that was not asked for.
    pub conditions: Vec<(String, i64)>,
    /// Bytes of all files.
    pub bytes: Bytes,
    /// Of these, bytes of logs that lie elsewhere than the data.
    pub log_bytes: Bytes,
}

/// What makes the files of data sets differ.
#[derive(Debug, Clone, PartialEq)]
struct Made {
    engine: Engine,
    programs: Option<PathBuf>,
    warehouses: u32,
    instances: u32,
    data_files: Option<u32>,
    options: Vec<(String, String)>,
    log_apart: bool,
}

impl Made {
    fn by(asked: &Asked, oltp: &Oltp) -> Made {
        let Settings { engine, programs, data_files, options, .. } = oltp.settings.clone();
        let (warehouses, instances) = (oltp.warehouses, oltp.instances);
        let log_apart = oltp.log_directory.is_some() || log_device(asked).is_some();
        Made { engine, programs, warehouses, instances, data_files, options, log_apart }
    }
}

/// The simulated device of a cell's log, where that is not the device of its data.
pub(crate) fn log_device(asked: &Asked) -> Option<&str> {
    let wanted = asked.load.work.transactions()?.log_device.as_deref();
    wanted.filter(|name| asked.device.as_deref() != Some(name))
}

/// The warehouses of instance `number` of so many.
pub(crate) fn share(oltp: &Oltp, number: u32) -> Scale {
    let first =
        |number: u32| (u64::from(oltp.warehouses) * u64::from(number) / u64::from(oltp.instances)) as u32 + 1;
    Scale { warehouses: first(number)..=first(number + 1) - 1, ..Scale::warehouses(oltp.warehouses) }
}

impl DataSets {
    /// None yet; they will lie in `folder`, which is theirs alone, and their servers' sockets in `run`.
    pub fn new(folder: PathBuf, run: PathBuf, copies: Copies) -> DataSets {
        DataSets { folder, run, copies, sets: Vec::new() }
    }

    /// The data set that a cell asks for, loaded if there is none yet; `progress` hears of the share that is in.
    ///
    /// # Errors
    /// [`OltpError`] where it cannot be loaded, or `interrupt` is set.
    pub fn get(
        &mut self,
        asked: &Asked,
        oltp: &Oltp,
        seed: Seed,
        interrupt: &Arc<AtomicBool>,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<DataSet, OltpError> {
        let of = Made::by(asked, oltp);
        if let Some(set) = self.sets.iter().find(|set| set.of == of) {
            return Ok(set.clone());
        }
        let folder = self.folder.join(format!("set-{}", self.sets.len()));
        self.room_to_load(oltp.data())?;
        let set = load(of, oltp, &folder, &self.run, seed, interrupt, progress);
        match &set {
            Ok(set) => self.sets.push(set.clone()),
            // Half a data set serves no cell.
            Err(_) => drop(std::fs::remove_dir_all(&folder)),
        }
        set
    }

    /// Refuses to load what has no room, or whose copy would have none.
    fn room_to_load(&self, needed: Bytes) -> Result<(), OltpError> {
        let folder = &self.folder;
        std::fs::create_dir_all(folder).map_err(|source| OltpError::Io { path: folder.clone(), source })?;
        match self.copies.take_room(folder) {
            true => {
                room(folder, needed * 2, "for databases, which are loaded first, and a copy for each cell")
            }
            false => room(folder, needed, "for databases, which are loaded first"),
        }
    }

    /// Refuses a cell whose copy of so much has no room.
    ///
    /// # Errors
    /// [`OltpError::Invalid`] with the directory and what is free there.
    pub fn room_for(&self, copy: Bytes) -> Result<(), OltpError> {
        match self.copies.take_room(&self.folder) {
            true => room(&self.folder, copy, "for a cell's copy of the loaded databases"),
            false => Ok(()),
        }
    }
}

impl Copies {
    /// Whether they take room where data sets lie.
    fn take_room(self, folder: &Path) -> bool {
        let kind = || u64::try_from(rustix::fs::statfs(folder).ok()?.f_type).ok();
        let shared = || kind().is_some_and(|kind| SHARING.contains(&kind));
        match self {
            Copies::Beside => !shared(),
            Copies::InContents => true,
            Copies::Elsewhere => false,
        }
    }
}

/// Refuses where less is free than is needed.
fn room(folder: &Path, needed: Bytes, what: &str) -> Result<(), OltpError> {
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
    /// Copies instance `number` to where a cell wants it.
    ///
    /// # Errors
    /// [`OltpError`] where there is no room, or `interrupt` is set.
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
    of: Made,
    oltp: &Oltp,
    folder: &Path,
    run: &Path,
    seed: Seed,
    interrupt: &Arc<AtomicBool>,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<DataSet, OltpError> {
    std::fs::create_dir_all(folder).map_err(|source| OltpError::Io { path: folder.to_owned(), source })?;
    let needed = oltp.data();
    let settings = Settings {
        engine: of.engine,
        programs: of.programs.clone(),
        data_files: of.data_files,
        data_file_size: oltp.of_instance().data_file_size,
        options: of.options.clone(),
        buffer_pool: Some(WHILE_LOADING),
        log_size: Some((needed / 2).min(WHILE_LOADING)),
        durability: Some(Durability::None),
        ..Settings::default()
    };
    let (mut all, mut conditions) = (Vec::new(), Vec::<(String, i64)>::new());
    for number in 0..of.instances {
        let own = |what: &str| folder.join(format!("{what}-{number}"));
        let log = of.log_apart.then(|| own("log"));
        let places = Places { data: own("data"), log, run: run.join(format!("load-{number}")) };
        make(&places)?;
        let scale = share(oltp, number);
        let mut instance = instance::start(&settings, &places, interrupt)?;
        let database = instance.database();
        let share = |share: f64| progress((f64::from(number) + share) / f64::from(of.instances));
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
    Ok(DataSet { of, places: all, conditions, bytes, log_bytes })
}

/// Leaves of the log, which was large for speed, what a cell with a small one would have: it may not fit otherwise.
fn shrink(settings: &Settings, places: &Places, interrupt: &Arc<AtomicBool>) -> Result<(), OltpError> {
    if !settings.engine.has_sized_log() {
        return Ok(());
    }
    let small = Settings { log_size: Some(LOG_LEFT), ..settings.clone() };
    instance::start(&small, places, interrupt)?.stop()
}

/// Adds the rows that break conditions in one more instance.
pub(crate) fn add(sums: &mut Vec<(String, i64)>, found: Vec<check::Condition>) {
    for condition in found {
        match sums.iter_mut().find(|(name, _)| *name == condition.name) {
            Some((_, broken)) => *broken += condition.broken,
            None => sums.push((condition.name.to_string(), condition.broken)),
        }
    }
}

/// Makes the directories of an instance.
pub fn make(places: &Places) -> Result<(), OltpError> {
    let all = [Some(&places.data), places.log.as_ref(), Some(&places.run)];
    all.into_iter().flatten().try_for_each(|path| {
        std::fs::create_dir_all(path).map_err(|source| OltpError::Io { path: path.clone(), source })
    })
}

/// Bytes that are free where a directory lies.
fn free(path: &Path) -> Bytes {
    let free = rustix::fs::statvfs(path).map(|stat| stat.f_bavail * stat.f_frsize);
    Bytes::new(free.unwrap_or(u64::MAX))
}

/// Bytes that the files below a directory take.
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

    /// Symptom: a cell whose log lay with its data found its data set's log apart, and its server did not start. Cause: any
    /// `log_device` was taken for another one. Fix: the cell's own places decide, and each kind has its data set.
    #[test]
    fn logs_are_apart_where_the_log_has_a_device_of_its_own() {
        let text = "target.device = \"intel-x25-e-32gb\"\n[oltp]\nengine = \"postgresql\"\nduration = \"1s\"\n\
                    [sweep]\nlog_device = [\"intel-x25-e-32gb\", \"raptor-10k-150gb\"]\n";
        let plan = plan(text);
        let made = |cell: usize| {
            let asked = &plan.cells[cell].settings;
            Made::by(asked, asked.load.work.transactions().expect("databases"))
        };
        assert_eq!([made(0).log_apart, made(1).log_apart], [false, true]);
        assert_ne!(made(0), made(1), "a data set of each kind");
        let devices = [0, 1].map(|cell| log_device(&plan.cells[cell].settings));
        assert_eq!(devices, [None, Some("raptor-10k-150gb")]);
    }

    #[test]
    fn a_directory_for_the_log_beside_a_simulated_drive_is_refused() {
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
    fn a_copy_that_does_not_fit_is_refused_with_the_directory_and_one_that_takes_no_room_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let sets = |copies| DataSets::new(folder.path().join("sets"), folder.path().join("run"), copies);
        let most = free(folder.path()) + Bytes::gib(1);
        for (copies, half, whole) in [
            // Two halves of a little more than there is.
            (Copies::InContents, false, false),
            (Copies::Elsewhere, true, false),
        ] {
            let loaded = [most / 2, most].map(|needed| sets(copies).room_to_load(needed));
            assert_eq!(loaded.each_ref().map(Result::is_ok), [half, whole], "{copies:?}: {loaded:?}");
        }
        let (ours, elsewhere) = (sets(Copies::InContents), sets(Copies::Elsewhere));
        ours.room_to_load(Bytes::mib(1)).expect("it fits");
        let error = ours.room_for(most).expect_err("too much").to_string();
        assert!(
            error.contains(&folder.path().display().to_string()) && error.contains("free there"),
            "{error}"
        );
        ours.room_for(Bytes::mib(1)).expect("it fits");
        elsewhere.room_for(most).expect("elsewhere");
    }
}
