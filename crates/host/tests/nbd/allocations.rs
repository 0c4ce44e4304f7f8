//! Counts the bytes that one thread holds, to show that memory is bounded. Holds `unsafe`: it is an allocator.
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

/// The most bytes that `body` held at once beyond what was there before it, on this thread.
pub fn most_held(body: impl FnOnce()) -> isize {
    let before = HELD.get();
    MOST.set(before);
    body();
    MOST.get() - before
}

fn count(bytes: isize) {
    // Threads that end have no counters any more.
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
    let _ = HELD.try_with(|held| MOST.try_with(|most| most.set(most.get().max(held.get()))));
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: as promised to this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: as promised to this function.
        unsafe { System.dealloc(pointer, layout) }
    }
}
