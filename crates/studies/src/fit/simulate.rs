//! Simulates a drive to find its settled level, or the knee at which it runs out of erased blocks.
//!
//! Drives are scaled down first, because levels depend on shares of the capacity and not on its size. The drives to
//! simulate are chosen in `search`.

use super::Stop;
use lowtide_core::{
    BlockDevice, Bytes, Completion, Control, DeviceError, Extents, Interval, Nanos, Request, Seed, Tag,
    VirtualTime, Workload, virtual_load,
};
use lowtide_device::SimulatedSsd;
use lowtide_device::flash::FlashSpec;
use std::sync::atomic::{AtomicBool, Ordering};

/// Raw bytes of a scaled-down drive: several hundred blocks.
const SMALL: u64 = 3 << 30;
/// Length of an interval: the time in which the expected rate writes this share of the raw NAND.
const PART: f64 = 0.25;
/// Intervals in each of the two windows that are compared, …
const WINDOW: usize = 6;
/// … relative difference of their means below which the level has settled, …
const CLOSE: f64 = 0.004;
/// … and maximum number of intervals.
const MOST: usize = 90;
/// Minimum number of intervals.
const FEWEST: usize = 2 * WINDOW + 4;
/// A simulation is refused at once if its budget is less than the expected need divided by this.
const SLOWER: f64 = 8.0;

/// Random writes to a drive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub data: Bytes,
    pub block: Bytes,
    pub threads: u32,
    /// Expected rate in bytes/s.
    pub expected: f64,
}

/// The request budget and the interrupt flag of a simulation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance<'a> {
    /// Limit on simulated requests.
    pub requests: u64,
    /// Ends the simulation when set.
    pub interrupt: &'a AtomicBool,
}

/// A simulated number, and the requests that it took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub value: f64,
    pub requests: u64,
}

/// Simulates the settled level of a drive, in bytes/s.
///
/// # Errors
/// [`Stop`] if it is interrupted, if the budget is too small, or if the drive cannot be simulated.
pub(super) fn level(
    drive: &FlashSpec,
    load: &Load,
    seed: Seed,
    allowance: Allowance<'_>,
) -> Result<Answer, Stop> {
    let least = FEWEST as f64 * PART * small(drive).1.nand.raw.get() as f64 / load.block.get() as f64;
    if (allowance.requests as f64) < least / SLOWER {
        return Err(too_few(load.data));
    }
    let mut rates: Vec<f64> = Vec::new();
    let requests = run(drive, load, seed, allowance, &mut |rate, _| {
        rates.push(rate);
        let count = rates.len();
        let mean = |from: usize, to: usize| rates[from..to].iter().sum::<f64>() / (to - from) as f64;
        if count < FEWEST {
            return Control::Continue;
        }
        let (before, after) = (mean(count - 2 * WINDOW, count - WINDOW), mean(count - WINDOW, count));
        let settled = (after / before - 1.0).abs() < CLOSE;
        if settled || count >= MOST { Control::Stop } else { Control::Continue }
    })?;
    if rates.len() < FEWEST {
        return Err(too_few(load.data));
    }
    let value = rates[rates.len() - WINDOW..].iter().sum::<f64>() / WINDOW as f64;
    match value > 0.0 && value.is_finite() {
        true => Ok(Answer { value, requests }),
        false => Err(Stop::NoFit(format!(
            "the drive that suits best writes nothing with {} of data on it",
            load.data
        ))),
    }
}

/// Simulates the knee of a freshly filled drive: the bytes of random writes, at full scale, until cleaning starts.
///
/// # Errors
/// The errors of [`level`].
pub(super) fn knee(
    drive: &FlashSpec,
    load: &Load,
    seed: Seed,
    allowance: Allowance<'_>,
) -> Result<Answer, Stop> {
    let mut written = None;
    let requests = run(drive, load, seed, allowance, &mut |_, so_far| {
        written = so_far;
        if so_far.is_some() { Control::Stop } else { Control::Continue }
    })?;
    written.map(|value| Answer { value, requests }).ok_or_else(|| too_few(load.data))
}

fn too_few(data: Bytes) -> Stop {
    Stop::Budget(format!(
        "the simulated requests that are allowed (`--budget`) do not suffice to see how a drive settles with {data} of data: allow \
         more, or give fewer levels"
    ))
}

