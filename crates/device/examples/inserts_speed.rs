//! Scratch: elapsed times of inserts on one flash drive, and what simulating them costs.
use lowtide_core::inserts::{Checkpoint, Inserts, Log, Place, RowCost, Storage, run};
use lowtide_core::{BlockDevice, Bytes, Control, Nanos, Seed, VirtualTime};
use lowtide_device::SimulatedSsd;
use lowtide_device::flash::spec::FlashSpec;
use std::time::Instant;

fn main() {
    let spec: FlashSpec = toml::from_str(&std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap()).unwrap();
    for files in [1, 2, 4, 8, 16] {
        let begun = Instant::now();
        let mut drive = SimulatedSsd::new(&spec, Seed::new(1)).unwrap();
        let mut drive2 = SimulatedSsd::new(&spec, Seed::new(1)).unwrap();
        let made = begun.elapsed();
        let inserts = Inserts {
            connections: 16, rows: 819_200, commit: 128, data_files: files, database: Bytes::new(160_000_000_000),
            row: RowCost { insert: Nanos::from_micros(69), hand_off: Nanos::from_micros(59), connection: Nanos::from_micros(100), log: Bytes::new(8300) },
            log: Log { size: Bytes::gib(10), align: Bytes::kib(64), write: Bytes::mib(1), outstanding: 32 },
            checkpoint: Checkpoint { after: Bytes::gib(4), memory: Bytes::gib(8), gather: Bytes::kib(256), outstanding: 32 },
        };
        let mut rows = 0u64;
        let end = run(&inserts, Storage { devices: vec![&mut drive, &mut drive2], data: Place { device: 0, offset: 0 }, log: Place { device: 1, offset: 170_000_000_000 / 65536 * 65536 } },
            Seed::new(1), VirtualTime::START, Nanos::from_secs(10), &mut |i| { rows += i.writes; Control::Continue }).unwrap();
        println!("{files:2} files {:8.1} s, {rows} rows, wa {:?}, made {made:?} cpu {:?}", end.as_nanos() as f64 / 1e9,
            drive.counters().write_amplification_since(&Default::default()), begun.elapsed());
    }
}
