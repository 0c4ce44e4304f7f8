//! Scratch: a series of inserts on one flash drive without a format between.
use lowtide_core::inserts::{Checkpoint, Inserts, Log, Place, RowCost, Storage, run};
use lowtide_core::rng::below;
use lowtide_core::{BlockDevice, Bytes, Control, Nanos, Seed, VirtualTime};
use lowtide_device::SimulatedSsd;
use lowtide_device::flash::spec::FlashSpec;
use std::time::Instant;

fn main() {
    let spec: FlashSpec = toml::from_str(&std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap()).unwrap();
    let mut drive = SimulatedSsd::new(&spec, Seed::new(1)).unwrap();
    let mut rng = Seed::new(3).stream();
    let mut now = VirtualTime::START;
    for files in [1, 2, 4, 8, 16] {
        for rep in 0..5 {
            let begun = Instant::now();
            let database = std::env::args().nth(2).map_or(160_000_000_000, |s| s.parse().unwrap());
            let inserts = Inserts {
                connections: 16, rows: 819_200, commit: 128, data_files: files, database: Bytes::new(database),
                row: RowCost { insert: Nanos::from_micros(66), hand_off: Nanos::from_micros(62), connection: Nanos::from_micros(100), log: Bytes::new(8300) },
                log: Log { size: Bytes::gib(10), align: Bytes::kib(64), write: Bytes::mib(1), outstanding: 32 },
                checkpoint: Checkpoint { after: Bytes::gib(4), memory: Bytes::gib(8), gather: Bytes::kib(256), outstanding: 32 },
            };
            let room = (drive.capacity().get() - database - (11 << 30)) >> 30;
            let place = if std::env::args().nth(3).is_some() { 0 } else { below(&mut rng, room + 1) << 30 };
            let log = if place >= (11 << 30) { 0 } else { place + database / 65536 * 65536 };
            let before = drive.counters();
            let end = run(&inserts, Storage { devices: vec![&mut drive], data: Place { device: 0, offset: place }, log: Place { device: 0, offset: log } },
                Seed::new(rep), now, Nanos::from_secs(10), &mut |_| Control::Continue).unwrap();
            println!("{files:2} files {:8.1} s, at {} GiB, wa {:.2}, free blocks {} cpu {:?}", end.since(now).as_secs_f64(), place >> 30,
                drive.counters().write_amplification_since(&before).unwrap(), drive.counters().free_blocks, begun.elapsed());
            now = end;
        }
    }
}
