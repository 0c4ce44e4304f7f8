//! Messages on standard error, separate from the results.

use std::io::{self, Write};

/// Prints to standard error; write errors are ignored.
pub fn say(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}
