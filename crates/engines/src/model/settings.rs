//! Settings of a modelled engine, resolved from the common settings.

use super::innodb::{self, InnodbSettings};
use super::myisam::MyisamSettings;
use crate::{Engine, Settings, SettingsError};
use lowtide_core::Bytes;

/// A storage engine in virtual time, with every default filled in.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelSettings {
    /// InnoDB.
    Innodb(InnodbSettings),
    /// MyISAM on the kernel's page cache.
    Myisam(MyisamSettings),
}

impl ModelSettings {
    /// Resolves settings.
    ///
    /// # Errors
    /// [`SettingsError`] for an unknown option, a value that an option does not accept, or an engine that is
    /// not a model.
    pub fn of(settings: &Settings) -> Result<ModelSettings, SettingsError> {
        match settings.engine {
            Engine::InnodbModel => InnodbSettings::of(settings).map(ModelSettings::Innodb),
            Engine::MyisamModel => MyisamSettings::of(settings).map(ModelSettings::Myisam),
            other => Err(SettingsError(format!("{other} is not a model"))),
        }
    }

    /// Size of the redo log.
    pub fn log(&self) -> Bytes {
        match self {
            ModelSettings::Innodb(model) => model.log,
            ModelSettings::Myisam(_) => Bytes::ZERO,
        }
    }

    /// Combined size of log and system tablespace on the data device and on the log device. The second size is zero
    /// unless the log has its own device (`own_log`).
    pub fn beside_data(&self, own_log: bool) -> (Bytes, Bytes) {
        let system = match self {
            ModelSettings::Innodb(_) => innodb::SYSTEM,
            ModelSettings::Myisam(_) => Bytes::ZERO,
        };
        match (own_log, self.system_with_log()) {
            (false, _) => (self.log() + system, Bytes::ZERO),
            (true, false) => (system, self.log()),
            (true, true) => (Bytes::ZERO, self.log() + system),
        }
    }
    /// Returns true if the system tablespace belongs on the log device, if the log has its own device.
    pub fn system_with_log(&self) -> bool {
        matches!(self, ModelSettings::Innodb(model) if model.system_with_log)
    }

    /// Names and values for a report.
    pub fn told(&self) -> Vec<(String, String)> {
        match self {
            ModelSettings::Innodb(model) => model.told(),
            ModelSettings::Myisam(model) => model.told(),
        }
    }

    /// Settings that the engine does not support, one line each.
    pub fn ignored(&self) -> &[String] {
        match self {
            ModelSettings::Innodb(_) => &[],
            ModelSettings::Myisam(model) => &model.ignored,
        }
    }
}
