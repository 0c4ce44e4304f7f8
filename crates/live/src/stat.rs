//! What a live drive says of itself ([`Stat`]): for people, for programs as JSON, for Prometheus.
//!
//! Not here: where it is asked for; see `control`.

use super::counts::{Requests, Spread};
use lowtide_core::Counters;
use lowtide_host::live::Usage;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Whether a drive answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Power {
    /// It does.
    On,
    /// Its time stands still, and requests wait.
    Paused,
    /// Its power is cut, and every request fails.
    Off,
}

/// A live drive at an instant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stat {
    /// The export's name.
    pub name: String,
    /// What device it simulates.
    pub title: String,
    /// Bytes the host may address.
    pub capacity_bytes: u64,
    /// Whether it answers.
    pub power: Power,
    /// Seconds since it was opened.
    pub open_s: f64,
    /// Seconds the model has lived, with those of the state it was opened with.
    pub model_s: f64,
    /// What the model counted since it was opened.
    pub since_open: Counters,
    /// What the model counted since it was new.
    pub since_new: Counters,
    /// Blocks that are erased and empty.
    pub free_blocks: u64,
    /// Reads.
    pub reads: Requests,
    /// Writes.
    pub writes: Requests,
    /// Flushes.
    pub flushes: Requests,
    /// Trims and zeroes.
    pub trims: Requests,
    /// Requests not answered.
    pub in_flight: u64,
    /// The most there were.
    pub most_in_flight: u64,
    /// Bytes a power cut may take back.
    pub volatile_bytes: u64,
    /// How long after its instant each answer left; only where answers have instants.
    pub lateness: Option<Spread>,
    /// Power cuts since it was opened.
    pub power_cuts: u64,
    /// Writes of which power cuts left nothing.
    pub lost_writes: u64,
    /// Writes of which power cuts left a part.
    pub torn_writes: u64,
    /// Requests recorded, where they are.
    pub recording: Option<u64>,
    /// The clients of the server, of all its drives together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Clients>,
}

/// The NBD clients of a server, and the memory for their requests and replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clients {
    /// Clients that chose an export and have not left.
    pub connected: u64,
    /// Those that are not read from until they take replies.
    pub waiting: u64,
    /// Bytes that all of them hold.
    pub buffers_used_bytes: u64,
    /// Bytes that they may hold.
    pub buffers_bytes: u64,
}

impl From<Usage> for Clients {
    fn from(usage: Usage) -> Clients {
        let Usage { clients, waiting, used, bytes } = usage;
        Clients { connected: clients, waiting, buffers_used_bytes: used, buffers_bytes: bytes }
    }
}

impl Stat {
    /// What was counted between two moments.
    pub(super) fn between(before: &Counters, after: &Counters) -> Counters {
        Counters {
            host_read_bytes: after.host_read_bytes - before.host_read_bytes,
            host_written_bytes: after.host_written_bytes - before.host_written_bytes,
            nand_written_bytes: after.nand_written_bytes - before.nand_written_bytes,
            gc_moved_bytes: after.gc_moved_bytes - before.gc_moved_bytes,
            map_written_bytes: after.map_written_bytes - before.map_written_bytes,
            map_misses: after.map_misses - before.map_misses,
            rmw_reads: after.rmw_reads - before.rmw_reads,
            erases: after.erases - before.erases,
            free_blocks: after.free_blocks,
            gc_stall_ns: after.gc_stall_ns - before.gc_stall_ns,
            trimmed_bytes: after.trimmed_bytes - before.trimmed_bytes,
            lost_bytes: after.lost_bytes - before.lost_bytes,
            host_cpu_ns: after.host_cpu_ns - before.host_cpu_ns,
            layer_written_bytes: after.layer_written_bytes - before.layer_written_bytes,
        }
    }

    /// NAND bytes per host byte since it was opened, where the host wrote and there is NAND.
    pub fn write_amplification(&self) -> Option<f64> {
        let Counters { host_written_bytes: host, nand_written_bytes: nand, .. } = self.since_open;
        (host > 0 && nand > 0).then(|| nand as f64 / host as f64)
    }

