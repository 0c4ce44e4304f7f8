//! [`within`]: a time limit for calls that may never return, such as those that wait for a filesystem server.
//! After the limit, the thread of the call keeps running until the call returns or the program ends.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Runs `call` in a thread of its own and returns its result; `None` if it takes longer than `limit`.
pub(super) fn within<T: Send + 'static>(
    limit: Duration,
    call: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        // The caller may have given up waiting.
        let _ = send.send(call());
    });
    receive.recv_timeout(limit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_returns_within_the_limit_or_not_at_all() {
        assert_eq!(within(Duration::from_secs(60), || 7), Some(7));
        let (_open, silent) = mpsc::channel::<()>();
        assert!(within(Duration::from_millis(1), move || silent.recv().is_err()).is_none());
    }
}
