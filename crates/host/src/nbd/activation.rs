//! Sockets that systemd, or whoever speaks as it does, opened for this process (`LISTEN_PID`, `LISTEN_FDS`).
//!
//! Source: sd_listen_fds(3). Not here: the names of sockets (`LISTEN_FDNAMES`) and what is done with them. Holds
//! `unsafe`: a number in the environment becomes a descriptor.
#![allow(unsafe_code)]

use rustix::io::FdFlags;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The first descriptor that is passed.
const FIRST: RawFd = 3;

/// The most that are taken: far above what anyone passes, far below what an array could not hold.
const MOST: usize = 256;

/// Whether the descriptors were taken: each has one owner.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The sockets that were passed to this process; none where none were, or where they were taken before. An error is the
/// rest of a sentence.
pub(super) fn take() -> Result<Vec<OwnedFd>, String> {
    let variable = |name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let count = count(variable("LISTEN_PID"), variable("LISTEN_FDS"), std::process::id())?;
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Ok(Vec::new());
    }
    (FIRST..).take(count).map(adopt).collect()
}

fn adopt(number: RawFd) -> Result<OwnedFd, String> {
    // SAFETY: borrowed for this one call, which says whether the number is open at all.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_setfd(borrowed, FdFlags::CLOEXEC)
        .map_err(|error| format!("LISTEN_FDS promises descriptor {number}: {error}"))?;
    // SAFETY: it is open, as the call above said; it came with the environment that names it, so nothing in this process
    // owns it; and `TAKEN` lets each number pass here once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// How many descriptors these variables promise to the process `me`.
fn count(pid: Option<String>, fds: Option<String>, me: u32) -> Result<usize, String> {
    let (Some(pid), Some(fds)) = (pid, fds) else { return Ok(0) };
    // Meant for another process: the one that started this one, most likely.
    if pid.parse() != Ok(me) {
        return Ok(0);
    }
    match fds.parse() {
        Ok(count) if count <= MOST => Ok(count),
        _ => Err(format!("LISTEN_FDS is {fds}: a number of descriptors up to {MOST} is accepted")),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn descriptors_are_ours_only_where_they_were_meant_for_us() {
        let counted = |pid: &str, fds: &str| count(Some(pid.to_owned()), Some(fds.to_owned()), 42);
        assert_eq!(counted("42", "2"), Ok(2));
        assert_eq!(counted("41", "2"), Ok(0));
        assert_eq!(counted("x", "2"), Ok(0));
        assert_eq!(count(None, Some("2".to_owned()), 42), Ok(0));
        assert_eq!(count(Some("42".to_owned()), None, 42), Ok(0));
        for wrong in ["-1", "x", "", "257", "99999999999999999999"] {
            assert!(counted("42", wrong).is_err(), "{wrong}");
        }
    }
}
