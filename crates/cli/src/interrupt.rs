//! Ctrl-C, and all other signals that end programs unless they are caught: the first ends the campaign in good order,
//! a second Ctrl-C ends the program.
//!
//! Not here: signals that tell of a fault of the program itself, and SIGPIPE, which is an error of the write.

use crate::output;
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the flag is looked at, to tell the user that it was seen.
const LOOK: Duration = Duration::from_millis(250);

/// Signals that come within this time of the first are the same: some programs signal a process and its group.
pub const ONCE: Duration = Duration::from_secs(2);

/// Signals that end a program unless they are caught.
pub const ENDING: [i32; 12] = [
    SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGXCPU, SIGXFSZ,
];

/// Those of them that say it once more where they come again. Others come by themselves: SIGXCPU every second, from a
/// limit of processor time on.
pub const AGAIN: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// A flag that the first signal sets.
pub fn flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let again = Arc::new(AtomicBool::new(false));
    for signal in ENDING {
        let ends = !AGAIN.contains(&signal)
            || signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&again)).is_ok();
        let sets = signal_hook::flag::register(signal, Arc::clone(&flag));
        if !ends || sets.is_err() {
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
