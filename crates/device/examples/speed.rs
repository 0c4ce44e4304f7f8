//! Speed probe.
#[path = "../tests/common/mod.rs"]
mod common;
use lowtide_core::*;
use lowtide_device::spec::*;
use lowtide_device::*;

fn main() {
    let mut spec = common::plain(160 << 10, 256, 0.9, Policy::Greedy);
    let args: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let page = args.first().copied().unwrap_or(4);
    spec.nand.dies = 64; spec.nand.channels = 16; spec.gc.concurrency = 8;
    spec.nand.page = Bytes::kib(4 * page); spec.nand.pages_per_block = 256 / page as u32;
    spec.write_buffer.size = Bytes::mib(2);
    let unit = 4096u64;
    let total = (160u64 << 30) / unit;
    let g = lowtide_device::flash::Geometry::new(&spec);
    let reserve = (g.set_point_blocks as u64 + 64 / 2 + 8 ) * 256;
    spec.capacity = Bytes::new(((total - reserve) as f64 * 0.9) as u64 * unit);
    let mut d = SimulatedSsd::new(&spec, Seed::new(1)).unwrap();
    let t = std::time::Instant::now();
    let now = common::fill(&mut d, VirtualTime::START);
    eprintln!("fill {:?}", t.elapsed());
    let extents = Extents::whole(d.capacity().get());
    let workload = Workload { threads: 32, ..Workload::random_write(Bytes::kib(4)) };
    let mut c0 = d.counters(); let mut t0 = std::time::Instant::now(); 
    let mut w0 = c0.host_written_bytes; let q = 40u64 << 30; let mut n = 0;
    let mut slow = std::time::Duration::ZERO;
    let each = &mut |i: Interval| {
        let c = i.counters.unwrap();
        let s = std::time::Instant::now();
        if c.host_written_bytes - w0 >= q {
            n += 1;
            let dt = t0.elapsed();
            println!("quarter {n} WA {:.4}  {:.2} M/s  {:?} free {}", c.write_amplification_since(&c0).unwrap(), (c.host_written_bytes-w0) as f64/4096.0/dt.as_secs_f64()/1e6, dt, c.free_blocks);
            c0 = c; w0 = c.host_written_bytes; t0 = std::time::Instant::now();
        }
        slow += s.elapsed();
        if n == 6 { Control::Stop } else { Control::Continue }
    };
    virtual_load::run(&mut d, &extents, &workload, Seed::new(2), now, Nanos::from_millis(500), each).unwrap();
}
