//! A global allocator that backs large allocations with 2 MiB pages ([`HugePages`]).
//!
//! Simulated drives have tables of hundreds of megabytes with random access. With 4 KiB pages, most accesses also
//! miss the TLB. Allocations of 4 MiB and more are therefore mapped with `mmap`, aligned to 2 MiB, with
//! `MADV_HUGEPAGE`, so that the kernel may use huge pages even if it does so only on request
//! (`/sys/kernel/mm/transparent_hugepage/enabled` = `madvise`). They are zeroed lazily: `vec![0; n]` touches no
//! memory. Smaller allocations use the system's allocator.
//!
//! # Not handled
//! Explicit hugetlbfs pages, which an administrator would have to reserve, and NUMA.

#![allow(unsafe_code)]

use rustix::mm::{
    Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap, mremap_fixed, munmap,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

/// Allocations of at least this many bytes are mapped.
const LARGE: usize = 4 << 20;
/// Bytes of a huge page.
const HUGE: usize = 2 << 20;
/// The unit of mappings in bytes. Pages of other architectures (64 KiB on some arm64) divide [`HUGE`], to which
/// lengths are rounded up there.
pub(crate) const PAGE: usize = if cfg!(target_arch = "x86_64") { 4096 } else { HUGE };

/// The system's allocator, except that allocations of 4 MiB and more are backed by huge pages if the kernel has them.
///
/// ```
/// # use lowtide_host::memory::HugePages;
/// #[global_allocator]
/// static ALLOCATOR: HugePages = HugePages;
/// assert_eq!(vec![0u64; 1 << 20].as_ptr() as usize % (2 << 20), 0);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct HugePages;

fn is_large(size: usize, align: usize) -> bool {
    size >= LARGE && align <= HUGE
}

/// Bytes to map for an allocation of `size`; `None` on overflow.
fn mapped(size: usize) -> Option<usize> {
    size.checked_next_multiple_of(PAGE)
}

/// Maps `length` zero bytes, a multiple of [`PAGE`], aligned to [`HUGE`], and requests huge pages.
pub(crate) fn map(length: usize) -> Option<NonNull<u8>> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: an anonymous private mapping at an address that the kernel chooses overlaps no other memory.
    let first = unsafe { mmap_anonymous(null_mut(), length, protection, MapFlags::PRIVATE) }.ok()?;
    let base = if first.addr().is_multiple_of(HUGE) {
        // Linux 6.7 and later align such mappings.
        first
    } else {
        // SAFETY: `first` was mapped above with this length and is not shared.
        unsafe { munmap(first, length) }.ok()?;
        let padded = length.checked_add(HUGE)?;
        // SAFETY: as above.
        let start = unsafe { mmap_anonymous(null_mut(), padded, protection, MapFlags::PRIVATE) }.ok()?;
        let before = start.addr().next_multiple_of(HUGE) - start.addr();
        let base = start.wrapping_byte_add(before);
        // SAFETY: both parts lie in the new mapping, outside the range that is kept, and are not shared. Empty parts
        // are skipped. A failure would only waste address space.
        unsafe {
            if before > 0 {
                let _ = munmap(start, before);
            }
            if padded - before > length {
                let _ = munmap(base.wrapping_byte_add(length), padded - before - length);
            }
        }
        base
    };
    // SAFETY: the range was mapped above. Without huge pages, everything works more slowly.
    let _ = unsafe { madvise(base, length, Advice::LinuxHugepage) };
    NonNull::new(base.cast())
}

/// Removes a mapping.
///
/// # Safety
/// `base` came from [`map`] or [`remap`] with this `length`, and nothing points into it any more.
pub(crate) unsafe fn unmap(base: *mut u8, length: usize) {
    // SAFETY: the caller's promise. The kernel refuses only if it lacks memory for its own records; the mapping is
    // then leaked, not reused.
    let _ = unsafe { munmap(base.cast::<c_void>(), length) };
}

/// Changes the length of a mapping by moving pages, not by copying bytes.
///
/// # Safety
/// `base` came from [`map`] or [`remap`] with length `from`, and the caller holds the only pointer to it. If the
/// result is `None`, the old mapping is unchanged.
unsafe fn remap(base: *mut u8, from: usize, to: usize) -> Option<*mut u8> {
    let old = base.cast::<c_void>();
    if to == from {
        return Some(base);
    }
    if to < from {
        // SAFETY: the tail belongs to the mapping, and the caller gives it up.
        unsafe { munmap(old.wrapping_byte_add(to), from - to) }.ok()?;
        return Some(base);
    }
    // SAFETY: without MAYMOVE the mapping grows in place or is unchanged.
    if unsafe { mremap(old, from, to, MremapFlags::empty()) }.is_ok() {
        return Some(base);
    }
    let target = map(to)?;
    // SAFETY: `target` is a new mapping of `to` bytes that is not shared, so it may be replaced. On failure the
    // kernel may already have unmapped `target`. It is leaked then, because unmapping it could remove a new mapping
    // of another thread.
    unsafe { mremap_fixed(old, from, to, MremapFlags::MAYMOVE, target.as_ptr().cast()) }.ok()?;
    Some(target.as_ptr())
}