    /// Why the answers of this drive are not those of the device, where this machine is too slow for it: half of them
    /// were late by more than a tenth of what they take.
    pub fn too_slow(&self) -> Option<String> {
        self.too_slow_since(None)
    }

    /// The same of the answers since an earlier look at the drive: those before, which may have left at once, take no part.
    pub fn too_slow_since(&self, before: Option<&Stat>) -> Option<String> {
        let late = self.lateness?;
        let lateness_before = before.and_then(|stat| stat.lateness).unwrap_or_default();
        let (late_us, answers) = mean_since([(&late, &lateness_before)]);
        let none = Requests::default();
        let (reads, writes) = before.map_or((&none, &none), |stat| (&stat.reads, &stat.writes));
        let pairs = [(&self.reads, reads), (&self.writes, writes)];
        let (mean_us, count) = mean_since(pairs.map(|(after, before)| (&after.latency, &before.latency)));
        (answers >= 100.0 && late_us > 0.1 * mean_us && count > 0.0).then(|| {
            format!(
                "answers left {late_us:.0} us late on average, of {mean_us:.0} us that they take: \
                 this machine is too slow for this device under this load"
            )
        })
    }
}

/// The mean of what was added to distributions, in microseconds, and how many that were.
fn mean_since<const N: usize>(pairs: [(&Spread, &Spread); N]) -> (f64, f64) {
    let of = |it: &Spread| (it.mean_us * it.count as f64, it.count as f64);
    let (sum, count) = pairs.iter().fold((0.0, 0.0), |(sum, count), (after, before)| {
        let ((after_us, after), (before_us, before)) = (of(after), of(before));
        (sum + after_us - before_us, count + after - before)
    });
    (sum / f64::max(count, 1.0), count)
}

/// All drives in the text format of Prometheus.
pub fn prometheus(stats: &[Stat]) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, value: &dyn Fn(&Stat) -> Vec<(String, f64)>| {
        let _ = writeln!(text, "# HELP lowtide_{name} {help}\n# TYPE lowtide_{name} {kind}");
        for stat in stats {
            for (labels, value) in value(stat) {
                let drive = escape(&stat.name);
                let _ = writeln!(text, "lowtide_{name}{{drive=\"{drive}\"{labels}}} {value}");
            }
        }
    };
    let one = |value: f64| vec![(String::new(), value)];
    let counter = "counter";
    metric("host_read_bytes_total", counter, "Bytes the host has read.", &|it| {
        one(it.since_new.host_read_bytes as f64)
    });
    metric("host_written_bytes_total", counter, "Bytes the host has written.", &|it| {
        one(it.since_new.host_written_bytes as f64)
    });
    metric("nand_written_bytes_total", counter, "Bytes programmed into NAND for any reason.", &|it| {
        one(it.since_new.nand_written_bytes as f64)
    });
    metric("layer_written_bytes_total", counter, "Bytes of blocks that a log layer wrote.", &|it| {
        if it.since_new.layer_written_bytes > 0 {
            one(it.since_new.layer_written_bytes as f64)
        } else {
            Vec::new()
        }
    });
    metric("gc_moved_bytes_total", counter, "Bytes garbage collection has copied.", &|it| {
        one(it.since_new.gc_moved_bytes as f64)
    });
    metric("gc_stall_seconds_total", counter, "How long host writes waited for garbage collection.", &|it| {
        one(it.since_new.gc_stall_ns as f64 / 1e9)
    });
    metric("erases_total", counter, "Blocks erased.", &|it| one(it.since_new.erases as f64));
    metric("free_blocks", "gauge", "Blocks erased and empty.", &|it| one(it.free_blocks as f64));
    metric("write_amplification", "gauge", "NAND bytes per host byte since the drive was opened.", &|it| {
        it.write_amplification().map(one).unwrap_or_default()
    });
    metric("requests_total", counter, "Requests answered.", &|it| {
        kinds(it).map(|(label, requests)| (label, requests.latency.count as f64)).to_vec()
    });
    metric("request_errors_total", counter, "Requests answered with an error.", &|it| {
        kinds(it).map(|(label, requests)| (label, requests.errors as f64)).to_vec()
    });
    metric("latency_seconds", "summary", "From arrival to answer.", &|it| {
        kinds(it).iter().flat_map(|(label, requests)| quantiles(label, &requests.latency)).collect()
    });
    metric("lateness_seconds", "summary", "How long after its instant an answer left.", &|it| {
        it.lateness.iter().flat_map(|late| quantiles("", late)).collect()
    });
    metric("queue_depth", "gauge", "Requests not answered.", &|it| one(it.in_flight as f64));
    metric("volatile_bytes", "gauge", "Bytes that a power cut may take back.", &|it| {
        one(it.volatile_bytes as f64)
    });
    metric("power_cuts_total", counter, "Power cuts.", &|it| one(it.power_cuts as f64));
    if let Some(clients) = stats.iter().find_map(|stat| stat.clients) {
        let Clients { connected, waiting, buffers_used_bytes, buffers_bytes } = clients;
        for (name, help, value) in [
            ("clients", "Clients that use a drive of this server.", connected),
            ("clients_waiting", "Clients that are not read from until they take replies.", waiting),
            ("buffers_used_bytes", "Memory of requests and replies of clients.", buffers_used_bytes),
            ("buffers_bytes", "Memory there is for them.", buffers_bytes),
        ] {
            let _ = writeln!(
                text,
                "# HELP lowtide_{name} {help}\n# TYPE lowtide_{name} gauge\nlowtide_{name} {value}"
            );
        }
    }
    text
}

