//! Reads the counters of a real drive from the output of `smartctl --json -a` and `nvme … -o json` into a
//! [`Reading`].
//!
//! Supported are smartctl for ATA and NVMe, and the nvme-cli logs `smart-log`, `ocp smart-add-log` and those of
//! vendors with `nand_bytes_written` and `host_bytes_written` (Intel, Solidigm, Memblaze). The user runs these
//! programs, because they need root.

mod attributes;

use attributes::{Counter, HOST, LEFT, NAND, PAGES};
use serde_json::Value as Json;

/// Bytes of an NVMe data unit: a thousand blocks of 512 bytes (NVMe base specification, SMART log 02h).
const NVME_UNIT: f64 = 512_000.0;

/// A drive's counters at one time. Counts start at the manufacture of the drive.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// The model of the drive.
    pub model: Option<String>,
    /// Capacity in bytes.
    pub capacity: Option<f64>,
    /// Power-on hours.
    pub power_on_hours: Option<f64>,
    /// Temperature in degrees Celsius.
    pub temperature_celsius: Option<f64>,
    /// Bytes written by the host.
    pub host_bytes: Option<f64>,
    /// Host writes and NAND writes in the same unit.
    pub media: Option<Media>,
    /// Used share of the rated life in whole percent, as the drive reports it; may exceed 100.
    pub used_percent: Option<f64>,
    /// The names of the counters used, as the drive reports them.
    pub sources: Vec<String>,
    /// Notes about counters that are not used.
    pub notes: Vec<String>,
}

/// Host writes and NAND writes in the same unit. Their ratio is the write amplification.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Media {
    /// Host writes.
    pub host: f64,
    /// NAND writes.
    pub nand: f64,
}

/// An error in the output of `smartctl` or `nvme`.
#[derive(Debug, thiserror::Error)]
pub enum ReadingError {
    /// The text is not JSON.
    #[error("it is not JSON ({0})")]
    Json(#[from] serde_json::Error),
    /// The JSON has no known counter. Contains the message of smartctl, if any.
    #[error("it contains no known counters{}", .0.as_ref().map(|message| format!("; smartctl reports: {message}")).unwrap_or_default())]
    Nothing(Option<String>),
}

impl ReadingError {
    /// The accepted input, in one line.
    pub const ACCEPTED: &str = "the output of `smartctl --json -a /dev/sdX`, `nvme smart-log /dev/nvme0 -o json`, or \
                                `nvme ocp smart-add-log /dev/nvme0 -o json`";
}

impl Reading {
    /// Reads one file.
    ///
    /// # Errors
    /// [`ReadingError`] if the text is not JSON, or has no known counter.
    pub fn parse(text: &str) -> Result<Reading, ReadingError> {
        let json: Json = serde_json::from_str(text)?;
        let mut reading = Reading {
            model: json["model_name"].as_str().map(str::to_owned),
            capacity: number(&json["user_capacity"]["bytes"])
                .or_else(|| number(&json["nvme_total_capacity"])),
            power_on_hours: number(&json["power_on_time"]["hours"]),
            temperature_celsius: number(&json["temperature"]["current"])
                // nvme-cli prints the number in the log, which is in kelvins.
                .or_else(|| Some(number(&json["temperature"])? - 273.0)),
            ..Reading::default()
        };
        reading.nvme(&json);
        reading.vendor(&json);
        reading.ata(&json);
        if reading.host_bytes.is_none() && reading.media.is_none() && reading.used_percent.is_none() {
            let message = &json["smartctl"]["messages"][0]["string"];
            return Err(ReadingError::Nothing(message.as_str().map(str::to_owned)));
        }
        Ok(reading)
    }

    /// Combines two readings taken at the same time. Values of `self` take precedence.
    pub fn with(mut self, other: Reading) -> Reading {
        self.model = self.model.or(other.model);
        self.capacity = self.capacity.or(other.capacity);
        self.power_on_hours = self.power_on_hours.or(other.power_on_hours);
        self.temperature_celsius = self.temperature_celsius.or(other.temperature_celsius);
        self.host_bytes = self.host_bytes.or(other.host_bytes);
        self.used_percent = self.used_percent.or(other.used_percent);
        self.media = match (self.media, other.media) {
            // A file with only NAND bytes lacks the host bytes; the other file may have them.
            (Some(media), _) | (None, Some(media)) if media.host > 0.0 => Some(media),
            (Some(media), _) | (None, Some(media)) => {
                self.host_bytes.map(|host| Media { host, nand: media.nand })
            }
            (None, None) => None,
        };
        self.sources.extend(other.sources);
        self.notes.extend(other.notes);
        self
    }

    /// Bytes written to the NAND, computed from host bytes and write amplification.
    pub fn nand_bytes(&self) -> Option<f64> {
        let media = self.media.filter(|media| media.host > 0.0)?;
        Some(self.host_bytes? * media.nand / media.host)
    }

