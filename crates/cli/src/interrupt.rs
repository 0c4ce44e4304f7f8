//! Ctrl-C and all other signals that end a program by default: the first one ends the campaign cleanly, a second
//! Ctrl-C ends the program at once.
//!
//! # Not handled
//! Signals of a fault of the program itself, such as SIGSEGV. SIGPIPE is an error of the write.

use crate::output;
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Interval between checks of the flag.
const POLL: Duration = Duration::from_millis(250);

/// Signals within this time of the first are ignored: some programs signal a process and its group.
pub const ONCE: Duration = Duration::from_secs(2);

/// Signals that end a program by default.
pub const ENDING: [i32; 12] = [
    SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGXCPU, SIGXFSZ,
];

/// Signals that end the program at once when repeated. The kernel repeats other signals by itself: SIGXCPU comes
/// every second after the limit of processor time.
pub const AGAIN: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// Returns a flag that the first signal sets.
pub fn flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let again = Arc::new(AtomicBool::new(false));
    for signal in ENDING {
        let ends = !AGAIN.contains(&signal)
            || signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&again)).is_ok();
        let sets = signal_hook::flag::register(signal, Arc::clone(&flag));
        if !ends || sets.is_err() {
            output::say("warning: cannot catch signals: Ctrl-C ends lowtide at once");
        }
    }
    let seen = Arc::clone(&flag);
    std::thread::spawn(move || {
        while !seen.load(Ordering::Relaxed) {
            std::thread::sleep(POLL);
        }
        // After this time, the live view is closed, and a program without further work has ended.
        std::thread::sleep(POLL);
        output::say(
            "interrupted: stopping cleanly and undoing changes to devices; a second Ctrl-C ends lowtide at once and \
             leaves the changes to the next run on the device",
        );
        std::thread::sleep(ONCE);
        again.store(true, Ordering::Relaxed);
    });
    flag
}
