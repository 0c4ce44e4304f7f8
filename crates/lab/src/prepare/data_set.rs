//! Loaded databases, kept aside: each cell gets a copy, so that all of them start equal.
//!
//! Loaded once for all cells whose files would be the same, with settings for speed, and checked then. Leaves out what
//! is in them (crate `lowtide-oltp`), and where the copies lie (`home`).

use crate::experiment::Oltp;
use lowtide_core::{Bytes, Seed};
use lowtide_oltp::tpcc::Scale;
use lowtide_oltp::{Durability, Engine, OltpError, Places, Settings, check, instance, snapshot};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Memory for pages while data are loaded, and the most bytes of log.
const WHILE_LOADING: Bytes = Bytes::gib(1);
/// Bytes of log that a loaded database keeps.
const LOG_LEFT: Bytes = Bytes::mib(32);

/// The data sets of a campaign. Dropping them removes them.
#[derive(Debug)]
pub(crate) struct DataSets {
    folder: PathBuf,
    run: PathBuf,
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
    fn by(oltp: &Oltp) -> Made {
        let Settings { engine, programs, data_files, options, .. } = oltp.settings.clone();
        let (warehouses, instances) = (oltp.warehouses, oltp.instances);
        let log_apart = oltp.log_device.is_some() || oltp.log_directory.is_some();
        Made { engine, programs, warehouses, instances, data_files, options, log_apart }
    }
}

/// The warehouses of instance `number` of so many.
pub(crate) fn share(oltp: &Oltp, number: u32) -> Scale {
    let first =
        |number: u32| (u64::from(oltp.warehouses) * u64::from(number) / u64::from(oltp.instances)) as u32 + 1;
    Scale { warehouses: first(number)..=first(number + 1) - 1, ..Scale::warehouses(oltp.warehouses) }
}

impl DataSets {
    /// None yet; they will lie in `folder`, which is theirs alone, and their servers' sockets in `run`.
    pub fn new(folder: PathBuf, run: PathBuf) -> DataSets {
        DataSets { folder, run, sets: Vec::new() }
    }

    /// The data set that `oltp` asks for, loaded if there is none yet; `progress` hears of the share that is in.
    ///
    /// # Errors
    /// [`OltpError`] where it cannot be loaded, or `interrupt` is set.
    pub fn get(
        &mut self,
        oltp: &Oltp,
        seed: Seed,
        interrupt: &AtomicBool,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<DataSet, OltpError> {
        let of = Made::by(oltp);
        if let Some(set) = self.sets.iter().find(|set| set.of == of) {
            return Ok(set.clone());
        }
        let folder = self.folder.join(format!("set-{}", self.sets.len()));
        let set = load(of, oltp, &folder, &self.run, seed, interrupt, progress);
        match &set {
            Ok(set) => self.sets.push(set.clone()),
            // Half a data set serves no cell.
            Err(_) => drop(std::fs::remove_dir_all(&folder)),
        }
        set
    }
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
    interrupt: &AtomicBool,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<DataSet, OltpError> {
    std::fs::create_dir_all(folder).map_err(|source| OltpError::Io { path: folder.to_owned(), source })?;
    let (needed, free) = (oltp.data(), free(folder));
    if free < needed {
        let message = format!(
            "about {needed} of databases are loaded below {} first, and {free} are free there: a smaller share, such as \
             `--scale 1/20`, or another TMPDIR",
            folder.display()
        );
        return Err(OltpError::Invalid(message));
    }
    let settings = Settings {
        engine: of.engine,
        programs: of.programs.clone(),
        data_files: of.data_files,
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
        let mut instance = instance::start(&settings, &places)?;
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
        shrink(&settings, &places)?;
        all.push(places);
    }
    let bytes = all
        .iter()
        .map(|places: &Places| size(&places.data) + places.log.as_deref().map_or(Bytes::ZERO, size));
    let bytes = bytes.sum();
    Ok(DataSet { of, places: all, conditions, bytes })
}

/// Leaves of the log, which was large for speed, what a cell with a small one would have: it may not fit otherwise.
fn shrink(settings: &Settings, places: &Places) -> Result<(), OltpError> {
    if settings.engine == Engine::Sqlite {
        return Ok(());
    }
    instance::start(&Settings { log_size: Some(LOG_LEFT), ..settings.clone() }, places)?.stop()
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
pub(crate) fn make(places: &Places) -> Result<(), OltpError> {
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