    /// Reads SMART log 02h, as printed by smartctl or nvme-cli.
    fn nvme(&mut self, json: &Json) {
        let inner = &json["nvme_smart_health_information_log"];
        let log = if inner.is_object() { inner } else { json };
        if let Some(units) = number(&log["data_units_written"]) {
            self.host_bytes = Some(units * NVME_UNIT);
            self.sources.push("data_units_written (512 000 bytes)".to_owned());
        }
        let used = number(&log["percentage_used"]).or_else(|| number(&log["percent_used"]));
        if let Some(used) = used {
            self.used_percent = Some(used);
            self.sources.push("percentage_used".to_owned());
        }
        self.power_on_hours = self.power_on_hours.or_else(|| number(&log["power_on_hours"]));
    }

    /// Reads the NAND writes in the logs of vendors.
    fn vendor(&mut self, json: &Json) {
        if let Some(nand) = number(&json["Physical media units written"]) {
            self.media = Some(Media { host: self.host_bytes.unwrap_or(0.0), nand });
            self.sources.push("Physical media units written (OCP C0h, bytes)".to_owned());
        }
        // The counters are at the top level, or one level down under a heading such as `Device stats`.
        let tables =
            std::iter::once(json).chain(json.as_object().into_iter().flat_map(|object| object.values()));
        for table in tables {
            let raw = |key: &str| number(&table[key]["raw"]).or_else(|| number(&table[key]));
            if let Some((nand, host)) = raw("nand_bytes_written").zip(raw("host_bytes_written")) {
                self.media = Some(Media { host, nand });
                self.sources.push("nand_bytes_written, host_bytes_written".to_owned());
            }
        }
    }

    fn ata(&mut self, json: &Json) {
        let table = json["ata_smart_attributes"]["table"].as_array().map_or(&[][..], Vec::as_slice);
        let find = |id: u64, name: &str| {
            table.iter().find(|row| row["id"] == id && row["name"].as_str() == Some(name))
        };
        let raw = |id: u64, name: &str| find(id, name).and_then(|row| number(&row["raw"]["value"]));
        let sector = number(&json["logical_block_size"]).unwrap_or(512.0);
        let bytes = |counter: &Counter| Some(raw(counter.id, counter.name)? * counter.unit.unwrap_or(sector));
        let named = |counter: &Counter| format!("{} {}", counter.id, counter.name);
        if let Some((counter, host)) = HOST.iter().find_map(|counter| Some((counter, bytes(counter)?))) {
            self.host_bytes = Some(host);
            self.sources.push(named(counter));
        } else if let Some(sectors) = statistic(json, "Logical Sectors Written") {
            self.host_bytes = Some(sectors * sector);
            self.sources.push("Logical Sectors Written".to_owned());
        }
        let nand = NAND.iter().find_map(|group| {
            let counts: Option<Vec<f64>> = group.iter().map(bytes).collect();
            Some((group, counts?.iter().sum::<f64>()))
        });
        let pages = PAGES
            .map(|(id, names)| names.iter().find_map(|name| Some((format!("{id} {name}"), raw(id, name)?))));
        if let (Some((group, nand)), Some(host)) = (nand, self.host_bytes) {
            self.media = Some(Media { host, nand });
            self.sources.extend(group.iter().map(named));
        } else if let [Some((host_name, host)), Some((rest_name, rest))] = pages {
            self.media = Some(Media { host, nand: host + rest });
            self.sources.extend([host_name, rest_name]);
        }
        let samsung = find(251, "NAND_Writes").filter(|_| self.media.is_none());
        self.notes
            .extend(samsung.map(|_| "251 NAND_Writes is not used: its unit is not published.".to_owned()));
        let left = LEFT.iter().find_map(|(id, name)| Some((*id, *name, number(&find(*id, name)?["value"])?)));
        let used = number(&json["endurance_used"]["current_percent"])
            .map(|used| ("endurance_used".to_owned(), used))
            .or_else(|| {
                let indicator = "Percentage Used Endurance Indicator";
                Some((indicator.to_owned(), statistic(json, indicator)?))
            })
            .or_else(|| left.map(|(id, name, left)| (format!("{id} {name}"), 100.0 - left)));
        if let (None, Some((name, used))) = (self.used_percent, used) {
            self.used_percent = Some(used);
            self.sources.push(name);
        }
    }
}

/// A value of the ATA device statistics.
fn statistic(json: &Json, name: &str) -> Option<f64> {
    let pages = json["ata_device_statistics"]["pages"].as_array()?;
    let rows = pages.iter().filter_map(|page| page["table"].as_array()).flatten();
    rows.filter(|row| row["name"].as_str() == Some(name)).find_map(|row| number(&row["value"]))
}

/// A number, given as a number, as text, or as two halves of 64 bits.
fn number(json: &Json) -> Option<f64> {
    let found = match json {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => text.replace(',', "").trim().trim_end_matches('%').parse().ok(),
        Json::Object(halves) => {
            let half = |key: &str| halves.get(key).and_then(Json::as_u64);
            half("lo").map(|low| half("hi").unwrap_or(0) as f64 * 2f64.powi(64) + low as f64)
        }
        _ => None,
    };
    found.filter(|number| number.is_finite() && *number >= 0.0)
}
