//! The settings of a run, as combinations of the values of several factors ([`Factors`]).
//!
//! The crate root and its modules `simulated` and `attached` run the settings.

use super::{Asked, Journal, PowercutError, Setting};
use lowtide_core::Filesystem;
use lowtide_device::power::CacheKind;
use lowtide_engines::{Durability, Engine};
use lowtide_live::Offer;

/// Values of each factor; every combination is a setting.
#[derive(Debug, Clone)]
pub struct Factors {
    /// Databases.
    pub engine: Vec<Engine>,
    /// Durability of commits.
    pub durability: Vec<Durability>,
    /// SQLite's journals; other databases have their own.
    pub journal: Vec<Journal>,
    /// Filesystems. If empty: the simulated filesystem for SQLite, XFS for servers.
    pub filesystem: Vec<Option<Filesystem>>,
    /// `true` if the filesystem flushes the drive.
    pub barrier: Vec<bool>,
    /// Caches of the drive; if empty, the cache in the device file.
    pub cache: Vec<CacheKind>,
}

impl Factors {
    /// Returns all settings in the order of the values; the last factor varies fastest. `possible` skips impossible
    /// settings.
    ///
    /// # Errors
    /// [`PowercutError`] if the device or a cache of it is unknown, if all settings are impossible, or, without
    /// `possible`, if any setting is impossible.
    pub fn settings(&self, asked: &Asked, possible: bool) -> Result<Vec<Setting>, PowercutError> {
        let offer = Offer { scale: asked.scale, ..Offer::of(&asked.device) };
        let mut caches = self.cache.clone();
        if caches.is_empty() {
            caches.push(offer.clone().look_up()?.cache().kind());
        }
        for cache in &caches {
            Offer { cache: Some(*cache), ..offer.clone() }.look_up()?;
        }
        let mut settings = Vec::new();
        for &engine in &self.engine {
            let journals = if engine.has_journal_mode() { &self.journal[..] } else { &[Journal::Wal] };
            let filesystems = match (self.filesystem.as_slice(), engine.is_embedded()) {
                ([], true) => &[None],
                ([], false) => &[Some(Filesystem::Xfs)],
                (filesystems, _) => filesystems,
            };
            for &durability in &self.durability {
                for &journal in journals {
                    for &filesystem in filesystems {
                        for &barrier in &self.barrier {
                            settings.extend(caches.iter().map(|&cache| Setting {
                                engine,
                                durability,
                                journal,
                                filesystem,
                                barrier,
                                cache,
                            }));
                        }
                    }
                }
            }
        }
        if possible {
            settings.retain(|setting| setting.check().is_ok());
        }
        settings.iter().try_for_each(Setting::check).map_err(PowercutError::Setting)?;
        if settings.is_empty() {
            return Err(PowercutError::Setting("all of these combinations are impossible".to_owned()));
        }
        Ok(settings)
    }
}

impl Setting {
    /// Checks that the setting is possible. The error is the reason why not.
    fn check(&self) -> Result<(), String> {
        let Setting { engine, filesystem, barrier, .. } = self;
        if !engine.has_transactions() {
            Err(format!("{engine} has no transactions: use sqlite, mariadb or postgresql"))
        } else if filesystem.is_none() && !engine.is_embedded() {
            Err(format!("{engine} is a server, which needs a filesystem of this machine: use xfs or ext4"))
        } else if *filesystem == Some(Filesystem::Xfs) && !barrier {
            Err("XFS always has barriers since Linux 4.19, which removed `nobarrier`: use ext4, which has \
                 `barrier=0`"
                .to_owned())
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::{Filesystem, Seed};

    fn asked(device: &str) -> Asked {
        Asked { device: device.to_owned(), scale: 16, cuts: None, seed: Seed::new(1), keep: None }
    }

    fn factors() -> Factors {
        Factors {
            engine: vec![Engine::Sqlite],
            durability: vec![Durability::Full],
            journal: vec![Journal::Wal],
            filesystem: vec![],
            barrier: vec![true],
            cache: vec![],
        }
    }

    #[test]
    fn defaults_follow_from_the_engine_and_the_device() {
        let settings = factors().settings(&asked("intel-320-160gb"), false).expect("possible");
        let [one] = settings.as_slice() else { panic!("{settings:?}") };
        assert_eq!((one.filesystem, one.cache), (None, CacheKind::Protected));
        let server = Factors { engine: vec![Engine::Postgresql], ..factors() };
        let settings = server.settings(&asked("mtron-32gb"), false).expect("possible");
        assert_eq!((settings[0].filesystem, settings[0].cache), (Some(Filesystem::Xfs), CacheKind::Volatile));
    }

    #[test]
    fn impossible_combinations_are_refused_or_skipped() {
        let device = asked("intel-320-160gb");
        for (wrong, fault) in [
            (Factors { engine: vec![Engine::MariadbMyisam], ..factors() }, "no transactions"),
            (Factors { engine: vec![Engine::Mariadb], filesystem: vec![None], ..factors() }, "a server"),
            (
                Factors { filesystem: vec![Some(Filesystem::Xfs)], barrier: vec![false], ..factors() },
                "removed `nobarrier`",
            ),
        ] {
            let error = wrong.settings(&device, false).expect_err(fault).to_string();
            assert!(error.contains(fault), "{error}");
            assert!(wrong.settings(&device, true).is_err(), "no setting is possible");
        }
        let all = Factors {
            filesystem: vec![Some(Filesystem::Xfs), Some(Filesystem::Ext4)],
            barrier: vec![true, false],
            cache: vec![CacheKind::Protected, CacheKind::Lying],
            ..factors()
        };
        assert_eq!(all.settings(&device, true).expect("some are possible").len(), 6);
        let cloud = Factors { cache: vec![CacheKind::Volatile], ..factors() };
        assert!(cloud.settings(&Asked { scale: 1, ..asked("cloud-gp3-3000") }, true).is_err());
    }
}
