//! Sockets that systemd or a compatible program opened for this process (`LISTEN_PID`, `LISTEN_FDS`).
//!
//! Source: sd_listen_fds(3). This file contains `unsafe`, because a number from the environment becomes a descriptor.
//! Names of sockets (`LISTEN_FDNAMES`) are ignored.
#![allow(unsafe_code)]

use rustix::io::FdFlags;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The first passed descriptor.
const FIRST: RawFd = 3;

/// The maximum number of descriptors.
const MOST: usize = 256;

/// Whether the descriptors were taken. They can be taken only once, because each has one owner.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes the passed sockets; none if no sockets were passed, or if they were taken before. The error is the end of a
/// sentence.
pub(super) fn take() -> Result<Vec<OwnedFd>, String> {
    let variable = |name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let count = count(variable("LISTEN_PID"), variable("LISTEN_FDS"), std::process::id())?;
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Ok(Vec::new());
    }
    (FIRST..).take(count).map(adopt).collect()
}

fn adopt(number: RawFd) -> Result<OwnedFd, String> {
    // SAFETY: borrowed for this call only, which checks that the descriptor is open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_setfd(borrowed, FdFlags::CLOEXEC)
        .map_err(|error| format!("LISTEN_FDS promises descriptor {number}: {error}"))?;
    // SAFETY: the call above showed that it is open. The environment passes it to this process, so nothing else owns
    // it, and `TAKEN` lets each number pass here once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// The number of descriptors that the variables pass to the process `me`.
fn count(pid: Option<String>, fds: Option<String>, me: u32) -> Result<usize, String> {
    let (Some(pid), Some(fds)) = (pid, fds) else { return Ok(0) };
    // The sockets are for another process, probably the parent.
    if pid.parse() != Ok(me) {
        return Ok(0);
    }
    match fds.parse() {
        Ok(count) if count <= MOST => Ok(count),
        _ => Err(format!("LISTEN_FDS is {fds}: a number up to {MOST} is accepted")),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn only_descriptors_for_this_process_are_taken() {
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
