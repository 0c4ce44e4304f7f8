//! Shared parts of devices that consist of other devices: members that may queue, requests with several parts, and a
//! resource with advance reservations.
//!
//! ```text
//!   request ──► parts ──► Members (each at once, or queued under a tag of ours)
//!                             │ steps, in order of time over all members
//!   completion ◄── Requests ◄─┘ (the last part completes the request)
//! ```
//!
//! The modules `array` and `cache` choose the parts of a request.

mod calendar;
mod members;
mod requests;
mod steps;

pub(crate) use calendar::Calendar;
pub(crate) use members::{Members, Step};
pub(crate) use requests::{Requests, Work};
pub(crate) use steps::Composite;

/// Returns the earlier of two optional instants. An iterator over both is several times slower.
#[inline]
pub(crate) fn earlier<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Puts a value into the first free slot. Returns the index of the slot.
pub(crate) fn insert<T>(slots: &mut Vec<Option<T>>, value: T) -> usize {
    let slot = slots.iter().position(Option::is_none).unwrap_or(slots.len());
    if slot == slots.len() {
        slots.push(None);
    }
    slots[slot] = Some(value);
    slot
}

/// Time to transfer `bytes` at `rate` bytes per second, in nanoseconds; 0 without a rate.
pub(crate) fn transfer_ns(bytes: u64, rate: Option<u64>) -> u64 {
    match rate {
        None => 0,
        Some(rate) => match bytes.checked_mul(1_000_000_000) {
            Some(scaled) => scaled / rate,
            // More than 18 GB overflow 64 bits.
            None => (u128::from(bytes) * 1_000_000_000 / u128::from(rate)) as u64,
        },
    }
}
