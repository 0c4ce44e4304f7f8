//! Measures random access to a 160 MB table with and without huge pages and prints nanoseconds per access.
#![allow(clippy::print_stdout, unsafe_code)]

use lowtide_core::Seed;
use lowtide_core::rng::below;
use lowtide_host::memory::HugePages;
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::time::Instant;

const ENTRIES: u64 = 20_000_000;
const ACCESSES: u64 = 50_000_000;

/// Nanoseconds per access: independent ones, and ones where each depends on the one before.
fn access_ns(allocator: &dyn GlobalAlloc) -> (f64, f64) {
    let layout = Layout::array::<u64>(ENTRIES as usize).expect("160 MB");
    // SAFETY: the table is allocated and freed with one layout and holds ENTRIES initialised numbers.
    let table = unsafe {
        std::slice::from_raw_parts_mut(allocator.alloc_zeroed(layout).cast::<u64>(), ENTRIES as usize)
    };
    (0..ENTRIES).for_each(|n| table[n as usize] = n);
    let mut rng = Seed::new(1).stream();
    let begun = Instant::now();
    for _ in 0..ACCESSES {
        table[below(&mut rng, ENTRIES) as usize] += 1;
    }
    let independent = begun.elapsed().as_nanos() as f64 / ACCESSES as f64;
    let begun = Instant::now();
    let mut carry = 0;
    for _ in 0..ACCESSES / 5 {
        carry = table[((below(&mut rng, ENTRIES) + (carry & 1)) % ENTRIES) as usize];
    }
    black_box(carry);
    let dependent = begun.elapsed().as_nanos() as f64 / (ACCESSES / 5) as f64;
    // SAFETY: allocated above with this layout; the slice is not used any more.
    unsafe { allocator.dealloc(table.as_mut_ptr().cast(), layout) };
    (independent, dependent)
}

fn main() {
    for round in 1..=3 {
        let (system, huge) = (access_ns(&System), access_ns(&HugePages));
        println!(
            "round {round}: system {:.2} ns independent, {:.1} ns dependent; huge pages {:.2} ns, {:.1} ns",
            system.0, system.1, huge.0, huge.1
        );
    }
}
