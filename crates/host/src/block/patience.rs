//! [`within`]: asks what may never answer, such as the server of a filesystem, for a limited time.
//!
//! Not here: ending the question; its thread goes on until it is answered or the program ends.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The answer of `ask`, which runs in a thread of its own; `None` if it takes longer than `limit`.
pub(super) fn within<T: Send + 'static>(
    limit: Duration,
    ask: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        // Whoever asked may have gone on without the answer.
        let _ = send.send(ask());
    });
    receive.recv_timeout(limit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_until_the_limit() {
        assert_eq!(within(Duration::from_secs(60), || 7), Some(7));
        let (_open, silent) = mpsc::channel::<()>();
        assert!(within(Duration::from_millis(1), move || silent.recv().is_err()).is_none());
    }
}
