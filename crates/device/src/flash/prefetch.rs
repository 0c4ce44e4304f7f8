//! Prefetches table entries that will be needed soon.
//!
//! The tables of a drive are far larger than any processor cache, and are accessed at random positions, so that a plain
//! load would stall. On processors other than x86-64, [`prefetch`] does nothing. This is the only `unsafe` code outside
//! crate `host`.

#![allow(unsafe_code)]

/// Prefetches the entry `index` of `table`. Does nothing if there is no such entry.
#[inline(always)]
pub(super) fn prefetch<T>(table: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(entry) = table.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch neither reads nor writes, and does not fault at any address. The pointer is valid anyway.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, index);
}
