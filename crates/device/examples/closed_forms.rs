//! Prints write amplification against the closed forms.
#[path = "../tests/common/mod.rs"]
mod common;
use lowtide_core::*;
use lowtide_device::spec::*;
use lowtide_device::*;

fn main() {
    for b in [64u32, 256] {
        for policy in [Policy::Greedy, Policy::Fifo, Policy::Random, Policy::DChoices(2)] {
            for rho in [0.5, 0.7, 0.8, 0.9, 0.95] {
                let t = std::time::Instant::now();
                let spec = common::plain(4096, b, rho, policy);
                let mut d = SimulatedSsd::new(&spec, Seed::new(1)).unwrap();
                let cap = d.capacity().get();
                let now = common::fill(&mut d, VirtualTime::START);
                let now = common::overwrite(&mut d, cap * 4, Seed::new(2), now);
                let c0 = d.counters();
                common::overwrite(&mut d, cap * 4, Seed::new(3), now);
                let c1 = d.counters();
                println!("{b} {policy:?} {rho} WA {:.4} free {} {:?}", c1.write_amplification_since(&c0).unwrap(), c1.free_blocks, t.elapsed());
            }
        }
    }
}
