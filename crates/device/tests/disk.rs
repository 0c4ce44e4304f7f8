//! Tests of the hard disk against closed forms and numerical integrals.

#[path = "common/disks.rs"]
mod disks;

use disks::{BLOCK, FILES, disk, file, plain, queue};
use lowtide_core::rng::{Rng, below};
use lowtide_core::virtual_load;
use lowtide_core::{
    BlockDevice, Bytes, Control, Extents, Latency, Nanos, Op, Request, Seed, VirtualTime, Workload,
};
use lowtide_device::SimulatedDisk;
use lowtide_device::disk::DiskSpec;
use lowtide_device::disk::spec::{Queue, Scheduler, WriteCache};

fn rng(seed: u64) -> Rng {
    Seed::new(seed).part("test", 0).stream()
}

fn block(rng: &mut Rng, spec: &DiskSpec) -> u64 {
    below(rng, spec.capacity.get() / BLOCK) * BLOCK
}

fn ms(nanos: Nanos) -> f64 {
    nanos.get() as f64 / 1e6
}

/// Mean transfer time of a block over all bytes of the disk, in milliseconds.
fn mean_transfer_ms(disk: &SimulatedDisk) -> f64 {
    let capacity = disk.capacity().get();
    disk.surface().place(capacity) as f64 / capacity as f64 * BLOCK as f64 / 1e6
}

/// Latencies of random reads with one request in flight, in milliseconds.
fn latencies(spec: &DiskSpec, seed: u64, count: usize) -> Vec<f64> {
    let (mut disk, mut rng) = (disk(spec, seed), rng(seed));
    let mut now = VirtualTime::START;
    (0..count)
        .map(|_| {
            let at = disk.submit(now, &Request::read(block(&mut rng, spec), BLOCK)).at;
            let latency = ms(at.since(now));
            now = at;
            latency
        })
        .collect()
}

/// Requests per second and latencies of a closed loop of random requests.
fn closed_loop(spec: &DiskSpec, workload: Workload, depth: usize, seed: u64, seconds: u64) -> (f64, Latency) {
    let mut disk = disk(spec, seed);
    let extents = Extents::whole(spec.capacity.get() / BLOCK * BLOCK);
    let workload = Workload { threads: depth as u32, ..workload };
    let (mut count, mut latency, mut intervals) = (0, Latency::default(), 0);
    let each = &mut |interval: lowtide_core::Interval| {
        intervals += 1;
        if intervals > 1 {
            count += interval.reads + interval.writes;
            latency.merge(&interval.read_latency);
            latency.merge(&interval.write_latency);
        }
        if intervals == 5 { Control::Stop } else { Control::Continue }
    };
    let interval = Nanos::from_secs(seconds);
    virtual_load::run(&mut disk, &extents, &workload, Seed::new(seed), VirtualTime::START, interval, each)
        .expect("in range");
    (count as f64 / (4 * seconds) as f64, latency)
}

fn random_reads() -> Workload {
    Workload { read_share: 1.0, ..Workload::random_write(Bytes::new(BLOCK)) }
}

#[track_caller]
fn close(value: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((value / expected - 1.0).abs() <= tolerance, "{what}: {value:.4}, expected {expected:.4}");
}

// Seeks and head positions.

#[test]
fn the_seek_curve_goes_through_the_three_rated_times() {
    for (name, text) in FILES {
        let spec = file(text);
        let (curve, surface) = (spec.seek_curve().expect("valid"), spec.surface().expect("valid"));
        let stroke = surface.cylinders() - 1;
        assert_eq!(curve.ns(0), 0, "{name}");
        close(curve.ns(1) as f64, spec.seek.track.get() as f64, 1e-3, name);
        close(curve.ns(stroke) as f64, spec.seek.full.get() as f64, 1e-3, name);
        // The curve increases, with decreasing slope.
        let steps: Vec<u64> = (0..=200).map(|n| curve.ns(1 + n * (stroke - 1) / 200)).collect();
        assert!(steps.windows(2).all(|pair| pair[0] < pair[1]), "{name}: {steps:?}");
        let rises: Vec<u64> = steps.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // Allow for rounding to whole cylinders and nanoseconds.
        let slack = 2 + rises[0] / 100;
        assert!(rises.windows(2).all(|pair| pair[1] <= pair[0] + slack), "{name}: {rises:?}");
        // The mean over random bytes equals the rated average.
        let mut rng = rng(5);
        let mut cylinder = || surface.cylinder(surface.place(below(&mut rng, spec.capacity.get())));
        let count = 200_000;
        let sum: u64 = (0..count).map(|_| curve.ns(cylinder().abs_diff(cylinder()))).sum();
        close(sum as f64 / count as f64, spec.seek.average.get() as f64, 0.01, &format!("{name}, seed 5"));
    }
}

