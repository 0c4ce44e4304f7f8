//! Benchmarks the log layer: its gain on a drive with slow random writes, and its cost.
//!
//! The drive is the simulated Mtron of the catalogue, in virtual time. The file, in `logdisk_file`, is real and uses
//! wall time.
//!
//! # Not measured
//!
//! Databases and network protocols.

use super::logdisk_file::{create, failed, in_sequence, lives};
use lowtide_core::{
    BlockDevice, Bytes, Control, Extents, Interval, Nanos, Request, Seed, VirtualTime, Workload, virtual_load,
};
use lowtide_device::DeviceSpec;
use lowtide_files::device;
use lowtide_live::logdisk::BackingError;
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::{BLOCK, LogDevice, LogError, Options};
use std::path::Path;

/// Divisor for the size of the Mtron. Rates and write amplification do not depend on it.
const SCALE: u64 = 16;

/// The results.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LogdiskBench {
    /// Rate of random 4 KiB writes in steady state, with the layer half full, over the rate on half of the bare
    /// drive.
    pub mtron_random_write_speedup: f64,
    /// The same ratio for a mix with 83 % reads.
    pub mtron_mixed_83_17_speedup: f64,
    /// Rate of random writes at 40 % fill over the rate at 80 %.
    pub mtron_40_over_80_percent_fill: f64,
    /// Slots written per block that the host wrote, half full.
    pub mtron_write_amplification: f64,
    /// Bytes of memory for the map per 10^12 bytes of capacity. The whole map is in memory.
    pub map_bytes_per_tb: f64,
    /// Size of the file in the following measurements, in bytes.
    pub file_bytes: u64,
    /// Sequential write rate of the file, in bytes/s.
    pub file_sequential_bytes_per_s: f64,
    /// Rate of random 4 KiB writes over the sequential rate, on half of the disk, before cleaning begins. A flush
    /// follows every 32 writes; up to 16 flushes are in flight.
    pub file_random_write_fraction_of_sequential: f64,
    /// The same ratio once cleaning has begun and keeps pace.
    pub file_cleaned_random_write_fraction_of_sequential: f64,
    /// The same ratio on the full disk.
    pub file_full_random_write_fraction_of_sequential: f64,
    /// On the full disk: rate of the slowest tenth of the writes over the mean rate.
    pub file_full_slowest_tenth_over_mean: f64,
    /// The 99th percentile latency of random 4 KiB reads without other load, one at a time, in microseconds.
    pub file_read_p99_idle_us: f64,
    /// The same percentile during random writes on the full disk.
    pub file_read_p99_cleaning_us: f64,
    /// Time to open the full file after a crash of the process, in seconds.
    pub recovery_s: f64,
    /// Time to open the file after a clean close, in seconds.
    pub clean_open_s: f64,
}