fn kinds(stat: &Stat) -> [(String, Requests); 4] {
    [("read", stat.reads), ("write", stat.writes), ("flush", stat.flushes), ("trim", stat.trims)]
        .map(|(name, requests)| (format!(",kind=\"{name}\""), requests))
}

fn quantiles(labels: &str, spread: &Spread) -> Vec<(String, f64)> {
    [("0.5", spread.p50_us), ("0.95", spread.p95_us), ("0.99", spread.p99_us)]
        .map(|(quantile, us)| (format!("{labels},quantile=\"{quantile}\""), us / 1e6))
        .to_vec()
}

/// A label's value as Prometheus wants it.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A drive that answered so many requests, `mean_us` each, so many of them at instants of their own and `late_us` late.
    fn stat(count: u64, mean_us: f64, timed: u64, late_us: f64) -> Stat {
        let spread = |count, mean_us| Spread { count, mean_us, ..Spread::default() };
        Stat {
            name: "drive".to_owned(),
            title: "a drive".to_owned(),
            capacity_bytes: 1 << 30,
            power: Power::On,
            open_s: 1.0,
            model_s: 1.0,
            since_open: Counters::default(),
            since_new: Counters::default(),
            free_blocks: 0,
            reads: Requests::default(),
            writes: Requests { latency: spread(count, mean_us), ..Requests::default() },
            flushes: Requests::default(),
            trims: Requests::default(),
            in_flight: 0,
            most_in_flight: 1,
            volatile_bytes: 0,
            lateness: (timed > 0).then(|| spread(timed, late_us)),
            power_cuts: 0,
            lost_writes: 0,
            torn_writes: 0,
            recording: None,
            clients: None,
        }
    }

    #[test]
    fn answers_that_left_at_once_do_not_make_a_drive_late() {
        // 900 at once, of 1 us, and 100 of 200 us, 10 us late: by all of them 10 of 21 us.
        let (loaded, after) = (stat(900, 1.0, 0, 0.0), stat(1000, 20.9, 100, 10.0));
        assert!(after.too_slow().is_some());
        assert_eq!(after.too_slow_since(Some(&loaded)), None, "10 of 200 us");
        let late = stat(1000, 20.9, 100, 30.0).too_slow_since(Some(&loaded)).expect("30 of 200 us");
        assert!(late.contains("30 us late on average, of 200 us"), "{late}");
        assert_eq!(stat(1000, 20.9, 99, 30.0).too_slow_since(Some(&loaded)), None, "too few to say");
        assert_eq!(stat(1000, 20.9, 0, 0.0).too_slow_since(Some(&loaded)), None, "none had an instant");
    }
}
