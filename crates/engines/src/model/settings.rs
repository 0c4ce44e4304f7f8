//! Which engine is modelled, with what it takes.
//!
//! Leaves out where files lie.

use super::innodb::{self, InnodbSettings};
use super::myisam::MyisamSettings;
use crate::{Engine, Settings, SettingsError};
use lowtide_core::Bytes;

/// A storage engine in virtual time, with every default filled in.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelSettings {
    /// InnoDB.
    Innodb(InnodbSettings),
    /// MyISAM, and the page cache of the kernel beneath it.
    Myisam(MyisamSettings),
}

impl ModelSettings {
    /// What settings mean.
    ///
    /// # Errors
    /// [`SettingsError`] for an unknown option, a value that an option does not accept, or an engine that is
    /// no model.
    pub fn of(settings: &Settings) -> Result<ModelSettings, SettingsError> {
        match settings.engine {
            Engine::InnodbModel => InnodbSettings::of(settings).map(ModelSettings::Innodb),
            Engine::MyisamModel => MyisamSettings::of(settings).map(ModelSettings::Myisam),
            other => Err(SettingsError(format!("{other} is not a model"))),
        }
    }

    /// Bytes of its log.
    pub fn log(&self) -> Bytes {
        match self {
            ModelSettings::Innodb(model) => model.log,
            ModelSettings::Myisam(_) => Bytes::ZERO,
        }
    }

    /// Bytes of log and system tablespace on the device of the data, and on the log's where that is one of its own.
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
    /// Whether the system tablespace lies with the log, where that has a device of its own.
    pub fn system_with_log(&self) -> bool {
        matches!(self, ModelSettings::Innodb(model) if model.system_with_log)
    }

    /// Names and values, for a report.
    pub fn told(&self) -> Vec<(String, String)> {
        match self {
            ModelSettings::Innodb(model) => model.told(),
            ModelSettings::Myisam(model) => model.told(),
        }
    }

    /// What was asked for and the engine has no word for.
    pub fn ignored(&self) -> &[String] {
        match self {
            ModelSettings::Innodb(_) => &[],
            ModelSettings::Myisam(model) => &model.ignored,
        }
    }
}
