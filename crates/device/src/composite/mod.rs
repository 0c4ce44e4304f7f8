//! What devices made of devices share: members that may queue, requests that wait for several parts, and a
//! resource whose future is booked.
//!
//! ```text
//!   request ──► parts ──► Members (each at once, or queued under a tag of ours)
//!                             │ steps, in order of time over all members
//!   completion ◄── Requests ◄─┘ (the last part completes the request)
//! ```
//!
//! Leaves out which parts a request has, which is what makes an array an array and a cache a cache.

mod calendar;
mod members;
mod requests;
mod steps;

pub(crate) use calendar::Calendar;
pub(crate) use members::{Members, Step};
pub(crate) use requests::Requests;
pub(crate) use steps::Composite;

use lowtide_core::{DeviceError, Op, Request};

/// Whether a device of that capacity and logical block can do what is asked.
///
/// # Errors
/// [`DeviceError`] says why not.
pub(crate) fn check(request: &Request, capacity: u64, block: u64) -> Result<(), DeviceError> {
    let Request { op, offset, length } = *request;
    if op == Op::Flush {
        return Ok(());
    }
    if offset.checked_add(length).is_none_or(|end| end > capacity) {
        return Err(DeviceError::OutOfRange { offset, length, capacity });
    }
    if !offset.is_multiple_of(block) || !length.is_multiple_of(block) {
        return Err(DeviceError::Unaligned { offset, length, block });
    }
    Ok(())
}

/// The earlier of two instants that may not be. (An iterator over both is several times slower.)
#[inline]
pub(crate) fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Nanoseconds that `bytes` take at `rate` bytes a second; none where there is no limit.
pub(crate) fn transfer_ns(bytes: u64, rate: Option<u64>) -> u64 {
    match rate {
        None => 0,
        Some(rate) => match bytes.checked_mul(1_000_000_000) {
            Some(scaled) => scaled / rate,
            // A request of more than 18 GB.
            None => (u128::from(bytes) * 1_000_000_000 / u128::from(rate)) as u64,
        },
    }
}
