//! Measures the speed of the simulator.
//!
//! The project states a speed for this drive and load: 160 GiB raw, 4 KiB map units, 256 units per
//! block, ρ = 0.9, greedy, 64 dies with busy-until times, latency histograms, uniform 4 KiB overwrites. On other
//! drives the cost per write differs: it grows with write amplification and falls with larger map units.

use super::mapping::Mapping;
use lowtide_core::{
    BlockDevice, Bytes, Control, Extents, Interval, Nanos, Seed, VirtualTime, Workload, virtual_load,
};
use lowtide_device::SimulatedSsd;
use lowtide_device::flash::{FlashSpec, Geometry};

/// The speed of the simulator, and of a loop that only maintains the map.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Simulated {
    /// Host writes simulated per second of processor time, in steady state.
    pub host_writes_per_cpu_second: f64,
    /// Measured host writes.
    pub host_writes: u64,
    /// Processor seconds for these writes.
    pub cpu_s: f64,
    /// Write amplification meanwhile. Each host write costs this many page writes.
    pub write_amplification: f64,
    /// Virtual seconds simulated meanwhile.
    pub virtual_s: f64,
    /// Host writes per second of processor time of a loop that only maintains the map, for the same load. An upper
    /// bound that depends on the processor and its memory.
    pub mapping_only_host_writes_per_cpu_second: f64,
    /// Write amplification of that loop.
    pub mapping_only_write_amplification: f64,
    /// The simulator's rate as a share of the loop's rate. Similar on all machines with similar caches.
    pub fraction_of_mapping_only: f64,
}

/// The device file of the benchmark drive.
pub const DRIVE: &str = include_str!("drive.toml");

/// The benchmark drive.
pub fn drive() -> FlashSpec {
    let device = lowtide_files::device::parse(DRIVE).expect("the file is valid");
    device.spec.flash().expect("it is a flash drive").clone()
}

/// Measures the simulator and the map-only loop. Both overwrite the drive once to settle it, and measure overwrites
/// of another quarter.
pub fn simulate(seed: Seed) -> Simulated {
    let (ceiling, mapping_only_write_amplification) = mapping_only(seed);
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
    let host_writes_per_cpu_second = host_writes as f64 / cpu_s;
    Simulated {
        host_writes_per_cpu_second,
        host_writes,
        cpu_s,
        write_amplification: after.write_amplification_since(&before).expect("the host wrote"),
        virtual_s: now.since(begin).as_secs_f64(),
        mapping_only_host_writes_per_cpu_second: ceiling,
        mapping_only_write_amplification,
        fraction_of_mapping_only: host_writes_per_cpu_second / ceiling,
    }
}

/// The map-only loop: host writes per second of processor time, and write amplification.
fn mapping_only(seed: Seed) -> (f64, f64) {
    let geometry = Geometry::new(&drive());
    let mut mapping = Mapping::filled(geometry.blocks, geometry.block_units, geometry.logical_units);
    let mut rng = seed.part("mapping", 0).stream();
    mapping.overwrite(u64::from(geometry.logical_units), &mut rng);
    let (moved, began) = (mapping.moved, lowtide_host::cpu::time().as_secs_f64());
    let written = mapping.overwrite(u64::from(geometry.logical_units / 4), &mut rng) as f64;
    let cpu_s = lowtide_host::cpu::time().as_secs_f64() - began;
    (written / cpu_s, 1.0 + (mapping.moved - moved) as f64 / written)
}

/// Runs uniform 4 KiB overwrites by 32 threads until `bytes` are written.
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
