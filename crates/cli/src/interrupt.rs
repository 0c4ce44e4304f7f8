//! Ctrl-C and SIGTERM: the first ends the campaign in good order, the second ends the program.

use crate::output;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that the first signal sets.
pub fn flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // The order matters: the second signal must find the flag set.
        let ends = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag));
        let sets = signal_hook::flag::register(signal, Arc::clone(&flag));
        if ends.is_err() || sets.is_err() {
            output::say(format_args!("warning: signals cannot be caught here; Ctrl-C ends lowtide at once"));
        }
    }
    flag
}
