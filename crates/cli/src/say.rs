//! Messages on standard error, separate from the results.

use std::io::{self, Write};

/// Prints a line to standard error, ignoring write errors.
pub fn say(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}
