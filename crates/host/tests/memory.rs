//! The allocator compared with a plain `Vec`: after any sequence of sizes, the bytes are equal.
#![allow(unsafe_code)]

use lowtide_host::memory::HugePages;
use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn reallocating_keeps_every_byte(
        sizes in prop::collection::vec(1usize..12 << 20, 2..8), align in prop::sample::select(vec![1usize, 16, 4096, 2 << 20, 4 << 20]),
    ) {
        let layout = |size| Layout::from_size_align(size, align).expect("a valid layout");
        let mut model = vec![0u8; sizes[0]];
        // SAFETY: each layout is the block's current one, and accesses stay within the block.
        unsafe {
            let mut block = HugePages.alloc_zeroed(layout(sizes[0]));
            for pair in sizes.windows(2) {
                prop_assert!(!block.is_null() && block.addr().is_multiple_of(align));
                let bytes = std::slice::from_raw_parts_mut(block, pair[0]);
                for (n, (byte, same)) in bytes.iter_mut().zip(&mut model).enumerate().step_by(997) {
                    *byte = (n ^ pair[1]) as u8;
                    *same = *byte;
                }
                block = HugePages.realloc(block, layout(pair[0]), pair[1]);
                let kept = pair[0].min(pair[1]);
                prop_assert!(std::slice::from_raw_parts(block, kept) == &model[..kept]);
                // The new part of a grown block has no defined contents, so both are filled with zeroes.
                model.resize(pair[1], 0);
                std::slice::from_raw_parts_mut(block, pair[1])[kept..].fill(0);
            }
            HugePages.dealloc(block, layout(*sizes.last().expect("not empty")));
        }
    }
}