/// An error that prevents the benchmark.
#[derive(Debug, thiserror::Error)]
pub enum LogdiskBenchError {
    /// The layer failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The file cannot be opened as a log disk.
    #[error(transparent)]
    Backing(#[from] BackingError),
    /// An I/O error of a file.
    #[error("{path}: {source}")]
    File {
        /// The path of the file.
        path: String,
        /// The I/O error.
        source: std::io::Error,
    },
}

/// Measures the layer. Creates a file of `bytes` at `path`, and removes it afterwards.
///
/// # Errors
/// [`LogdiskBenchError`] if the file exists or cannot be written, or if the layer fails.
pub fn logdisk(path: &Path, bytes: Bytes, seed: Seed) -> Result<LogdiskBench, LogdiskBenchError> {
    // The file is created first: an existing file causes an error and is not touched.
    let file = create(path)?;
    let bytes = Bytes::new(bytes.get() / (1 << 20) * (1 << 20));
    let sequential = in_sequence(path, file, bytes.get());
    let measured = sequential.and_then(|sequential| measure(path, sequential, bytes, seed));
    let removed = std::fs::remove_file(path).map_err(failed(path));
    measured.and_then(|figures| removed.map(|()| figures))
}

fn measure(
    path: &Path,
    sequential: f64,
    bytes: Bytes,
    seed: Seed,
) -> Result<LogdiskBench, LogdiskBenchError> {
    let (write, amplification) = on_log(0.5, 0.0, seed)?;
    let (mixed, _) = on_log(0.5, 0.83, seed)?;
    let (emptier, _) = on_log(0.4, 0.0, seed)?;
    let (fuller, _) = on_log(0.8, 0.0, seed)?;
    let found = lives(path, seed)?;
    Ok(LogdiskBench {
        mtron_random_write_speedup: write / bare(0.0, seed),
        mtron_mixed_83_17_speedup: mixed / bare(0.83, seed),
        mtron_40_over_80_percent_fill: emptier / fuller,
        mtron_write_amplification: amplification,
        map_bytes_per_tb: found.map_bytes as f64 / found.offered as f64 * 1e12,
        file_bytes: bytes.get(),
        file_sequential_bytes_per_s: sequential,
        file_random_write_fraction_of_sequential: found.half / sequential,
        file_cleaned_random_write_fraction_of_sequential: found.cleaned / sequential,
        file_full_random_write_fraction_of_sequential: found.full / sequential,
        file_full_slowest_tenth_over_mean: found.slowest / found.full,
        file_read_p99_idle_us: found.idle_us,
        file_read_p99_cleaning_us: found.cleaning_us,
        recovery_s: found.recovery_s,
        clean_open_s: found.clean_open_s,
    })
}

fn mtron() -> DeviceSpec {
    device::find("mtron-32gb").expect("devices of the catalogue are valid").spec.scaled(SCALE)
}

/// Requests per second on half of the bare drive.
fn bare(read_share: f64, seed: Seed) -> f64 {
    let mut drive = mtron().build(seed).expect("devices of the catalogue are valid");
    let half = drive.capacity().get() / 2 / BLOCK as u64 * BLOCK as u64;
    let now = fill(&mut drive, half, VirtualTime::START);
    rate(&mut drive, half, read_share, 20_000, seed, now).0
}

/// Requests per second on a log on the drive, and slots written per host block.
fn on_log(share: f64, read_share: f64, seed: Seed) -> Result<(f64, f64), LogError> {
    let drive = mtron().build(seed).expect("devices of the catalogue are valid");
    let options = Options { segment: 1 << 20, ..Options::default() };
    let mut log = LogDevice::new(drive, options, Running::default())?;
    let data = (log.capacity().get() as f64 * share) as u64 / BLOCK as u64 * BLOCK as u64;
    let mut now = fill(&mut log, data, VirtualTime::START);
    // Overwrites until the distribution of live blocks is steady.
    let blocks = data / BLOCK as u64;
    now = rate(&mut log, data, 0.0, 3 * blocks, seed, now).1;
    let before = log.log_counters();
    let (found, _) = rate(&mut log, data, read_share, blocks, seed, now);
    let after = log.log_counters();
    let host = (after.host_blocks - before.host_blocks) as f64;
    let more = (after.moved_blocks + after.map_pages - before.moved_blocks - before.map_pages) as f64;
    Ok((found, 1.0 + more / host))
}

fn fill<D: BlockDevice>(device: &mut D, bytes: u64, mut now: VirtualTime) -> VirtualTime {
    let piece = 64 * BLOCK as u64;
    for offset in (0..bytes).step_by(piece as usize) {
        now = device.submit(now, &Request::write(offset, piece.min(bytes - offset))).at;
    }
    now
}

/// Runs requests from one thread. Returns the requests per second, and the time of the last completion.
fn rate<D: BlockDevice>(
    device: &mut D,
    bytes: u64,
    read_share: f64,
    requests: u64,
    seed: Seed,
    start: VirtualTime,
) -> (f64, VirtualTime) {
    let workload = Workload { read_share, ..Workload::random_write(Bytes::new(BLOCK as u64)) };
    let span = virtual_load::Span { start, interval: Nanos::from_secs(1), requests: Some(requests) };
    let each = &mut |_: Interval| Control::Continue;
    let end = virtual_load::run_span(device, &Extents::whole(bytes), &workload, seed, span, each)
        .expect("requests that a device takes");
    (requests as f64 / end.since(start).as_secs_f64(), end)
}
