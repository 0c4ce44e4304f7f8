//! From values of several factors to settings, each a row ([`Factors`]); and which cannot be.
//!
//! Not here: what then happens.

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
    /// What a commit waits for.
    pub durability: Vec<Durability>,
    /// SQLite's journals; other databases have their own.
    pub journal: Vec<Journal>,
    /// What they lie on; empty is simulated for SQLite and XFS for servers.
    pub filesystem: Vec<Option<Filesystem>>,
    /// Whether the filesystem flushes the drive.
    pub barrier: Vec<bool>,
    /// Caches of the drive; empty is the one that the device file says.
    pub cache: Vec<CacheKind>,
}

impl Factors {
    /// All settings, in the order in which the values are given, the last factor's changing first. With `possible`, what
    /// cannot be is left out.
    ///
    /// # Errors
    /// [`PowercutError`] where one cannot be, or none can; or there is no such device, or not with such a cache.
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
        for engine in self.engine.iter().copied() {
            let (journals, filesystems) = (self.journals(engine), self.filesystems(engine));
            for durability in self.durability.iter().copied() {
                for journal in journals.iter().copied() {
                    for filesystem in filesystems.iter().copied() {
                        for barrier in self.barrier.iter().copied() {
                            for cache in caches.iter().copied() {
                                let setting =
                                    Setting { engine, durability, journal, filesystem, barrier, cache };
                                match setting.check() {
                                    Ok(()) => settings.push(setting),
                                    Err(_) if possible => {}
                                    Err(why) => return Err(PowercutError::Setting(why)),
                                }
                            }
                        }
                    }
                }
            }
        }
        match settings.is_empty() {
            true => Err(PowercutError::Setting("none of these combinations can be".to_owned())),
            false => Ok(settings),
        }
    }

    fn journals(&self, engine: Engine) -> Vec<Journal> {
        if engine.has_journal_mode() { self.journal.clone() } else { vec![Journal::Wal] }
    }

    fn filesystems(&self, engine: Engine) -> Vec<Option<Filesystem>> {
        match (self.filesystem.is_empty(), engine.is_embedded()) {
            (false, _) => self.filesystem.clone(),
            (true, true) => vec![None],
            (true, false) => vec![Some(Filesystem::Xfs)],
        }
    }
}

impl Setting {
    /// Why it cannot be.
    fn check(&self) -> Result<(), String> {
        let Setting { engine, filesystem, barrier, .. } = self;
        if !engine.has_transactions() {
            return Err(format!(
                "{engine} has no transactions that could be lost or not: take sqlite, mariadb or postgresql"
            ));
        }
        if filesystem.is_none() && !engine.is_embedded() {
            return Err(format!(
                "{engine} is a program of its own, and runs on filesystems of this machine: take xfs or ext4"
            ));
        }
        if *filesystem == Some(Filesystem::Xfs) && !barrier {
            return Err(
                "XFS has had barriers always since Linux 4.19 (`nobarrier` is no option any more): take \
                        ext4, which has `barrier=0`"
                    .to_owned(),
            );
        }
        Ok(())
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
    fn what_is_not_said_follows_from_engine_and_device() {
        let settings = factors().settings(&asked("intel-320-160gb"), false).expect("possible");
        let [one] = settings.as_slice() else { panic!("{settings:?}") };
        assert_eq!((one.filesystem, one.cache), (None, CacheKind::Protected));
        let server = Factors { engine: vec![Engine::Postgresql], ..factors() };
        let settings = server.settings(&asked("mtron-32gb"), false).expect("possible");
        assert_eq!((settings[0].filesystem, settings[0].cache), (Some(Filesystem::Xfs), CacheKind::Volatile));
    }

    #[test]
    fn combinations_that_cannot_be_are_told_or_left_out() {
        let device = asked("intel-320-160gb");
        for (wrong, told) in [
            (Factors { engine: vec![Engine::MariadbMyisam], ..factors() }, "no transactions"),
            (
                Factors { engine: vec![Engine::Mariadb], filesystem: vec![None], ..factors() },
                "a program of its own",
            ),
            (
                Factors { filesystem: vec![Some(Filesystem::Xfs)], barrier: vec![false], ..factors() },
                "`nobarrier` is no option any more",
            ),
        ] {
            let error = wrong.settings(&device, false).expect_err(told).to_string();
            assert!(error.contains(told), "{error}");
            assert!(wrong.settings(&device, true).is_err(), "nothing is left");
        }
        let all = Factors {
            filesystem: vec![Some(Filesystem::Xfs), Some(Filesystem::Ext4)],
            barrier: vec![true, false],
            cache: vec![CacheKind::Protected, CacheKind::Lying],
            ..factors()
        };
        assert_eq!(all.settings(&device, true).expect("some can be").len(), 6);
        let cloud = Factors { cache: vec![CacheKind::Volatile], ..factors() };
        assert!(cloud.settings(&Asked { scale: 1, ..asked("cloud-gp3-3000") }, true).is_err());
    }
}
