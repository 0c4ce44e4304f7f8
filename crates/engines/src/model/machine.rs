//! The machine of a modelled engine, and parsing of options common to the engines.

use crate::SettingsError;
use lowtide_core::{Nanos, suggest};

/// Processors, and the processor time of transactions and requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Number of processors.
    pub cores: u32,
    /// Mean processor time of a transaction over the mix, without contention.
    pub cpu: Nanos,
    /// Processor time of a device request, including kernel time.
    pub io_cpu: Nanos,
    /// Slow-down per concurrent transaction: the serial share in Gunther's law of scalability ("Guerrilla
    /// Capacity Planning", 2007, chapter 4).
    pub contention: f64,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine { cores: 16, cpu: Nanos::from_micros(500), io_cpu: Nanos::from_micros(20), contention: 0.0 }
    }
}

impl Machine {
    /// Sets an option of the machine. Returns false if the machine has no such option.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<bool, SettingsError> {
        match key {
            "contention" => self.contention = share(key, value)?,
            "cores" => self.cores = at_least_1(key, value)?,
            "cpu" => self.cpu = time(key, value)?,
            "io-cpu" => self.io_cpu = time(key, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

pub(super) fn at_least_1(key: &str, value: &str) -> Result<u32, SettingsError> {
    match value.parse() {
        Ok(0) => Err(SettingsError(format!("`{key} = \"0\"`: at least 1 is needed"))),
        Ok(number) => Ok(number),
        Err(_) => Err(wrong(key, value, "a number, such as 16", &[])),
    }
}

pub(super) fn share(key: &str, value: &str) -> Result<f64, SettingsError> {
    let share = value.parse().ok().filter(|share| (0.0..1.0).contains(share));
    share.ok_or_else(|| wrong(key, value, "a share from 0 to below 1, such as 0.02", &[]))
}

pub(super) fn time(key: &str, value: &str) -> Result<Nanos, SettingsError> {
    value.parse().map_err(|_| wrong(key, value, "a time, such as 400us", &[]))
}

pub(super) fn switch(key: &str, value: &str) -> Result<bool, SettingsError> {
    match value {
        "on" | "1" => Ok(true),
        "off" | "0" => Ok(false),
        _ => Err(wrong(key, value, "on or off", &["on", "off"])),
    }
}

/// Error for a value that an option does not accept.
pub(super) fn wrong(key: &str, value: &str, accepted: &str, names: &[&'static str]) -> SettingsError {
    let hint = hint(value, names);
    SettingsError(format!("`{key} = \"{value}\"`: {accepted}{hint}"))
}

/// Error for an option that an engine does not have.
pub(super) fn unknown(engine: &str, key: &str, keys: &[&'static str]) -> SettingsError {
    let hint = hint(key, keys);
    SettingsError(format!("{engine} has no option `{key}`: {}{hint}", keys.join(", ")))
}

fn hint(given: &str, names: &[&'static str]) -> String {
    let near = suggest::nearest(given, names.iter().copied());
    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}
