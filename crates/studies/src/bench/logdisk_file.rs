//! Benchmarks the log layer in a file, in wall time: random writes, random reads, and the time to open.
//!
//! The benchmark calls [`LogDrive`], the drive that servers export, without a network protocol. The simulated drive
//! is in `logdisk`.

use super::logdisk::LogdiskBenchError;
use lowtide_core::rng::{Rng, below};
use lowtide_core::{Request, Seed};
use lowtide_files::output::{self, CommandFiles, Role};
use lowtide_host::live::{Drive, Ticket};
use lowtide_live::logdisk::{Backing, BackingError, FileMedium, LogDrive, Queue};
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::{Aligned, BLOCK, Disk, Medium, Options};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

/// Writes per flush.
const WRITES_PER_FLUSH: u64 = 32;

/// Maximum flushes in flight, as of a database with 16 committing sessions.
const FLUSHES: u64 = 16;

/// Maximum writes in flight.
const WRITES: u64 = FLUSHES * WRITES_PER_FLUSH;

/// Number of timed reads.
const READS: usize = 3000;

/// The role of the file in messages.
const BENCH_FILE: Role = Role::new("the file of the bench", "--file PATH");

const WRITE: Ticket = 0;
const FLUSH: Ticket = 1;
const READ: Ticket = 2;

/// The results; rates are in bytes/s.
pub(super) struct Lives {
    /// Random writes on half of the disk, before cleaning begins.
    pub half: f64,
    /// Random writes on half of the disk, once cleaning has begun.
    pub cleaned: f64,
    /// Random writes on the full disk.
    pub full: f64,
    /// The slowest tenth of the writes on the full disk.
    pub slowest: f64,
    pub idle_us: f64,
    pub cleaning_us: f64,
    pub recovery_s: f64,
    pub clean_open_s: f64,
    pub map_bytes: usize,
    pub offered: u64,
}

pub(super) fn failed(path: &Path) -> impl Fn(std::io::Error) -> LogdiskBenchError + '_ {
    move |source| LogdiskBenchError::File { path: path.display().to_string(), source }
}

/// Creates the file, opened with `O_DIRECT`.
pub(super) fn create(path: &Path) -> Result<File, LogdiskBenchError> {
    output::in_place(BENCH_FILE, path, &CommandFiles::default()).map_err(BackingError::from)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).custom_flags(OFlags::DIRECT.bits() as i32);
    options.open(path).map_err(failed(path))
}

/// Fills the file with the writer threads of the log. Returns bytes/s.
pub(super) fn in_sequence(path: &Path, file: File, bytes: u64) -> Result<f64, LogdiskBenchError> {
    let failed = failed(path);
    let queue = FileMedium::new(file, true).and_then(Queue::new).map_err(&failed)?;
    let piece = 1 << 20;
    let mut data = vec![0x5a; piece];
    let begin = Instant::now();
    for offset in (0..bytes).step_by(piece) {
        data[..8].copy_from_slice(&offset.to_le_bytes());
        queue.write_owned(offset, Aligned::copy_of(&data)).map_err(&failed)?;
    }
    queue.flush().map_err(&failed)?;
    Ok(bytes as f64 / begin.elapsed().as_secs_f64())
}

/// Creates a log disk in the file, and measures it from half full to full.
pub(super) fn lives(path: &Path, seed: Seed) -> Result<Lives, LogdiskBenchError> {
    let open = || -> Result<FileMedium, LogdiskBenchError> { Ok(Backing::open(path, false)?.medium()?) };
    Disk::format(open()?, Options::default(), [2; 16])?.close()?;
    let disk = LogDrive::open(open()?, Running::default())?;
    let offered = disk.geometry().capacity();
    let blocks = u64::from(disk.geometry().blocks);
    let drive = LogDrive::new(disk, "bench", "", false).map_err(failed(path))?;
    let rng = seed.part("file", 0).stream();
    let mut load = Load { drive, rng, writes: 0, flushes: 0, reads: 0, failed: None };
    load.fill(0..blocks / 2)?;
    let half = load.random(blocks / 2, blocks / 4, None)?;
    // Overwrites until the log has wrapped around and cleaning is steady.
    load.random(blocks / 2, blocks, None)?;
    let cleaned = load.random(blocks / 2, blocks / 2, None)?;
    load.fill(blocks / 2..blocks)?;
    load.random(blocks, blocks / 2, None)?;
    let mut tenths = Vec::new();
    for _ in 0..10 {
        tenths.push(load.random(blocks, blocks / 40, None)?);
    }
    let mut idle = load.idle_reads(blocks)?;
    let mut during = Vec::new();
    while during.len() < READS {
        load.random(blocks, blocks / 100 + 1, Some(&mut during))?;
    }
    let full = tenths.len() as f64 / tenths.iter().map(|rate| 1.0 / rate).sum::<f64>();
    let slowest = tenths.iter().copied().fold(f64::INFINITY, f64::min);
    let (mut disk, _) = load.drive.into_parts();
    let map_bytes = disk.map_memory();
    // Dropping the disk without closing it leaves the file as a kill of the process would.
    drop(disk);
    let begin = Instant::now();
    let disk = Disk::open(open()?, Running::default())?;
    let recovery_s = begin.elapsed().as_secs_f64();
    disk.close()?;
    let begin = Instant::now();
    drop(Disk::open(open()?, Running::default())?);
    let clean_open_s = begin.elapsed().as_secs_f64();
    let (idle_us, cleaning_us) = (p99(&mut idle), p99(&mut during));
    Ok(Lives {
        half,
        cleaned,
        full,
        slowest,
        idle_us,
        cleaning_us,
        recovery_s,
        clean_open_s,
        map_bytes,
        offered,
    })
}

