//! An allocator that counts the bytes held by one thread, to show that memory is bounded. `unsafe` because it is an
//! allocator.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static COUNTING: Counting = Counting;

struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// The maximum number of bytes that `body` held at once on this thread, beyond those held before.
pub fn most_held(body: impl FnOnce()) -> isize {
    let before = HELD.get();
    MOST.set(before);
    body();
    MOST.get() - before
}

fn count(bytes: isize) {
    // A thread that is ending no longer has counters.
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
    let _ = HELD.try_with(|held| MOST.try_with(|most| most.set(most.get().max(held.get()))));
}

// SAFETY: each call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller guarantees the same conditions.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller guarantees the same conditions.
        unsafe { System.dealloc(pointer, layout) }
    }
}