#[test]
fn places_rise_with_the_bytes_and_lead_back_to_them() {
    for (name, text) in FILES {
        let spec = file(text);
        let surface = spec.surface().expect("valid");
        let mut rng = rng(3);
        for _ in 0..20_000 {
            let byte = below(&mut rng, spec.capacity.get() / 512 - 1) * 512;
            let place = surface.place(byte);
            let next = surface.place(byte + 512);
            assert!(next > place, "{name}, seed 3: byte {byte}");
            assert_eq!(surface.sector(place + 1), byte + 512, "{name}, seed 3: byte {byte}");
            let rate = 512.0 / (next - place) as f64 * 1e9;
            close(rate, surface.rate(byte) as f64, 0.01, name);
        }
        close(surface.rate(0) as f64, spec.outer_rate.get() as f64, 0.03, name);
        close(surface.rate(spec.capacity.get()) as f64, spec.inner_rate.get() as f64, 0.04, name);
    }
}

// One request at a time.

#[test]
fn a_random_read_takes_overhead_seek_half_a_turn_and_transfer() {
    for (name, text) in FILES {
        let spec = file(text);
        let all = latencies(&spec, 1, 100_000);
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let half_turn = ms(spec.revolution()) / 2.0;
        let transfer = mean_transfer_ms(&disk(&spec, 1));
        let expected = ms(spec.interface.overhead) + ms(spec.seek.average) + half_turn + transfer;
        close(mean, expected, 0.02, &format!("{name}, seed 1"));
    }
}

#[test]
fn the_wait_for_the_turn_is_uniform() {
    let spec = plain();
    let (mut disk, mut rng) = (disk(&spec, 2), rng(2));
    let turn = disk.surface().revolution_ns();
    let mut bins = [0u32; 20];
    let (mut now, mut cylinder) = (VirtualTime::START, 0);
    let count = 100_000;
    for _ in 0..count {
        let offset = block(&mut rng, &spec);
        let (place, end) = (disk.surface().place(offset), disk.surface().place(offset + BLOCK));
        let seek = disk.seek_curve().ns(disk.surface().cylinder(place).abs_diff(cylinder));
        let at = disk.submit(now, &Request::read(offset, BLOCK)).at;
        let wait = at.since(now).get() - spec.interface.overhead.get() - seek - (end - place);
        assert!(wait < turn, "seed 2: waits {wait} ns, a turn is {turn}");
        bins[(wait * 20 / turn) as usize] += 1;
        cylinder = disk.surface().cylinder(end);
        now = at;
    }
    let expected = f64::from(count) / 20.0;
    let chi_squared: f64 = bins.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
    // Critical value of the chi-square distribution with 19 degrees of freedom at a probability of 0.001.
    assert!(chi_squared < 43.8, "seed 2: {chi_squared} {bins:?}");
}

#[test]
fn percentiles_are_those_of_seek_and_turn_convolved() {
    for (name, text) in FILES {
        let spec = file(text);
        let (surface, curve) = (spec.surface().expect("valid"), spec.seek_curve().expect("valid"));
        // Seeks between all pairs of 300 evenly spaced bytes. Rotation adds a uniform wait.
        let points = 300;
        let cylinder = |n: u64| surface.cylinder(surface.place(spec.capacity.get() / points * n));
        let cylinders: Vec<u64> = (0..points).map(cylinder).collect();
        let seeks: Vec<f64> = cylinders
            .iter()
            .flat_map(|a| cylinders.iter().map(|b| curve.ns(a.abs_diff(*b)) as f64 / 1e6))
            .collect();
        let turn = ms(spec.revolution());
        let fixed = ms(spec.interface.overhead) + mean_transfer_ms(&disk(&spec, 1));
        let below = |t: f64| {
            seeks.iter().map(|seek| ((t - fixed - seek) / turn).clamp(0.0, 1.0)).sum::<f64>()
                / seeks.len() as f64
        };
        let mut all = latencies(&spec, 4, 100_000);
        all.sort_by(f64::total_cmp);
        for share in [0.05, 0.5, 0.95, 0.99] {
            let (mut low, mut high) = (0.0, 100.0);
            for _ in 0..50 {
                let middle = (low + high) / 2.0;
                if below(middle) < share { low = middle } else { high = middle }
            }
            let measured = all[(all.len() as f64 * share) as usize];
            close(measured, low, 0.02, &format!("{name}, seed 4, p{}", share * 100.0));
        }
    }
}

