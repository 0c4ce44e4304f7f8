//! Flash drives for tests, with as few features as possible, so that a test exercises one feature at a time.
#![allow(dead_code, missing_docs)]

use lowtide_core::virtual_load::{self, Span};
use lowtide_core::{BlockDevice, Bytes, Control, Extents, Nanos, Seed, VirtualTime, Workload};
use lowtide_device::SimulatedSsd;
use lowtide_device::flash::FlashSpec;
use lowtide_device::flash::spec::*;

/// A drive of one die with `blocks` blocks of `block_units` map units (4 KiB each). Its capacity is `share` of the
/// blocks in circulation.
pub fn plain(blocks: u64, block_units: u32, share: f64, policy: Policy) -> FlashSpec {
    let unit = Bytes::kib(4);
    let mut spec = FlashSpec {
        capacity: unit,
        nand: Nand {
            raw: unit * u64::from(block_units) * blocks,
            channels: 1,
            dies: 1,
            page: unit,
            pages_per_block: block_units,
            read: Nanos::from_micros(50),
            program: Nanos::from_micros(200),
            erase: Nanos::from_millis(2),
            channel_rate: Bytes::new(1_000_000_000),
            pe_cycles: None,
        },
        map: Map { unit, cache: None, blocking: false, page: unit },
        controller: Controller {
            latency: Nanos::from_micros(1),
            request: Nanos::from_micros(1),
            read_unit: Nanos::ZERO,
            write_unit: Nanos::ZERO,
            write_request: Nanos::ZERO,
            gc_unit: Nanos::ZERO,
            gc_page: Nanos::ZERO,
            link_rate: Bytes::new(1_000_000_000),
        },
        write_buffer: WriteBuffer { size: Bytes::mib(1), protected: true, honours_flush: true },
        gc: Gc { policy, concurrency: 1, set_point: 0.0, catch_up: None, idle: None },
        slc_cache: None,
        log_units: None,
        host_ftl: None,
    };
    let geometry = lowtide_device::flash::Geometry::new(&spec);
    // The erased pool, which settles at the set point, and two open blocks are not in circulation. The victim counts
    // by the data it still holds.
    let reserve = u64::from(geometry.set_point_blocks) + 2;
    let units = ((blocks - reserve) * u64::from(block_units)) as f64 * share;
    spec.capacity = unit * units as u64;
    spec
}

/// Writes the entire drive in order.
pub fn fill(drive: &mut SimulatedSsd, now: VirtualTime) -> VirtualTime {
    let capacity = drive.capacity().get();
    let chunk = 1 << 20;
    (0..capacity.div_ceil(chunk)).fold(now, |now, n| {
        let offset = n * chunk;
        let request = lowtide_core::Request::write(offset, chunk.min(capacity - offset));
        let completion = drive.submit(now, &request);
        completion.status.expect("in range");
        completion.at
    })
}

/// Writes `bytes` in random 4 KiB requests.
pub fn overwrite(drive: &mut SimulatedSsd, bytes: u64, seed: Seed, start: VirtualTime) -> VirtualTime {
    let extents = Extents::whole(drive.capacity().get());
    let workload = Workload { threads: 4, ..Workload::random_write(Bytes::kib(4)) };
    // A single long interval, because the two histograms of a short interval cost more than the writes in it.
    let span = Span { start, interval: Nanos::from_secs(3600), requests: Some(bytes.div_ceil(4 << 10)) };
    virtual_load::run_span(drive, &extents, &workload, seed, span, &mut |_| Control::Continue)
        .expect("in range")
}

/// The drive in `devices/intel-320-160gb.toml`.
pub fn intel_320() -> FlashSpec {
    let file = include_str!("../../../../devices/intel-320-160gb.toml");
    let card: toml::Table = toml::from_str(file).expect("the file is TOML");
    card["flash"].clone().try_into().expect("the file describes a drive")
}
