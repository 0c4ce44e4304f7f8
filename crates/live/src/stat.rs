//! Statistics of a live drive ([`Stat`]), as text for people, as JSON for programs, and for Prometheus.
//!
//! `control` reports them over a socket.

use super::counts::{Requests, Spread};
use lowtide_core::Counters;
use lowtide_host::live::Usage;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The power state of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Power {
    /// The drive answers.
    #[default]
    On,
    /// The drive's clock is stopped, and requests wait.
    Paused,
    /// The power is cut, and all requests fail.
    Off,
}

/// Statistics of a live drive.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Stat {
    /// The export's name.
    pub name: String,
    /// The simulated device.
    pub title: String,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Power state.
    pub power: Power,
    /// Seconds since the drive was opened.
    pub open_s: f64,
    /// Time of the model's clock in seconds, including its history.
    pub model_s: f64,
    /// The model's counters since the drive was opened.
    pub since_open: Counters,
    /// The model's counters including its history.
    pub since_new: Counters,
    /// Number of erased blocks.
    pub free_blocks: u64,
    /// Read requests.
    pub reads: Requests,
    /// Write requests.
    pub writes: Requests,
    /// Flush requests.
    pub flushes: Requests,
    /// Trim and write-zeroes requests.
    pub trims: Requests,
    /// Number of requests in flight.
    pub in_flight: u64,
    /// Maximum of `in_flight`.
    pub most_in_flight: u64,
    /// Number of bytes that a power cut may undo.
    pub volatile_bytes: u64,
    /// Delay of answers after they were due, if the drive times its answers.
    pub lateness: Option<Spread>,
    /// Number of power cuts since the drive was opened.
    pub power_cuts: u64,
    /// Number of writes that power cuts dropped.
    pub lost_writes: u64,
    /// Number of writes that power cuts tore.
    pub torn_writes: u64,
    /// Number of recorded requests, during a recording.
    pub recording: Option<u64>,
    /// Clients of the server, all drives together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Usage>,
}

impl Stat {
    /// NAND bytes written per host byte since the drive was opened; `None` if either is zero.
    pub fn write_amplification(&self) -> Option<f64> {
        let Counters { host_written_bytes: host, nand_written_bytes: nand, .. } = self.since_open;
        (host > 0 && nand > 0).then(|| nand as f64 / host as f64)
    }

    /// A warning if this machine is too slow for the device: the mean lateness exceeds a tenth of the mean latency.
    pub fn too_slow(&self) -> Option<String> {
        self.too_slow_since(None)
    }

    /// [`Stat::too_slow`] for the answers since an earlier `Stat`.
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
                "answers were {late_us:.0} us late on average, of a latency of {mean_us:.0} us: this machine is too slow \
                 for this device under this load"
            )
        })
    }
}

/// The mean in microseconds of the values added between pairs of distributions (later, earlier), and their number.
fn mean_since<const N: usize>(pairs: [(&Spread, &Spread); N]) -> (f64, f64) {
    let of = |it: &Spread| (it.mean_us * it.count as f64, it.count as f64);
    let (sum, count) = pairs.iter().fold((0.0, 0.0), |(sum, count), (after, before)| {
        let ((after_us, after), (before_us, before)) = (of(after), of(before));
        (sum + after_us - before_us, count + after - before)
    });
    (sum / f64::max(count, 1.0), count)
}

/// Formats statistics in the text format of Prometheus.
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
        let Usage { connected, waiting, buffers_used_bytes, buffers_bytes } = clients;
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

/// Escapes the value of a label.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The statistics of a drive with `count` answers of `mean_us` each; `timed` of them were timed and `late_us`
    /// late.
    fn stat(count: u64, mean_us: f64, timed: u64, late_us: f64) -> Stat {
        let spread = |count, mean_us| Spread { count, mean_us, ..Spread::default() };
        Stat {
            writes: Requests { latency: spread(count, mean_us), ..Requests::default() },
            lateness: (timed > 0).then(|| spread(timed, late_us)),
            ..Stat::default()
        }
    }

    #[test]
    fn untimed_answers_do_not_count_as_late() {
        // 900 untimed answers of 1 µs and 100 answers of 200 µs that are 10 µs late: over all answers, 10 of 21 µs.
        let (loaded, after) = (stat(900, 1.0, 0, 0.0), stat(1000, 20.9, 100, 10.0));
        assert!(after.too_slow().is_some());
        assert_eq!(after.too_slow_since(Some(&loaded)), None, "10 of 200 us");
        let late = stat(1000, 20.9, 100, 30.0).too_slow_since(Some(&loaded)).expect("30 of 200 us");
        assert!(late.contains("30 us late on average, of a latency of 200 us"), "{late}");
        assert_eq!(stat(1000, 20.9, 99, 30.0).too_slow_since(Some(&loaded)), None, "too few answers");
        assert_eq!(stat(1000, 20.9, 0, 0.0).too_slow_since(Some(&loaded)), None, "no timed answer");
    }
}