/// Scales a drive down to about [`SMALL`]. Returns the divisor and the drive.
pub(super) fn small(drive: &FlashSpec) -> (u64, FlashSpec) {
    let scale = (drive.nand.raw.get() / SMALL).max(1);
    (scale, drive.scaled(scale))
}

/// A drive that refuses every request after an interruption or at the end of its allowance. A refused request ends
/// the load at once, even in the middle of a long interval.
struct Metered<'a> {
    drive: SimulatedSsd,
    allowance: Allowance<'a>,
    served: u64,
}

impl Metered<'_> {
    fn is_over(&self) -> bool {
        self.served >= self.allowance.requests || self.allowance.interrupt.load(Ordering::Relaxed)
    }
}

impl lowtide_core::Wraps for Metered<'_> {
    type Inner = SimulatedSsd;

    fn inner(&self) -> &SimulatedSsd {
        &self.drive
    }
    fn inner_mut(&mut self) -> &mut SimulatedSsd {
        &mut self.drive
    }
    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        if self.is_over() {
            return Completion { at: now, status: Err(DeviceError::WornOut) };
        }
        self.served += 1;
        self.drive.submit(now, request)
    }
    fn begin(&mut self, now: VirtualTime, request: &Request, _tag: Tag) -> Option<Completion> {
        Some(BlockDevice::submit(self, now, request))
    }
}

/// Runs a scaled-down drive and returns the number of requests that it served.
///
/// `each` receives the rate of every interval in bytes/s and, once cleaning has begun, the bytes at full scale
/// written until then. If fewer requests were served than allowed, `each` ended the run.
fn run(
    drive: &FlashSpec,
    load: &Load,
    seed: Seed,
    allowance: Allowance<'_>,
    each: &mut dyn FnMut(f64, Option<f64>) -> Control,
) -> Result<u64, Stop> {
    let impossible = |why: &dyn std::fmt::Display| {
        Stop::NoFit(format!("the drive that suits best cannot be simulated: {why}"))
    };
    if !(load.expected > 0.0 && load.expected.is_finite()) {
        return Err(impossible(&format_args!("it would write {} bytes a second", load.expected)));
    }
    let (scale, small) = small(drive);
    let ssd = SimulatedSsd::new(&small, seed).map_err(|why| impossible(&why))?;
    let data = (load.data / scale).align_down(load.block).min(ssd.capacity().align_down(load.block));
    if data < load.block {
        return Err(impossible(&format_args!("made small, it holds no request of {}", load.block)));
    }
    let mut model = Metered { drive: ssd, allowance, served: 0 };
    let chunk = Bytes::mib(1).get();
    let mut now = VirtualTime::START;
    for begin in (0..data.get()).step_by(chunk as usize) {
        now = model.submit(now, &Request::write(begin, chunk.min(data.get() - begin))).at;
    }
    let workload = Workload { threads: load.threads, ..Workload::random_write(load.block) };
    let seconds = PART * small.nand.raw.get() as f64 / load.expected;
    let interval = Nanos::new((seconds * 1e9) as u64).max(Nanos::from_millis(1));
    let moved = model.counters().gc_moved_bytes;
    let erases = model.counters().erases;
    let (mut written, mut began) = (0.0, None);
    let step = &mut |interval: Interval| {
        written += interval.write_bytes as f64;
        let cleaning = interval.counters.is_some_and(|it| it.gc_moved_bytes > moved || it.erases > erases);
        if cleaning && began.is_none() {
            began = Some(written * scale as f64);
        }
        let length = (interval.end_ns - interval.start_ns) as f64 / 1e9;
        each(interval.write_bytes as f64 / length, began)
    };
    let extents = Extents::whole(data.get());
    let ended = virtual_load::run(&mut model, &extents, &workload, seed.part("load", 0), now, interval, step);
    if allowance.interrupt.load(Ordering::Relaxed) {
        return Err(Stop::Interrupted);
    }
    match ended {
        Err(error) if model.served < allowance.requests => Err(impossible(&error)),
        // A used-up allowance is no error here: the intervals so far may suffice.
        Ok(_) | Err(_) => Ok(model.served),
    }
}
