//! What the log layer gives a drive that is bad at random writes, and what it costs.
//!
//! The drive is the simulated Mtron of the catalogue, in virtual time; the file (`logdisk_file`) lies where the caller says, in wall time.
//! Not here: databases, and protocols.

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

/// The Mtron is taken at this scale; write amplification and rates are the same at any.
const SCALE: u64 = 16;

/// What was found.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LogdiskBench {
    /// Random writes of 4 KiB in steady state, on half of what the layer offers, over those of the bare drive on as many bytes.
    pub mtron_random_write_speedup: f64,
    /// The same for a mix of 83 % reads.
    pub mtron_mixed_83_17_speedup: f64,
    /// Random writes at a fill of 40 % over those at 80 %.
    pub mtron_40_over_80_percent_fill: f64,
    /// Slots written for each block, at half.
    pub mtron_write_amplification: f64,
    /// Bytes of memory that the map takes for 10^12 bytes, all of it in memory.
    pub map_bytes_per_tb: f64,
    /// Bytes of the file of the next figures.
    pub file_bytes: u64,
    /// What the file takes in sequence, in bytes a second.
    pub file_sequential_bytes_per_s: f64,
    /// Random writes of 4 KiB on half of the disk, with a flush after each 32, of which sixteen may be waited for at a time; in bytes,
    /// over what the file takes in sequence. Nothing has to be cleaned yet.
    pub file_random_write_fraction_of_sequential: f64,
    /// The same when the log has come round, and cleaning keeps pace.
    pub file_cleaned_random_write_fraction_of_sequential: f64,
    /// The same on the full disk.
    pub file_full_random_write_fraction_of_sequential: f64,
    /// On the full disk: the slowest tenth of the writes, in its rate, over the mean.
    pub file_full_slowest_tenth_over_mean: f64,
    /// The 99th percentile of random reads of 4 KiB, one at a time, in microseconds: with nothing else going on.
    pub file_read_p99_idle_us: f64,
    /// And during the random writes on the full disk.
    pub file_read_p99_cleaning_us: f64,
    /// Opening the full file after the process was killed, in seconds.
    pub recovery_s: f64,
    /// Opening it after it was closed, in seconds.
    pub clean_open_s: f64,
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum LogdiskBenchError {
    /// The layer failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The file cannot be had.
    #[error(transparent)]
    Backing(#[from] BackingError),
    /// A file failed.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// How.
        source: std::io::Error,
    },
}

/// Measures the layer; the file is made at `path`, with `bytes`, and removed.
///
/// # Errors
/// [`LogdiskBenchError`].
pub fn logdisk(path: &Path, bytes: Bytes, seed: Seed) -> Result<LogdiskBench, LogdiskBenchError> {
    // Before anything else: a file that is there already is somebody's, and stays.
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

/// Requests a second on half of the bare drive, after as many writes as change nothing any more.
fn bare(read_share: f64, seed: Seed) -> f64 {
    let mut drive = mtron().build(seed).expect("devices of the catalogue are valid");
    let half = drive.capacity().get() / 2 / BLOCK as u64 * BLOCK as u64;
    let now = fill(&mut drive, half, VirtualTime::START);
    rate(&mut drive, half, read_share, 20_000, seed, now).0
}

/// Requests a second on a log on the drive, and slots written for a block.
fn on_log(share: f64, read_share: f64, seed: Seed) -> Result<(f64, f64), LogError> {
    let drive = mtron().build(seed).expect("devices of the catalogue are valid");
    let options = Options { segment: 1 << 20, ..Options::default() };
    let mut log = LogDevice::new(drive, options, Running::default())?;
    let data = (log.capacity().get() as f64 * share) as u64 / BLOCK as u64 * BLOCK as u64;
    let mut now = fill(&mut log, data, VirtualTime::START);
    // Until the distribution of what is live no longer changes.
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

/// Requests a second of one thread, and when they were done.
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
