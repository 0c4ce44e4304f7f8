mod common;
use common::intel_320;
use lowtide_core::{virtual_load, *};
use lowtide_device::SimulatedSsd;

#[test]
fn print() {
    for (gib, block, secs, fillit) in [(100u64, 16u64, 3600u64, true), (70, 16, 3600, true), (140,16,3600,true), (10, 16, 600, true), (140, 4, 60, false)] {
        let scale = 16;
        let mut drive = SimulatedSsd::new(&intel_320().scaled(scale), Seed::new(1)).unwrap();
        let len = Bytes::gib(gib).get() / scale;
        let mut now = VirtualTime::START;
        if fillit {
            for n in 0..len >> 20 { now = drive.submit(now, &Request::write(n << 20, 1 << 20)).at; }
        }
        let w = Workload::random_write(Bytes::kib(block));
        let mut all = vec![];
        let interval = Nanos::from_millis(10_000 / scale);
        let n = secs as usize / 10;
        let _ = virtual_load::run(&mut drive, &Extents::whole(len), &w, Seed::new(2), now, interval, &mut |i: Interval| {
            all.push(i.write_bytes as f64 / (1 << 20) as f64 / (10.0 / scale as f64));
            if all.len() == n { Control::Stop } else { Control::Continue }
        });
        let mean = |s: &[f64]| s.iter().sum::<f64>() / s.len() as f64;
        println!("{gib} GiB {block} KiB: first {:.2} min {:.2} max {:.2} last half {:.2} WA {:?}", mean(&all[..5]), all.iter().cloned().fold(1e9, f64::min), all.iter().cloned().fold(0., f64::max), mean(&all[n / 2..]), drive.counters().nand_written_bytes as f64 / drive.counters().host_written_bytes as f64);
    }
}