fn p99(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() * 99 / 100]
}

/// A load on a drive, from this thread.
struct Load {
    drive: LogDrive,
    rng: Rng,
    /// Requests in flight, by kind.
    writes: u64,
    flushes: u64,
    reads: u64,
    failed: Option<LogdiskBenchError>,
}

impl Load {
    /// Takes all completions that are due.
    fn take(&mut self) -> Result<(), LogdiskBenchError> {
        while let Some((ticket, result)) = self.drive.due(0) {
            match ticket {
                WRITE => self.writes -= 1,
                FLUSH => self.flushes -= 1,
                _ => self.reads -= 1,
            }
            if let Err(number) = result {
                let source = std::io::Error::from_raw_os_error(number);
                self.failed = Some(LogdiskBenchError::File { path: "the log disk".to_owned(), source });
            }
        }
        self.failed.take().map_or(Ok(()), Err)
    }
    fn write(&mut self, lba: u64) {
        let mut block = [0x3c; BLOCK];
        block[..8].copy_from_slice(&lba.to_le_bytes());
        self.writes += 1;
        self.drive.submit(0, WRITE, Request::write(lba * BLOCK as u64, BLOCK as u64), &block);
    }
    fn flush(&mut self) {
        self.flushes += 1;
        self.drive.submit(0, FLUSH, Request::flush(), &[]);
    }
    fn read(&mut self, blocks: u64) {
        self.reads += 1;
        let lba = below(&mut self.rng, blocks);
        self.drive.submit(0, READ, Request::read(lba * BLOCK as u64, BLOCK as u64), &[]);
    }
    /// Waits until `enough` holds.
    fn until(&mut self, enough: impl Fn(&Load) -> bool) -> Result<(), LogdiskBenchError> {
        self.take()?;
        while !enough(self) {
            self.drive.wait();
            self.take()?;
        }
        Ok(())
    }

    fn fill(&mut self, range: std::ops::Range<u64>) -> Result<(), LogdiskBenchError> {
        for lba in range {
            self.write(lba);
            self.until(|load| load.writes < WRITES)?;
        }
        self.flush();
        self.until(|load| load.flushes == 0)
    }

    /// Runs random writes in the first `blocks` blocks, with flushes, and returns bytes/s. If `reads` is given, also
    /// reads one block at a time, and appends the latencies in microseconds.
    fn random(
        &mut self,
        blocks: u64,
        writes: u64,
        mut reads: Option<&mut Vec<f64>>,
    ) -> Result<f64, LogdiskBenchError> {
        let begin = Instant::now();
        let mut asked = begin;
        for n in 0..writes {
            let lba = below(&mut self.rng, blocks);
            self.write(lba);
            if n % WRITES_PER_FLUSH == WRITES_PER_FLUSH - 1 {
                self.flush();
            }
            loop {
                self.take()?;
                if let Some(times) = reads.as_deref_mut()
                    && self.reads == 0
                {
                    if asked != begin {
                        times.push(asked.elapsed().as_secs_f64() * 1e6);
                    }
                    asked = Instant::now();
                    self.read(blocks);
                }
                if self.writes < WRITES && self.flushes < FLUSHES {
                    break;
                }
                self.drive.wait();
            }
        }
        self.flush();
        self.until(|load| load.flushes + load.writes + load.reads == 0)?;
        Ok((writes * BLOCK as u64) as f64 / begin.elapsed().as_secs_f64())
    }

    /// Reads one block at a time, without other load. Returns the latencies in microseconds.
    fn idle_reads(&mut self, blocks: u64) -> Result<Vec<f64>, LogdiskBenchError> {
        let mut times = Vec::new();
        for _ in 0..READS {
            let begin = Instant::now();
            self.read(blocks);
            self.until(|load| load.reads == 0)?;
            times.push(begin.elapsed().as_secs_f64() * 1e6);
        }
        Ok(times)
    }
}
