//! Benchmark of the full timing model: steady-state random 4 KiB writes per second of wall time.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lowtide_core::rng::below;
use lowtide_core::{BlockDevice, Request, Seed, VirtualTime};
use lowtide_device::SimulatedSsd;
use lowtide_device::flash::spec::{FlashSpec, Policy};
use std::time::Duration;

const WRITES: u64 = 50_000;

fn steady(policy: Policy) -> SimulatedSsd {
    let file = include_str!("../../../devices/intel-320-160gb.toml");
    let mut spec: FlashSpec = toml::from_str(file).expect("the file describes a drive");
    spec.gc.policy = policy;
    spec.map.cache = None;
    let mut drive = SimulatedSsd::new(&spec.scaled(64), Seed::new(1)).expect("valid");
    let chunk = 1 << 20;
    (0..drive.capacity().get() / chunk)
        .fold(VirtualTime::START, |now, n| drive.submit(now, &Request::write(n * chunk, chunk)).at);
    drive
}

fn random_writes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("random-write-4KiB");
    group.throughput(Throughput::Elements(WRITES)).sample_size(20).measurement_time(Duration::from_secs(2));
    for (name, policy) in [("greedy", Policy::Greedy), ("random", Policy::Random)] {
        let mut drive = steady(policy);
        let mut rng = Seed::new(2).stream();
        let units = drive.capacity().get() >> 12;
        let mut now = VirtualTime::START;
        let mut write = |drive: &mut SimulatedSsd, count| {
            for _ in 0..count / 50 {
                let batch: [Request; 50] =
                    std::array::from_fn(|_| Request::write(below(&mut rng, units) << 12, 4096));
                drive.warm(&batch);
                for request in &batch {
                    now = drive.submit(now, request).at;
                }
            }
        };
        write(&mut drive, units);
        group.bench_function(name, |bencher| bencher.iter(|| write(&mut drive, WRITES)));
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).without_plots();
    targets = random_writes
}
criterion_main!(benches);