#[test]
fn long_transfers_go_at_the_rate_of_their_zone() {
    for (name, text) in FILES {
        let spec = file(text);
        for share in [0.0, 0.3, 0.6, 0.97] {
            for length in [16 << 10, 64 << 10, 1 << 20] {
                let mut disk = disk(&spec, 1);
                let start = ((spec.capacity.get() as f64 * share) as u64).next_multiple_of(1 << 20);
                let rate = disk.surface().rate(start) as f64;
                let first = disk.submit(VirtualTime::START, &Request::read(start, length)).at;
                let count = (256 << 20) / length;
                let read = |now, n| disk.submit(now, &Request::read(start + n * length, length)).at;
                let end = (1..=count).fold(first, read);
                let measured = (count * length) as f64 / end.since(first).as_secs_f64();
                close(measured, rate, 0.01, &format!("{name} at {share} by {length}"));
            }
        }
    }
}

#[test]
fn a_slow_reader_finds_everything_in_memory() {
    let spec = file(FILES[1].1);
    let mut disk = disk(&spec, 1);
    let mut now = disk.submit(VirtualTime::START, &Request::read(0, BLOCK)).at;
    let hit = spec.interface.overhead.get() + BLOCK * 1_000_000_000 / spec.interface.rate.get();
    for n in 1..20_000 {
        now = now + Nanos::from_micros(400);
        let at = disk.submit(now, &Request::read(n * BLOCK, BLOCK)).at;
        assert_eq!(at.since(now).get(), hit, "read {n}");
        now = at;
    }
}

#[test]
fn streams_share_the_head_and_memory_follows_each() {
    let spec = file(FILES[1].1);
    let rate = |spec: &DiskSpec, streams: u64| {
        let mut disk = disk(spec, 1);
        let apart = spec.capacity.get() / streams / BLOCK * BLOCK;
        let count = 20_000;
        let read =
            |now, n| disk.submit(now, &Request::read(n % streams * apart + n / streams * BLOCK, BLOCK)).at;
        let end = (0..count).fold(VirtualTime::START, read);
        count as f64 / end.since(VirtualTime::START).as_secs_f64()
    };
    // Each change of stream costs a seek, even with a read-ahead buffer, because the head reads ahead only while the
    // queue is empty.
    let (one, four) = (rate(&spec, 1), rate(&spec, 4));
    assert!(four < one / 10.0, "{one} reads/s of one stream, {four} of four");
}

// The command queue.

#[test]
fn fifo_is_one_server() {
    let spec = plain();
    let transfer = mean_transfer_ms(&disk(&spec, 1));
    // A queued command's overhead is hidden behind the service of other commands.
    let service = ms(spec.seek.average) + ms(spec.revolution()) / 2.0 + transfer;
    for depth in [2, 8, 32] {
        let (rate, latency) = closed_loop(&spec, random_reads(), depth, 1, 60);
        close(rate, 1000.0 / service, 0.02, &format!("depth {depth}, seed 1"));
        close(latency.mean_ns() / 1e6, service * depth as f64, 0.02, &format!("depth {depth}, seed 1"));
    }
}

#[test]
fn choosing_gains_with_the_depth() {
    for (name, text) in FILES {
        let rate = |scheduler, depth: usize| {
            let spec = DiskSpec { queue: queue(scheduler, 64), ..file(text) };
            closed_loop(&spec, random_reads(), depth, 1, 30).0
        };
        let fifo = rate(Scheduler::Fifo, 32);
        let elevator = rate(Scheduler::Elevator, 32);
        let sptf: Vec<f64> = [1, 4, 8, 16, 32, 64].map(|depth| rate(Scheduler::Sptf, depth)).into();
        assert!(sptf.windows(2).all(|pair| pair[1] > 1.05 * pair[0]), "{name}, seed 1: {sptf:?}");
        assert!(elevator > 1.1 * fifo, "{name}, seed 1: elevator {elevator}, fifo {fifo}");
        assert!(sptf[4] > 1.2 * elevator, "{name}, seed 1: sptf {sptf:?}, elevator {elevator}");
        // A queue depth of one leaves the scheduler no choice.
        let spec = DiskSpec { queue: queue(Scheduler::Sptf, 1), ..file(text) };
        close(closed_loop(&spec, random_reads(), 32, 1, 30).0, fifo, 0.02, name);
    }
}