// SAFETY: small layouts always use the system's allocator. Size and alignment alone decide, so that `dealloc` and
// `realloc` see the same class as `alloc`. Large allocations are private mappings of at least the requested size,
// aligned to 2 MiB, which is the largest alignment of that class. Nothing unwinds.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout.size(), layout.align()) {
            return mapped(layout.size()).and_then(map).map_or(null_mut(), NonNull::as_ptr);
        }
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout.size(), layout.align()) {
            // SAFETY: the caller's promise about `layout` is passed on; new mappings are zero.
            return unsafe { self.alloc(layout) };
        }
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if is_large(layout.size(), layout.align()) {
            if let Some(length) = mapped(layout.size()) {
                // SAFETY: `alloc` or `realloc` mapped it with this length.
                unsafe { unmap(ptr, length) };
            }
            return;
        }
        // SAFETY: a small layout came from the system's allocator.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let old_large = is_large(layout.size(), layout.align());
        let new_large = is_large(new_size, layout.align());
        if !old_large && !new_large {
            // SAFETY: small before and after, so the caller's promises are passed on.
            return unsafe { System.realloc(ptr, layout, new_size) };
        }
        if old_large && new_large {
            let lengths = mapped(layout.size()).zip(mapped(new_size));
            // SAFETY: the block was mapped with the first length and the caller owns it alone.
            if let Some(moved) = lengths.and_then(|(from, to)| unsafe { remap(ptr, from, to) }) {
                return moved;
            }
        }
        // SAFETY: the caller promises that `new_size` is positive and, rounded up to the alignment, fits isize.
        let new = unsafe { self.alloc(Layout::from_size_align_unchecked(new_size, layout.align())) };
        if !new.is_null() {
            // SAFETY: both blocks hold the copied bytes, and a new block overlaps nothing; the old one is freed with
            // its own layout.
            unsafe {
                std::ptr::copy_nonoverlapping(ptr, new, layout.size().min(new_size));
                self.dealloc(ptr, layout);
            }
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reallocates through `sizes`, and checks after each step that the data is preserved.
    fn survives(sizes: &[usize]) {
        let align = 16;
        let layout = |size| Layout::from_size_align(size, align).expect("a valid layout");
        // SAFETY: sizes are positive, each layout is the one the block has, and accesses stay inside it.
        unsafe {
            let mut ptr = HugePages.alloc_zeroed(layout(sizes[0]));
            assert!(!ptr.is_null());
            assert!((0..sizes[0]).step_by(1021).all(|n| *ptr.add(n) == 0), "fresh memory is zero");
            for pair in sizes.windows(2) {
                let (from, to) = (pair[0], pair[1]);
                (0..from).step_by(509).for_each(|n| *ptr.add(n) = (n % 251) as u8);
                ptr = HugePages.realloc(ptr, layout(from), to);
                assert!(!ptr.is_null());
                assert!(to < LARGE || ptr.addr().is_multiple_of(HUGE), "{from} → {to} lost its alignment");
                let kept = (0..from.min(to)).step_by(509).all(|n| *ptr.add(n) == (n % 251) as u8);
                assert!(kept, "{from} → {to} lost data");
                *ptr.add(to - 1) = 1;
            }
            HugePages.dealloc(ptr, layout(*sizes.last().expect("not empty")));
        }
    }

    #[test]
    fn growing_shrinking_and_crossing_the_limit_keep_the_data() {
        const M: usize = 1 << 20;
        survives(&[100, 4 * M - 1, 4 * M, 4 * M + 1, 9 * M + 77, 64 * M, 64 * M + 4096, 5 * M, 3 * M, 6 * M]);
    }

    #[test]
    fn a_mapping_that_cannot_grow_in_place_moves() {
        let layout = Layout::from_size_align(LARGE, 8).expect("a valid layout");
        // SAFETY: the blocks are allocated and freed with the layouts given, and accessed inside them.
        unsafe {
            let blocks: Vec<*mut u8> = (0..8).map(|_| HugePages.alloc(layout)).collect();
            for (n, block) in blocks.iter().enumerate() {
                block.write_bytes(n as u8, LARGE);
            }
            let grown: Vec<*mut u8> =
                blocks.iter().map(|block| HugePages.realloc(*block, layout, 3 * LARGE)).collect();
            for (n, block) in grown.iter().enumerate() {
                assert!((0..LARGE).all(|at| *block.add(at) == n as u8), "block {n}");
                assert_eq!(*block.add(3 * LARGE - 1), 0, "grown memory of a mapping is fresh");
                HugePages.dealloc(*block, Layout::from_size_align(3 * LARGE, 8).expect("a valid layout"));
            }
        }
    }

    #[test]
    fn zeroed_memory_is_not_touched() {
        let resident = || {
            let text = std::fs::read_to_string("/proc/self/statm").expect("procfs");
            text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).expect("a number") * 4096
        };
        let layout = Layout::from_size_align(1 << 30, 8).expect("a valid layout");
        let before = resident();
        // SAFETY: allocated and freed with the same layout, read inside it.
        unsafe {
            let ptr = HugePages.alloc_zeroed(layout);
            assert!(!ptr.is_null());
            assert!(resident().saturating_sub(before) < 256 << 20, "1 GiB of zeroes took memory");
            HugePages.dealloc(ptr, layout);
        }
    }

    #[test]
    fn an_impossible_size_is_refused() {
        let layout = Layout::from_size_align(isize::MAX as usize - 4095, 8).expect("a valid layout");
        // SAFETY: a null answer is all that is looked at.
        assert!(unsafe { HugePages.alloc(layout) }.is_null());
    }
}
