//! What the log layer gives a drive that is bad at random writes, and what it costs.
//!
//! The drive is the simulated Mtron of the catalogue, in virtual time; the file lies where the caller says, in wall time. Leaves out
//! databases, and protocols.

use crate::logdisk::{Place, PlaceError};
use crate::{catalogue, device};
use lowtide_core::{
    BlockDevice, Bytes, Control, Extents, Interval, Nanos, Request, Seed, VirtualTime, Workload, virtual_load,
};
use lowtide_device::DeviceSpec;
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::{BLOCK, Disk, FileMedium, LogDevice, LogError, Options};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

/// The Mtron is taken at this scale; write amplification and rates are the same at any.
const SCALE: u64 = 16;

/// Writes between two flushes of the random writes to a file.
const WRITES_PER_FLUSH: u64 = 32;

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
    /// Random writes of 4 KiB on half of the disk, one after the other, with a flush after each 32, in bytes, over what the file takes
    /// in sequence.
    pub file_random_write_fraction_of_sequential: f64,
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
    Place(#[from] PlaceError),
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
    let measured = measure(path, &file, bytes, seed);
    let removed = std::fs::remove_file(path).map_err(failed(path));
    measured.and_then(|figures| removed.map(|()| figures))
}

fn measure(path: &Path, file: &File, bytes: Bytes, seed: Seed) -> Result<LogdiskBench, LogdiskBenchError> {
    let (write, amplification) = on_log(0.5, 0.0, seed)?;
    let (mixed, _) = on_log(0.5, 0.83, seed)?;
    let (emptier, _) = on_log(0.4, 0.0, seed)?;
    let (fuller, _) = on_log(0.8, 0.0, seed)?;
    let found = on_file(path, file, bytes, seed)?;
    Ok(LogdiskBench {
        mtron_random_write_speedup: write / bare(0.0, seed),
        mtron_mixed_83_17_speedup: mixed / bare(0.83, seed),
        mtron_40_over_80_percent_fill: emptier / fuller,
        mtron_write_amplification: amplification,
        map_bytes_per_tb: found.map_bytes as f64 / found.offered as f64 * 1e12,
        file_bytes: bytes.get(),
        file_random_write_fraction_of_sequential: found.random / found.sequential,
        recovery_s: found.recovery_s,
        clean_open_s: found.clean_open_s,
    })
}

fn mtron() -> DeviceSpec {
    let found = catalogue::device("mtron-32gb").expect("it is compiled in");
    device::parse(&found.text).expect("devices of the catalogue are valid").spec.scaled(SCALE)
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

struct OnFile {
    sequential: f64,
    random: f64,
    recovery_s: f64,
    clean_open_s: f64,
    map_bytes: usize,
    offered: u64,
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> LogdiskBenchError + '_ {
    move |source| LogdiskBenchError::File { path: path.display().to_string(), source }
}

fn on_file(path: &Path, file: &File, bytes: Bytes, seed: Seed) -> Result<OnFile, LogdiskBenchError> {
    let bytes = bytes.get() / (1 << 20) * (1 << 20);
    let sequential = in_sequence(path, file, bytes)?;
    let open = || -> Result<FileMedium, LogdiskBenchError> { Ok(Place::open(path, false)?.medium()?) };
    let mut disk = Disk::format(open()?, Options::default(), [2; 16])?;
    let blocks = disk.geometry().blocks;
    let mut block = [0; BLOCK];
    let mut fill = |disk: &mut Disk<FileMedium>, range: std::ops::Range<u32>| -> Result<(), LogError> {
        for lba in range {
            block[..4].copy_from_slice(&lba.to_le_bytes());
            disk.write(lba, &block)?;
        }
        disk.flush()
    };
    fill(&mut disk, 0..blocks / 2)?;
    // On half of the disk, as with the drive.
    let mut rng = seed.part("file", 0).stream();
    let writes = u64::from(blocks) / 4;
    let begin = Instant::now();
    for n in 0..writes {
        let lba = lowtide_core::rng::below(&mut rng, u64::from(blocks) / 2) as u32;
        disk.write(lba, &[0x3c; BLOCK])?;
        if n % WRITES_PER_FLUSH == WRITES_PER_FLUSH - 1 {
            disk.flush()?;
        }
    }
    disk.flush()?;
    let random = (writes * BLOCK as u64) as f64 / begin.elapsed().as_secs_f64();
    fill(&mut disk, blocks / 2..blocks)?;
    let map_bytes = disk.map_memory();
    // As a kill leaves it: what is in memory is gone.
    drop(disk);
    let begin = Instant::now();
    let disk = Disk::open(open()?, Running::default())?;
    let recovery_s = begin.elapsed().as_secs_f64();
    disk.close()?;
    let begin = Instant::now();
    let disk = Disk::open(open()?, Running::default())?;
    let clean_open_s = begin.elapsed().as_secs_f64();
    let offered = disk.geometry().capacity();
    Ok(OnFile { sequential, random, recovery_s, clean_open_s, map_bytes, offered })
}

/// A new file, to be written past the page cache.
fn create(path: &Path) -> Result<File, LogdiskBenchError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).custom_flags(OFlags::DIRECT.bits() as i32);
    options.open(path).map_err(failed(path))
}

/// Fills the file; bytes a second.
fn in_sequence(path: &Path, file: &File, bytes: u64) -> Result<f64, LogdiskBenchError> {
    let piece = 1 << 20;
    let mut buffer = vec![0x5a; piece + BLOCK];
    let skip = buffer.as_ptr().align_offset(BLOCK);
    let data = &mut buffer[skip..skip + piece];
    let begin = Instant::now();
    for offset in (0..bytes).step_by(piece) {
        data[..8].copy_from_slice(&offset.to_le_bytes());
        file.write_all_at(data, offset).map_err(failed(path))?;
    }
    file.sync_data().map_err(failed(path))?;
    Ok(bytes as f64 / begin.elapsed().as_secs_f64())
}