#[test]
fn an_elevator_passes_each_command_once() {
    // With n commands evenly spread, a sweep takes n seeks of 1 / (n + 1) of the disk's bytes each, and one seek
    // back.
    let spec = DiskSpec { queue: queue(Scheduler::Elevator, 256), ..plain() };
    let mut disk = disk(&spec, 1);
    let mut rng = rng(9);
    let offsets: Vec<u64> = (0..200).map(|_| block(&mut rng, &spec)).collect();
    for (tag, offset) in offsets.iter().enumerate() {
        assert_eq!(disk.begin(VirtualTime::START, &Request::read(*offset, BLOCK), tag as u64), None);
    }
    let order: Vec<u64> =
        std::iter::from_fn(|| disk.finish()).map(|(tag, _)| offsets[tag as usize]).collect();
    assert_eq!(order.len(), offsets.len());
    let turns = order.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!(turns <= 1, "seed 9: {order:?}");
}

#[test]
fn aging_bounds_the_wait() {
    let worst = |aging| {
        let queue = Queue { scheduler: Scheduler::Sptf, depth: 64, aging };
        let spec = DiskSpec { queue, ..plain() };
        closed_loop(&spec, random_reads(), 16, 1, 60).1.max().get() as f64 / 1e6
    };
    let (without, with) = (worst(None), worst(Some(Nanos::from_millis(100))));
    // Older commands that have also reached the bound are served first. There are fewer than the depth of the queue,
    // each with a full seek and rotation.
    assert!(with < 100.0 + 16.0 * 10.0 && with < without, "seed 1: {with} ms, without a bound {without}");
}

// The write cache.

fn cached(scheduler: Scheduler) -> DiskSpec {
    DiskSpec {
        write_cache: Some(WriteCache { size: Bytes::mib(4), honours_flush: true }),
        queue: queue(scheduler, 64),
        ..plain()
    }
}

#[test]
fn a_burst_is_absorbed_and_then_the_surface_sets_the_pace() {
    let spec = cached(Scheduler::Fifo);
    let (mut disk, mut rng) = (disk(&spec, 1), rng(1));
    let hit = spec.interface.overhead.get() + BLOCK * 1_000_000_000 / spec.interface.rate.get();
    let mut now = VirtualTime::START;
    for n in 0..(4 << 20) / BLOCK {
        let at = disk.submit(now, &Request::write(block(&mut rng, &spec), BLOCK)).at;
        assert_eq!(at.since(now).get(), hit, "seed 1, write {n}");
        now = at;
    }
    let count = 20_000;
    let begin = now;
    for _ in 0..count {
        now = disk.submit(now, &Request::write(block(&mut rng, &spec), BLOCK)).at;
    }
    let transfer = mean_transfer_ms(&disk);
    let service = ms(spec.seek.average) + ms(spec.seek.write_settle) + ms(spec.revolution()) / 2.0 + transfer;
    close(
        ms(now.since(begin)) / f64::from(count),
        service,
        0.02,
        "seed 1, ms a write in the order of arrival",
    );

    let (fifo, _) = closed_loop(&spec, Workload::random_write(Bytes::new(BLOCK)), 1, 1, 30);
    let (sptf, _) =
        closed_loop(&cached(Scheduler::Sptf), Workload::random_write(Bytes::new(BLOCK)), 1, 1, 30);
    let (elevator, _) =
        closed_loop(&cached(Scheduler::Elevator), Workload::random_write(Bytes::new(BLOCK)), 1, 1, 30);
    assert!(sptf > 1.2 * elevator && elevator > 1.2 * fifo, "seed 1: {sptf} {elevator} {fifo} writes/s");
}

