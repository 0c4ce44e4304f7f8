//! Ctrl-C, and signals that end programs (a terminal that goes away among them): the first ends the campaign in good order, the second ends the program.

use crate::output;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the flag is looked at, to tell the user that it was seen.
const LOOK: Duration = Duration::from_millis(250);

/// Signals that come within this time of the first are the same: some programs signal a process and its group.
pub const ONCE: Duration = Duration::from_secs(2);

/// A flag that the first signal sets.
pub fn flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let again = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        let ends = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&again));
        let sets = signal_hook::flag::register(signal, Arc::clone(&flag));
        if ends.is_err() || sets.is_err() {
            output::say(format_args!("warning: signals cannot be caught here; Ctrl-C ends lowtide at once"));
        }
    }
    let seen = Arc::clone(&flag);
    std::thread::spawn(move || {
        while !seen.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
        // A view that was drawn is gone by then, and so is a program with nothing left to do.
        std::thread::sleep(LOOK);
        output::say(
            "interrupted: what runs ends in good order, and what was changed on a device is undone; once more ends \
             lowtide at once and leaves that to the next run on the device",
        );
        std::thread::sleep(ONCE);
        again.store(true, Ordering::Relaxed);
    });
    flag
}
