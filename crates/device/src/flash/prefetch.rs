//! [`prefetch`]: asks the processor to load an entry of a table that will be needed soon.
//!
//! Tables of a drive are far larger than any cache, and are read at random places: a plain load would hold up what comes
//! after it. Does nothing on processors other than x86-64. It is the only `unsafe` code
//! outside crate `host`.

#![allow(unsafe_code)]

/// Asks for the entry `index` of `table`; nothing happens where there is none.
#[inline(always)]
pub(super) fn prefetch<T>(table: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(entry) = table.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads and writes nothing, and faults at no address; this one is valid besides.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, index);
}