#[test]
fn sequential_writes_merge_in_the_cache_and_miss_a_turn_without_it() {
    let stream = |spec: &DiskSpec| {
        let mut disk = disk(spec, 1);
        let count = (256 << 20) / BLOCK;
        let write = |now, n| disk.submit(now, &Request::write(n * BLOCK, BLOCK)).at;
        let end = (0..count).fold(VirtualTime::START, write);
        (
            count as f64 / end.since(VirtualTime::START).as_secs_f64(),
            disk.surface().rate(0) as f64 / BLOCK as f64,
        )
    };
    for scheduler in [Scheduler::Fifo, Scheduler::Elevator, Scheduler::Sptf] {
        let (rate, zone) = stream(&cached(scheduler));
        close(rate, zone, 0.03, &format!("{scheduler:?}"));
    }
    // Without a write cache, each write arrives just after its sector has passed the head.
    let spec = plain();
    close(stream(&spec).0, 1.0 / spec.revolution().as_secs_f64(), 0.05, "a write a turn");
}

#[test]
fn a_flush_waits_for_all_and_a_power_cut_loses_the_rest() {
    for scheduler in [Scheduler::Fifo, Scheduler::Elevator, Scheduler::Sptf] {
        let spec = cached(scheduler);
        let fill = |disk: &mut SimulatedDisk| {
            let mut rng = rng(7);
            let mut now = VirtualTime::START;
            for _ in 0..100 {
                now = disk.submit(now, &Request::write(block(&mut rng, &spec), BLOCK)).at;
            }
            now
        };
        let mut cut = disk(&spec, 1);
        let now = fill(&mut cut);
        cut.power_cut(now);
        let lost = cut.counters().lost_bytes;
        assert!(lost > 90 * BLOCK && lost <= 100 * BLOCK, "{scheduler:?}, seed 7: lost {lost}");
        cut.power_cut(now + Nanos::from_secs(1));
        assert_eq!(cut.counters().lost_bytes, lost, "{scheduler:?}: nothing is lost twice");

        let mut flushed = disk(&spec, 1);
        let now = fill(&mut flushed);
        let at = flushed.submit(now, &Request::flush()).at;
        assert!(ms(at.since(now)) > 100.0, "{scheduler:?}, seed 7: {}", ms(at.since(now)));
        let mut early = disk(&spec, 1);
        fill(&mut early);
        early.submit(now, &Request::flush());
        early.power_cut(VirtualTime::from_nanos(at.as_nanos() - 1));
        assert!(early.counters().lost_bytes > 0, "{scheduler:?}: a flush is not over before its end");
        flushed.power_cut(at);
        assert_eq!(flushed.counters().lost_bytes, 0, "{scheduler:?}");

        let mut idle = disk(&spec, 1);
        let now = fill(&mut idle);
        idle.idle_until(now + Nanos::from_secs(2));
        idle.power_cut(now + Nanos::from_secs(2));
        assert_eq!(idle.counters().lost_bytes, 0, "{scheduler:?}: idle time drains the cache");

        let mut forced = disk(&spec, 1);
        let request = Request { op: Op::Write { fua: true }, offset: 0, length: BLOCK };
        forced.submit(VirtualTime::START, &Request::write(0, BLOCK));
        let at = forced.submit(VirtualTime::START, &request).at;
        assert!(at.as_nanos() > 100_000, "{scheduler:?}: a forced write waits for the surface");
        forced.power_cut(at);
        assert_eq!(forced.counters().lost_bytes, 0, "{scheduler:?}");
    }
    let mut off = disk(&plain(), 1);
    let at = off.submit(VirtualTime::START, &Request::write(0, BLOCK)).at;
    off.power_cut(at);
    assert_eq!(off.counters().lost_bytes, 0, "nothing is volatile without a cache");
}

#[test]
fn what_lies_in_the_cache_is_read_from_there() {
    let mut disk = disk(&cached(Scheduler::Sptf), 1);
    disk.submit(VirtualTime::START, &Request::write(1 << 30, 64 << 10));
    let now = disk.submit(VirtualTime::START, &Request::write((1 << 30) + (64 << 10), 64 << 10)).at;
    let at = disk.submit(now, &Request::read((1 << 30) + (32 << 10), 64 << 10)).at;
    assert!(ms(at.since(now)) < 0.5, "{} ms", ms(at.since(now)));
}

#[test]
fn a_smaller_disk_answers_as_fast() {
    for (name, text) in FILES {
        let mean = |spec: &DiskSpec| latencies(spec, 1, 20_000).iter().sum::<f64>() / 20_000.0;
        let spec = file(text);
        close(mean(&spec.scaled(64)), mean(&spec), 0.02, &format!("{name}, seed 1"));
    }
}
