//! What the simulator says of a drive: the level it settles at, and when its erased blocks are used up.
//!
//! The drive is made small first: levels depend on shares. Leaves out which drives are asked for.

use lowtide_core::{
    BlockDevice, Bytes, Control, Extents, Interval, Nanos, Request, Seed, VirtualTime, Workload, virtual_load,
};
use lowtide_device::SimulatedSsd;
use lowtide_device::flash::FlashSpec;
use std::sync::atomic::{AtomicBool, Ordering};

/// Raw bytes of a small drive: some hundred blocks or more.
const SMALL: u64 = 3 << 30;
/// An interval is in which a part of the raw NAND is written.
const PART: f64 = 0.25;
/// Intervals that are held against those before, …
const WINDOW: usize = 6;
/// … until the two differ by less, …
const CLOSE: f64 = 0.004;
/// … or there were so many.
const MOST: usize = 90;

/// A load of random writes on a drive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub data: Bytes,
    pub block: Bytes,
    pub threads: u32,
    /// The rate that is expected, bytes a second.
    pub expected: f64,
}

/// The level at which a drive settles, bytes a second. `None` where it was interrupted, or the drive cannot be so.
pub(super) fn level(drive: &FlashSpec, load: &Load, seed: Seed, interrupt: &AtomicBool) -> Option<f64> {
    let mut rates: Vec<f64> = Vec::new();
    run(drive, load, seed, interrupt, &mut |rate, _| {
        rates.push(rate);
        let count = rates.len();
        let mean = |from: usize, to: usize| rates[from..to].iter().sum::<f64>() / (to - from) as f64;
        if count < 2 * WINDOW + 4 {
            return Control::Continue;
        }
        let (before, after) = (mean(count - 2 * WINDOW, count - WINDOW), mean(count - WINDOW, count));
        let settled = (after / before - 1.0).abs() < CLOSE;
        if settled || count >= MOST { Control::Stop } else { Control::Continue }
    })?;
    let last = &rates[rates.len() - WINDOW..];
    Some(last.iter().sum::<f64>() / WINDOW as f64)
}

/// Bytes that are written at random until a drive that was filled with data has used up what is erased, at full size.
pub(super) fn knee(drive: &FlashSpec, load: &Load, seed: Seed, interrupt: &AtomicBool) -> Option<f64> {
    let mut written = None;
    run(drive, load, seed, interrupt, &mut |_, so_far| {
        written = so_far;
        if so_far.is_some() { Control::Stop } else { Control::Continue }
    })?;
    written
}

/// The drive made small, and how many times.
pub(super) fn small(drive: &FlashSpec) -> (u64, FlashSpec) {
    let scale = (drive.nand.raw.get() / SMALL).max(1);
    (scale, drive.scaled(scale))
}

/// Runs a small drive; `each` hears the rate of an interval, and the bytes at full size after which moving began.
fn run(
    drive: &FlashSpec,
    load: &Load,
    seed: Seed,
    interrupt: &AtomicBool,
    each: &mut dyn FnMut(f64, Option<f64>) -> Control,
) -> Option<()> {
    let (scale, small) = small(drive);
    let mut model = SimulatedSsd::new(&small, seed).ok()?;
    let data = (load.data / scale).align_down(load.block).min(model.capacity().align_down(load.block));
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
    let mut stopped = false;
    let step = &mut |interval: Interval| {
        written += interval.write_bytes as f64;
        let cleaning = interval.counters.is_some_and(|it| it.gc_moved_bytes > moved || it.erases > erases);
        if cleaning && began.is_none() {
            began = Some(written * scale as f64);
        }
        let length = (interval.end_ns - interval.start_ns) as f64 / 1e9;
        stopped = interrupt.load(Ordering::Relaxed);
        let control = each(interval.write_bytes as f64 / length, began);
        if stopped { Control::Stop } else { control }
    };
    let extents = Extents::whole(data.get());
    virtual_load::run(&mut model, &extents, &workload, seed.part("load", 0), now, interval, step).ok()?;
    (!stopped).then_some(())
}
