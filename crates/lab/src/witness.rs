//! Reads the drive's own counters before and after a campaign, and detects other users of the device during a load.
//!
//! The lifetime is computed from these counters in `lowtide_report::lifetime`.

use crate::smart::Reading;
use lowtide_core::Bytes;
use lowtide_host::block::{Disk, Traffic};
use lowtide_record::fact::{Fact, LOG, WARNING};
use std::path::Path;

/// Foreign traffic up to this share of the load's own traffic is ignored, because it may come from the filesystem or
/// from lowtide.
const SHARE: f64 = 0.05;
/// Foreign traffic up to this amount is also ignored.
const IGNORED: Bytes = Bytes::mib(4);

/// The share of a drive's rated life that writing `bytes` uses, and the counters from which the share was computed.
/// `None` if the drive does not report its used life, or reports 0 %.
pub fn share_of_life(disk: &Disk, bytes: Bytes) -> Option<(f64, String)> {
    let (reading, _) = read_counters(disk, "now");
    life(&reading?, bytes)
}

/// The calculation of [`share_of_life`]. Drives report whole percents, which limits the accuracy.
fn life(reading: &Reading, bytes: Bytes) -> Option<(f64, String)> {
    let (used, host) = (reading.used_percent.filter(|used| *used >= 1.0)?, reading.host_bytes?);
    let rated = host / used * 100.0;
    Some((bytes.get() as f64 / rated, format!("{used} % used by {} so far", gigabytes(host))))
}

/// Observes the device of a campaign.
#[derive(Debug)]
pub struct Witness {
    disk: Disk,
    before: Option<Reading>,
    traffic: Option<Traffic>,
}

impl Witness {
    /// Begins to observe the disk that holds `path`; `None` if no disk is found. `path` need not exist yet.
    pub fn beneath(path: &Path) -> Option<(Witness, Vec<Fact>)> {
        let here =
            |path: &Path| Disk::beneath(if path.as_os_str().is_empty() { Path::new(".") } else { path });
        path.ancestors().find_map(here).map(Witness::begin)
    }

    /// Begins to observe a disk. Returns its counters as facts.
    pub fn begin(disk: Disk) -> (Witness, Vec<Fact>) {
        let (before, facts) = read_counters(&disk, "before");
        (Witness { disk, before, traffic: None }, facts)
    }

    /// Records the device's traffic at the beginning of a load.
    pub fn load_begins(&mut self) {
        self.traffic = self.disk.traffic();
    }

    /// Compares the device's traffic with `own`, the traffic of the load of cell `label`. Returns a warning if the
    /// device had much more traffic.
    pub fn load_ended(&self, label: &str, own: Traffic) -> Option<Fact> {
        let all = self.disk.traffic()?.since(self.traffic?);
        let foreign = all.since(own);
        let directions = [(foreign.read, "read"), (foreign.written, "written")];
        let much = directions.iter().filter(|(bytes, _)| is_much(*bytes, own));
        let much: Vec<String> =
            much.map(|(bytes, direction)| format!("{:.0} MiB {direction}", bytes.as_mib())).collect();
        if much.is_empty() {
            return None;
        }
        let text = format!(
            "{label}: {} served {} that the load did not ask for, besides its own {:.0} MiB: something \
             else uses it, or its filesystem does more than it is asked for",
            self.disk.node.display(),
            much.join(" and "),
            (own.read + own.written).as_mib()
        );
        Some((WARNING.to_owned(), text))
    }

    /// Reads the counters again, and returns them and their differences as facts.
    pub fn end(self) -> Vec<Fact> {
        let (after, mut facts) = read_counters(&self.disk, "after");
        let (Some(before), Some(after)) = (self.before, after) else { return facts };
        let host = after.host_bytes.zip(before.host_bytes).map(|(after, before)| after - before);
        if let Some(host) = host.filter(|host| *host > 0.0) {
            facts.push(("counted-host-writes".to_owned(), gigabytes(host)));
        }
        if let Some((after, before)) = after.media.zip(before.media) {
            let (host, nand) = (after.host - before.host, after.nand - before.nand);
            if host > 0.0 && nand > 0.0 {
                facts.push(("counted-write-amplification".to_owned(), format!("{:.2}", nand / host)));
            }
        }
        facts
    }
}

fn is_much(foreign: Bytes, own: Traffic) -> bool {
    foreign > IGNORED && foreign.get() as f64 > SHARE * (own.read + own.written).get() as f64
}

/// Reads the drive's counters. Also returns its complete logs as facts.
fn read_counters(disk: &Disk, when: &str) -> (Option<Reading>, Vec<Fact>) {
    let mut facts = Vec::new();
    let mut reading: Option<Reading> = None;
    for (number, log) in disk.logs().iter().enumerate() {
        let text = log.to_string();
        if let Ok(read) = Reading::parse(&text) {
            reading = Some(match reading {
                Some(earlier) => earlier.with(read),
                None => read,
            });
        }
        facts.push((format!("{LOG}{when}-{}", number + 1), text));
    }
    facts.extend(reading.as_ref().map(|reading| (format!("drive-{when}"), describe(reading))));
    (reading, facts)
}

/// A reading in one line.
fn describe(reading: &Reading) -> String {
    let mut parts = Vec::new();
    parts.extend(reading.host_bytes.map(|bytes| format!("{} written by hosts", gigabytes(bytes))));
    parts.extend(reading.nand_bytes().map(|bytes| format!("{} into the NAND", gigabytes(bytes))));
    parts.extend(reading.used_percent.map(|used| format!("{used} % of its rated life used")));
    parts.extend(reading.power_on_hours.map(|hours| format!("{hours} h switched on")));
    parts.extend(reading.temperature_celsius.map(|celsius| format!("{celsius} °C")));
    parts.join(", ")
}

fn gigabytes(bytes: f64) -> String {
    format!("{:.1} GB", bytes / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_foreign_traffic_is_reported() {
        let own = Traffic { written: Bytes::gib(1), ..Traffic::default() };
        assert!(!is_much(Bytes::mib(3), own) && !is_much(Bytes::mib(40), own));
        assert!(is_much(Bytes::mib(60), own));
        assert!(is_much(Bytes::mib(5), Traffic::default()));
    }

    #[test]
    fn the_share_of_life_is_computed_from_the_counters_of_the_drive() {
        let reading = Reading { host_bytes: Some(30e12), used_percent: Some(10.0), ..Reading::default() };
        // 30 TB are 10 %, so the rated life is 300 TB.
        let (share, why) = life(&reading, Bytes::new(3_000_000_000_000)).expect("known");
        assert!((share - 0.01).abs() < 1e-12 && why == "10 % used by 30000.0 GB so far", "{share} {why}");
        assert_eq!(life(&Reading { used_percent: Some(0.0), ..reading }, Bytes::gib(1)), None);
    }

    #[test]
    fn a_reading_is_one_line() {
        let reading = Reading {
            host_bytes: Some(1.5e12),
            used_percent: Some(3.0),
            temperature_celsius: Some(38.0),
            ..Reading::default()
        };
        assert_eq!(describe(&reading), "1500.0 GB written by hosts, 3 % of its rated life used, 38 °C");
    }
}
