//! How fast the simulator is.
//!
//! The drive and load are those the project promises a speed for: 160 GiB raw, 4 KiB map units, 256 to a block,
//! ρ 0.9, greedy, 64 dies with busy-until times, latency histograms, uniform 4 KiB overwrites. Leaves out other
//! drives: cost grows with write amplification and shrinks with larger map units.

use lowtide_core::{
    BlockDevice, Bytes, Control, Extents, Interval, Nanos, Seed, VirtualTime, Workload, virtual_load,
};
use lowtide_device::SimulatedSsd;
use lowtide_device::flash::FlashSpec;

/// What the simulator did, and what it cost.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Simulated {
    /// Host writes served per second of processor time, in steady state.
    pub host_writes_per_cpu_second: f64,
    /// Host writes counted.
    pub host_writes: u64,
    /// Processor seconds they took.
    pub cpu_s: f64,
    /// Write amplification meanwhile: each host write stands for this many page writes.
    pub write_amplification: f64,
    /// Virtual seconds meanwhile.
    pub virtual_s: f64,
}

/// The drive of the figure, as a device file has it.
pub const DRIVE: &str = include_str!("drive.toml");

/// The drive of the figure.
pub fn drive() -> FlashSpec {
    let device = lowtide_files::device::parse(DRIVE).expect("the file is valid");
    device.spec.flash().expect("it is a flash drive").clone()
}

/// Measures the simulator: one drive write to steady state, then a quarter of one.
pub fn simulate(seed: Seed) -> Simulated {
    let mut drive = SimulatedSsd::new(&drive(), seed).expect("the description is valid");
    let capacity = drive.capacity();
    let chunk = Bytes::mib(1).get();
    let mut now = VirtualTime::START;
    for n in 0..capacity.get() / chunk {
        now = drive.submit(now, &lowtide_core::Request::write(n * chunk, chunk)).at;
    }
    now = overwrite(&mut drive, capacity.get(), seed.part("settle", 0), now);
    let (before, began, begin) = (drive.counters(), lowtide_host::cpu::time().as_secs_f64(), now);
    now = overwrite(&mut drive, capacity.get() / 4, seed.part("measure", 0), now);
    let cpu_s = lowtide_host::cpu::time().as_secs_f64() - began;
    let after = drive.counters();
    let host_writes = (after.host_written_bytes - before.host_written_bytes) / 4096;
    Simulated {
        host_writes_per_cpu_second: host_writes as f64 / cpu_s,
        host_writes,
        cpu_s,
        write_amplification: after.write_amplification_since(&before).expect("the host wrote"),
        virtual_s: now.since(begin).as_secs_f64(),
    }
}

/// Uniform 4 KiB overwrites by 32 threads until `bytes` are written.
fn overwrite(drive: &mut SimulatedSsd, bytes: u64, seed: Seed, now: VirtualTime) -> VirtualTime {
    let extents = Extents::whole(drive.capacity().get());
    let workload = Workload { threads: 32, ..Workload::random_write(Bytes::kib(4)) };
    let mut written = 0;
    let each = &mut |interval: Interval| {
        written += interval.write_bytes;
        if written >= bytes { Control::Stop } else { Control::Continue }
    };
    virtual_load::run(drive, &extents, &workload, seed, now, Nanos::from_secs(1), each).expect("in range")
}
